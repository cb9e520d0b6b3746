//! Parallel work on aggregates. Tasks are grouped by aggregate, and a thread pool with one thread
//! per processor does each group. All results come back to be committed together.
//!
//! Threads share no mutable state, so there is no lock. The ledger keeps its single writer.

use super::batch::Batch;
use super::engine::name_of;
use super::outbox::{Outbox, PeerMessage};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::disclosure::DisclosedUpload;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{
    Closing, ClosingTuple, Deposit, DepositResponse, Entry, Grant, SlotRequest,
};
use alpheus_accountable_statistics::role_error::{ClosingError, SlotError, StatementError};
use alpheus_accountable_statistics::smoother::{Shard, Smoother};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Step;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::engine::Reply;
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A task on one aggregate.
pub enum Task {
    /// A client requests a slot.
    Request(Box<SlotRequest>, Reply<Result<Signed<Grant>, SlotError>>),
    /// A client deposits.
    Deposit(Box<Deposit>, Reply<Result<DepositResponse, SlotError>>),
    /// A certificate that a quorum has a deposit, from a client that waits for an answer, or from a
    /// peer.
    Certified(Box<Endorsed<Entry>>, Option<Reply<Result<(), StatementError>>>),
    /// The aggregator sends tuples to check.
    Check(Vec<ClosingTuple>, Reply<Result<(), ClosingError>>),
    /// The aggregator discloses uploads that it rejects.
    Disclosed(Vec<DisclosedUpload>, Reply<Result<(), ClosingError>>),
    /// The aggregator closes.
    Close(Box<Signed<Closing>>, Reply<Result<(), ClosingError>>),
    /// A smoother sends a receipt, or a statement on the aggregate's end.
    Heard(SmootherId, PeerMessage),
}

/// Pending tasks by aggregate.
#[derive(Default)]
pub struct Tasks(BTreeMap<Digest, Vec<Task>>);

/// A task that needs the engine.
pub enum DeferredTask {
    /// It depends on something that has not arrived yet.
    Early(SmootherId, PeerMessage),
    /// It belongs to an unknown aggregate, or is this smoother's own forgotten statement.
    Heard(SmootherId, PeerMessage),
    /// The same for a certificate.
    Certified(Box<Endorsed<Entry>>, Option<Reply<Result<(), StatementError>>>),
}

/// The results of one aggregate's tasks.
#[derive(Default)]
pub struct TaskResults {
    /// Steps to commit and answer.
    pub batch: Batch,
    /// Tasks for the engine.
    pub left: Vec<DeferredTask>,
    /// Messages that were rejected.
    pub rejected: Vec<(SmootherId, StatementError)>,
    /// Early messages may be acceptable now.
    pub agreed: bool,
}

impl Tasks {
    /// Adds a task.
    pub fn add(&mut self, aggregate: Digest, task: Task) {
        self.0.entry(aggregate).or_default().push(task);
    }

    /// Does all tasks. `key` is the smoother's own.
    pub fn work(
        self,
        smoother: &mut Smoother,
        (now, key): (Timestamp, VerifyingKey),
        rng: &mut ChaCha20Rng,
    ) -> Vec<TaskResults> {
        let Self(mut tasks) = self;
        if tasks.is_empty() {
            return Vec::new();
        }
        let id = smoother.id();
        let workers = smoother.shards().filter_map(|(name, shard)| {
            let tasks = tasks.remove(&name)?;
            let mut seed = [0; 32];
            rng.fill_bytes(&mut seed);
            let rng = ChaCha20Rng::from_seed(seed);
            Some((ShardWorker { id, now, key, shard, rng, done: TaskResults::default() }, tasks))
        });
        let workers: Vec<(ShardWorker<'_>, Vec<Task>)> = workers.collect();
        let mut done: Vec<TaskResults> = match workers.len() {
            // A single group can stay on this thread.
            0 | 1 => workers.into_iter().map(|(worker, tasks)| worker.work(tasks)).collect(),
            _ => workers.into_par_iter().map(|(worker, tasks)| worker.work(tasks)).collect(),
        };
        done.push(unknown(tasks.into_values().flatten()));
        done
    }
}

/// Handles tasks of unknown aggregates.
fn unknown(tasks: impl Iterator<Item = Task>) -> TaskResults {
    let mut done = TaskResults::default();
    for task in tasks {
        match task {
            Task::Request(_, reply) => drop(reply.send(Err(SlotError::Unknown))),
            Task::Deposit(_, reply) => drop(reply.send(Err(SlotError::Unknown))),
            Task::Check(_, reply) | Task::Disclosed(_, reply) | Task::Close(_, reply) => {
                let _ = reply.send(Err(ClosingError::Unknown));
            }
            Task::Certified(certificate, reply) => {
                done.left.push(DeferredTask::Certified(certificate, reply));
            }
            Task::Heard(by, said) => done.left.push(DeferredTask::Heard(by, said)),
        }
    }
    done
}

/// The worker of one aggregate.
struct ShardWorker<'a> {
    id: SmootherId,
    now: Timestamp,
    key: VerifyingKey,
    shard: Shard<'a>,
    rng: ChaCha20Rng,
    done: TaskResults,
}

