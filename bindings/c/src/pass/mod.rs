//! A client of anonymous passes: requests, logins, re-ups, connections, stamps.
//!
//! Every message comes out only once the caller has stored what it burns. Times are the caller's.

pub mod card;
pub mod store;

use crate::codes::Code;
use crate::home::Home;
use crate::randomness::Randomness;
use crate::refusal::Refusal;
use alpheus_access_pass::client::{
    AcknowledgedSession, Next, Pace, PendingConnection, connect, next,
};
use alpheus_access_pass::messages::{Acknowledgement, ConnectResponse, Hello};
use alpheus_access_pass::request::{Stamper, Target};
use alpheus_anonymous_credential::error::HolderError;
use alpheus_anonymous_credential::holder::{
    Holder, OutboundMessage, PendingRequest, Timing, forget_before,
};
use alpheus_anonymous_credential::schedule::{Epoch, Period};
use alpheus_crypto::hash::Digest;
use alpheus_time::Timestamp;
use card::Card;
use data_encoding::BASE64;
use std::fmt::{Debug, Display};
use std::sync::{Mutex, MutexGuard, TryLockError};
use store::Store;
use zeroize::Zeroizing;

/// At epochs whose number is a multiple of this, everybody's sessions begin again, as with
/// `alpheus pass client run`.
const ROTATION: u64 = 240;

/// A pass that C uses, one call at a time.
pub struct Handle {
    home: Home,
    inner: Mutex<Inner>,
}

struct Inner {
    card: Card,
    store: Store,
    pace: Pace,
    requested: Option<PendingRequest>,
    /// A login or re-up that has no answer yet.
    sent: Option<OutboundMessage>,
    session: Option<AcknowledgedSession>,
    /// Logged in ahead. It takes over when its first epoch begins.
    upcoming: Option<AcknowledgedSession>,
    connecting: Option<PendingConnection>,
}

/// A connection of a session, whose requests it stamps.
pub struct Connection {
    home: Home,
    stamper: Mutex<Stamper>,
}

/// What to do next, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Nothing before this time.
    Wait(Timestamp),
    /// Carry the session on.
    ReUp,
    /// Log in for an epoch.
    LogIn(Timing),
}

fn refused(error: impl Debug + Display) -> Refusal {
    Refusal::of(Code::PassRefused, &error)
}

fn malformed(error: impl Debug + Display) -> Refusal {
    Refusal::of(Code::ServerOtherVersion, &error)
}

impl Handle {
    /// The pass of a store.
    ///
    /// # Errors
    /// [`Code::CardInvalid`] if the card in the file is damaged.
    pub fn new(mut store: Store) -> Result<Handle, Refusal> {
        let card = Card::read(&store.contents.card)?;
        let pace = Pace::draw(&mut store.rng);
        Ok(Handle::with(card, store, pace))
    }

    /// The pass of a store, under this card.
    #[must_use]
    pub fn with(card: Card, store: Store, pace: Pace) -> Handle {
        let inner = Inner {
            card,
            store,
            pace,
            requested: None,
            sent: None,
            session: None,
            upcoming: None,
            connecting: None,
        };
        Handle { home: Home::here(), inner: Mutex::new(inner) }
    }

