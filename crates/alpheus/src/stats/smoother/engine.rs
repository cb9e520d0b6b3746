//! A smoother's role on a thread of its own: one writer. What waits is done together and
//! made durable by one flush of the disk; nothing is answered before.

use super::bulletin::{Bulletin, Said};
use super::shards::{Left, Task, Tasks, certified};
use super::side::Side;
use super::together::Together;
use crate::pass::ledger::FencedLedger;
use crate::service::engine::Reply;
use crate::service::shutdown::Trigger;
use crate::stats::clock::Clock;
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::{Agreed, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::keymaking::Talk;
use alpheus_accountable_statistics::messages::{
    Card, Closing, Deposit, Deposited, End, Entry, Grant, Outcome, Ready, Release, Shown,
    SlotRequest,
};
use alpheus_accountable_statistics::refused::{
    NoSlot, NotClosed, NotDefined, NotHeard, NotReleased,
};
use alpheus_accountable_statistics::smoother::Smoother;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{LedgerError, Step};
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

#[cfg(test)]
mod tests;

/// As many are done together.
const BATCH: usize = 256;
/// So much that was heard too early is kept, of each smoother its share, each of so many bytes.
const EARLY: usize = 4096;
const EARLY_BYTES: usize = 4096;
/// So many slots are released at a time, and so many certificates are shown.
pub const RELEASED: usize = 4096;

/// Something to do.
pub enum Job {
    /// A client asks for a slot.
    Request(Box<SlotRequest>, Reply<Result<Signed<Grant>, NoSlot>>),
    /// A client deposits.
    Deposit(Box<Deposit>, Reply<Result<Deposited, NoSlot>>),
    /// Somebody proposes a definition.
    Define(Box<Signed<Definition>>, Reply<Result<Signed<Definition>, NotDefined>>),
    /// A quorum has signed one.
    Learn(Box<Endorsed<Definition>>, Reply<Result<(), NotDefined>>),
    /// A client shows that a quorum has its deposit.
    Certify(Box<Endorsed<Entry>>, Reply<Result<(), NotHeard>>),
    /// A peer shows of which deposits a quorum has signed.
    Certified(Vec<Endorsed<Entry>>),
    /// What is to be fetched before a release.
    Needs(Reply<Vec<Need>>),
    /// Somebody asks how an aggregate ended here.
    End(Digest, Reply<Option<End>>),
    /// A peer asks for certificates, from a slot on.
    Certificates(Digest, u32, Reply<Vec<Endorsed<Entry>>>),
    /// A peer asks what others have signed ready for.
    Readies(Digest, Reply<Vec<(SmootherId, Signed<Ready>)>>),
    /// A peer asks for what is sealed for a slot.
    Kept(Digest, u32, Reply<Option<Sealed>>),
    /// A peer had it.
    Keep(Digest, u32, Box<Sealed>),
    /// The aggregator asks for what is deposited, from a slot on.
    Release(Digest, u32, Reply<Result<Release, NotReleased>>),
    /// The aggregator shows tuples.
    Check(Digest, Vec<Shown>, Reply<Result<(), NotClosed>>),
    /// The aggregator closes.
    Close(Box<Signed<Closing>>, Reply<Result<(), NotClosed>>),
    /// A peer has said this.
    Heard(SmootherId, Vec<Said>),
    /// Time has passed.
    Tick,
    /// The process stops.
    Stop,
}

/// What a smoother lacks of an open aggregate: something only if it is about to be released.
pub struct Need {
    /// Which.
    pub aggregate: Digest,
    /// Whether slots are not certified here.
    pub uncertified: bool,
    /// Certified slots whose deposit is not here.
    pub lacking: Vec<u32>,
}

/// The role and what it needs.
pub struct Engine {
    /// The role.
    pub smoother: Smoother,
    /// Its ledger.
    pub ledger: FencedLedger,
    /// Definitions that it works by.
    pub agreed: BTreeMap<Digest, Agreed>,
    /// Keys that are made, and definitions.
    pub side: Side,
    /// What it has said.
    pub bulletin: Bulletin,
    /// Its public key.
    pub key: VerifyingKey,
    /// The time.
    pub clock: Clock,
    /// Drawn here alone.
    pub rng: ChaCha20Rng,
    /// What was heard before what it rests on.
    pub early: Vec<(SmootherId, Said)>,
    /// Something has come that it may rest on.
    pub stirred: bool,
}

/// Runs until it is told to stop, or its ledger fails.
///
/// # Errors
/// [`LedgerError`].
pub fn run(
    mut engine: Engine,
    mut jobs: mpsc::Receiver<Job>,
    trigger: Trigger,
) -> Result<(), LedgerError> {
    let worked = engine.work(&mut jobs);
    if let Err(error) = &worked {
        tracing::error!(%error, "the smoother stops");
    }
    drop(trigger);
    worked
}

/// The aggregate of an outcome of one's own.
pub fn name_of(key: &VerifyingKey, outcome: &Signed<Outcome>) -> Option<Digest> {
    outcome.open(key).ok().map(|outcome| outcome.aggregate)
}

impl Engine {
    fn work(&mut self, jobs: &mut mpsc::Receiver<Job>) -> Result<(), LedgerError> {
        while let Some(first) = jobs.blocking_recv() {
            let (mut together, mut tasks) = (Together::default(), Tasks::default());
            let (mut next, mut many, mut stops) = (Some(first), 0, false);
            while let Some(job) = next {
                many += 1;
                stops = matches!(job, Job::Stop);
                self.job(job, &mut together, &mut tasks);
                next = if many < BATCH && !stops { jobs.try_recv().ok() } else { None };
            }
            self.tasks(tasks, &mut together);
            if std::mem::take(&mut self.stirred) {
                self.hear_early(&mut together);
            }
            together.commit(&mut self.ledger, &self.bulletin)?;
            if stops {
                break;
            }
        }
        Ok(())
    }

    /// What clients and definers ask.
    fn job(&mut self, job: Job, together: &mut Together, tasks: &mut Tasks) {
        match job {
            Job::Request(request, reply) => {
                tasks.add(request.aggregate, Task::Request(request, reply));
            }
            Job::Deposit(deposit, reply) => match deposit.said_to_be_for() {
                Some(aggregate) => tasks.add(aggregate, Task::Deposit(deposit, reply)),
                None => drop(reply.send(Err(NoSlot::NotGranted))),
            },
            Job::Define(definition, reply) => {
                let done = self.smoother.define(self.clock.now(), &definition);
                together.answer(done, reply, |_, _| ());
            }
            Job::Learn(signed, reply) => {
                let done = self.learn(&signed, together);
                together.answer(done.map(|()| Step::new(Vec::new(), ())), reply, |(), _| ());
            }
            Job::Certify(certificate, reply) => match certificate.dangerous_unverified() {
                Some(entry) => {
                    tasks.add(entry.aggregate, Task::Certified(certificate, Some(reply)));
                }
                None => drop(reply.send(Err(NotHeard::NotCertified))),
            },
            Job::End(name, reply) => {
                let end = self.smoother.end(&name);
                together.add(Step::new(Vec::new(), end), |end, _| drop(reply.send(end)));
            }
            job => self.job_of_servers(job, together, tasks),
        }
    }

    /// What other smoothers and the aggregator ask.
    fn job_of_servers(&mut self, job: Job, together: &mut Together, tasks: &mut Tasks) {
        let now = self.clock.now();
        match job {
            Job::Certified(certificates) => {
                for certificate in certificates {
                    if let Some(aggregate) = certificate.dangerous_first() {
                        tasks.add(aggregate, Task::Certified(Box::new(certificate), None));
                    }
                }
            }
            Job::Needs(reply) => drop(reply.send(self.needs(now))),
            Job::Certificates(name, from, reply) => {
                let part = self.smoother.certificates_from(&name, (from, RELEASED));
                together.add(Step::new(Vec::new(), part), |part, _| drop(reply.send(part)));
            }
            Job::Readies(name, reply) => {
                let heard = self.smoother.readies(&name);
                together.add(Step::new(Vec::new(), heard), |heard, _| drop(reply.send(heard)));
            }
            Job::Kept(name, slot, reply) => {
                drop(reply.send(self.smoother.kept(&name, slot).cloned()));
            }
            Job::Keep(name, slot, sealed) => {
                together.add(self.smoother.keep(&name, slot, *sealed), |(), _| ());
            }
            Job::Release(name, from, reply) => {
                let done = self.smoother.release_from(now, &name, (from, RELEASED));
                together.answer(done.map(|list| Step::new(Vec::new(), list)), reply, |_, _| ());
            }
            Job::Check(name, shown, reply) => tasks.add(name, Task::Check(shown, reply)),
            Job::Close(closing, reply) => match closing.dangerous_unverified() {
                Some(said) => tasks.add(said.aggregate, Task::Close(closing, reply)),
                None => drop(reply.send(Err(NotClosed::Signature))),
            },
            Job::Heard(by, said) => {
                said.into_iter().for_each(|said| self.hear(by, said, together, tasks));
            }
            Job::Tick => self.tick(together),
            // Of clients, or the end.
            Job::Request(..)
            | Job::Deposit(..)
            | Job::Define(..)
            | Job::Learn(..)
            | Job::Certify(..)
            | Job::End(..)
            | Job::Stop => {}
        }
    }

    /// Does what is sorted by aggregate.
    fn tasks(&mut self, tasks: Tasks, together: &mut Together) {
        let at = (self.clock.now(), self.key);
        for done in tasks.work(&mut self.smoother, at, &mut self.rng) {
            together.extend(done.together);
            self.stirred |= done.agreed;
            done.left.into_iter().for_each(|left| self.left(left, together));
        }
    }

    /// What an aggregate alone cannot decide on.
    fn left(&mut self, left: Left, together: &mut Together) {
        match left {
            Left::Early(by, said) => self.keep_early(by, said),
            Left::Heard(by, said) => match self.hear_elsewhere(by, &said) {
                Ok(step) => {
                    self.noticed();
                    together.add(step, |(), _| ());
                }
                Err(NotHeard::Unknown) => self.keep_early(by, said),
                // Whoever was away is told of days that are forgotten here.
                Err(NotHeard::Over) => {}
                Err(why) => tracing::warn!(%why, by = by.0, "what a smoother says is not taken"),
            },
            Left::Certified(certificate, reply) => {
                let done = self.smoother.hear_certificate(self.clock.now(), &certificate);
                if done.is_ok() {
                    self.noticed();
                }
                certified(done, reply, together);
            }
        }
    }

    /// Hears what is of no aggregate here, or what this smoother does not remember.
    fn hear_elsewhere(&mut self, by: SmootherId, said: &Said) -> Result<Step<()>, NotHeard> {
        let (now, rng) = (self.clock.now(), &mut self.rng);
        let heard = match said {
            Said::Receipt(receipt) => return self.smoother.hear_receipt(receipt, now),
            Said::Ready(ready) => self.smoother.hear_ready(now, by, ready, rng),
            Said::Opening(opening) => self.smoother.hear_opening(now, by, opening, rng),
            Said::Word(_) | Said::Card(_) | Said::Key(_) | Said::Definition(_) => {
                return Err(NotHeard::Unknown);
            }
        };
        heard.map(|step| step.then(|_| Step::new(Vec::new(), ())))
    }

    /// Only its own words come to something where it knows of none.
    fn noticed(&self) {
        tracing::warn!("this smoother has signed what it does not remember, and sits out");
    }

    /// Keeps what rests on something that is not here yet, of each smoother its share.
    fn keep_early(&mut self, by: SmootherId, said: Said) {
        let small = postcard::to_allocvec(&said).is_ok_and(|bytes| bytes.len() <= EARLY_BYTES);
        let most = EARLY / self.side.pinned().smoothers.len().max(1);
        if small && self.early.iter().filter(|(of, _)| *of == by).count() < most {
            self.early.push((by, said));
        }
    }

    /// Open aggregates, and what is to be fetched of those that take no more deposits.
    fn needs(&self, now: Time) -> Vec<Need> {
        let open = self.agreed.values().filter(|agreed| {
            let over = self.smoother.outcome(&agreed.name()).is_some();
            !over && now < agreed.deadline()
        });
        let need = |agreed: &Agreed| {
            let aggregate = agreed.name();
            let certified = |slot| self.smoother.certified(&aggregate, slot).is_some();
            let filled = agreed.filled() <= now;
            let uncertified = filled && !(0..agreed.slots).all(certified);
            let lacking = if filled { self.smoother.lacking(&aggregate) } else { Vec::new() };
            Need { aggregate, uncertified, lacking }
        };
        open.map(need).collect()
    }

    fn learn(
        &mut self,
        signed: &Endorsed<Definition>,
        together: &mut Together,
    ) -> Result<(), NotDefined> {
        let name = Agreed::open(signed, self.side.pinned())?.name();
        // It is durable, or will be before anything is answered.
        if self.agreed.contains_key(&name) {
            return Ok(());
        }
        let step = self.smoother.learn(signed)?;
        self.stirred = true;
        let signed = signed.clone();
        let known = &mut self.agreed;
        let step = step.then(|agreed| {
            known.insert(agreed.name(), agreed.clone());
            Step::new(vec![Side::definition(&agreed.name(), &signed)], (agreed, signed))
        });
        together.add(step, |(agreed, signed), bulletin| bulletin.define(agreed.name(), &signed));
        Ok(())
    }

    /// Hears what a peer has said.
    fn hear(&mut self, by: SmootherId, said: Said, together: &mut Together, tasks: &mut Tasks) {
        match &said {
            Said::Word(word) => self.side.hear(by, word),
            Said::Card(card) => self.hear_card(by, card, together),
            Said::Key(endorsed) => self.learn_key(endorsed, together),
            Said::Definition(signed) => {
                if let Err(why) = self.learn(signed, together) {
                    tracing::warn!(%why, by = by.0, "a definition is not learnt");
                }
            }
            Said::Receipt(_) | Said::Ready(_) | Said::Opening(_) => match said.said_to_be_for() {
                Some(aggregate) => tasks.add(aggregate, Task::Heard(by, said)),
                None => tracing::warn!(by = by.0, "what a smoother says is not readable"),
            },
        }
    }

    /// Hears again what was heard before what it rests on.
    fn hear_early(&mut self, together: &mut Together) {
        let mut tasks = Tasks::default();
        for (by, said) in std::mem::take(&mut self.early) {
            self.hear(by, said, together, &mut tasks);
        }
        self.tasks(tasks, together);
    }

    fn tick(&mut self, together: &mut Together) {
        let (now, key) = (self.clock.now(), self.key);
        together.add(self.smoother.poll(now), move |out, bulletin| {
            bulletin.put_out(|outcome| name_of(&key, outcome), out);
        });
        self.forget(now, together);
        for (epoch, step) in self.side.tick(now, &self.smoother, &mut self.rng) {
            self.talk(epoch, step, together);
        }
    }

    /// Forgets what the role has forgotten, and what was said long ago.
    fn forget(&mut self, now: Time, together: &mut Together) {
        let over = self.agreed.keys().filter(|name| !self.smoother.knows(name));
        let over: Vec<Digest> = over.copied().collect();
        over.iter().for_each(|name| drop(self.agreed.remove(name)));
        let changes = self.side.forget(&over, self.smoother.first_epoch());
        if !changes.is_empty() {
            together.add(Step::new(changes, over), |over, bulletin| bulletin.forget(&over));
        }
        // A key is made a key epoch before its own, and used until the last deadline of that one.
        let (days, after) = (self.side.pinned().days.length, self.side.pinned().limits.after);
        self.bulletin.prune(now, days.saturating_mul(3).saturating_add(after.saturating_mul(2)));
    }

    /// Says what is to be said of a key; signs its card once a quorum has voted for it.
    fn talk(&mut self, epoch: KeyEpoch, step: Step<Talk>, together: &mut Together) {
        let (side, smoother, mut own) = (&self.side, &mut self.smoother, None);
        let step = step.then(|Talk { words, key }| {
            let voted = key.and_then(|key| Some((side.voted(epoch, &key)?, key)));
            let card =
                voted.map(|((attempt, share), key)| smoother.hold(epoch, attempt, key, share));
            let mut said: Vec<Said> = words.into_iter().map(Said::Word).collect();
            let mut changes = Vec::new();
            match card {
                Some(Ok(step)) => {
                    let signed = step.then(|card| {
                        own = Some(card.clone());
                        said.push(Said::Card(card.clone()));
                        Step::new(vec![Side::card(epoch, &card)], ())
                    });
                    changes = signed.dangerous_changes();
                }
                Some(Err(why)) => tracing::error!(%why, "a key that was voted for is not held"),
                None => {}
            }
            Step::new(changes, said)
        });
        together.add(step, |said, bulletin| said.into_iter().for_each(|said| bulletin.say(said)));
        if let Some(card) = own {
            self.hear_card(self.smoother.id(), &card, together);
        }
    }

    /// Learns a key that a quorum has signed alike.
    fn hear_card(&mut self, by: SmootherId, card: &Signed<Card>, together: &mut Together) {
        if let Some(endorsed) = self.side.hear_card(by, card) {
            self.learn_key(&endorsed, together);
        }
    }

    /// Learns a key, and that what it was made from may be destroyed.
    fn learn_key(&mut self, endorsed: &Endorsed<Card>, together: &mut Together) {
        let pinned = self.side.pinned();
        let Ok(card) = endorsed.open(pinned, pinned.quorum()) else { return };
        if self.side.is_made(card.key_epoch) {
            return;
        }
        match self.smoother.learn_key(endorsed, self.side.share(&card)) {
            Ok(step) => {
                self.stirred = true;
                let changes = self.side.end(card.key_epoch, endorsed);
                let endorsed = endorsed.clone();
                let step = step.then(|()| Step::new(changes, endorsed));
                together.add(step, |endorsed, bulletin| bulletin.made(endorsed));
            }
            Err(why) => tracing::warn!(%why, "a key is not learnt"),
        }
    }
}
