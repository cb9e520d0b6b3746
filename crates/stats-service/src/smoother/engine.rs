//! A smoother's role on its own thread, the only writer of its ledger. Waiting calls are done in one
//! batch, which one flush of the disk makes durable. Nothing is answered before.

use super::batch::Batch;
use super::key_store::KeyStore;
use super::outbox::{Outbox, PeerMessage};
use super::shards::{DeferredTask, Task, Tasks, certified};
use crate::parties::PAGE_SLOTS;
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::{AgreedDefinition, Definition};
use alpheus_accountable_statistics::disclosure::DisclosedUpload;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::keymaking::KeymakingOutput;
use alpheus_accountable_statistics::messages::{
    Card, Closing, ClosingTuple, Deposit, DepositResponse, End, Entry, Grant, Outcome, Ready,
    Release, SealedUpload, SlotRequest,
};
use alpheus_accountable_statistics::role_error::{
    AgreementError, ClosingError, ReleaseError, SlotError, StatementError,
};
use alpheus_accountable_statistics::smoother::Smoother;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{LedgerError, Step};
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock::Clock;
use alpheus_node::engine::{self, Reply};
use alpheus_node::ledger::FencedLedger;
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::ControlFlow;

#[cfg(test)]
mod tests;

/// The maximum number of early messages, shared equally among smoothers, and their maximum size.
const EARLY: usize = 4096;
const EARLY_BYTES: usize = 4096;

/// A call to the engine.
pub enum Call {
    /// A client requests a slot.
    Request(Box<SlotRequest>, Reply<Result<Signed<Grant>, SlotError>>),
    /// A client deposits.
    Deposit(Box<Deposit>, Reply<Result<DepositResponse, SlotError>>),
    /// The definer proposes a definition.
    Define(Box<Signed<Definition>>, Reply<Result<Signed<Definition>, AgreementError>>),
    /// A quorum has signed a definition.
    Learn(Box<Endorsed<Definition>>, Reply<Result<(), AgreementError>>),
    /// A client certifies that a quorum has its deposit.
    Certify(Box<Endorsed<Entry>>, Reply<Result<(), StatementError>>),
    /// A peer sends certificates of deposits.
    Certified(Vec<Endorsed<Entry>>),
    /// Asks what to fetch before a release.
    Needs(Reply<Vec<Need>>),
    /// Asks how an aggregate ended here.
    End(Digest, Reply<Option<End>>),
    /// A peer asks for certificates, from a slot on.
    Certificates(Digest, u32, Reply<Vec<Endorsed<Entry>>>),
    /// A peer asks for the ready statements of others.
    Readies(Digest, Reply<Vec<(SmootherId, Signed<Ready>)>>),
    /// A peer asks for the sealed upload of a slot.
    SealedUpload(Digest, u32, Reply<Option<SealedUpload>>),
    /// A peer has sent a sealed upload.
    StoreSealedUpload(Digest, u32, Box<SealedUpload>),
    /// The aggregator asks for the deposits, from a slot on.
    Release(Digest, u32, Reply<Result<Release, ReleaseError>>),
    /// The aggregator sends tuples to check.
    Check(Digest, Vec<ClosingTuple>, Reply<Result<(), ClosingError>>),
    /// The aggregator discloses uploads that it rejects.
    Disclosed(Digest, Vec<DisclosedUpload>, Reply<Result<(), ClosingError>>),
    /// The aggregator closes.
    Close(Box<Signed<Closing>>, Reply<Result<(), ClosingError>>),
    /// A peer has sent messages.
    Messages(SmootherId, Vec<PeerMessage>),
    /// Answered once the calls before it are done.
    Done(Reply<()>),
    /// Time has passed.
    Tick,
    /// The process stops.
    Stop,
}

