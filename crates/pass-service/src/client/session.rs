//! The client's session: login, connection, renewal, restart, retries.

use crate::client::passes::{NoPassError, Passes};
use crate::client::passfile::PassFile;
use crate::client::retry::{FailureKind, Retry};
use crate::client::stock::Stock;
use crate::gateway::api::PATH;
use crate::links;
use crate::refusal;
use alpheus_access_pass::client::{AcknowledgedSession, Next, Pace, connect, next};
use alpheus_access_pass::error::{ClientError, GatewayError};
use alpheus_access_pass::messages::{Acknowledgement, ConnectResponse, Hello};
use alpheus_access_pass::request::Stamper;
use alpheus_anonymous_credential::configuration::{OtherConfigurationError, PinnedConfiguration};
use alpheus_anonymous_credential::error::{HolderError, VerifierError};
use alpheus_anonymous_credential::holder::{OutboundMessage, Timing};
use alpheus_anonymous_credential::ledger::LedgerError;
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_node::clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::base::Base;
use alpheus_node::network::client::{HttpClient, Limits};
use alpheus_node::network::error::RequestError;
use alpheus_node::retry::{Backoff, RetryPolicy};
use alpheus_time::Timestamp;
use axum::http::Method;
use chacha20::ChaCha20Rng;
use data_encoding::HEXLOWER;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Pauses before a logout is sent again.
const RETRY: RetryPolicy =
    RetryPolicy::doubling(Duration::from_millis(200), Duration::from_secs(2));
/// The longest wait, since the wall clock may be set meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// A connected session: its own link, and its stamps.
pub struct LiveSession {
    /// The link. Its connections belong to this session only.
    pub link: HttpClient,
    /// Creates stamps.
    pub stamper: Mutex<Stamper>,
    /// Identifies the session's cookies, in this process or a later one.
    pub jar: String,
}

/// The session that requests use.
pub type CurrentSession = watch::Receiver<Option<Arc<LiveSession>>>;

/// A command to the driver.
#[derive(Clone)]
pub enum Order {
    /// The gateway does not know this connection any more. Many requests may report it.
    Reconnect(Arc<LiveSession>),
    /// End the session and the client.
    LogOut,
}

/// Whether the driver continues.
enum Flow {
    Continue,
    End(Result<(), SessionError>),
}

