//! A gateway's sessions. It holds no issuer's key and stores nothing: what it
//! knows of a session it was told by the verifier, and after a restart it asks
//! again.
//!
//! A session serves requests in the epochs that it was logged in and carried on
//! for. At the end of the last one nothing new is opened; what runs may finish
//! within the overlap, then it is cut.

use crate::client::{connection_nonce, request_key};
use crate::error::Denied;
use crate::messages::{Challenge, Connect, Connected, Hello};
use crate::request::{Stamp, Target, tag};
use crate::window::Window;
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::messages::{Login, Logout, SessionId};
use alpheus_anonymous_credential::schedule::{Epoch, Time};
use alpheus_anonymous_credential::sessions::Standing;
use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::labels;
use alpheus_crypto::mac::{MacKey, Tag};
use alpheus_crypto::secret::Secret;
use rand_core::CryptoRng;
use std::collections::HashMap;

/// How long a challenge may be answered, in microseconds.
pub const CHALLENGE_LIFE: u64 = 30_000_000;

/// What a gateway allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests of one session that run at the same time.
    pub concurrent: u32,
    /// How long after a session's end its running requests may finish, in
    /// microseconds.
    pub overlap: u64,
}

impl Default for Limits {
    /// Sixteen requests, two seconds.
    fn default() -> Self {
        Self { concurrent: 16, overlap: 2_000_000 }
    }
}

/// The sessions of one gateway process.
pub struct Gateway {
    pinned: Pinned,
    limits: Limits,
    agreement: AgreementKey,
    challenges: MacKey,
    sessions: HashMap<SessionId, Session>,
    /// The latest epoch that ran here. A clock before it went back.
    clock: Option<Epoch>,
}

struct Session {
    standing: Standing,
    ended: bool,
    wire: Option<Wire>,
    /// Requests that run.
    running: u32,
}

/// A connection: the key of its requests and the counters that were used.
struct Wire {
    key: MacKey,
    window: Window,
    /// `time:64 ‖ random:64` of the challenge that it answered; a later connection
    /// answers a later one.
    answered: [u8; 16],
}

/// A request that may go on. Whoever gets one says [`Gateway::finish`] in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a request that is not finished counts against its session"]
pub struct Admitted {
    /// The session.
    pub session: SessionId,
    /// When to look again whether it may still run, in microseconds.
    pub until: Time,
}

impl Gateway {
    /// A gateway that knows no session.
    #[must_use]
    pub fn new(pinned: Pinned, limits: Limits, rng: &mut impl CryptoRng) -> Self {
        Self {
            pinned,
            limits,
            agreement: AgreementKey::random(rng),
            challenges: MacKey::new(&Secret::random(rng)),
            sessions: HashMap::new(),
            clock: None,
        }
    }

