//! The client's session: logs in, connects, carries on, tries again, and never
//! shows the pass where it was shown before.

use crate::failure::{Blame, Category, Failure};
use crate::pass::card::Card;
use crate::pass::client::passfile::PassFile;
use crate::pass::clock;
use crate::pass::gateway::api::PATH;
use crate::pass::link::{Base, Link, LinkError};
use alpheus_access_pass::client::{Next, connect, next};
use alpheus_access_pass::error::{ClientRefused, Denied};
use alpheus_access_pass::messages::{Acknowledgement, Connected, Hello};
use alpheus_access_pass::request::Stamper;
use alpheus_anonymous_credential::configuration::{OtherConfiguration, Pinned};
use alpheus_anonymous_credential::error::HolderRefused;
use alpheus_anonymous_credential::holder::{Holder, Outgoing, Which};
use alpheus_anonymous_credential::ledger::LedgerError;
use alpheus_anonymous_credential::messages::SessionId;
use alpheus_anonymous_credential::schedule::{Epoch, Period, Time};
use alpheus_crypto::hash::Digest;
use axum::http::Method;
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// The first pause before trying again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
/// A login's length; re-ups are shorter.
const LOGIN: usize = 392;

/// A session that requests can be sent on: a way of its own and its stamps.
pub struct Live {
    /// The way; its connections are this session's alone.
    pub link: Link,
    /// Makes stamps.
    pub stamper: Mutex<Stamper>,
    /// Counts sessions of this process: cookies are kept apart by it.
    pub number: u64,
}

/// What requests see of the session.
pub type Current = watch::Receiver<Option<Arc<Live>>>;

/// What the driver can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The gateway does not know the session's connection any more.
    Reconnect,
    /// End the session, and stop.
    LogOut,
}

