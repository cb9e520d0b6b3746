//! A host of privacy controllers: many identities in one process, one ledger
//! store, one disk flush a round.

use crate::fences::ControllerFences;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Ledger, LedgerError, Step};
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::controller::{Controller, HostRecords};
use alpheus_encrypted_stream::inbox::{InboundMessage, Inbox};
use alpheus_encrypted_stream::ledger::{Scope, Start};
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage};
use alpheus_node::fence::FenceError;
use alpheus_node::ledger::store::{LedgerWithBatch, StoreLedger};
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_time::Timestamp;
use alpheus_transport::Batch;
use rand_core::Rng;
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use thiserror::Error;

/// Approximate maximum bytes of records in one commit, well below the store's limit.
const MAX_COMMIT_BYTES: usize = 16 << 20;

/// A host of controllers.
pub struct ControllerHost {
    shards: Vec<Shard>,
    shard_of: HashMap<ControllerId, usize>,
    down: HashSet<ControllerId>,
    ledger: StoreLedger,
    fence: ControllerFences,
    /// Plans of lists that were stored since the start.
    lists: BTreeSet<PlanId>,
}

/// Number of lists after which those are deleted that no controller knows any more.
const LISTS: usize = 32;

/// Seeds of running totals that a thread draws ahead in one slice: up to half a second.
const SLICE: u32 = 1024;

/// Controllers that one thread serves.
struct Shard {
    inbox: Inbox,
    controllers: HashMap<ControllerId, Controller>,
    /// Whether answers wait until all of their noise is drawn.
    eager_noise: bool,
    /// Plans of lists in messages of this round.
    lists: BTreeSet<PlanId>,
}

/// A message to a controller, about a plan.
pub type ToController = (ControllerId, PlanId, ServiceMessage);

/// A message from a controller, about a plan. The coordinator checks this envelope against
/// the signed content.
pub type FromController = (ControllerId, PlanId, ControllerMessage);

