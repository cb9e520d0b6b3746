//! A role on a thread of its own, one writer: how requests give it jobs and hear what
//! came of them.

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