/// Why the session does not go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The way to the gateway.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The holder's rules.
    #[error(transparent)]
    Holder(#[from] HolderRefused),
    /// The gateway's answer.
    #[error(transparent)]
    Client(#[from] ClientRefused),
    /// The gateway's bytes.
    #[error("the gateway's answer is malformed: {0}")]
    Malformed(#[from] Denied),
    /// It works by another configuration.
    #[error(transparent)]
    Configuration(#[from] OtherConfiguration),
    /// The pass file.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// There is no pass for the period.
    #[error("there is no pass for this period; fetch it")]
    NoPass,
    /// The pass file or the card.
    #[error("{0}")]
    Failed(String),
}

impl SessionError {
    /// Whether there is no use in trying again.
    fn is_final(&self) -> bool {
        matches!(self, Self::Configuration(_) | Self::Ledger(_) | Self::NoPass | Self::Failed(_))
    }
}

/// Drives one pass's sessions.
pub struct Driver {
    file: PassFile,
    pinned: Pinned,
    card: Card,
    base: Base,
    rng: ChaCha20Rng,
    holder: Option<Holder>,
    current: watch::Sender<Option<Arc<Live>>>,
    session: Option<(SessionId, Epoch)>,
    /// Where a session's epochs began: it is carried on for so many.
    first: Option<Epoch>,
    most_epochs: u64,
    sessions: u64,
}

impl Driver {
    /// A driver without a session.
    ///
    /// # Errors
    /// If the card in the file is damaged, or `gateway` is no address.
    pub fn new(
        file: PassFile,
        gateway: Option<&str>,
        most_epochs: u64,
        rng: ChaCha20Rng,
    ) -> Result<(Self, Current), Failure> {
        let (card, pinned) = file.card()?;
        let base = Base::parse(gateway.unwrap_or(&card.gateway)).blame(Category::Usage)?;
        let (current, seen) = watch::channel(None);
        let (holder, session, first) = (None, None, None);
        let driver = Self {
            file,
            pinned,
            card,
            base,
            rng,
            holder,
            current,
            session,
            first,
            most_epochs,
            sessions: 0,
        };
        Ok((driver, seen))
    }

    /// Keeps a session up until told to log out.
    ///
    /// # Errors
    /// What trying again would not mend.
    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>) -> Result<(), SessionError> {
        let mut jitter = self.rng.next_u32();
        let mut pause = PAUSES.0;
        loop {
            let epoch = self.session.map(|(_, epoch)| epoch);
            let done = match next(&self.pinned.schedule, clock::now(), epoch, jitter) {
                Next::Wait(until) => self.wait(clock::until(until), &mut orders).await,
                Next::ReUp if self.is_spent() => self.wait_for_next(&mut orders).await,
                Next::ReUp => self.re_up().await.map(|()| false),
                Next::LogIn => self.log_in(Which::Running).await.map(|()| false),
                Next::LogInNext => self.log_in(Which::Next).await.map(|()| false),
            };
            match done {
                Ok(true) => return Ok(()),
                Ok(false) => pause = PAUSES.0,
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, "no session yet; trying again");
                    if self.wait(self.pause(&error, pause), &mut orders).await? {
                        return Ok(());
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
            if self.session.map(|(_, epoch)| epoch) != epoch {
                jitter = self.rng.next_u32();
            }
        }
    }

    /// Until an order comes or the time is over; whether to stop.
    async fn wait(
        &mut self,
        time: Duration,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Result<bool, SessionError> {
        // The wall clock may be set meanwhile.
        let time = time.min(Duration::from_secs(5));
        let order = tokio::select! {
            () = tokio::time::sleep(time) => return Ok(false),
            order = orders.recv() => order,
        };
        match order {
            None => Ok(true),
            Some(Order::LogOut) => self.log_out().await.map(|()| true),
            Some(Order::Reconnect) => {
                if let Some((session, _)) = self.session {
                    let link = self.fresh_link()?;
                    self.connect(session, link).await?;
                }
                Ok(false)
            }
        }
    }

    /// The session was carried on for as long as it was wanted.
    fn is_spent(&self) -> bool {
        let Some((_, epoch)) = self.session else { return false };
        self.first.is_some_and(|first| epoch.0 + 1 - first.0 >= self.most_epochs)
    }

    async fn wait_for_next(
        &mut self,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Result<bool, SessionError> {
        let epoch = self.session.map_or(Epoch(0), |(_, epoch)| epoch);
        let until = self.pinned.schedule.starts(epoch.next());
        self.wait(clock::until(until), orders).await
    }

    /// What would not be taken now is tried in the next epoch; what was lost, soon.
    fn pause(&self, error: &SessionError, pause: Duration) -> Duration {
        let lost = matches!(error, SessionError::Link(error) if error.may_pass());
        if lost {
            return pause;
        }
        let running = self.pinned.schedule.epoch_at(clock::now()).unwrap_or(Epoch(0));
        clock::until(self.pinned.schedule.starts(running.next())).max(Duration::from_millis(1))
    }

    /// New connections, to be used by one session only.
    fn fresh_link(&self) -> Result<Link, SessionError> {
        let link = Link::new(self.base.clone(), self.card.authority.as_deref());
        link.map_err(|failure| SessionError::Failed(failure.to_string()))
    }

    async fn hello(&self, link: &Link) -> Result<Hello, SessionError> {
        Ok(Hello::from_bytes(&link.exchange(Method::GET, PATH, &[], Vec::new()).await?)?)
    }

    /// The pass of an epoch's period.
    fn take_holder(&mut self, epoch: Epoch) -> Result<(), SessionError> {
        let period: Period = self.pinned.schedule.period_of(epoch);
        if self.holder.as_ref().is_none_or(|holder| holder.period() != period) {
            let holder = self.file.holder(&self.pinned, period);
            let holder = holder.map_err(|failure| SessionError::Failed(failure.to_string()))?;
            self.holder = Some(holder.ok_or(SessionError::NoPass)?);
        }
        Ok(())
    }

    /// Logs in for an epoch; what was shown in it already is sent again instead.
    async fn log_in(&mut self, which: Which) -> Result<(), SessionError> {
        let running = self.pinned.schedule.epoch_at(clock::now()).ok_or(HolderRefused::Epoch)?;
        let epoch = if which == Which::Next { running.next() } else { running };
        if self.session.is_some_and(|(_, come_to)| come_to < running) {
            self.session = None;
            self.current.send_replace(None);
        }
        self.take_holder(epoch)?;
        let link = self.fresh_link()?;
        let hello = self.hello(&link).await?;
        let compared = self.pinned.compare(&hello.fingerprint)?;
        let holder = self.holder.as_mut().ok_or(SessionError::NoPass)?;
        let nothing = Digest([0; 32]);
        let shown = holder.log_in(clock::now(), which, &compared, &nothing, &mut self.rng);
        let step = match shown {
            Err(HolderRefused::Burnt) => holder.resend(epoch)?,
            shown => shown?,
        };
        let sent = step.commit(&mut self.file)?;
        holder.prune().commit(&mut self.file)?;
        let acknowledged = self.send(&sent, &link).await?;
        if which == Which::Next {
            // The old session serves until the new one's first epoch begins.
            tokio::time::sleep(clock::until(self.pinned.schedule.starts(epoch))).await;
        }
        self.first = Some(acknowledged.epoch);
        self.sessions += 1;
        self.connect(acknowledged.session, link).await?;
        self.session = Some((acknowledged.session, acknowledged.epoch));
        Ok(())
    }

    async fn re_up(&mut self) -> Result<(), SessionError> {
        let (_, epoch) = self.session.ok_or(SessionError::NoPass)?;
        let link = self.current.borrow().as_ref().map(|live| live.link.clone());
        let link = link.map_or_else(|| self.fresh_link(), Ok)?;
        let holder = self.holder.as_mut().ok_or(SessionError::NoPass)?;
        let step = if holder.newest() == Some(epoch.next()) {
            holder.resend(epoch.next())?
        } else {
            holder.re_up(clock::now(), &mut self.rng)?
        };
        let sent = step.commit(&mut self.file)?;
        holder.prune().commit(&mut self.file)?;
        let acknowledged = self.send(&sent, &link).await?;
        self.session = Some((acknowledged.session, acknowledged.epoch));
        Ok(())
    }

    /// Sends what was made durable.
    async fn send(&self, sent: &Outgoing, link: &Link) -> Result<Acknowledgement, SessionError> {
        let what = if sent.bytes.len() == LOGIN { "login" } else { "re-up" };
        let answer = link.post(&format!("{PATH}/{what}"), sent.bytes.clone()).await?;
        Ok(Acknowledgement::from_bytes(&answer)?)
    }

    /// Speaks for the session on a link, from now on.
    async fn connect(&mut self, session: SessionId, link: Link) -> Result<(), SessionError> {
        let hello = self.hello(&link).await?;
        self.pinned.compare(&hello.fingerprint)?;
        let holder = self.holder.as_ref().ok_or(SessionError::NoPass)?;
        let (message, connecting) = connect(holder, session, &hello, &mut self.rng)?;
        let answer = link.post(&format!("{PATH}/connect"), message.to_bytes()).await?;
        let stamper = connecting.finish(&Connected::from_bytes(&answer)?)?;
        let live = Live { link, stamper: Mutex::new(stamper), number: self.sessions };
        self.current.send_replace(Some(Arc::new(live)));
        tracing::info!("connected");
        Ok(())
    }

    async fn log_out(&mut self) -> Result<(), SessionError> {
        let Some((session, _)) = self.session else { return Ok(()) };
        let link = self.fresh_link()?;
        let holder = self.holder.as_ref().ok_or(SessionError::NoPass)?;
        let logout = holder.log_out(session)?;
        self.current.send_replace(None);
        link.post(&format!("{PATH}/logout"), logout.to_bytes()).await?;
        Ok(())
    }
}

/// When the running epoch of a schedule ends; for people.
#[must_use]
pub fn epoch_end(pinned: &Pinned, now: Time) -> Option<Time> {
    let running = pinned.schedule.epoch_at(now)?;
    Some(pinned.schedule.starts(running.next()))
}