/// Why a host stops. The failing call released nothing.
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
    pub fn new(
        deployment: &Deployment,
        ledger: StoreLedger,
        fence: ControllerFences,
    ) -> ControllerHost {
        let shard = || Shard {
            inbox: Inbox::new(deployment.clone()),
            controllers: HashMap::new(),
            eager_noise: false,
            lists: BTreeSet::new(),
        };
        let shards = (0..rayon::current_num_threads()).map(|_| shard()).collect();
        let (shard_of, down, lists) = Default::default();
        ControllerHost { shards, shard_of, down, ledger, fence, lists }
    }

    /// Makes answers wait until all of their noise is drawn, for hosts that serve nobody else.
    #[must_use]
    pub fn with_eager_noise(mut self) -> Self {
        self.shards.iter_mut().for_each(|shard| shard.eager_noise = true);
        self
    }

    /// A start of a controller, with the fence's entry and a number drawn for it.
    #[must_use]
    pub fn start_of(&self, controller: &ControllerId, rng: &mut impl Rng) -> Start {
        let number = rng.next_u64().max(1);
        Start { number, fence: self.fence.get(controller) }
    }

    /// Adds controllers, with the step that created or restored each.
    ///
    /// # Errors
    /// [`HostError`] if their records could not be written.
    pub fn take(
        &mut self,
        controllers: Vec<(Controller, Step<Vec<ControllerMessage>>)>,
    ) -> Result<(), HostError> {
        let mut merged = Step::default();
        for (controller, step) in controllers {
            merged.merge(step);
            let shard = self.shard_of.len() % self.shards.len();
            self.shard_of.insert(controller.id(), shard);
            self.shards[shard].controllers.insert(controller.id(), controller);
        }
        let unaddressed = |message| (ControllerId([0; 32]), PlanId([0; 32]), message);
        self.commit(
            [merged.map(|messages: Vec<_>| messages.into_iter().map(unaddressed).collect())],
        )
        .map(|_| ())
    }

    /// Deletes records that its controllers share.
    ///
    /// # Errors
    /// [`HostError`] if that could not be written.
    pub fn delete(&mut self, changes: Vec<Change>) -> Result<(), HostError> {
        Ok(Step::new(changes, ()).commit(&mut self.ledger)?)
    }

    /// Runs an action of one controller, such as annotating a stream.
    ///
    /// # Errors
    /// [`HostError`] if its records could not be written.
    pub fn with<E>(
        &mut self,
        controller: &ControllerId,
        act: impl FnOnce(&mut Controller) -> Result<Step<Vec<ControllerMessage>>, E>,
    ) -> Option<Result<Result<(), HostError>, E>> {
        self.with_batch(controller, Batch::new(), act)
    }

    /// The same, with a batch in the same commit as its records.
    ///
    /// # Errors
    /// [`HostError`] if neither could be written.
    pub fn with_batch<E>(
        &mut self,
        controller: &ControllerId,
        batch: Batch,
        act: impl FnOnce(&mut Controller) -> Result<Step<Vec<ControllerMessage>>, E>,
    ) -> Option<Result<Result<(), HostError>, E>> {
        let done = self.answer_of(controller, batch, act)?;
        Some(done.map(|committed| committed.map(drop)))
    }

    /// The same for answers to others than the service: they are returned once the records
    /// and the fence are durable.
    ///
    /// # Errors
    /// [`HostError`] if they could not be written.
    pub fn answer_of<A, E>(
        &mut self,
        controller: &ControllerId,
        batch: Batch,
        act: impl FnOnce(&mut Controller) -> Result<Step<A>, E>,
    ) -> Option<Result<Result<A, HostError>, E>> {
        let shard = self.shards.get_mut(*self.shard_of.get(controller)?)?;
        let step = match act(shard.controllers.get_mut(controller)?) {
            Ok(step) => step,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(self.commit_with(step, batch)))
    }

    fn commit_with<A>(&mut self, step: Step<A>, batch: Batch) -> Result<A, HostError> {
        let mut beside = LedgerWithBatch { ledger: &mut self.ledger, batch };
        let answers = step.commit(&mut beside)?;
        if !beside.batch.is_empty() {
            // The step changed no record.
            beside.commit(&[])?;
        }
        self.advance_fence()?;
        Ok(answers)
    }

    fn advance_fence(&mut self) -> Result<(), HostError> {
        let fences = self.shards.iter().flat_map(|shard| shard.controllers.values());
        self.fence.advance(fences.map(|controller| (controller.id(), controller.fence())))?;
        let all = self.shards.iter_mut().flat_map(|shard| shard.controllers.values_mut());
        all.for_each(Controller::note_fenced);
        Ok(())
    }

    /// One of its controllers.
    #[must_use]
    pub fn controller(&self, id: &ControllerId) -> Option<&Controller> {
        self.shards.get(*self.shard_of.get(id)?)?.controllers.get(id)
    }

    /// Disk flushes so far, of ledger and fence.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.ledger.flushes() + self.fence.flushes()
    }

    /// Draws some of the noise that restarted controllers lack: one slice on each thread,
    /// however many controllers there are. Returns whether more may be missing. Wipes keys that are over.
    pub fn draw_ahead(&mut self, now: Timestamp) -> bool {
        let each = self.shards.par_iter_mut();
        each.map(|shard| shard.draw_ahead(now)).reduce(|| false, |one, other| one | other)
    }

    /// The authority has revoked these certificates. A controller with one of them answers
    /// nothing any more.
    pub fn note_revocations(&mut self, revoked: &Arc<BTreeSet<Digest>>) {
        for controller in self.shards.iter_mut().flat_map(|shard| shard.controllers.values_mut()) {
            controller.note_revocations(revoked);
            if revoked.contains(&Digest(controller.id().0)) {
                self.down.insert(controller.id());
            }
        }
    }

    /// Stops a controller as a crash of its machine would: it answers nothing.
    pub fn kill(&mut self, controller: ControllerId) {
        self.down.insert(controller);
    }

    /// Hands messages to their controllers and returns the answers, once all records are
    /// durable. A message with an invalid signature is dropped.
    ///
    /// # Errors
    /// [`HostError`] if records could not be written; nothing was answered then.
    pub fn handle(
        &mut self,
        now: Timestamp,
        messages: Vec<ToController>,
    ) -> Result<Vec<FromController>, HostError> {
        let mut sorted: Vec<Vec<ToController>> = self.shards.iter().map(|_| Vec::new()).collect();
        for (controller, plan, message) in messages {
            if let Some(place) =
                self.shard_of.get(&controller).filter(|_| !self.down.contains(&controller))
            {
                sorted[*place].push((controller, plan, message));
            }
        }
        let steps: Vec<Vec<Step<Vec<FromController>>>> = self
            .shards
            .par_iter_mut()
            .zip(sorted)
            .map(|(shard, messages)| shard.handle(now, messages))
            .collect();
        let answers = self.commit(steps.into_iter().flatten())?;
        self.forget_lists()?;
        Ok(answers)
    }

    /// Deletes lists of epochs that are over, now and then.
    fn forget_lists(&mut self) -> Result<(), HostError> {
        for shard in &mut self.shards {
            self.lists.append(&mut shard.lists);
        }
        if self.lists.len() < LISTS {
            return Ok(());
        }
        let controllers = self.shards.iter().flat_map(|shard| shard.controllers.values());
        let known: BTreeSet<PlanId> =
            controllers.flat_map(|own| own.known_plans().copied()).collect();
        let over = self.lists.extract_if(.., |plan| !known.contains(plan));
        let changes = over.map(HostRecords::forget_list).collect();
        self.delete(changes)
    }

    /// Commits the ledger, then the fence, then returns the messages. Uses as few commits
    /// as the store's limit allows.
    fn commit(
        &mut self,
        steps: impl IntoIterator<Item = Step<Vec<FromController>>>,
    ) -> Result<Vec<FromController>, HostError> {
        let (mut messages, mut merged, mut bytes) = (Vec::new(), Step::default(), 0);
        for step in steps {
            bytes += step.bytes();
            merged.merge(step);
            if bytes >= MAX_COMMIT_BYTES {
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
    /// Returns whether the slice was used up.
    fn draw_ahead(&mut self, now: Timestamp) -> bool {
        self.controllers.values_mut().for_each(|own| own.wipe_settled_keys(now));
        let mut left = SLICE;
        for own in self.controllers.values_mut() {
            left = left.saturating_sub(own.draw_ahead(left, now));
            if left == 0 {
                return true;
            }
        }
        false
    }

    /// The answers, each with its records.
    fn handle(
        &mut self,
        now: Timestamp,
        messages: Vec<ToController>,
    ) -> Vec<Step<Vec<FromController>>> {
        let mut steps = Vec::with_capacity(messages.len());
        let mut shared = HashSet::new();
        for (id, plan, message) in messages {
            let Some(controller) = self.controllers.get_mut(&id) else { continue };
            match self.inbox.open(&message) {
                Ok(verified) => {
                    if let InboundMessage::Announcement(Ok(announced)) = &verified
                        && announced.plan().epoch.is_some()
                    {
                        self.lists.insert(announced.id());
                    }
                    let lacked = controller.lacks_seeds();
                    let mut step = controller.handle(&verified, now);
                    if self.eager_noise && !lacked && controller.lacks_seeds() {
                        // It declined for lack of noise, which leaves no trace.
                        while controller.draw_ahead(SLICE, now) >= SLICE {}
                        step = controller.handle(&verified, now);
                    }
                    steps.push(once(step, &mut shared).map(|answers| {
                        answers.into_iter().map(|answer| (id, plan, answer)).collect()
                    }));
                }
                Err(rejected) => tracing::warn!(%rejected, "dropped a message from the service"),
            }
        }
        steps
    }
}

/// The step without records of the host that an earlier one of the same commit has: their keys
/// name what they hold.
fn once(
    step: Step<Vec<ControllerMessage>>,
    shared: &mut HashSet<Vec<u8>>,
) -> Step<Vec<ControllerMessage>> {
    let (released, host) = (step.dangerous_preview().clone(), Scope::Host.prefix());
    let mut changes = step.dangerous_changes();
    changes.retain(|change| match &change.value {
        Some(_) => !change.key.starts_with(&host) || shared.insert(change.key.clone()),
        None => {
            shared.remove(&change.key);
            true
        }
    });
    Step::new(changes, released)
}