/// What a smoother lacks of an open aggregate. It lacks nothing until slots are filled.
pub struct Need {
    /// The aggregate.
    pub aggregate: Digest,
    /// The number of its slots.
    pub slots: u32,
    /// Whether it can be closed by now.
    pub released: bool,
    /// Whether some slots are not certified here.
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
    /// The definitions in use.
    pub agreed: BTreeMap<Digest, AgreedDefinition>,
    /// The creation of keys, and definitions.
    pub key_store: KeyStore,
    /// Messages for peers.
    pub outbox: Outbox,
    /// Its public key.
    pub key: VerifyingKey,
    /// The time.
    pub clock: Clock,
    /// Randomness.
    pub rng: ChaCha20Rng,
    /// Messages that arrived before something they depend on.
    pub early: Vec<(SmootherId, PeerMessage)>,
    /// Whether early messages may be acceptable now.
    pub recheck_early: bool,
    /// How many messages of each smoother were rejected.
    pub rejected: BTreeMap<SmootherId, u64>,
}

/// The aggregate of this smoother's own outcome.
pub fn name_of(key: &VerifyingKey, outcome: &Signed<Outcome>) -> Option<Digest> {
    outcome.open(key).ok().map(|outcome| outcome.aggregate)
}

impl engine::Engine for Engine {
    type Call = Call;
    type Error = LedgerError;

    fn work(&mut self, calls: Vec<Call>) -> Result<ControlFlow<()>, LedgerError> {
        let (mut batch, mut tasks) = (Batch::default(), Tasks::default());
        let mut flow = ControlFlow::Continue(());
        for call in calls {
            if matches!(call, Call::Stop) {
                flow = ControlFlow::Break(());
                break;
            }
            self.call(call, &mut batch, &mut tasks);
        }
        self.tasks(tasks, &mut batch);
        if std::mem::take(&mut self.recheck_early) {
            self.hear_early(&mut batch);
        }
        batch.commit(&mut self.ledger, &self.outbox)?;
        Ok(flow)
    }
}

impl Engine {
    /// Handles calls of clients and definers.
    fn call(&mut self, call: Call, batch: &mut Batch, tasks: &mut Tasks) {
        match call {
            Call::Request(request, reply) => {
                tasks.add(request.aggregate, Task::Request(request, reply));
            }
            Call::Deposit(deposit, reply) => match deposit.unverified_aggregate() {
                Some(aggregate) => tasks.add(aggregate, Task::Deposit(deposit, reply)),
                None => drop(reply.send(Err(SlotError::NotGranted))),
            },
            Call::Define(definition, reply) => {
                let done = self.smoother.handle_proposal(&definition, self.clock.now());
                batch.answer(done, reply, |_, _| ());
            }
            Call::Learn(signed, reply) => {
                let done = self.learn(&signed, batch);
                batch.answer(done.map(|()| Step::new(Vec::new(), ())), reply, |(), _| ());
            }
            Call::Certify(certificate, reply) => match certificate.dangerous_unverified() {
                Some(entry) => {
                    tasks.add(entry.aggregate, Task::Certified(certificate, Some(reply)));
                }
                None => drop(reply.send(Err(StatementError::NotCertified))),
            },
            Call::End(name, reply) => {
                let end = self.smoother.end(&name);
                batch.add(Step::new(Vec::new(), end), |end, _| drop(reply.send(end)));
            }
            call => self.call_of_servers(call, batch, tasks),
        }
    }

