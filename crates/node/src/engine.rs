//! A role on its own thread, the only writer of its state: how it is started and ended, and
//! how requests call it and get answers.

use crate::failure::{Blame, Category, Failure};
use crate::service::ServiceError;
use crate::service::shutdown::{Shutdown, Trigger};
use alpheus_crypto::ledger::LedgerError;
use std::ops::ControlFlow;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of waiting calls; further callers are asked to retry.
const WAITING: usize = 4096;
/// As many calls are worked on together.
pub const BATCH: usize = 256;

/// Where an answer goes. It is dropped if the caller is gone.
pub type Reply<T> = oneshot::Sender<T>;

/// Makes calls to a role.
pub struct Handle<J>(mpsc::Sender<J>);

impl<J> Clone for Handle<J> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Too many calls are waiting.
    #[error("the server is busy; try again")]
    Busy,
    /// The role has stopped: its ledger could not be written, or it was asked to stop.
    #[error("the server is stopping; try again")]
    Stopped,
}

/// The handle, and the channel that the role reads.
#[must_use]
pub fn channel<J>() -> (Handle<J>, mpsc::Receiver<J>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Handle(sender), receiver)
}

impl<J> Handle<J> {
    /// Makes a call and waits for its answer.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn ask<T>(&self, call: impl FnOnce(Reply<T>) -> J) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(call(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => EngineError::Busy,
            mpsc::error::TrySendError::Closed(_) => EngineError::Stopped,
        })?;
        answer.await.map_err(|_| EngineError::Stopped)
    }

    /// Makes a call without an answer, once there is room.
    pub async fn tell(&self, call: J) {
        // If the role has stopped, the call no longer matters.
        let _ = self.0.send(call).await;
    }

    /// As [`Handle::tell`], outside of any runtime.
    pub fn tell_blocking(&self, call: J) {
        let _ = self.0.blocking_send(call);
    }
}

/// A role that answers calls, the only writer of its state.
pub trait Engine {
    /// What it is asked to do.
    type Call;

    /// Works on calls that have waited together, and answers once what the answers rest on
    /// is durable. It breaks when it is asked to stop.
    ///
    /// # Errors
    /// [`LedgerError`]: nothing was answered that is not durable.
    fn work(&mut self, calls: Vec<Self::Call>) -> Result<ControlFlow<()>, LedgerError>;

    /// How long to wait for more calls when so many wait, so long after the last turn.
    fn linger(_waiting: usize, _rested: Option<Duration>) -> Option<Duration> {
        None
    }
}

/// Gives an engine whatever waits, until it breaks or all handles are gone.
///
/// # Errors
/// [`LedgerError`]: the engine must start again from what is durable.
pub fn run<E: Engine>(
    engine: &mut E,
    calls: &mut mpsc::Receiver<E::Call>,
) -> Result<(), LedgerError> {
    let mut ended = None::<Instant>;
    loop {
        let mut waiting = Vec::with_capacity(BATCH);
        if calls.blocking_recv_many(&mut waiting, BATCH) == 0 {
            return Ok(());
        }
        if let Some(linger) = E::linger(waiting.len(), ended.map(|ended| ended.elapsed())) {
            std::thread::sleep(linger);
            let left = BATCH - waiting.len();
            waiting.extend(std::iter::from_fn(|| calls.try_recv().ok()).take(left));
        }
        if engine.work(waiting)?.is_break() {
            return Ok(());
        }
        ended = Some(Instant::now());
    }
}

/// A role's thread.
pub struct Worker {
    name: &'static str,
    thread: JoinHandle<Result<(), LedgerError>>,
}

/// A role's thread panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {0} panicked; this is a bug in Alpheus")]
struct PanicError(&'static str);

impl Worker {
    /// Starts the thread. When it ends, the process stops.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start<E: Engine<Call: Send> + Send + 'static>(
        name: &'static str,
        mut engine: E,
        mut calls: mpsc::Receiver<E::Call>,
    ) -> Result<(Self, Shutdown), Failure> {
        let trigger = Trigger::new();
        let broken = trigger.shutdown();
        let work = move || {
            let _trigger = trigger;
            let worked = run(&mut engine, &mut calls);
            worked.inspect_err(|error| tracing::error!(%error, "the {name} stops"))
        };
        let thread = std::thread::Builder::new().name(name.into());
        let thread = thread.spawn(work).map_err(ServiceError::from)?;
        Ok((Self { name, thread }, broken))
    }

    /// Waits until the thread has ended.
    ///
    /// # Errors
    /// Its ledger could not be written, or it panicked.
    pub fn end(self) -> Result<(), Failure> {
        match self.thread.join() {
            Ok(worked) => worked.blame(Category::Io),
            Err(_) => Err(PanicError(self.name)).blame(Category::Io),
        }
    }
}
