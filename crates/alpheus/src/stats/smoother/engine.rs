//! A smoother's role on a thread of its own: one writer. What waits is done together and
//! made durable by one flush of the disk; nothing is answered before.

use super::bulletin::{Bulletin, Said};
use super::side::Side;
use crate::pass::ledger::FencedLedger;
use crate::service::engine::Reply;
use crate::service::shutdown::Trigger;
use crate::stats::clock::Clock;
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::{Agreed, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::keymaking::Talk;
use alpheus_accountable_statistics::messages::{
    Card, Closing, Deposit, End, Entry, Grant, Outcome, Receipt, Release, Shown, SlotRequest,
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
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::mpsc;

/// As many are done together.
const BATCH: usize = 256;
/// So much that was heard too early is kept.
const EARLY: usize = 4096;

/// Something to do.
pub enum Job {
    /// A client asks for a slot.
    Request(Box<SlotRequest>, Reply<Result<Signed<Grant>, NoSlot>>),
    /// A client deposits.
    Deposit(Box<Deposit>, Reply<Result<Receipt, NoSlot>>),
    /// Somebody proposes a definition.
    Define(Box<Signed<Definition>>, Reply<Result<Signed<Definition>, NotDefined>>),
    /// A quorum has signed one.
    Learn(Box<Endorsed<Definition>>, Reply<Result<(), NotDefined>>),
    /// A client shows that a quorum has its deposit, or a peer that one has another's.
    Certified(Vec<Endorsed<Entry>>),
    /// What is to be fetched before a release.
    Needs(Reply<Vec<Need>>),
    /// Somebody asks how an aggregate ended here.
    End(Digest, Reply<Option<End>>),
    /// A peer asks for certificates.
    Certificates(Digest, Reply<Vec<Endorsed<Entry>>>),
    /// A peer asks for what is sealed for a slot.
    Kept(Digest, u32, Reply<Option<Sealed>>),
    /// A peer had it.
    Keep(Digest, u32, Box<Sealed>),
    /// The aggregator asks for what is deposited.
    Release(Digest, Reply<Result<Release, NotReleased>>),
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

/// What a smoother lacks of an aggregate that is about to be released.
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
    pub early: VecDeque<(SmootherId, Said)>,
}

/// What follows once it is durable.
type Then = Box<dyn FnOnce(&Bulletin) + Send>;

/// What is done together.
#[derive(Default)]
struct Together(Vec<Step<Then>>);

impl Together {
    fn add<T: Send + 'static>(
        &mut self,
        step: Step<T>,
        then: impl FnOnce(T, &Bulletin) + Send + 'static,
    ) {
        self.0.push(step.then(|released| {
            let then: Then = Box::new(move |bulletin: &Bulletin| then(released, bulletin));
            Step::new(Vec::new(), then)
        }));
    }

    /// Answers what a step releases, or why there is none.
    fn answer<T: Send + 'static, E: Send + 'static>(
        &mut self,
        done: Result<Step<T>, E>,
        reply: Reply<Result<T, E>>,
        tell: impl FnOnce(&T, &Bulletin) + Send + 'static,
    ) {
        match done {
            Ok(step) => self.add(step, move |released, bulletin| {
                tell(&released, bulletin);
                let _ = reply.send(Ok(released));
            }),
            Err(why) => self.add(Step::new(Vec::new(), ()), move |(), _| {
                let _ = reply.send(Err(why));
            }),
        }
    }
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
            let mut together = Together::default();
            let mut next = Some(first);
            while let Some(job) = next {
                if matches!(job, Job::Stop) {
                    return self.commit(together);
                }
                self.job(job, &mut together);
                next = if together.0.len() < BATCH { jobs.try_recv().ok() } else { None };
            }
            self.commit(together)?;
        }
        Ok(())
    }

    fn commit(&mut self, together: Together) -> Result<(), LedgerError> {
        for then in Step::join(together.0).commit(&mut self.ledger)? {
            then(&self.bulletin);
        }
        Ok(())
    }

    /// What clients and definers ask.
    fn job(&mut self, job: Job, together: &mut Together) {
        let now = self.clock.now();
        match job {
            Job::Request(request, reply) => {
                let done = self.smoother.request(now, &request, &mut self.rng);
                together.answer(done, reply, |_, _| ());
            }
            Job::Deposit(deposit, reply) => {
                let done = self.smoother.deposit(now, (*deposit).clone());
                if matches!(done, Err(NoSlot::SlotTaken)) {
                    together.add(self.smoother.compare_grants(&deposit), |(), _| ());
                }
                together.answer(done, reply, |receipt, bulletin| {
                    bulletin.say(Said::Receipt(Box::new(receipt.clone())));
                });
            }
            Job::Define(definition, reply) => {
                together.answer(self.smoother.define(now, &definition), reply, |_, _| ());
            }
            Job::Learn(signed, reply) => {
                let done = self.learn(&signed, together);
                together.answer(done.map(|()| Step::new(Vec::new(), ())), reply, |(), _| ());
            }
            Job::End(name, reply) => {
                let end = self.smoother.end(&name);
                together.add(Step::new(Vec::new(), end), |end, _| drop(reply.send(end)));
            }
            job => self.job_of_servers(job, now, together),
        }
    }

    /// What other smoothers and the aggregator ask.
    fn job_of_servers(&mut self, job: Job, now: Time, together: &mut Together) {
        match job {
            Job::Certified(certificates) => {
                for certificate in certificates {
                    match self.smoother.hear_certificate(now, &certificate) {
                        Ok(step) => together.add(step, |(), _| ()),
                        Err(why) => tracing::debug!(%why, "a certificate is not taken"),
                    }
                }
            }
            Job::Needs(reply) => drop(reply.send(self.needs(now))),
            Job::Certificates(name, reply) => {
                let all = self.smoother.certificates(&name);
                together.add(Step::new(Vec::new(), all), |all, _| drop(reply.send(all)));
            }
            Job::Kept(name, slot, reply) => {
                drop(reply.send(self.smoother.kept(&name, slot).cloned()));
            }
            Job::Keep(name, slot, sealed) => {
                together.add(self.smoother.keep(&name, slot, *sealed), |(), _| ());
            }
            Job::Release(name, reply) => {
                let done = self.smoother.release(now, &name);
                together.answer(done.map(|list| Step::new(Vec::new(), list)), reply, |_, _| ());
            }
            Job::Check(name, shown, reply) => {
                let done = match self.smoother.check(now, &name, shown) {
                    // What it has agreed to is checked already.
                    Err(NotClosed::Latched) => Ok(()),
                    Err(why) => Err(why),
                    Ok(verdicts) => verdicts.into_iter().collect(),
                };
                together.answer(done.map(|()| Step::new(Vec::new(), ())), reply, |(), _| ());
            }
            Job::Close(closing, reply) => self.close(&closing, reply, together),
            Job::Heard(by, said) => {
                for said in said {
                    self.hear(by, said, together);
                }
            }
            Job::Tick => self.tick(together),
            // Of clients, or the end.
            Job::Request(..)
            | Job::Deposit(..)
            | Job::Define(..)
            | Job::Learn(..)
            | Job::End(..)
            | Job::Stop => {}
        }
    }

    /// What is to be fetched of aggregates that take no more deposits.
    fn needs(&self, now: Time) -> Vec<Need> {
        let open = self.agreed.values().filter(|agreed| {
            let over = self.smoother.outcome(&agreed.name()).is_some();
            !over && agreed.filled() <= now && now < agreed.deadline()
        });
        let need = |agreed: &Agreed| {
            let aggregate = agreed.name();
            let certified = |slot| self.smoother.certified(&aggregate, slot).is_some();
            let uncertified = !(0..agreed.slots).all(certified);
            let lacking = self.smoother.lacking(&aggregate);
            Need { aggregate, uncertified, lacking }
        };
        open.map(need).filter(|need| need.uncertified || !need.lacking.is_empty()).collect()
    }

    fn learn(
        &mut self,
        signed: &Endorsed<Definition>,
        together: &mut Together,
    ) -> Result<(), NotDefined> {
        let step = self.smoother.learn(signed)?;
        let signed = signed.clone();
        let known = &mut self.agreed;
        let step = step.then(|agreed| {
            known.insert(agreed.name(), agreed.clone());
            Step::new(vec![Side::definition(&agreed.name(), &signed)], (agreed, signed))
        });
        together.add(step, |(agreed, signed), bulletin| bulletin.define(agreed.name(), &signed));
        Ok(())
    }

    fn close(
        &mut self,
        closing: &Signed<Closing>,
        reply: Reply<Result<(), NotClosed>>,
        together: &mut Together,
    ) {
        let step = match self.smoother.close(self.clock.now(), closing) {
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
        together.add(step, move |ready, bulletin| {
            bulletin.say(Said::Ready(ready));
            let _ = reply.send(Ok(()));
        });
        if let Some(ready) = own {
            self.hear(self.smoother.id(), Said::Ready(ready), together);
        }
        self.hear_early(together);
    }

    /// Hears what a peer has said; what rests on something that is not here yet is kept.
    fn hear(&mut self, by: SmootherId, said: Said, together: &mut Together) {
        let now = self.clock.now();
        let heard = match &said {
            Said::Word(word) => {
                self.side.hear(by, word);
                return;
            }
            Said::Card(card) => {
                self.hear_card(by, card, together);
                return;
            }
            Said::Key(endorsed) => {
                self.learn_key(endorsed, together);
                return;
            }
            Said::Definition(signed) => {
                if let Err(why) = self.learn(signed, together) {
                    tracing::warn!(%why, by = by.0, "a definition is not learnt");
                }
                return;
            }
            Said::Receipt(receipt) => {
                let step = self.smoother.hear_receipt(receipt, now);
                step.map(|step| step.then(|()| Step::new(Vec::new(), Vec::new())))
            }
            Said::Ready(ready) => self.smoother.hear_ready(now, by, ready, &mut self.rng),
            Said::Opening(opening) => self.smoother.hear_opening(now, by, opening, &mut self.rng),
        };
        match heard {
            Ok(step) => {
                let key = self.key;
                together.add(step, move |out, bulletin| {
                    bulletin.put_out(|outcome| name_of(&key, outcome), out);
                });
            }
            Err(NotHeard::Unknown | NotHeard::OtherSet) => {
                self.early.push_back((by, said));
                while self.early.len() > EARLY {
                    self.early.pop_front();
                }
            }
            Err(why) => tracing::warn!(%why, by = by.0, "what a smoother says is not taken"),
        }
    }

    fn hear_early(&mut self, together: &mut Together) {
        for (by, said) in std::mem::take(&mut self.early) {
            self.hear(by, said, together);
        }
    }

    fn tick(&mut self, together: &mut Together) {
        let (now, key) = (self.clock.now(), self.key);
        together.add(self.smoother.poll(now), move |out, bulletin| {
            bulletin.put_out(|outcome| name_of(&key, outcome), out);
        });
        self.hear_early(together);
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
                let changes = self.side.end(card.key_epoch, endorsed);
                let endorsed = endorsed.clone();
                let step = step.then(|()| Step::new(changes, endorsed));
                together.add(step, |endorsed, bulletin| bulletin.made(endorsed));
            }
            Err(why) => tracing::warn!(%why, "a key is not learnt"),
        }
    }
}
