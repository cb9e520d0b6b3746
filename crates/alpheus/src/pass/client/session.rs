//! The client's session: logs in, connects, carries on, begins anew, tries again.

use crate::failure::{Blame, Category, Failure};
use crate::pass::client::passes::Passes;
use crate::pass::client::passfile::PassFile;
use crate::pass::client::stock::Stock;
use crate::pass::clock;
use crate::pass::gateway::api::PATH;
use crate::pass::link::{Base, Link, LinkError};
use crate::pass::refusal;
use alpheus_access_pass::client::{Next, Served, connect, next};
use alpheus_access_pass::error::{ClientRefused, Denied};
use alpheus_access_pass::messages::{Acknowledgement, Connected, Hello};
use alpheus_access_pass::request::Stamper;
use alpheus_anonymous_credential::configuration::{OtherConfiguration, Pinned};
use alpheus_anonymous_credential::error::{HolderRefused, Refused};
use alpheus_anonymous_credential::holder::{Outgoing, Which};
use alpheus_anonymous_credential::ledger::LedgerError;
use alpheus_anonymous_credential::schedule::Epoch;
use axum::http::Method;
use data_encoding::HEXLOWER;
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// The first pause before trying again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
/// The wall clock may be set while one waits.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A login's length; re-ups are shorter.
const LOGIN: usize = 392;

/// A session that requests can be sent on: a way of its own and its stamps.
pub struct Live {
    /// The way; its connections are this session's alone.
    pub link: Link,
    /// Makes stamps.
    pub stamper: Mutex<Stamper>,
    /// Names the session's cookies, in this process or a later one.
    pub jar: String,
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

/// Whether the driver goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Going {
    On,
    Stops,
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
        match self {
            Self::Configuration(_) | Self::Ledger(_) | Self::NoPass | Self::Failed(_) => true,
            Self::Client(refused) => *refused == ClientRefused::OtherSession,
            _ => false,
        }
    }
}

/// How a client runs.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Another address of the gateway than the card's.
    pub gateway: Option<String>,
    /// At epochs whose number is a multiple of this the session begins anew.
    pub rotation: u64,
    /// Whether it fetches the next period's pass.
    pub fetches: bool,
}

/// Drives one pass's sessions.
pub struct Driver {
    passes: Passes,
    stock: Stock,
    pinned: Pinned,
    base: Base,
    authority: Option<String>,
    rng: ChaCha20Rng,
    current: watch::Sender<Option<Arc<Live>>>,
    session: Option<Served>,
    /// Logged in ahead and connected: takes over when its first epoch begins.
    coming: Option<(Served, Arc<Live>)>,
    rotation: u64,
}