    /// Handles calls of other smoothers and the aggregator.
    fn call_of_servers(&mut self, call: Call, batch: &mut Batch, tasks: &mut Tasks) {
        let now = self.clock.now();
        match call {
            Call::Certified(certificates) => certificates.into_iter().for_each(|certificate| {
                if let Some(aggregate) = certificate.dangerous_first() {
                    tasks.add(aggregate, Task::Certified(Box::new(certificate), None));
                }
            }),
            Call::Needs(reply) => drop(reply.send(self.needs(now))),
            Call::Certificates(name, from, reply) => {
                let part = self.smoother.certificates_from(&name, (from, PAGE_SLOTS));
                batch.add(Step::new(Vec::new(), part), |part, _| drop(reply.send(part)));
            }
            Call::Readies(name, reply) => {
                let heard = self.smoother.ready_statements(&name);
                batch.add(Step::new(Vec::new(), heard), |heard, _| drop(reply.send(heard)));
            }
            Call::SealedUpload(name, slot, reply) => {
                drop(reply.send(self.smoother.sealed_upload(&name, slot).cloned()));
            }
            Call::StoreSealedUpload(name, slot, sealed) => {
                batch.add(self.smoother.handle_sealed_upload(&name, slot, *sealed), |(), _| ());
            }
            Call::Release(name, from, reply) => {
                let done = self.smoother.release_from(&name, (from, PAGE_SLOTS), now);
                batch.answer(done.map(|list| Step::new(Vec::new(), list)), reply, |_, _| ());
            }
            Call::Check(name, shown, reply) => tasks.add(name, Task::Check(shown, reply)),
            Call::Disclosed(name, shown, reply) => tasks.add(name, Task::Disclosed(shown, reply)),
            Call::Close(closing, reply) => match closing.dangerous_unverified() {
                Some(said) => tasks.add(said.aggregate, Task::Close(closing, reply)),
                None => drop(reply.send(Err(ClosingError::Signature))),
            },
            Call::Messages(by, said) => {
                said.into_iter().for_each(|said| self.hear(by, said, batch, tasks));
            }
            // The caller may be gone.
            Call::Done(reply) => batch.add(Step::default(), |(), _| reply.send(()).unwrap_or(())),
            Call::Tick => self.tick(batch),
            // Handled by `call` and `work`.
            Call::Request(..)
            | Call::Deposit(..)
            | Call::Define(..)
            | Call::Learn(..)
            | Call::Certify(..)
            | Call::End(..)
            | Call::Stop => {}
        }
    }

    /// Does tasks grouped by aggregate.
    fn tasks(&mut self, tasks: Tasks, batch: &mut Batch) {
        let at = (self.clock.now(), self.key);
        for done in tasks.work(&mut self.smoother, at, &mut self.rng) {
            batch.extend(done.batch);
            self.recheck_early |= done.agreed;
            done.rejected.into_iter().for_each(|(by, why)| self.reject(by, &why));
            done.left.into_iter().for_each(|left| self.left(left, batch));
        }
    }

    /// Handles a task that an aggregate's worker cannot decide.
    fn left(&mut self, left: DeferredTask, batch: &mut Batch) {
        match left {
            DeferredTask::Early(by, said) => self.keep_early(by, said),
            DeferredTask::Heard(by, said) => match self.hear_elsewhere(by, &said) {
                Ok(step) => {
                    self.noticed();
                    batch.add(step, |(), _| ());
                }
                Err(StatementError::Unknown) => self.keep_early(by, said),
                // Peers that were down still send messages of days deleted here.
                Err(StatementError::Over) => {}
                Err(why) => self.reject(by, &why),
            },
            DeferredTask::Certified(certificate, reply) => {
                let done = self.smoother.handle_certificate(&certificate, self.clock.now());
                if done.is_ok() {
                    self.noticed();
                }
                certified(done, reply, batch);
            }
        }
    }

    /// Logs a rejected message: the first of a smoother, the second, the fourth, and so on. One that
    /// sends nothing else does not fill the log.
    fn reject(&mut self, by: SmootherId, why: &dyn Display) {
        let many = self.rejected.entry(by).or_default();
        *many = many.saturating_add(1);
        if many.is_power_of_two() {
            tracing::warn!(%why, by = by.0, rejected = *many, "rejected a smoother's message");
        }
    }

