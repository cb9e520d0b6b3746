//! A host of privacy controllers: many identities in one process, one ledger
//! store, one disk flush a round.

use super::fence::{FenceError, FenceFile};
use super::storage::{Beside, StoreLedger};
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::controller::Controller;
use alpheus_encrypted_stream::ledger::{Ledger, LedgerError, Step};
use alpheus_encrypted_stream::messages::{ControllerMessage, Inbox, ServiceMessage};
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_policy::time::Timestamp;
use alpheus_transport::Batch;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use thiserror::Error;

/// Bytes of records in one commit, or so: well below the store's limit.
const MOST: usize = 16 << 20;

/// A host of controllers.
pub struct ControllerHost {
    shards: Vec<Shard>,
    place: HashMap<ControllerId, usize>,
    down: HashSet<ControllerId>,
    ledger: StoreLedger,
    fence: FenceFile,
}

/// Seeds of running totals that a thread draws ahead at once: up to half a second's.
const SLICE: u32 = 1024;

/// Controllers that one thread serves.
struct Shard {
    inbox: Inbox,
    controllers: HashMap<ControllerId, Controller>,
    /// Answers wait until all of their noise is drawn.
    draws_at_once: bool,
}

/// A message to a controller, about a plan.
pub type ToController = (ControllerId, PlanId, ServiceMessage);

/// A message from a controller, about a plan: what the envelope says, which the
/// coordinator checks against what is signed.
pub type FromController = (ControllerId, PlanId, ControllerMessage);

/// Why a host stops. Nothing was released by the call that said so.
#[derive(Debug, Error)]
pub enum HostError {
    /// The ledger was not written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The fence was not written.
    #[error(transparent)]
    Fence(#[from] FenceError),
}

impl ControllerHost {
    /// A host without controllers.
    #[must_use]
    pub fn new(deployment: &Deployment, ledger: StoreLedger, fence: FenceFile) -> ControllerHost {
        let shard = || Shard {
            inbox: Inbox::new(deployment.clone()),
            controllers: HashMap::new(),
            draws_at_once: false,
        };
        let shards = (0..rayon::current_num_threads()).map(|_| shard()).collect();
        ControllerHost { shards, place: HashMap::new(), down: HashSet::new(), ledger, fence }
    }

    /// Has answers wait until all of their noise is drawn, where nobody else waits.
    #[must_use]
    pub fn that_draws_at_once(mut self) -> Self {
        self.shards.iter_mut().for_each(|shard| shard.draws_at_once = true);
        self
    }

    /// What the fence says of a controller.
    #[must_use]
    pub fn fence_of(
        &self,
        controller: &ControllerId,
    ) -> Option<alpheus_encrypted_stream::ledger::Fence> {
        self.fence.get(controller)
    }

    /// Takes controllers in, with the step that made or restored each.
    ///
    /// # Errors
    /// [`HostError`] if their records could not be written.
    pub fn take(
        &mut self,
        controllers: Vec<(Controller, Step<ControllerMessage>)>,
    ) -> Result<(), HostError> {
        let mut merged = Step::default();
        for (controller, step) in controllers {
            merged.merge(step);
            let place = self.place.len() % self.shards.len();
            self.place.insert(controller.id(), place);
            self.shards[place].controllers.insert(controller.id(), controller);
        }
        self.commit([merged.map(|message| (ControllerId([0; 32]), PlanId([0; 32]), message))])
            .map(|_| ())
    }

    /// Lets one controller do something of its own, say annotate a stream.
    ///
    /// # Errors
    /// [`HostError`] if its records could not be written.
    pub fn with<E>(
        &mut self,
        controller: &ControllerId,
        act: impl FnOnce(&mut Controller) -> Result<Step<ControllerMessage>, E>,
    ) -> Option<Result<Result<(), HostError>, E>> {
        self.with_batch(controller, Batch::new(), act)
    }

    /// The same, and the batch stands in the same commit as its records.
    ///
    /// # Errors
    /// [`HostError`] if neither could be written.
    pub fn with_batch<E>(
        &mut self,
        controller: &ControllerId,
        batch: Batch,
        act: impl FnOnce(&mut Controller) -> Result<Step<ControllerMessage>, E>,
    ) -> Option<Result<Result<(), HostError>, E>> {
        let done = self.answer_of(controller, batch, act)?;
        Some(done.map(|committed| committed.map(drop)))
    }

    /// The same of what a controller says to somebody else than the service: it comes
    /// out once its records, and the fence, are durable.
    ///
    /// # Errors
    /// [`HostError`] if they could not be written.
    pub fn answer_of<M, E>(
        &mut self,
        controller: &ControllerId,
        batch: Batch,
        act: impl FnOnce(&mut Controller) -> Result<Step<M>, E>,
    ) -> Option<Result<Result<Vec<M>, HostError>, E>> {
        let shard = self.shards.get_mut(*self.place.get(controller)?)?;
        let step = match act(shard.controllers.get_mut(controller)?) {
            Ok(step) => step,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(self.commit_with(step, batch)))
    }

