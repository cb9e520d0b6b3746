//! Work on aggregates: what waits is sorted by aggregate, each aggregate's is done by one of as
//! many threads as there are processors, and all of it comes back to be committed together.
//!
//! Threads share nothing that changes, so there is no lock; the ledger has one writer as before.

use super::bulletin::{Bulletin, Said};
use super::engine::name_of;
use super::together::Together;
use crate::service::engine::Reply;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::{
    Closing, Deposit, Deposited, Entry, Grant, Shown, SlotRequest,
};
use alpheus_accountable_statistics::refused::{NoSlot, NotClosed, NotHeard};
use alpheus_accountable_statistics::smoother::{Shard, Smoother};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Step;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Something to do about one aggregate.
pub enum Task {
    /// A client asks for a slot.
    Request(Box<SlotRequest>, Reply<Result<Signed<Grant>, NoSlot>>),
    /// A client deposits.
    Deposit(Box<Deposit>, Reply<Result<Deposited, NoSlot>>),
    /// A quorum has a deposit, as a client says, who waits for an answer, or a peer.
    Certified(Box<Endorsed<Entry>>, Option<Reply<Result<(), NotHeard>>>),
    /// The aggregator shows tuples.
    Check(Vec<Shown>, Reply<Result<(), NotClosed>>),
    /// The aggregator closes.
    Close(Box<Signed<Closing>>, Reply<Result<(), NotClosed>>),
    /// A smoother has said a receipt, or something of the aggregate's end.
    Heard(SmootherId, Said),
}

/// What waits, by aggregate.
#[derive(Default)]
pub struct Tasks(BTreeMap<Digest, Vec<Task>>);

/// What is not done by a thread of an aggregate.
pub enum Left {
    /// It rests on something that is not here yet.
    Early(SmootherId, Said),
    /// It is of no aggregate here, or this smoother's own, which it does not remember.
    Heard(SmootherId, Said),
    /// The same of a certificate.
    Certified(Box<Endorsed<Entry>>, Option<Reply<Result<(), NotHeard>>>),
}

/// What came of one aggregate's tasks.
#[derive(Default)]
pub struct Done {
    /// To commit and answer.
    pub together: Together,
    /// To be done by the engine itself.
    pub left: Vec<Left>,
    /// What was heard too early may be heard now.
    pub agreed: bool,
}

impl Tasks {
    /// Adds one.
    pub fn add(&mut self, aggregate: Digest, task: Task) {
        self.0.entry(aggregate).or_default().push(task);
    }

    /// Does all of them. `key` is the smoother's own.
    pub fn work(
        self,
        smoother: &mut Smoother,
        (now, key): (Time, VerifyingKey),
        rng: &mut ChaCha20Rng,
    ) -> Vec<Done> {
        let Self(mut tasks) = self;
        if tasks.is_empty() {
            return Vec::new();
        }
        let id = smoother.id();
        let desks = smoother.shards().filter_map(|(name, shard)| {
            let tasks = tasks.remove(&name)?;
            let mut seed = [0; 32];
            rng.fill_bytes(&mut seed);
            let rng = ChaCha20Rng::from_seed(seed);
            Some((Desk { id, now, key, shard, rng, done: Done::default() }, tasks))
        });
        let desks: Vec<(Desk<'_>, Vec<Task>)> = desks.collect();
        let mut done: Vec<Done> = match desks.len() {
            // A single one need not change threads.
            0 | 1 => desks.into_iter().map(|(desk, tasks)| desk.work(tasks)).collect(),
            _ => desks.into_par_iter().map(|(desk, tasks)| desk.work(tasks)).collect(),
        };
        done.push(unknown(tasks.into_values().flatten()));
        done
    }
}

/// Tasks of aggregates that this smoother does not know.
fn unknown(tasks: impl Iterator<Item = Task>) -> Done {
    let mut done = Done::default();
    for task in tasks {
        match task {
            Task::Request(_, reply) => drop(reply.send(Err(NoSlot::Unknown))),
            Task::Deposit(_, reply) => drop(reply.send(Err(NoSlot::Unknown))),
            Task::Check(_, reply) | Task::Close(_, reply) => {
                let _ = reply.send(Err(NotClosed::Unknown));
            }
            Task::Certified(certificate, reply) => {
                done.left.push(Left::Certified(certificate, reply));
            }
            Task::Heard(by, said) => done.left.push(Left::Heard(by, said)),
        }
    }
    done
}

/// One aggregate and the thread that works on it.
struct Desk<'a> {
    id: SmootherId,
    now: Time,
    key: VerifyingKey,
    shard: Shard<'a>,
    rng: ChaCha20Rng,
    done: Done,
}