    /// What a client compares and answers.
    pub fn hello(&self, now: Time, rng: &mut impl CryptoRng) -> Hello {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&now.0.to_be_bytes());
        rng.fill_bytes(&mut bytes[8..16]);
        let tag = self.challenges.tag(labels::PASS_CHALLENGE, &[&bytes[..16]]);
        bytes[16..].copy_from_slice(&tag.0);
        let fingerprint = self.pinned.fingerprint();
        Hello { fingerprint, challenge: Challenge(bytes), agreement: self.agreement.public() }
    }

    /// Takes note of what the verifier says of a session: after a login, a re-up,
    /// or when it was asked. What a session has come to never goes back.
    pub fn note(&mut self, standing: Standing) {
        let new = || Session { standing, ended: false, wire: None, running: 0 };
        let session = self.sessions.entry(standing.session).or_insert_with(new);
        if standing.epoch > session.standing.epoch {
            session.standing = standing;
        }
    }

    /// Whether the session is known here and has come as far as the running epoch:
    /// else the verifier may know more.
    #[must_use]
    pub fn knows(&self, now: Time, id: SessionId) -> bool {
        let running = self.pinned.schedule.epoch_at(now);
        let known = self.sessions.get(&id);
        known.is_some_and(|session| session.ended || running <= Some(session.standing.epoch))
    }

    /// Whether a challenge is this gateway's, and may be answered still. Costs one
    /// MAC, so ask it before anything else about a `Connect`.
    ///
    /// # Errors
    /// [`Denied::Challenge`].
    pub fn recognises(&self, now: Time, challenge: &Challenge) -> Result<(), Denied> {
        self.check_challenge(now, challenge).map(|_| ())
    }

    /// A holder speaks for a session from now on, with a fresh key. An earlier
    /// connection of the session is over: its stamps count no more.
    ///
    /// # Errors
    /// [`Denied`].
    ///
    /// # Privacy
    /// The gateway learns which requests make one session, as it must, and nothing
    /// that links the session to another one.
    pub fn connect(&mut self, now: Time, connect: &Connect) -> Result<Connected, Denied> {
        self.tick(now)?;
        let answered = self.check_challenge(now, &connect.challenge)?;
        let session = self.sessions.get_mut(&connect.session).ok_or(Denied::NoSession)?;
        if session.ended {
            return Err(Denied::Ended);
        }
        if session.wire.as_ref().is_some_and(|wire| answered <= wire.answered) {
            return Err(Denied::Challenge);
        }
        let ours = self.agreement.public();
        let nonce = connection_nonce(&connect.challenge, &ours, &connect.agreement);
        let speaks = [connect.session.0.0.as_bytes().as_slice(), &nonce].concat();
        session
            .standing
            .holder
            .verify(labels::CREDENTIAL_CONNECTION, &speaks, &connect.signature)
            .map_err(|_| Denied::Signature)?;
        let agreed = self.agreement.agree(&connect.agreement)?;
        let key = request_key(&agreed, connect.session, &nonce);
        let until = self.pinned.schedule.starts(session.standing.epoch.next());
        let parts: [&[u8]; 2] = [&nonce, &until.0.to_be_bytes()];
        let confirmation = key.tag(labels::PASS_CONFIRMATION, &parts);
        session.wire = Some(Wire { key, window: Window::default(), answered });
        Ok(Connected { until, confirmation })
    }

    fn check_challenge(&self, now: Time, challenge: &Challenge) -> Result<[u8; 16], Denied> {
        let (body, tag) = challenge.0.split_first_chunk::<16>().ok_or(Denied::Challenge)?;
        let tag = Tag(tag.try_into().map_err(|_| Denied::Challenge)?);
        self.challenges
            .verify(labels::PASS_CHALLENGE, &[body], &tag)
            .map_err(|_| Denied::Challenge)?;
        let drawn = body.first_chunk().map_or(0, |time| u64::from_be_bytes(*time));
        let fresh = now.0.checked_sub(drawn).is_some_and(|age| age <= CHALLENGE_LIFE);
        if fresh { Ok(*body) } else { Err(Denied::Challenge) }
    }

    /// Checks one request: its session is served now, its stamp is the session's,
    /// for this request, used for the first time, and not too many run.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn admit(
        &mut self,
        now: Time,
        stamp: &Stamp,
        target: &Target<'_>,
    ) -> Result<Admitted, Denied> {
        let admitted = self.check(now, stamp, target)?;
        let session = self.sessions.get_mut(&stamp.session).ok_or(Denied::NoSession)?;
        if session.running >= self.limits.concurrent {
            return Err(Denied::TooMany);
        }
        session.running += 1;
        Ok(admitted)
    }

    /// The same for who sees only a request's start and not its end (forward
    /// authentication): it counts against nothing.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn check(
        &mut self,
        now: Time,
        stamp: &Stamp,
        target: &Target<'_>,
    ) -> Result<Admitted, Denied> {
        let running = self.tick(now)?.ok_or(Denied::NotYet)?;
        let session = self.sessions.get_mut(&stamp.session).ok_or(Denied::NoSession)?;
        if session.ended {
            return Err(Denied::Ended);
        }
        let wire = session.wire.as_mut().ok_or(Denied::NotConnected)?;
        if tag(&wire.key, stamp.session, stamp.counter, target) != stamp.tag {
            return Err(Denied::Unauthentic);
        }
        let Standing { first, epoch, .. } = session.standing;
        if running < first {
            return Err(Denied::NotYet);
        }
        if running > epoch {
            return Err(Denied::Lapsed);
        }
        if !wire.window.accept(stamp.counter) {
            return Err(Denied::Replayed);
        }
        let until = cut_at(&self.pinned, &self.limits, epoch);
        Ok(Admitted { session: stamp.session, until })
    }

    /// A request has ended, however.
    pub fn finish(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.running = session.running.saturating_sub(1);
        }
    }

    /// Until when a running request of the session may go on: the end of the last
    /// epoch that it was carried on for, and the overlap. None if it has ended.
    #[must_use]
    pub fn until(&self, id: SessionId) -> Option<Time> {
        let session = self.sessions.get(&id).filter(|session| !session.ended)?;
        Some(cut_at(&self.pinned, &self.limits, session.standing.epoch))
    }

    /// The session has ended: checks the logout itself, so that it cuts at once;
    /// the verifier must be told too.
    ///
    /// # Errors
    /// [`Denied::NoSession`], [`Denied::Signature`].
    pub fn log_out(&mut self, logout: &Logout) -> Result<(), Denied> {
        let session = self.sessions.get_mut(&logout.session).ok_or(Denied::NoSession)?;
        let id = logout.session.0.0;
        session
            .standing
            .holder
            .verify(labels::CREDENTIAL_LOGOUT, id.as_bytes(), &logout.signature)
            .map_err(|_| Denied::Signature)?;
        session.ended = true;
        session.wire = None;
        Ok(())
    }

    /// Forgets sessions that nothing can run for or be carried on any more.
    pub fn prune(&mut self, now: Time) {
        let Some(running) = self.pinned.schedule.epoch_at(now) else { return };
        self.sessions
            .retain(|_, session| session.running > 0 || session.standing.epoch.next() >= running);
    }

    /// How many sessions are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// The epoch that runs, unless the clock went back.
    fn tick(&mut self, now: Time) -> Result<Option<Epoch>, Denied> {
        let running = self.pinned.schedule.epoch_at(now);
        if running < self.clock {
            return Err(Denied::ClockStepped);
        }
        self.clock = running;
        Ok(running)
    }
}

fn cut_at(pinned: &Pinned, limits: &Limits, epoch: Epoch) -> Time {
    Time(pinned.schedule.starts(epoch.next()).0.saturating_add(limits.overlap))
}

/// What a login's session would be called, so that its shard can be found
/// without a key.
#[must_use]
pub fn session_of(pinned: &Pinned, login: &Login) -> SessionId {
    use alpheus_anonymous_credential::messages::TagId;
    SessionId(TagId::of(&pinned.fingerprint(), login.epoch, &login.tag))
}
