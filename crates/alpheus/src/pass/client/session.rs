//! The client's session: logs in, connects, carries on, begins anew, tries again.

use crate::failure::{Blame, Category, Failure};
use crate::pass::client::passes::{NoPass, Passes};
use crate::pass::client::passfile::PassFile;
use crate::pass::client::retry::{Failed, Retry};
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
use alpheus_anonymous_credential::schedule::{Epoch, Time};
use axum::http::Method;
use data_encoding::HEXLOWER;
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// The first pause before a logout is said again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
/// The wall clock may be set while one waits.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

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
#[derive(Clone)]
pub enum Order {
    /// The gateway does not know this connection any more. Many requests may say so.
    Reconnect(Arc<Live>),
    /// End the session, and stop.
    LogOut,
}

/// Whether the driver goes on.
enum Going {
    On,
    Ends(Result<(), SessionError>),
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
    #[error(transparent)]
    NoPass(#[from] NoPass),
    /// The pass file or the card.
    #[error("{0}")]
    Failed(String),
}

impl SessionError {
    /// Whether there is no use in trying again.
    fn is_final(&self) -> bool {
        match self {
            Self::Configuration(_) | Self::Ledger(_) | Self::NoPass(_) | Self::Failed(_) => true,
            Self::Client(refused) => *refused == ClientRefused::OtherSession,
            _ => false,
        }
    }

    /// How a step failed; one for the next epoch may have come too early.
    fn how(&self, ahead: bool) -> Failed {
        match self {
            Self::Link(error) if error.may_pass() => Failed::Lost,
            Self::Link(error) if ahead && error.rule() == Some(refusal::rule(Refused::Epoch)) => {
                Failed::Early
            }
            _ => Failed::Refused,
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
    /// When a step of the session's is done again.
    retry: Retry,
    /// The gateway does not know the connection any more: when it is made again.
    lost: Option<Retry>,
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
        let retry = Retry::new(pinned.schedule);
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
            retry,
            lost: None,
            rotation: habits.rotation,
        };
        Ok((driver, seen))
    }

    /// Keeps a session up until told to log out.
    ///
    /// # Errors
    /// What trying again would not mend, or a logout that was not taken.
    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>) -> Result<(), SessionError> {
        let mut jitter = self.rng.next_u32();
        loop {
            self.take_over();
            self.stock.tend(self.passes.file(), &self.pinned, &mut self.rng);
            let epoch = self.session.map(|served| served.epoch());
            match self.next(epoch, jitter) {
                Next::Wait(until) => {
                    if let Going::Ends(ended) = self.idle(until, &mut orders).await {
                        return ended;
                    }
                }
                next => self.step(next).await?,
            }
            if self.session.map(|served| served.epoch()) != epoch {
                jitter = self.rng.next_u32();
            }
        }
    }

    /// A session that is live goes on to its end, even if there is no pass for what
    /// comes after it.
    fn is_over(&self, error: &SessionError) -> bool {
        let lives = matches!(error, SessionError::NoPass(_)) && self.session.is_some();
        error.is_final() && !lives
    }

    fn next(&mut self, epoch: Option<Epoch>, jitter: u32) -> Next {
        let (schedule, now) = (self.pinned.schedule, clock::now());
        if let Some((served, _)) = &self.coming {
            return Next::Wait(schedule.starts(served.epoch()));
        }
        if let Some(then) = self.retry.waits(now) {
            return Next::Wait(then);
        }
        let next = next(&schedule, now, epoch, jitter, self.rotation);
        let anew = next == Next::LogIn && self.shows_anew(now);
        let apart = anew.then(|| self.retry.apart(now, &mut self.rng));
        apart.flatten().map_or(next, Next::Wait)
    }

    /// Whether a login now would show what was not shown before.
    fn shows_anew(&mut self, now: Time) -> bool {
        let running = self.pinned.schedule.epoch_at(now);
        running.is_some_and(|running| {
            self.passes.of(running).is_ok_and(|holder| holder.newest() < Some(running))
        })
    }