    fn commit_with<M>(&mut self, step: Step<M>, batch: Batch) -> Result<Vec<M>, HostError> {
        let mut beside = Beside { ledger: &mut self.ledger, batch };
        let said = step.commit(&mut beside)?;
        if !beside.batch.is_empty() {
            // It changed no record.
            beside.commit(&[])?;
        }
        self.advance_fence()?;
        Ok(said)
    }

    fn advance_fence(&mut self) -> Result<(), HostError> {
        let fences = self.shards.iter().flat_map(|shard| shard.controllers.values());
        Ok(self.fence.advance(fences.map(|controller| (controller.id(), controller.fence())))?)
    }

    /// One of its controllers.
    #[must_use]
    pub fn controller(&self, id: &ControllerId) -> Option<&Controller> {
        self.shards.get(*self.place.get(id)?)?.controllers.get(id)
    }

    /// Disk flushes so far, of ledger and fence.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.ledger.flushes() + self.fence.flushes()
    }

    /// Has controllers draw some of the noise ahead that restarted ones lack: one slice on
    /// each thread, however many controllers there are. Whether there may be more to draw.
    pub fn draw_ahead(&mut self, now: Timestamp) -> bool {
        let each = self.shards.par_iter_mut();
        each.map(|shard| shard.draw_ahead(now)).reduce(|| false, |one, other| one | other)
    }

    /// Stops a controller, as a crash of its machine would: it answers nothing.
    pub fn kill(&mut self, controller: ControllerId) {
        self.down.insert(controller);
    }

    /// Hands messages to their controllers and returns their answers, after all
    /// that must be durable is. A message of a bad signature is dropped.
    ///
    /// # Errors
    /// [`HostError`] if that could not be written; nothing was answered then.
    pub fn handle(
        &mut self,
        now: Timestamp,
        messages: Vec<ToController>,
    ) -> Result<Vec<FromController>, HostError> {
        let mut sorted: Vec<Vec<ToController>> = self.shards.iter().map(|_| Vec::new()).collect();
        for (controller, plan, message) in messages {
            if let Some(place) =
                self.place.get(&controller).filter(|_| !self.down.contains(&controller))
            {
                sorted[*place].push((controller, plan, message));
            }
        }
        let steps: Vec<Vec<Step<FromController>>> = self
            .shards
            .par_iter_mut()
            .zip(sorted)
            .map(|(shard, messages)| shard.handle(now, messages))
            .collect();
        self.commit(steps.into_iter().flatten())
    }

    /// Ledger, then fence, then messages. As few commits as the store's limit
    /// allows.
    fn commit(
        &mut self,
        steps: impl IntoIterator<Item = Step<FromController>>,
    ) -> Result<Vec<FromController>, HostError> {
        let (mut messages, mut merged, mut bytes) = (Vec::new(), Step::default(), 0);
        for step in steps {
            bytes += step.bytes();
            merged.merge(step);
            if bytes >= MOST {
                messages.append(&mut std::mem::take(&mut merged).commit(&mut self.ledger)?);
                bytes = 0;
            }
        }
        messages.append(&mut merged.commit(&mut self.ledger)?);
        self.advance_fence()?;
        Ok(messages)
    }
}

impl Shard {
    /// Whether the slice was used up.
    fn draw_ahead(&mut self, now: Timestamp) -> bool {
        let mut left = SLICE;
        for own in self.controllers.values_mut() {
            left = left.saturating_sub(own.draw_ahead(now, left));
            if left == 0 {
                return true;
            }
        }
        false
    }

    /// The answers, each with its records.
    fn handle(&mut self, now: Timestamp, messages: Vec<ToController>) -> Vec<Step<FromController>> {
        let mut steps = Vec::with_capacity(messages.len());
        for (id, plan, message) in messages {
            let Some(controller) = self.controllers.get_mut(&id) else { continue };
            match self.inbox.open(&message) {
                Ok(heard) => {
                    let lacked = controller.lacks_seeds();
                    let mut step = controller.handle(now, &heard);
                    if self.draws_at_once && !lacked && controller.lacks_seeds() {
                        // It was declined for that, which leaves nothing behind.
                        while controller.draw_ahead(now, SLICE) >= SLICE {}
                        step = controller.handle(now, &heard);
                    }
                    steps.push(step.map(|answer| (id, plan, answer)));
                }
                Err(rejected) => tracing::warn!(%rejected, "a message of the service was dropped"),
            }
        }
        steps
    }
}