    /// The pass, in the process that opened it, unless another call uses it.
    fn lock(&self) -> Result<MutexGuard<'_, Inner>, Refusal> {
        self.home.check()?;
        let inner = self.inner.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                let what = "another call uses this pass; a pass takes one call at a time";
                Refusal::new(Code::HandleBusy, "Busy", what)
            }
            TryLockError::Poisoned(_) => {
                let what = "a call failed inside the library; free this handle and open the file";
                Refusal::new(Code::HandleClosed, "Closed", what)
            }
        })?;
        // What is in memory and not in the file must not leave.
        inner.store.check()?;
        Ok(inner)
    }

    /// Draws from this source from now on.
    ///
    /// # Errors
    /// [`Code::ProcessCopied`] or [`Code::HandleBusy`].
    pub fn draw_from(&self, rng: Randomness) -> Result<(), Refusal> {
        self.lock()?.store.rng = rng;
        Ok(())
    }

    /// Reads something of the card and the account.
    ///
    /// # Errors
    /// [`Code::ProcessCopied`] or [`Code::HandleBusy`], or the error of `read`.
    pub fn read<T>(
        &self,
        read: impl FnOnce(&Card, &Store) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let inner = self.lock()?;
        read(&inner.card, &inner.store)
    }

    /// What to send to the issuer for the pass of a period; nothing if the file has the pass. A
    /// request that was begun before is repeated unchanged.
    ///
    /// # Errors
    /// [`Code::PassRefused`] or [`Code::IoFailed`].
    pub fn request(&self, timing: Timing, now: Timestamp) -> Result<Vec<u8>, Refusal> {
        let mut inner = self.lock()?;
        let Inner { card, store, requested, .. } = &mut *inner;
        let running = card.pinned.schedule.epoch_at(now).ok_or(HolderError::Epoch);
        let running = card.pinned.schedule.period_of(running.map_err(refused)?);
        let period = match timing {
            Timing::Running => running,
            Timing::Next => Period(running.0.saturating_add(1)),
        };
        match store.holder(card, period) {
            Ok(_) => return Ok(Vec::new()),
            Err(missing) if missing.code == Code::PassMissing => {}
            Err(damaged) => return Err(damaged),
        }
        let pinned = card.pinned.clone();
        let begun = PendingRequest::restore(pinned.clone(), period, &store.contents.records);
        let begun = begun.map_err(|error| Refusal::of(Code::PassfileInvalid, &error))?;
        let pending = match begun {
            Some(pending) => pending,
            None => {
                let account = store.contents.account.clone().into_bytes();
                let rng = &mut store.rng;
                let step = PendingRequest::begin(pinned, &account, timing, now, rng);
                store.release(step.map_err(refused)?)?
            }
        };
        Ok(requested.insert(pending).bytes())
    }

    /// Takes the issuer's answer to the last request.
    ///
    /// # Errors
    /// [`Code::PassRefused`] or [`Code::IoFailed`].
    pub fn issued(&self, answer: &[u8]) -> Result<(), Refusal> {
        let mut inner = self.lock()?;
        let Inner { store, requested, .. } = &mut *inner;
        let pending = requested.as_ref();
        let pending = pending.ok_or_else(|| order("NoRequest", "no request has been made"))?;
        let step = pending.finish(answer).map_err(refused)?;
        store.release(step)?;
        *requested = None;
        Ok(())
    }

    /// What to do next.
    ///
    /// # Errors
    /// [`Code::ProcessCopied`] or [`Code::HandleBusy`].
    pub fn next(&self, now: Timestamp) -> Result<NextStep, Refusal> {
        let mut inner = self.lock()?;
        inner.take_over(now);
        let Inner { card, pace, session, upcoming, .. } = &*inner;
        let schedule = &card.pinned.schedule;
        if let Some(ahead) = upcoming {
            return Ok(NextStep::Wait(schedule.starts(ahead.epoch())));
        }
        let epoch = session.map(|ours| ours.epoch());
        Ok(match next(schedule, now, epoch, *pace, ROTATION) {
            Next::Wait(until) => NextStep::Wait(until),
            Next::ReUp => NextStep::ReUp,
            Next::LogIn => NextStep::LogIn(Timing::Running),
            Next::LogInNext => NextStep::LogIn(Timing::Next),
        })
    }

    /// Presents the pass in an epoch, to a gateway that said hello. If it was presented before, the
    /// same message comes, or the re-up to the next epoch if that one is open.
    ///
    /// # Errors
    /// [`Code::CardInvalid`] if the gateway has another configuration; [`Code::PassMissing`],
    /// [`Code::PassRefused`] or [`Code::IoFailed`].
    pub fn log_in(
        &self,
        timing: Timing,
        hello: &[u8],
        message: &Digest,
        now: Timestamp,
    ) -> Result<Vec<u8>, Refusal> {
        let mut inner = self.lock()?;
        inner.take_over(now);
        let Inner { card, store, sent, .. } = &mut *inner;
        let hello = Hello::from_bytes(hello).map_err(malformed)?;
        let compared = card.pinned.compare(&hello.fingerprint);
        let compared = compared.map_err(|error| Refusal::of(Code::CardInvalid, &error))?;
        let running = card.pinned.schedule.epoch_at(now).ok_or(HolderError::Epoch);
        let running = running.map_err(refused)?;
        let epoch = if timing == Timing::Next { running.next() } else { running };
        let period = card.pinned.schedule.period_of(epoch);
        let mut holder = store.holder(card, period)?;
        holder.check_no_code(epoch).map_err(refused)?;
        let step = match holder.log_in(timing, &compared, message, now, &mut store.rng) {
            Err(HolderError::Burnt) => holder.resend_latest(epoch, now),
            step => step,
        };
        let out = store.release(step.map_err(refused)?)?;
        store.release(holder.prune())?;
        // A session of the previous period may still run.
        let over = forget_before(Period(period.0.saturating_sub(1)), &store.contents.records);
        store.release(over)?;
        Ok(sent.insert(out).bytes.clone())
    }

    /// Carries the session on to the next epoch.
    ///
    /// # Errors
    /// [`Code::PassRefused`] or [`Code::IoFailed`].
    pub fn re_up(&self, now: Timestamp) -> Result<Vec<u8>, Refusal> {
        let mut inner = self.lock()?;
        inner.take_over(now);
        let Inner { card, store, sent, session, .. } = &mut *inner;
        let ours = session.ok_or_else(|| order("NoSession", "there is no session; log in"))?;
        let (session, epoch) = (ours.session(), ours.epoch());
        let mut holder = store.holder(card, card.pinned.schedule.period_of(epoch))?;
        let step = if holder.has_presented(session, epoch.next()) {
            holder.resend(epoch.next())
        } else if holder.newest() > Some(epoch) {
            Err(HolderError::Burnt)
        } else {
            holder.re_up(now, &mut store.rng)
        };
        let out = store.release(step.map_err(refused)?)?;
        store.release(holder.prune())?;
        Ok(sent.insert(out).bytes.clone())
    }

    /// Takes the gateway's answer to the last login or re-up.
    ///
    /// # Errors
    /// [`Code::PassRefused`] if it is for another session: the gateway may be trying to link sessions.
    pub fn acknowledged(&self, answer: &[u8], now: Timestamp) -> Result<(), Refusal> {
        let mut inner = self.lock()?;
        let unsent = || order("NothingSent", "no login or re-up waits for an answer");
        let sent = inner.sent.clone().ok_or_else(unsent)?;
        let answer = Acknowledgement::from_bytes(answer).map_err(malformed)?;
        let holder = inner.holder_of(sent.epoch)?;
        let ours = AcknowledgedSession::check(&holder, &sent, &answer).map_err(refused)?;
        inner.sent = None;
        inner.settle(ours, now);
        Ok(())
    }

    /// Answers the hello of a gateway for the session that was acknowledged last.
    ///
    /// # Errors
    /// [`Code::CardInvalid`] if the gateway has another configuration; [`Code::PassRefused`].
    pub fn connect(&self, hello: &[u8]) -> Result<Vec<u8>, Refusal> {
        let mut inner = self.lock()?;
        let ours = inner.newest();
        let ours = ours.ok_or_else(|| order("NoSession", "there is no session; log in"))?;
        let hello = Hello::from_bytes(hello).map_err(malformed)?;
        let compared = inner.card.pinned.compare(&hello.fingerprint);
        compared.map_err(|error| Refusal::of(Code::CardInvalid, &error))?;
        let holder = inner.holder_of(ours.epoch())?;
        let (message, pending) =
            connect(&holder, &ours, &hello, &mut inner.store.rng).map_err(refused)?;
        inner.connecting = Some(pending);
        Ok(message.to_bytes())
    }

    /// Takes the gateway's answer, and gives the connection.
    ///
    /// # Errors
    /// [`Code::PassRefused`] if the gateway does not have the key: there may be a party in between.
    pub fn connected(&self, answer: &[u8]) -> Result<Connection, Refusal> {
        let mut inner = self.lock()?;
        let answer = ConnectResponse::from_bytes(answer).map_err(malformed)?;
        let unsent = || order("NothingSent", "no connection waits for an answer");
        let pending = inner.connecting.take().ok_or_else(unsent)?;
        let stamper = Mutex::new(pending.finish(&answer).map_err(refused)?);
        Ok(Connection { home: Home::here(), stamper })
    }

    /// Ends the session that was acknowledged last: what to send.
    ///
    /// # Errors
    /// [`Code::PassRefused`].
    pub fn log_out(&self) -> Result<Vec<u8>, Refusal> {
        let mut inner = self.lock()?;
        let ours = inner.newest();
        let ours = ours.ok_or_else(|| order("NoSession", "there is no session"))?;
        let logout = inner.holder_of(ours.epoch())?.log_out(ours.session()).map_err(refused)?;
        match inner.upcoming.take() {
            Some(_) => {}
            None => inner.session = None,
        }
        inner.connecting = None;
        Ok(logout.to_bytes())
    }
}