impl Driver {
    /// A driver without a session.
    ///
    /// # Errors
    /// If the card in the file is damaged, or the gateway's address is none.
    pub fn new(
        file: PassFile,
        habits: &Habits,
        rng: ChaCha20Rng,
    ) -> Result<(Self, Current), Failure> {
        let card = file.card()?;
        let pinned = card.pinned;
        let gateway = habits.gateway.as_ref().unwrap_or(&card.gateway);
        let base = Base::parse(gateway).blame(Category::Usage)?;
        let (current, seen) = watch::channel(None);
        let driver = Self {
            passes: Passes::new(file, pinned.clone()),
            stock: Stock::new(habits.fetches),
            pinned,
            base,
            authority: card.authority,
            rng,
            current,
            session: None,
            coming: None,
            rotation: habits.rotation,
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
            self.take_over();
            self.stock.tend(self.passes.file(), &self.pinned, &mut self.rng);
            let epoch = self.session.map(|served| served.epoch());
            let done = match self.next(epoch, jitter) {
                Next::Wait(until) => self.wait(clock::until(until), &mut orders).await,
                Next::ReUp => self.re_up().await.map(|()| Going::On),
                Next::LogIn => self.log_in(Which::Running).await.map(|()| Going::On),
                Next::LogInNext => self.log_in(Which::Next).await.map(|()| Going::On),
            };
            match done {
                Ok(Going::Stops) => return Ok(()),
                Ok(Going::On) => pause = PAUSES.0,
                Err(error) if self.is_over(&error) => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, "not done; trying again");
                    let pausing = self.pause(&error, pause);
                    if self.wait(pausing, &mut orders).await? == Going::Stops {
                        return Ok(());
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
            if self.session.map(|served| served.epoch()) != epoch {
                jitter = self.rng.next_u32();
            }
        }
    }

    /// A session that is live goes on to its end, even if there is no pass for what
    /// comes after it.
    fn is_over(&self, error: &SessionError) -> bool {
        let lives = matches!(error, SessionError::NoPass) && self.session.is_some();
        error.is_final() && !lives
    }

    fn next(&self, epoch: Option<Epoch>, jitter: u32) -> Next {
        match &self.coming {
            Some((served, _)) => Next::Wait(self.pinned.schedule.starts(served.epoch())),
            None => next(&self.pinned.schedule, clock::now(), epoch, jitter, self.rotation),
        }
    }

    /// The session that was logged in ahead serves from its first epoch on.
    fn take_over(&mut self) {
        let begun = |(served, _): &mut (Served, Arc<Live>)| {
            clock::now() >= self.pinned.schedule.starts(served.epoch())
        };
        if let Some((served, live)) = self.coming.take_if(begun) {
            self.session = Some(served);
            self.current.send_replace(Some(live));
        }
    }

    /// Until an order comes or the time is over.
    async fn wait(
        &mut self,
        time: Duration,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Result<Going, SessionError> {
        let order = tokio::select! {
            () = tokio::time::sleep(time.min(LONGEST_WAIT)) => return Ok(Going::On),
            order = orders.recv() => order,
        };
        match (order, self.session) {
            (None, _) => return Ok(Going::Stops),
            (Some(Order::LogOut), _) => return self.log_out().await.map(|()| Going::Stops),
            (Some(Order::Reconnect), Some(served)) => {
                let live = self.connect(&served, self.fresh_link()?).await?;
                self.current.send_replace(Some(live));
            }
            (Some(Order::Reconnect), None) => {}
        }
        Ok(Going::On)
    }

    /// What was lost is tried again soon; what would not be taken now, in the next
    /// epoch, and not at the moment at which all others come.
    fn pause(&mut self, error: &SessionError, pause: Duration) -> Duration {
        let lost = matches!(error, SessionError::Link(error) if error.may_pass());
        if lost {
            return pause;
        }
        let schedule = &self.pinned.schedule;
        let running = schedule.epoch_at(clock::now()).unwrap_or(Epoch(0));
        let spread = Duration::from_micros(schedule.pre_login);
        let spread = spread.mul_f64(f64::from(self.rng.next_u32()) / f64::from(u32::MAX));
        clock::until(schedule.starts(running.next())) + spread
    }

    /// New connections, to be used by one session only.
    fn fresh_link(&self) -> Result<Link, SessionError> {
        let link = Link::new(self.base.clone(), self.authority.as_deref());
        link.map_err(|failure| SessionError::Failed(failure.to_string()))
    }

    async fn hello(&self, link: &Link) -> Result<Hello, SessionError> {
        Ok(Hello::from_bytes(&link.exchange(Method::GET, PATH, &[], Vec::new()).await?)?)
    }

    /// Logs in for an epoch; what was shown in it already is sent again instead.
    async fn log_in(&mut self, which: Which) -> Result<(), SessionError> {
        let running = self.pinned.schedule.epoch_at(clock::now()).ok_or(HolderRefused::Epoch)?;
        let epoch = if which == Which::Next { running.next() } else { running };
        if self.session.is_some_and(|served| served.epoch() < running) {
            self.session = None;
            self.current.send_replace(None);
        }
        self.passes.of(epoch)?;
        let link = self.fresh_link()?;
        let hello = self.hello(&link).await?;
        let compared = self.pinned.compare(&hello.fingerprint)?;
        let sent = self.passes.log_in(epoch, which, &compared, &mut self.rng)?;
        let served = self.send(&sent, &link).await?;
        if self.session.is_some_and(|ours| ours.session() == served.session()) {
            // It was carried on before this client was started anew.
            self.session = Some(served);
            return Ok(());
        }
        let live = self.connect(&served, link).await?;
        match which {
            Which::Next => self.coming = Some((served, live)),
            Which::Running => {
                self.session = Some(served);
                self.current.send_replace(Some(live));
            }
        }
        Ok(())
    }

    async fn re_up(&mut self) -> Result<(), SessionError> {
        let served = self.session.ok_or(SessionError::NoPass)?;
        let link = self.current.borrow().as_ref().map(|live| live.link.clone());
        let link = link.map_or_else(|| self.fresh_link(), Ok)?;
        let sent = self.passes.re_up(served.epoch(), &mut self.rng)?;
        self.session = Some(self.send(&sent, &link).await?);
        Ok(())
    }

    /// Sends what was made durable.
    async fn send(&mut self, sent: &Outgoing, link: &Link) -> Result<Served, SessionError> {
        let what = if sent.bytes.len() == LOGIN { "login" } else { "re-up" };
        let answer = link.post(&format!("{PATH}/{what}"), sent.bytes.clone()).await?;
        let acknowledged = Acknowledgement::from_bytes(&answer)?;
        Ok(Served::check(self.passes.of(sent.epoch)?, sent, &acknowledged)?)
    }

    /// Speaks for the session on a link, from now on.
    async fn connect(&mut self, served: &Served, link: Link) -> Result<Arc<Live>, SessionError> {
        let hello = self.hello(&link).await?;
        self.pinned.compare(&hello.fingerprint)?;
        let holder = self.passes.of(served.epoch())?;
        let (message, connecting) = connect(holder, served, &hello, &mut self.rng)?;
        let answer = link.post(&format!("{PATH}/connect"), message.to_bytes()).await?;
        let stamper = connecting.finish(&Connected::from_bytes(&answer)?)?;
        tracing::info!("connected");
        let jar = HEXLOWER.encode(&served.session().0.0.as_bytes()[..8]);
        Ok(Arc::new(Live { link, stamper: Mutex::new(stamper), jar }))
    }

    /// Ends the session, and the one that was logged in ahead.
    async fn log_out(&mut self) -> Result<(), SessionError> {
        self.current.send_replace(None);
        let coming = self.coming.take().map(|(served, _)| served);
        for served in self.session.take().into_iter().chain(coming) {
            self.end(&served).await?;
        }
        Ok(())
    }

    /// Says it until it is heard, or the session has lapsed by itself.
    async fn end(&mut self, served: &Served) -> Result<(), SessionError> {
        let lapses = self.pinned.schedule.starts(served.epoch().next());
        let logout = self.passes.of(served.epoch())?.log_out(served.session())?.to_bytes();
        let mut pause = PAUSES.0;
        while clock::now() < lapses {
            let link = self.fresh_link()?;
            match link.post(&format!("{PATH}/logout"), logout.clone()).await {
                Err(error) if error.may_pass() => {
                    tracing::warn!(%error, "the session has not ended yet; trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
                Err(error) if !is_gone(&error) => return Err(error.into()),
                _ => return Ok(()),
            }
        }
        Ok(())
    }
}

/// Whether there is nothing to end.
fn is_gone(error: &LinkError) -> bool {
    let gone = [Refused::Ended, Refused::NoSession].map(refusal::rule);
    error.rule().is_some_and(|rule| gone.contains(&rule))
}

#[cfg(test)]
mod tests;