    /// Does something about the session. What fails and may pass is done later.
    async fn step(&mut self, next: Next) -> Result<(), SessionError> {
        let done = match next {
            Next::Wait(_) => return Ok(()),
            Next::ReUp => self.re_up().await,
            Next::LogIn => self.log_in(Which::Running).await,
            Next::LogInNext => self.log_in(Which::Next).await,
        };
        match done {
            Ok(()) => self.retry.done(),
            Err(error) if self.is_over(&error) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "not done; trying again");
                let how = error.how(next != Next::LogIn);
                self.retry.failed(clock::now(), how, &mut self.rng);
            }
        }
        Ok(())
    }

    /// The session that was logged in ahead serves from its first epoch on.
    fn take_over(&mut self) {
        let begun = |(served, _): &mut (Served, Arc<Live>)| {
            clock::now() >= self.pinned.schedule.starts(served.epoch())
        };
        if let Some((served, live)) = self.coming.take_if(begun) {
            self.session = Some(served);
            self.serve_on(Some(live));
        }
    }

    /// Requests go this way from now on.
    fn serve_on(&mut self, live: Option<Arc<Live>>) {
        self.lost = None;
        self.current.send_replace(live);
    }

    /// Nothing is to be done for the session until then, but to connect it again if its
    /// connection is lost.
    async fn idle(&mut self, until: Time, orders: &mut mpsc::Receiver<Order>) -> Going {
        match self.lost.as_ref().map(|lost| lost.waits(clock::now())) {
            Some(None) => match self.reconnect().await {
                Ok(()) => Going::On,
                Err(error) => Going::Ends(Err(error)),
            },
            waits => {
                let until = waits.flatten().map_or(until, |then| then.min(until));
                self.wait(clock::until(until), orders).await
            }
        }
    }

    async fn reconnect(&mut self) -> Result<(), SessionError> {
        let Some(served) = self.session else {
            self.lost = None;
            return Ok(());
        };
        let link = self.fresh_link()?;
        match self.connect(&served, link).await {
            Ok(live) => self.serve_on(Some(live)),
            Err(error) if self.is_over(&error) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "not connected again");
                let lost = error.how(false) == Failed::Lost;
                // What is refused is tried again when a request asks for it.
                self.lost = self.lost.take().filter(|_| lost);
                if let Some(retry) = &mut self.lost {
                    retry.failed(clock::now(), Failed::Lost, &mut self.rng);
                }
            }
        }
        Ok(())
    }

    /// Until the time is over, or there is something new to do.
    async fn wait(&mut self, time: Duration, orders: &mut mpsc::Receiver<Order>) -> Going {
        let over = tokio::time::sleep(time.min(LONGEST_WAIT));
        tokio::pin!(over);
        loop {
            let order = tokio::select! {
                () = &mut over => return Going::On,
                order = orders.recv() => order,
            };
            match order {
                None => return Going::Ends(Ok(())),
                Some(Order::LogOut) => return Going::Ends(self.log_out().await),
                Some(Order::Reconnect(lost)) if self.lost.is_none() && self.lives_on(&lost) => {
                    self.lost = Some(Retry::new(self.pinned.schedule));
                    return Going::On;
                }
                // It was for a connection that is no more: it is done, or about to be.
                Some(Order::Reconnect(_)) => {}
            }
        }
    }

    /// Whether this is the way of the session, which has not lapsed.
    fn lives_on(&self, live: &Arc<Live>) -> bool {
        let ours = self.current.borrow().as_ref().is_some_and(|now| Arc::ptr_eq(now, live));
        let running = self.pinned.schedule.epoch_at(clock::now());
        ours && self.session.is_some_and(|served| Some(served.epoch()) >= running)
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
            self.serve_on(None);
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
                self.serve_on(Some(live));
            }
        }
        Ok(())
    }

    async fn re_up(&mut self) -> Result<(), SessionError> {
        let served = self.session.ok_or(NoPass)?;
        let link = self.current.borrow().as_ref().map(|live| live.link.clone());
        let link = link.map_or_else(|| self.fresh_link(), Ok)?;
        let sent = self.passes.re_up(served.epoch(), &mut self.rng)?;
        self.session = Some(self.send(&sent, &link).await?);
        Ok(())
    }

    /// Sends what was made durable.
    async fn send(&mut self, sent: &Outgoing, link: &Link) -> Result<Served, SessionError> {
        let what = if sent.is_re_up() { "re-up" } else { "login" };
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
        self.serve_on(None);
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