    /// Handles messages of unknown aggregates, and forgotten statements of this smoother.
    fn hear_elsewhere(
        &mut self,
        by: SmootherId,
        said: &PeerMessage,
    ) -> Result<Step<()>, StatementError> {
        let (now, rng) = (self.clock.now(), &mut self.rng);
        let heard = match said {
            PeerMessage::Receipt(receipt) => return self.smoother.handle_receipt(receipt, now),
            PeerMessage::Ready(ready) => self.smoother.handle_ready(ready, by, now, rng),
            PeerMessage::Opening(opening) => self.smoother.handle_opening(opening, by, now, rng),
            PeerMessage::Word(_)
            | PeerMessage::Card(_)
            | PeerMessage::Key(_)
            | PeerMessage::Definition(_) => {
                return Err(StatementError::Unknown);
            }
        };
        heard.map(|step| step.then(|_| Step::new(Vec::new(), ())))
    }

    /// Logs that this smoother saw its own forgotten statement: only that has an effect here.
    fn noticed(&self) {
        tracing::warn!(
            "this smoother found its own signature on a statement missing from its state, and sits out"
        );
    }

    /// Keeps a message that depends on something missing, up to each smoother's share.
    fn keep_early(&mut self, by: SmootherId, said: PeerMessage) {
        let small = postcard::to_allocvec(&said).is_ok_and(|bytes| bytes.len() <= EARLY_BYTES);
        let most = EARLY / self.key_store.pinned().smoothers.len().max(1);
        if small && self.early.iter().filter(|(of, _)| *of == by).count() < most {
            self.early.push((by, said));
        }
    }

    /// Open aggregates, and the items to fetch for those that accept no more deposits.
    fn needs(&self, now: Timestamp) -> Vec<Need> {
        let open = self.agreed.values().filter(|agreed| {
            let over = self.smoother.outcome(&agreed.name()).is_some();
            !over && now < agreed.deadline()
        });
        let need = |agreed: &AgreedDefinition| {
            let aggregate = agreed.name();
            let certified = |slot| self.smoother.certified(&aggregate, slot).is_some();
            let filled = agreed.filled() <= now;
            let uncertified = filled && !(0..agreed.slots).all(certified);
            let lacking =
                if filled { self.smoother.missing_deposits(&aggregate) } else { Vec::new() };
            let (slots, released) = (agreed.slots, agreed.release() <= now);
            Need { aggregate, slots, released, uncertified, lacking }
        };
        open.map(need).collect()
    }

    fn learn(
        &mut self,
        signed: &Endorsed<Definition>,
        batch: &mut Batch,
    ) -> Result<(), AgreementError> {
        let name = AgreedDefinition::open(signed, self.key_store.pinned())?.name();
        // It is durable, or will be before anything is answered.
        if self.agreed.contains_key(&name) {
            return Ok(());
        }
        let step = self.smoother.handle_definition(signed)?;
        self.recheck_early = true;
        let signed = signed.clone();
        let known = &mut self.agreed;
        let step = step.then(|agreed| {
            known.insert(agreed.name(), agreed.clone());
            Step::new(vec![KeyStore::definition(&agreed.name(), &signed)], (agreed, signed))
        });
        let now = self.clock.now();
        batch.add(step, move |(agreed, signed), outbox| outbox.define(agreed.name(), &signed, now));
        Ok(())
    }

    /// Handles a peer's message.
    fn hear(&mut self, by: SmootherId, said: PeerMessage, batch: &mut Batch, tasks: &mut Tasks) {
        match &said {
            PeerMessage::Word(word) => self.key_store.hear(by, word),
            PeerMessage::Card(card) => self.hear_card(by, card, batch),
            PeerMessage::Key(endorsed) => self.learn_key(endorsed, batch),
            PeerMessage::Definition(signed) => {
                if let Err(why) = self.learn(signed, batch) {
                    self.reject(by, &why);
                }
            }
            PeerMessage::Receipt(_) | PeerMessage::Ready(_) | PeerMessage::Opening(_) => {
                match said.unverified_aggregate() {
                    Some(aggregate) => tasks.add(aggregate, Task::Heard(by, said)),
                    None => self.reject(by, &"it is malformed"),
                }
            }
        }
    }

    /// Handles early messages again.
    fn hear_early(&mut self, batch: &mut Batch) {
        let mut tasks = Tasks::default();
        for (by, said) in std::mem::take(&mut self.early) {
            self.hear(by, said, batch, &mut tasks);
        }
        self.tasks(tasks, batch);
    }