impl ShardWorker<'_> {
    fn work(mut self, tasks: Vec<Task>) -> TaskResults {
        let requests = tasks.iter().filter_map(|task| match task {
            Task::Request(request, _) => Some(request.as_ref()),
            _ => None,
        });
        let deposits = tasks.iter().filter_map(|task| match task {
            Task::Deposit(deposit, _) => Some(deposit.as_ref()),
            _ => None,
        });
        self.shard.verify_presentations(requests, deposits, self.now);
        tasks.into_iter().for_each(|task| self.task(task));
        self.done
    }

    fn task(&mut self, task: Task) {
        let now = self.now;
        match task {
            Task::Request(request, reply) => {
                let done = self.shard.handle_request(&request, now, &mut self.rng);
                self.done.batch.answer(done, reply, |_, _| ());
            }
            Task::Deposit(deposit, reply) => self.deposit(*deposit, reply),
            Task::Certified(certificate, reply) => {
                match self.shard.handle_certificate(&certificate) {
                    Err(StatementError::Forgotten) => {
                        self.done.left.push(DeferredTask::Certified(certificate, reply));
                    }
                    done => certified(done, reply, &mut self.done.batch),
                }
            }
            Task::Check(shown, reply) => {
                let done = all_hold(self.shard.handle_tuples(shown, now));
                self.done.batch.answer(done, reply, |(), _| ());
            }
            Task::Disclosed(shown, reply) => {
                let done = all_hold(self.shard.handle_disclosures(&shown, now));
                self.done.batch.answer(done, reply, |(), _| ());
            }
            Task::Close(closing, reply) => self.close(&closing, reply),
            Task::Heard(by, said) => self.hear(by, said),
        }
    }

    fn deposit(&mut self, deposit: Deposit, reply: Reply<Result<DepositResponse, SlotError>>) {
        let done = self.shard.handle_deposit(deposit.clone(), self.now);
        if matches!(done, Err(SlotError::SlotTaken)) {
            self.done.batch.add(self.shard.compare_grants(&deposit), |(), _| ());
        }
        let nothing = |released| Step::new(Vec::new(), released);
        let done = match done {
            Ok(step) => Ok(step.then(|receipt| nothing(DepositResponse::Stored(receipt)))),
            Err(why @ (SlotError::SlotTaken | SlotError::KeyTaken)) => {
                let other = self.shard.conflict(&deposit);
                other.map(|other| nothing(DepositResponse::Conflict(other))).ok_or(why)
            }
            Err(why) => Err(why),
        };
        self.done.batch.answer(done, reply, |deposited, outbox| {
            if let DepositResponse::Stored(receipt) = deposited {
                outbox.say(PeerMessage::Receipt(Box::new(receipt.clone())));
            }
        });
    }

    fn close(&mut self, closing: &Signed<Closing>, reply: Reply<Result<(), ClosingError>>) {
        let step = match self.shard.handle_closing(closing, self.now) {
            Ok(step) => step,
            Err(why) => {
                let _ = reply.send(Err(why));
                return;
            }
        };
        let mut own = None;
        let step = step.then(|ready| {
            own = Some(ready.clone());
            Step::new(Vec::new(), ready)
        });
        self.done.batch.add(step, move |ready, outbox| {
            outbox.say(PeerMessage::Ready(ready));
            let _ = reply.send(Ok(()));
        });
        if let Some(ready) = own {
            self.hear(self.id, PeerMessage::Ready(ready));
        }
        self.done.agreed = true;
    }

    fn hear(&mut self, by: SmootherId, said: PeerMessage) {
        let (now, key) = (self.now, self.key);
        let heard = match &said {
            PeerMessage::Receipt(receipt) => self.shard.handle_receipt(receipt).map(without_output),
            PeerMessage::Ready(ready) => self.shard.handle_ready(ready, by, now, &mut self.rng),
            PeerMessage::Opening(opening) => {
                self.shard.handle_opening(opening, by, now, &mut self.rng)
            }
            // These belong to no aggregate.
            PeerMessage::Word(_)
            | PeerMessage::Card(_)
            | PeerMessage::Key(_)
            | PeerMessage::Definition(_) => return,
        };
        match heard {
            Ok(step) => self.done.batch.add(step, move |out, outbox: &Outbox| {
                outbox.put_out(|outcome| name_of(&key, outcome), out);
            }),
            Err(StatementError::Forgotten) => self.done.left.push(DeferredTask::Heard(by, said)),
            Err(StatementError::Unknown | StatementError::OtherSet) if !self.shard.has_ended() => {
                self.done.left.push(DeferredTask::Early(by, said));
            }
            Err(why) => self.done.rejected.push((by, why)),
        }
    }
}

/// The answer to an aggregator that shows several things.
fn all_hold(
    done: Result<Vec<Result<(), ClosingError>>, ClosingError>,
) -> Result<Step<()>, ClosingError> {
    let verdicts = match done {
        // A set that it has agreed to is checked already.
        Err(ClosingError::Latched) => Ok(()),
        Err(why) => Err(why),
        Ok(verdicts) => verdicts.into_iter().collect(),
    };
    verdicts.map(|()| Step::default())
}

/// Adds the result of a certificate, and answers the waiting client.
pub(super) fn certified(
    done: Result<Step<()>, StatementError>,
    reply: Option<Reply<Result<(), StatementError>>>,
    batch: &mut Batch,
) {
    match (done, reply) {
        (done, Some(reply)) => batch.answer(done, reply, |(), _| ()),
        (Ok(step), None) => batch.add(step, |(), _| ()),
        (Err(why), None) => tracing::debug!(%why, "rejected a certificate"),
    }
}

/// A step without output.
pub(super) fn without_output<T>(step: Step<()>) -> Step<Vec<T>> {
    step.then(|()| Step::new(Vec::new(), Vec::new()))
}
