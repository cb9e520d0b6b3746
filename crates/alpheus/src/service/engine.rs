//! A role on a thread of its own, one writer: how it is started and ended, and how requests
//! give it jobs and hear what came of them.

use crate::failure::{Blame, Category, Failure};
use crate::service::ServiceError;
use crate::service::shutdown::{Shutdown, Trigger};
use alpheus_crypto::ledger::LedgerError;
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// As many jobs wait before callers are told to come again.
const WAITING: usize = 4096;

/// Where an answer goes. A caller that is gone misses it.
pub type Reply<T> = oneshot::Sender<T>;

/// Whom to give jobs.
pub struct Handle<J>(mpsc::Sender<J>);

impl<J> Clone for Handle<J> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDone {
    /// More waits than can be done soon.
    #[error("too much waits at this server; try again")]
    Busy,
    /// The role has stopped: its ledger could not be written, or it is told to.
    #[error("this server stops; try again")]
    Stopped,
}

/// The way in, and what the role reads.
#[must_use]
pub fn channel<J>() -> (Handle<J>, mpsc::Receiver<J>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Handle(sender), receiver)
}

impl<J> Handle<J> {
    /// Gives a job, and waits for its answer.
    ///
    /// # Errors
    /// [`NotDone`].
    pub async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> J) -> Result<T, NotDone> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(job(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotDone::Busy,
            mpsc::error::TrySendError::Closed(_) => NotDone::Stopped,
        })?;
        answer.await.map_err(|_| NotDone::Stopped)
    }

    /// Gives a job that has no answer, when there is room.
    pub async fn tell(&self, job: J) {
        // Once the role has stopped nobody needs to know.
        let _ = self.0.send(job).await;
    }

    /// As [`Handle::tell`], outside of any runtime.
    pub fn tell_blocking(&self, job: J) {
        let _ = self.0.blocking_send(job);
    }
}

/// A role's thread, and what runs on it.
pub struct Worker {
    name: &'static str,
    thread: JoinHandle<Result<(), LedgerError>>,
}

/// A role ended as none should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {0} ended in a panic, which is a mistake of ours")]
struct Panicked(&'static str);

impl Worker {
    /// Starts it. What it is given it drops when it ends, and the process is told to stop.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn start(
        name: &'static str,
        work: impl FnOnce(Trigger) -> Result<(), LedgerError> + Send + 'static,
    ) -> Result<(Self, Shutdown), Failure> {
        let trigger = Trigger::new();
        let broken = trigger.shutdown();
        let thread = std::thread::Builder::new().name(name.into());
        let thread = thread.spawn(move || work(trigger)).map_err(ServiceError::from)?;
        Ok((Self { name, thread }, broken))
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// Its ledger could not be written, or it panicked.
    pub fn end(self) -> Result<(), Failure> {
        match self.thread.join() {
            Ok(worked) => worked.blame(Category::Io),
            Err(_) => Err(Panicked(self.name)).blame(Category::Io),
        }
    }
}