    fn tick(&mut self, batch: &mut Batch) {
        let (now, key) = (self.clock.now(), self.key);
        batch.add(self.smoother.poll(now), move |out, outbox| {
            outbox.put_out(|outcome| name_of(&key, outcome), out);
        });
        self.forget(now, batch);
        for (epoch, step) in self.key_store.tick(now, &self.smoother, &mut self.rng) {
            self.talk(epoch, step, batch);
        }
    }

    /// Deletes aggregates that the role has deleted, and old messages.
    fn forget(&mut self, now: Timestamp, batch: &mut Batch) {
        let over = self.agreed.keys().filter(|name| !self.smoother.knows(name));
        let over: Vec<Digest> = over.copied().collect();
        over.iter().for_each(|name| drop(self.agreed.remove(name)));
        let changes = self.key_store.forget(&over, self.smoother.first_epoch());
        if !changes.is_empty() {
            batch.add(Step::new(changes, over), |over, outbox| outbox.forget(&over));
        }
        // A key is created one key epoch early, and used until the last deadline of its own epoch.
        let pinned = self.key_store.pinned();
        let (days, after) = (pinned.days.length.0, pinned.limits.max_closing.0);
        self.outbox.prune(now, days.saturating_mul(3).saturating_add(after.saturating_mul(2)));
    }

    /// Sends messages on the creation of a key; signs its card once a quorum has voted for it.
    fn talk(&mut self, epoch: KeyEpoch, step: Step<KeymakingOutput>, batch: &mut Batch) {
        let (key_store, smoother, mut own) = (&self.key_store, &mut self.smoother, None);
        let step = step.then(|KeymakingOutput { messages, key }| {
            let voted = key.and_then(|key| Some((key_store.voted(epoch, &key)?, key)));
            let card =
                voted.map(|((attempt, share), key)| smoother.sign_card(epoch, attempt, key, share));
            let mut said: Vec<PeerMessage> = messages.into_iter().map(PeerMessage::Word).collect();
            let mut changes = Vec::new();
            match card {
                Some(Ok(step)) => {
                    let signed = step.then(|card| {
                        own = Some(card.clone());
                        said.push(PeerMessage::Card(card.clone()));
                        Step::new(vec![KeyStore::card(epoch, &card)], ())
                    });
                    changes = signed.dangerous_changes();
                }
                Some(Err(why)) => tracing::error!(%why, "this smoother has no share of a key that a quorum voted for"),
                None => {}
            }
            Step::new(changes, said)
        });
        batch.add(step, |said, outbox| said.into_iter().for_each(|said| outbox.say(said)));
        if let Some(card) = own {
            self.hear_card(self.smoother.id(), &card, batch);
        }
    }

    /// Handles a signed card; learns the key once a quorum has signed the same card.
    fn hear_card(&mut self, by: SmootherId, card: &Signed<Card>, batch: &mut Batch) {
        if let Some(endorsed) = self.key_store.hear_card(by, card) {
            self.learn_key(&endorsed, batch);
        }
    }

    /// Learns a key, and destroys the secrets it was created from.
    fn learn_key(&mut self, endorsed: &Endorsed<Card>, batch: &mut Batch) {
        let pinned = self.key_store.pinned();
        let Ok(card) = endorsed.open(pinned, pinned.quorum()) else { return };
        if self.key_store.is_made(card.key_epoch) {
            return;
        }
        match self.smoother.handle_card(endorsed, self.key_store.share(&card)) {
            Ok(step) => {
                self.recheck_early = true;
                let changes = self.key_store.end(card.key_epoch, endorsed);
                let endorsed = endorsed.clone();
                let step = step.then(|()| Step::new(changes, endorsed));
                batch.add(step, |endorsed, outbox| outbox.made(endorsed));
            }
            Err(why) => tracing::warn!(%why, "rejected a key"),
        }
    }
}