impl Inner {
    /// The session that was acknowledged last.
    fn newest(&self) -> Option<AcknowledgedSession> {
        self.upcoming.or(self.session)
    }

    fn holder_of(&self, epoch: Epoch) -> Result<Holder, Refusal> {
        self.store.holder(&self.card, self.card.pinned.schedule.period_of(epoch))
    }

    /// The upcoming session takes over when its first epoch begins.
    fn take_over(&mut self, now: Timestamp) {
        let schedule = self.card.pinned.schedule;
        if let Some(begun) = self.upcoming.take_if(|ahead| now >= schedule.starts(ahead.epoch())) {
            self.now_is(Some(begun));
        }
    }

    /// Notes a session, which may be one for the next epoch.
    fn settle(&mut self, ours: AcknowledgedSession, now: Timestamp) {
        let ahead = now < self.card.pinned.schedule.starts(ours.epoch());
        let carried = self.session.is_some_and(|before| before.session() == ours.session());
        match ahead && !carried {
            true => self.upcoming = Some(ours),
            false => self.now_is(Some(ours)),
        }
    }

    fn now_is(&mut self, session: Option<AcknowledgedSession>) {
        self.pace = self.pace.follow(self.session, session, &mut self.store.rng);
        self.session = session;
    }
}

impl Connection {
    /// The header of one request, to be used once.
    ///
    /// # Errors
    /// [`Code::PassRefused`] once all counters are used; [`Code::ProcessCopied`].
    pub fn stamp(&self, target: &Target<'_>) -> Result<String, Refusal> {
        self.home.check()?;
        let poisoned = |_| Refusal::new(Code::HandleClosed, "Closed", "the connection is closed");
        let mut stamper = self.stamper.lock().map_err(poisoned)?;
        Ok(stamper.stamp(target).map_err(refused)?.to_string())
    }
}

/// The value of the header `Authorization` for the issuer.
///
/// # Errors
/// [`Code::ArgumentWrong`] if the account has no secret.
pub fn authorization(store: &Store) -> Result<Zeroizing<String>, Refusal> {
    let (account, secret) = store.account();
    let what =
        "the account has no secret; show the issuer an ID token: `Bearer`, a space, the token";
    let secret = secret.ok_or_else(|| order("NoSecret", what))?;
    let credentials = Zeroizing::new(format!("{account}:{secret}"));
    let encoded = Zeroizing::new(BASE64.encode(credentials.as_bytes()));
    Ok(Zeroizing::new(format!("Basic {}", *encoded)))
}

fn order(reason: &str, message: &str) -> Refusal {
    Refusal::argument(reason, message)
}
