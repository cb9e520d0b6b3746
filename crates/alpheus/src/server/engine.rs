//! Policy manager and transformer on a thread of their own. Requests hand it
//! work and wait for the answer; between requests it sums what has come, closes
//! windows and minds deadlines.

use super::outboxes::Outboxes;
use super::registry::{NotIntroduced, Registry};
use super::retention::Retention;
use crate::network::wire::{Introduction, Notice};
use crate::runtime::embedded::{RuntimeError, wall_clock};
use crate::runtime::hosts::{FromController, ToController};
use crate::runtime::manager::Manager;
use crate::runtime::service::Round;
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_policy::time::{Span, Timestamp};
use rand_chacha::ChaCha20Rng;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Work that may wait; then requests do.
const WAITING: usize = 1024;
/// It looks at the clock at least so often.
const REST: Duration = Duration::from_millis(100);
/// Pieces of work between two looks.
const AT_ONCE: usize = 256;

/// What the thread owns.
pub struct Engine {
    /// Who is there, what runs.
    pub manager: Manager,
    /// Controllers and streams, as introduced.
    pub registry: Registry,
    /// Whose word counts.
    pub deployment: Deployment,
    /// For nonces of plans.
    pub rng: ChaCha20Rng,
    /// A window that ended so long ago closes without those that are late.
    pub idle: Span,
    /// What the log still holds.
    pub retention: Retention,
    /// What waits for controllers.
    pub outboxes: Outboxes,
    /// Counts result rows since the start, for those who wait for one.
    pub rows: watch::Sender<u64>,
}

type Work = Box<dyn FnOnce(&mut Engine) + Send>;

/// A way to the thread. Clones are one.
#[derive(Clone)]
pub struct Handle(SyncSender<Work>);

/// The thread has ended: its store failed, or the process is stopping.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the service is stopping")]
pub struct Stopped;

impl Handle {
    /// Has something done and waits for what comes of it.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (say, hear) = oneshot::channel();
        let work: Work = Box::new(move |engine| {
            // Whoever asked may have gone.
            let _ = say.send(work(engine));
        });
        let sender = self.0.clone();
        let sent = tokio::task::spawn_blocking(move || sender.send(work)).await;
        if !matches!(sent, Ok(Ok(()))) {
            return Err(Stopped);
        }
        hear.await.map_err(|_| Stopped)
    }
}

/// The work that comes in.
pub struct Inlet(Receiver<Work>);

/// A way to an engine, and the engine's end of it.
#[must_use]
pub fn channel() -> (Handle, Inlet) {
    let (sender, receiver) = sync_channel(WAITING);
    (Handle(sender), Inlet(receiver))
}

impl Engine {
    /// Works until every [`Handle`] is gone.
    ///
    /// # Errors
    /// [`RuntimeError`] if the store fails; nothing was said then that is not durable.
    pub fn run(mut self, inlet: &Inlet) -> Result<(), RuntimeError> {
        loop {
            match inlet.0.recv_timeout(REST) {
                Ok(work) => work(&mut self),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            inlet.0.try_iter().take(AT_ONCE).for_each(|work| work(&mut self));
            self.turn(wall_clock())?;
        }
        Ok(self.manager.service.checkpoint()?)
    }

    /// Sums, closes, minds deadlines.
    fn turn(&mut self, now: Timestamp) -> Result<(), RuntimeError> {
        let service = &mut self.manager.service;
        service.ingest(now)?;
        let idle = Timestamp(now.0.saturating_sub(self.idle.0));
        let mut rounds = Vec::new();
        while service.has_due(idle) {
            rounds.push(service.close_windows(now, idle)?);
        }
        if service.deadline().is_some_and(|deadline| deadline <= now) {
            rounds.push(service.timeout(now)?);
        }
        service.checkpoint_if_worth()?;
        self.retention.turn(now)?;
        rounds.into_iter().for_each(|round| self.deliver(round));
        Ok(())
    }

    /// Takes what controllers said.
    ///
    /// # Errors
    /// [`RuntimeError`] if the store fails.
    pub fn hear(&mut self, host: &str, said: Vec<FromController>) -> Result<(), RuntimeError> {
        // A host speaks for its own controllers; signatures are checked besides.
        let own = |from: &FromController| self.registry.host_of(&from.0) == Some(host);
        let said = said.into_iter().filter(own).collect();
        let round = self.manager.service.receive(wall_clock(), said)?;
        self.deliver(round);
        Ok(())
    }

    /// Leaves messages where their controllers' hosts fetch them.
    pub fn deliver(&mut self, round: Round) {
        let mut sorted: HashMap<&str, Vec<ToController>> = HashMap::new();
        for message in round.messages {
            if let Some(host) = self.registry.host_of(&message.0) {
                sorted.entry(host).or_default().push(message);
            }
        }
        for (host, messages) in sorted {
            self.outboxes.leave(host, messages);
        }
        if !round.rows.is_empty() {
            let new = round.rows.len() as u64;
            self.rows.send_modify(|rows| *rows += new);
        }
    }

    /// Takes note of a stream; see [`Registry::register`] and [`Registry::withdraw`].
    ///
    /// # Errors
    /// [`NotIntroduced`].
    pub fn note(&mut self, host: &str, notice: Notice) -> Result<(), NotIntroduced> {
        let Engine { manager, registry, .. } = self;
        match notice {
            Notice::Registered(registration) => registry.register(manager, host, *registration),
            Notice::Withdrawn(stream) => registry.withdraw(manager, host, &stream),
        }
    }

    /// Takes note of controllers; see [`Registry::introduce`].
    ///
    /// # Errors
    /// [`NotIntroduced`].
    pub fn introduce(
        &mut self,
        host: &str,
        introduction: &Introduction,
    ) -> Result<(), NotIntroduced> {
        let Engine { manager, registry, deployment, .. } = self;
        registry.introduce(manager, deployment, host, &introduction.certificates)
    }
}