/// Why the session fails.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The link to the gateway.
    #[error(transparent)]
    Link(#[from] RequestError),
    /// The gateway does not connect an acknowledged session.
    #[error("the session is acknowledged, but the gateway did not connect it: {0}")]
    NotConnected(RequestError),
    /// The holder's rules.
    #[error(transparent)]
    Holder(#[from] HolderError),
    /// The gateway's answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The gateway's bytes.
    #[error("the gateway's answer is malformed: {0}")]
    Malformed(#[from] GatewayError),
    /// The gateway has another configuration.
    #[error(transparent)]
    Configuration(#[from] OtherConfigurationError),
    /// The pass file.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// There is no pass for the period.
    #[error(transparent)]
    NoPass(#[from] NoPassError),
    /// The pass file or the card.
    #[error("{0}")]
    Failed(String),
}

impl SessionError {
    /// Whether a retry is useless.
    fn is_final(&self) -> bool {
        match self {
            Self::Configuration(_) | Self::Ledger(_) | Self::NoPass(_) | Self::Failed(_) => true,
            Self::Client(refused) => *refused == ClientError::OtherSession,
            _ => false,
        }
    }

    /// How the step failed. Only a verifier's own rules count as a refusal. Other bad
    /// answers may come from a server that has just started, or from a proxy in between.
    fn kind(&self) -> FailureKind {
        match self {
            Self::NoPass(_) => FailureKind::Early,
            Self::NotConnected(_) => FailureKind::Lost,
            Self::Link(error) => match error.rule() {
                Some(rule) if rule == refusal::rule(VerifierError::Epoch) => FailureKind::Early,
                Some(rule) if refusal::lasts(rule) => FailureKind::Refused,
                _ => FailureKind::Lost,
            },
            _ => FailureKind::Refused,
        }
    }
}

/// Options of a client.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The gateway's address, if it differs from the card's.
    pub gateway: Option<String>,
    /// At epochs whose number is a multiple of this a new session begins.
    pub rotation: u64,
    /// Whether the client fetches the next period's pass.
    pub fetches: bool,
}

/// Drives the sessions of one pass.
pub struct Driver {
    passes: Passes,
    stock: Stock,
    pinned: PinnedConfiguration,
    base: Base,
    authority: Option<String>,
    rng: ChaCha20Rng,
    current: watch::Sender<Option<Arc<LiveSession>>>,
    session: Option<AcknowledgedSession>,
    /// Logged in ahead and connected. It takes over when its first epoch begins.
    upcoming: Option<(AcknowledgedSession, Arc<LiveSession>)>,
    /// Retries of the session's steps.
    retry: Retry,
    /// Set when the gateway does not know the connection any more: retries of a new one.
    reconnect_retry: Option<Retry>,
    rotation: u64,
}

impl Driver {
    /// A driver without a session.
    ///
    /// # Errors
    /// If the card in the file is damaged, or the gateway's address is invalid.
    pub fn new(
        file: PassFile,
        options: &SessionOptions,
        rng: ChaCha20Rng,
    ) -> Result<(Self, CurrentSession), Failure> {
        let card = file.card()?;
        let pinned = card.pinned;
        let gateway = options.gateway.as_ref().unwrap_or(&card.gateway);
        let base = Base::parse(gateway).blame(Category::Usage)?;
        let (current, receiver) = watch::channel(None);
        let retry = Retry::new(pinned.schedule);
        let driver = Self {
            passes: Passes::new(file, pinned.clone()),
            stock: Stock::new(options.fetches),
            pinned,
            base,
            authority: card.authority,
            rng,
            current,
            session: None,
            upcoming: None,
            retry,
            reconnect_retry: None,
            rotation: options.rotation,
        };
        Ok((driver, receiver))
    }

    /// Keeps a session up until an order to log out.
    ///
    /// # Errors
    /// A failure that a retry would not fix, or a logout that was refused.
    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>) -> Result<(), SessionError> {
        let (mut pace, mut paced) = (Pace::draw(&mut self.rng), self.session);
        loop {
            self.take_over();
            pace = pace.follow(paced, self.session, &mut self.rng);
            paced = self.session;
            self.stock.tend(self.passes.file(), &self.pinned, &mut self.rng);
            let epoch = self.session.map(|acknowledged| acknowledged.epoch());
            match self.next(epoch, pace) {
                Next::Wait(until) => {
                    if let Flow::End(ended) = self.idle(until, &mut orders).await {
                        return ended;
                    }
                }
                next => self.step(next).await?,
            }
        }
    }

    /// Whether an error ends the client. A live session continues to its end, even if there
    /// is no pass for the next one.
    fn is_over(&self, error: &SessionError) -> bool {
        let lives = matches!(error, SessionError::NoPass(_)) && self.session.is_some();
        error.is_final() && !lives
    }

    fn next(&mut self, epoch: Option<Epoch>, pace: Pace) -> Next {
        let (schedule, now) = (self.pinned.schedule, clock::now());
        if let Some((acknowledged, _)) = &self.upcoming {
            return Next::Wait(schedule.starts(acknowledged.epoch()));
        }
        if let Some(then) = self.retry.waits(now) {
            return Next::Wait(then);
        }
        let next = next(&schedule, now, epoch, pace, self.rotation);
        let new = next == Next::LogIn && self.needs_presentation(now);
        let apart = new.then(|| self.retry.apart(now, &mut self.rng));
        apart.flatten().map_or(next, Next::Wait)
    }

    /// Whether a login now would need a new presentation of the pass.
    fn needs_presentation(&mut self, now: Timestamp) -> bool {
        let running = self.pinned.schedule.epoch_at(now);
        running.is_some_and(|running| {
            self.passes.of(running).is_ok_and(|holder| holder.newest() < Some(running))
        })
    }

    /// Executes a step. A step that may succeed later is retried.
    async fn step(&mut self, next: Next) -> Result<(), SessionError> {
        let done = match next {
            Next::Wait(_) => return Ok(()),
            Next::ReUp => self.re_up().await,
            Next::LogIn => self.log_in(Timing::Running).await,
            Next::LogInNext => self.log_in(Timing::Next).await,
        };
        match done {
            Ok(()) => self.retry.done(),
            Err(error) if self.is_over(&error) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "the step failed; will retry");
                self.retry.failed(clock::now(), error.kind(), &mut self.rng);
            }
        }
        Ok(())
    }

    /// The upcoming session takes over when its first epoch begins.
    fn take_over(&mut self) {
        let begun = |(acknowledged, _): &mut (AcknowledgedSession, Arc<LiveSession>)| {
            clock::now() >= self.pinned.schedule.starts(acknowledged.epoch())
        };
        if let Some((acknowledged, live)) = self.upcoming.take_if(begun) {
            self.session = Some(acknowledged);
            self.serve_on(Some(live));
        }
    }

    /// Requests use this session from now on.
    fn serve_on(&mut self, live: Option<Arc<LiveSession>>) {
        self.reconnect_retry = None;
        self.current.send_replace(live);
    }

    /// Waits until the next step is due. Reconnects the session if its connection is lost.
    async fn idle(&mut self, until: Timestamp, orders: &mut mpsc::Receiver<Order>) -> Flow {
        match self.reconnect_retry.as_ref().map(|lost| lost.waits(clock::now())) {
            Some(None) => match self.reconnect().await {
                Ok(()) => Flow::Continue,
                Err(error) => Flow::End(Err(error)),
            },
            waits => {
                let until = waits.flatten().map_or(until, |then| then.min(until));
                self.wait(clock::until(until), orders).await
            }
        }
    }

    async fn reconnect(&mut self) -> Result<(), SessionError> {
        let Some(acknowledged) = self.session else {
            self.reconnect_retry = None;
            return Ok(());
        };
        let link = self.fresh_link()?;
        match self.connect(&acknowledged, link).await {
            Ok(live) => self.serve_on(Some(live)),
            Err(error) if self.is_over(&error) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "reconnecting failed");
                let refused = matches!(&error, SessionError::NotConnected(e) if !e.may_pass());
                // After a refusal, the next order to reconnect tries again.
                self.reconnect_retry = self.reconnect_retry.take().filter(|_| !refused);
                if let Some(retry) = &mut self.reconnect_retry {
                    retry.failed(clock::now(), FailureKind::Lost, &mut self.rng);
                }
            }
        }
        Ok(())
    }

    /// Waits until the time is over, or an order needs action.
    async fn wait(&mut self, time: Duration, orders: &mut mpsc::Receiver<Order>) -> Flow {
        let over = tokio::time::sleep(time.min(MAX_WAIT));
        tokio::pin!(over);
        loop {
            let order = tokio::select! {
                () = &mut over => return Flow::Continue,
                order = orders.recv() => order,
            };
            match order {
                None => return Flow::End(Ok(())),
                Some(Order::LogOut) => return Flow::End(self.log_out().await),
                Some(Order::Reconnect(lost))
                    if self.reconnect_retry.is_none() && self.lives_on(&lost) =>
                {
                    self.reconnect_retry = Some(Retry::new(self.pinned.schedule));
                    return Flow::Continue;
                }
                // This connection has been replaced already, or is about to be.
                Some(Order::Reconnect(_)) => {}
            }
        }
    }

    /// Whether this is the current session, and has not lapsed.
    fn lives_on(&self, live: &Arc<LiveSession>) -> bool {
        let ours = self.current.borrow().as_ref().is_some_and(|now| Arc::ptr_eq(now, live));
        let running = self.pinned.schedule.epoch_at(clock::now());
        ours && self.session.is_some_and(|acknowledged| Some(acknowledged.epoch()) >= running)
    }

    /// A link with new connections, for one session only.
    fn fresh_link(&self) -> Result<HttpClient, SessionError> {
        let link = links::gateway(self.base.clone(), self.authority.as_deref());
        link.map_err(|failure| SessionError::Failed(failure.to_string()))
    }

    async fn hello(&self, link: &HttpClient) -> Result<Hello, SessionError> {
        let hello = link.exchange(Method::GET, PATH, &[], Vec::new(), Limits::SHORT).await?;
        Ok(Hello::from_bytes(&hello)?)
    }

    /// Logs in for an epoch. If the pass was presented in it before, the same message is sent.
    async fn log_in(&mut self, timing: Timing) -> Result<(), SessionError> {
        let running = self.pinned.schedule.epoch_at(clock::now()).ok_or(HolderError::Epoch)?;
        let epoch = if timing == Timing::Next { running.next() } else { running };
        if self.session.is_some_and(|acknowledged| acknowledged.epoch() < running) {
            self.session = None;
            self.serve_on(None);
        }
        self.passes.of(epoch)?.check_no_code(epoch)?;
        let link = self.fresh_link()?;
        let hello = self.hello(&link).await?;
        let compared = self.pinned.compare(&hello.fingerprint)?;
        let sent = self.passes.log_in(epoch, timing, &compared, &mut self.rng)?;
        let acknowledged = self.send(&sent, &link).await?;
        if self.session.is_some_and(|ours| ours.session() == acknowledged.session()) {
            // It was renewed before this client was restarted.
            self.session = Some(acknowledged);
            return Ok(());
        }
        let live = self.connect(&acknowledged, link).await?;
        match timing {
            Timing::Next => self.upcoming = Some((acknowledged, live)),
            Timing::Running => {
                self.session = Some(acknowledged);
                self.serve_on(Some(live));
            }
        }
        Ok(())
    }

    async fn re_up(&mut self) -> Result<(), SessionError> {
        let acknowledged = self.session.ok_or(NoPassError)?;
        let link = self.current.borrow().as_ref().map(|live| live.link.clone());
        let link = link.map_or_else(|| self.fresh_link(), Ok)?;
        let (session, epoch) = (acknowledged.session(), acknowledged.epoch());
        let sent = self.passes.re_up(session, epoch, &mut self.rng)?;
        self.session = Some(self.send(&sent, &link).await?);
        Ok(())
    }

    /// Sends a durable message.
    async fn send(
        &mut self,
        sent: &OutboundMessage,
        link: &HttpClient,
    ) -> Result<AcknowledgedSession, SessionError> {
        let request = if sent.is_re_up() { "re-up" } else { "login" };
        let answer = link.post(&format!("{PATH}/{request}"), sent.bytes.clone()).await?;
        let acknowledged = Acknowledgement::from_bytes(&answer)?;
        Ok(AcknowledgedSession::check(self.passes.of(sent.epoch)?, sent, &acknowledged)?)
    }

    /// Connects the session on a link.
    async fn connect(
        &mut self,
        acknowledged: &AcknowledgedSession,
        link: HttpClient,
    ) -> Result<Arc<LiveSession>, SessionError> {
        let hello = self.hello(&link).await?;
        self.pinned.compare(&hello.fingerprint)?;
        let holder = self.passes.of(acknowledged.epoch())?;
        let (message, connecting) = connect(holder, acknowledged, &hello, &mut self.rng)?;
        let answer = link.post(&format!("{PATH}/connect"), message.to_bytes()).await;
        let answer = answer.map_err(SessionError::NotConnected)?;
        let stamper = connecting.finish(&ConnectResponse::from_bytes(&answer)?)?;
        tracing::info!("connected");
        let jar = HEXLOWER.encode(&acknowledged.session().0.0.as_bytes()[..8]);
        Ok(Arc::new(LiveSession { link, stamper: Mutex::new(stamper), jar }))
    }

    /// Ends the session and the upcoming one.
    async fn log_out(&mut self) -> Result<(), SessionError> {
        self.serve_on(None);
        let upcoming = self.upcoming.take().map(|(acknowledged, _)| acknowledged);
        for acknowledged in self.session.take().into_iter().chain(upcoming) {
            self.end(&acknowledged).await?;
        }
        Ok(())
    }

    /// Sends the logout until it is acknowledged, or the session has lapsed.
    async fn end(&mut self, acknowledged: &AcknowledgedSession) -> Result<(), SessionError> {
        let lapses = self.pinned.schedule.starts(acknowledged.epoch().next());
        let logout =
            self.passes.of(acknowledged.epoch())?.log_out(acknowledged.session())?.to_bytes();
        let mut backoff = Backoff::new(RETRY);
        while clock::now() < lapses {
            let link = self.fresh_link()?;
            match link.post(&format!("{PATH}/logout"), logout.clone()).await {
                Err(error) if error.may_pass() => {
                    tracing::warn!(%error, "the logout failed; will retry");
                    tokio::time::sleep(backoff.pause()).await;
                }
                Err(error) if !is_gone(&error) => return Err(error.into()),
                _ => return Ok(()),
            }
        }
        Ok(())
    }
}

/// Whether the session has already ended.
fn is_gone(error: &RequestError) -> bool {
    let gone = [VerifierError::Ended, VerifierError::NoSession].map(refusal::rule);
    error.rule().is_some_and(|rule| gone.contains(&rule))
}

#[cfg(test)]
mod tests;