impl Desk<'_> {
    fn work(mut self, tasks: Vec<Task>) -> Done {
        let requests = tasks.iter().filter_map(|task| match task {
            Task::Request(request, _) => Some(request.as_ref()),
            _ => None,
        });
        let deposits = tasks.iter().filter_map(|task| match task {
            Task::Deposit(deposit, _) => Some(deposit.as_ref()),
            _ => None,
        });
        self.shard.prove(self.now, requests, deposits);
        tasks.into_iter().for_each(|task| self.task(task));
        self.done
    }

    fn task(&mut self, task: Task) {
        let now = self.now;
        match task {
            Task::Request(request, reply) => {
                let done = self.shard.request(now, &request, &mut self.rng);
                self.done.together.answer(done, reply, |_, _| ());
            }
            Task::Deposit(deposit, reply) => self.deposit(*deposit, reply),
            Task::Certified(certificate, reply) => {
                match self.shard.hear_certificate(&certificate) {
                    Err(NotHeard::Forgotten) => {
                        self.done.left.push(Left::Certified(certificate, reply));
                    }
                    done => certified(done, reply, &mut self.done.together),
                }
            }
            Task::Check(shown, reply) => {
                let done = match self.shard.check(now, shown) {
                    // What it has agreed to is checked already.
                    Err(NotClosed::Latched) => Ok(()),
                    Err(why) => Err(why),
                    Ok(verdicts) => verdicts.into_iter().collect(),
                };
                let done = done.map(|()| Step::new(Vec::new(), ()));
                self.done.together.answer(done, reply, |(), _| ());
            }
            Task::Close(closing, reply) => self.close(&closing, reply),
            Task::Heard(by, said) => self.hear(by, said),
        }
    }

    fn deposit(&mut self, deposit: Deposit, reply: Reply<Result<Deposited, NoSlot>>) {
        let done = self.shard.deposit(self.now, deposit.clone());
        if matches!(done, Err(NoSlot::SlotTaken)) {
            self.done.together.add(self.shard.compare_grants(&deposit), |(), _| ());
        }
        let nothing = |released| Step::new(Vec::new(), released);
        let done = match done {
            Ok(step) => Ok(step.then(|receipt| nothing(Deposited::Kept(receipt)))),
            Err(why @ (NoSlot::SlotTaken | NoSlot::KeyTaken)) => {
                let other = self.shard.in_place(&deposit);
                other.map(|other| nothing(Deposited::Taken(other))).ok_or(why)
            }
            Err(why) => Err(why),
        };
        self.done.together.answer(done, reply, |deposited, bulletin| {
            if let Deposited::Kept(receipt) = deposited {
                bulletin.say(Said::Receipt(Box::new(receipt.clone())));
            }
        });
    }

    fn close(&mut self, closing: &Signed<Closing>, reply: Reply<Result<(), NotClosed>>) {
        let step = match self.shard.close(self.now, closing) {
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
        self.done.together.add(step, move |ready, bulletin| {
            bulletin.say(Said::Ready(ready));
            let _ = reply.send(Ok(()));
        });
        if let Some(ready) = own {
            self.hear(self.id, Said::Ready(ready));
        }
        self.done.agreed = true;
    }

    fn hear(&mut self, by: SmootherId, said: Said) {
        let (now, key) = (self.now, self.key);
        let heard = match &said {
            Said::Receipt(receipt) => self.shard.hear_receipt(receipt).map(without_output),
            Said::Ready(ready) => self.shard.hear_ready(now, by, ready, &mut self.rng),
            Said::Opening(opening) => self.shard.hear_opening(now, by, opening, &mut self.rng),
            // Of no aggregate.
            Said::Word(_) | Said::Card(_) | Said::Key(_) | Said::Definition(_) => return,
        };
        match heard {
            Ok(step) => self.done.together.add(step, move |out, bulletin: &Bulletin| {
                bulletin.put_out(|outcome| name_of(&key, outcome), out);
            }),
            Err(NotHeard::Forgotten) => self.done.left.push(Left::Heard(by, said)),
            Err(NotHeard::Unknown | NotHeard::OtherSet) if !self.shard.has_ended() => {
                self.done.left.push(Left::Early(by, said));
            }
            Err(why) => tracing::warn!(%why, by = by.0, "what a smoother says is not taken"),
        }
    }
}

/// Takes what came of a certificate, and answers who waits for it.
pub(super) fn certified(
    done: Result<Step<()>, NotHeard>,
    reply: Option<Reply<Result<(), NotHeard>>>,
    together: &mut Together,
) {
    match (done, reply) {
        (done, Some(reply)) => together.answer(done, reply, |(), _| ()),
        (Ok(step), None) => together.add(step, |(), _| ()),
        (Err(why), None) => tracing::debug!(%why, "a certificate is not taken"),
    }
}

/// Of a step whose words are for nobody.
pub(super) fn without_output<T>(step: Step<()>) -> Step<Vec<T>> {
    step.then(|()| Step::new(Vec::new(), Vec::new()))
}
