//! A whole aggregate under a seed: messages are lost, late, duplicated and out of order, every
//! party is killed now and then, a smoother lies, a client cheats. No slot has two entries, no
//! aggregate two sets, and the published result is the sum of what is certified.

mod liar;
mod people;

use crate::support::{Person, Town, at};
use alpheus_accountable_statistics::aggregator::ShownUploads;
use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::{AgreedDefinition, ClosingSchedule};
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{
    Closing, ConflictingEntry, Deposit, Entry, Grant, NoResultError, Outcome, PublishedResult,
    Receipt, Release, SealedUpload, SlotRequest,
};
use alpheus_accountable_statistics::role_error::SlotError;
use alpheus_accountable_statistics::smoother::Output;
use alpheus_accountable_statistics::tuple::Prover;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Span;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How bad it is, in percent.
#[derive(Clone, Copy)]
pub(crate) struct Weather {
    lost: u32,
    doubled: u32,
    /// In minutes.
    late: u64,
    /// Of each party in each minute.
    killed: u32,
    /// At each commit: the ledger fails, and the party dies before it answers.
    torn: u32,
}

const FAIR: Weather = Weather { lost: 0, doubled: 0, late: 1, killed: 0, torn: 0 };
const FOUL: Weather = Weather { lost: 20, doubled: 20, late: 4, killed: 3, torn: 2 };

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Party {
    Person(usize),
    Smoother(usize),
    Aggregator,
}

#[derive(Clone)]
pub(crate) enum Letter {
    Ask(usize, SlotRequest),
    Answer(OneTimePublic, SmootherId, Result<Signed<Grant>, SlotError>),
    Deposit(usize, Box<Deposit>),
    Receipt(Receipt),
    Refused(OneTimePublic, SmootherId, Box<ConflictingEntry>),
    Receipts(Vec<Endorsed<Entry>>, Vec<Receipt>),
    WantKept(usize, Vec<u32>),
    Kept(Vec<(u32, SealedUpload)>),
    Certificate(Endorsed<Entry>),
    Said(SmootherId, Output),
    WantRelease,
    Release(SmootherId, Release),
    Closing(Arc<ShownUploads>, Signed<Closing>),
}

/// A person and the upload under way.
pub(crate) struct Walker {
    pub(crate) person: Person,
    pub(crate) attempt: Option<Attempt>,
    pub(crate) since: u64,
    pub(crate) tries: u32,
    pub(crate) samples: Vec<i64>,
    pub(crate) done_until: u64,
}

pub(crate) struct World {
    pub(crate) town: Town,
    pub(crate) agreed: AgreedDefinition,
    pub(crate) prover: Prover,
    pub(crate) walkers: Vec<Walker>,
    pub(crate) mail: Vec<(u64, Party, Letter)>,
    pub(crate) minute: u64,
    pub(crate) weather: Weather,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) liar: Option<SmootherId>,
    /// Samples by key; dummies are not in it.
    pub(crate) given: BTreeMap<OneTimePublic, i64>,
    /// Presents the tags of somebody else.
    pub(crate) cheat: usize,
    certified: BTreeMap<u32, Entry>,
    examined: bool,
}

impl World {
    fn new(seed: u8, weather: Weather, liar: Option<u16>) -> Self {
        let mut town = Town::new(4, 2, seed).unwrap();
        let mut definition = town.definition("speed/a", 40).unwrap();
        let minute = crate::support::MINUTE;
        definition.closing = ClosingSchedule {
            turn: Span(20 * minute),
            turns: 3,
            settling: Span(10 * minute),
            patience: Span(60 * minute),
        };
        let agreed = town.define(&definition).unwrap();
        let mut all = crate::properties::helpers::people(&mut town, 24);
        let cheat = crate::properties::helpers::mixed(&town, &all[0], &all[1]);
        all[1] = cheat;
        let walker = |(n, person): (i64, Person)| Walker {
            person,
            attempt: None,
            since: 0,
            tries: 0,
            samples: if n < 10 { vec![20 + n] } else { Vec::new() },
            done_until: 0,
        };
        Self {
            town,
            prover: Prover::new(*agreed.terms()),
            agreed,
            walkers: (0..).zip(all).map(walker).collect(),
            mail: Vec::new(),
            minute: 60,
            weather,
            rng: ChaCha20Rng::from_seed([seed; 32]),
            liar: liar.map(SmootherId),
            given: BTreeMap::new(),
            cheat: 1,
            certified: BTreeMap::new(),
            examined: false,
        }
    }

    pub(crate) fn happens(&mut self, percent: u32) -> bool {
        self.rng.next_u32() % 100 < percent
    }

    pub(crate) fn send(&mut self, to: Party, letter: Letter) {
        if self.happens(self.weather.lost) {
            return;
        }
        let copies = if self.happens(self.weather.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            let late = self.rng.next_u64() % self.weather.late.max(1);
            self.mail.push((self.minute + late, to, letter.clone()));
        }
    }

    /// Commits a smoother's step. Now and then its ledger fails, and it restarts.
    pub(crate) fn commit<T>(
        &mut self,
        smoother: usize,
        step: alpheus_crypto::ledger::Step<T>,
    ) -> Option<T> {
        if self.happens(self.weather.torn) {
            self.restart(smoother);
            return None;
        }
        Some(step.commit(&mut self.town.ledgers[smoother]).unwrap())
    }

    fn restart(&mut self, smoother: usize) {
        let id = u8::try_from(smoother).unwrap();
        self.town.restart(id, StateOrigin::Intact, at(self.minute)).unwrap();
    }

    fn deliver(&mut self, to: Party, letter: Letter) {
        match to {
            Party::Person(who) => self.at_person(who, letter),
            Party::Smoother(which) => self.at_smoother(which, letter),
            Party::Aggregator => self.at_aggregator(letter),
        }
    }

    fn deposit_at(&mut self, which: usize, who: usize, deposit: &Deposit) {
        let (now, id) = (at(self.minute), self.town.smoothers[which].id());
        self.lie_of_receipt(id, deposit);
        let key = self.key_of(deposit);
        let smoother = &mut self.town.smoothers[which];
        let step = match smoother.handle_deposit(deposit.clone(), now) {
            Ok(step) => step,
            Err(SlotError::SlotTaken | SlotError::KeyTaken) => {
                let shown = Box::new(smoother.conflict(deposit).unwrap());
                return self.send(Party::Person(who), Letter::Refused(key, id, shown));
            }
            Err(_) => return,
        };
        let Some(receipt) = self.commit(which, step) else { return };
        self.send(Party::Person(who), Letter::Receipt(receipt.clone()));
        self.tell_others(id, &Letter::Receipt(receipt));
    }

    fn at_smoother(&mut self, which: usize, letter: Letter) {
        let (now, id) = (at(self.minute), self.town.smoothers[which].id());
        let smoother = &mut self.town.smoothers[which];
        match letter {
            Letter::Ask(who, request) => {
                let answer = smoother.handle_request(&request, now, &mut self.town.rng);
                let answer = match answer.map(|step| self.commit(which, step)) {
                    Ok(None) => return,
                    Ok(Some(grant)) => Ok(self.lie_of_grant(id, &request, grant)),
                    Err(why) => Err(why),
                };
                self.send(Party::Person(who), Letter::Answer(request.ephemeral, id, answer));
            }
            Letter::Deposit(who, deposit) => self.deposit_at(which, who, &deposit),
            Letter::Receipt(receipt) => self.hear_receipts(which, vec![receipt]),
            Letter::Receipts(certificates, receipts) => {
                certificates.iter().for_each(|one| self.hear_certificate(which, one));
                self.hear_receipts(which, receipts);
            }
            Letter::Certificate(certificate) => self.hear_certificate(which, &certificate),
            Letter::WantKept(..) | Letter::Kept(_) => self.pass_on(which, letter),
            Letter::Said(by, output) => self.hear(which, by, &output),
            Letter::WantRelease => {
                if let Ok(release) = smoother.release(&self.agreed.name(), now) {
                    let release = self.lie_of_release(id, release);
                    self.send(Party::Aggregator, Letter::Release(id, release));
                }
            }
            Letter::Closing(shown, closing) => {
                let name = self.agreed.name();
                let _ = smoother.handle_tuples(&name, shown.tuples.clone(), now);
                let _ = smoother.handle_disclosures(&name, &shown.disclosed, now);
                let Ok(step) = smoother.handle_closing(&closing, now) else { return };
                let Some(ready) = self.commit(which, step) else { return };
                self.say(id, Output::Ready(ready));
            }
            Letter::Answer(..) | Letter::Refused(..) | Letter::Release(..) => {}
        }
    }

    fn key_of(&self, deposit: &Deposit) -> OneTimePublic {
        let keeper = self.town.pinned.key(deposit.keeper).unwrap();
        deposit.grant.open(keeper).unwrap().ephemeral
    }

    /// SealedUpload uploads go from smoother to smoother.
    fn pass_on(&mut self, which: usize, letter: Letter) {
        let name = self.agreed.name();
        match letter {
            Letter::WantKept(from, slots) => {
                let smoother = &self.town.smoothers[which];
                let kept =
                    |slot: &u32| Some((*slot, smoother.sealed_upload(&name, *slot)?.clone()));
                let kept = slots.iter().filter_map(kept).collect();
                self.send(Party::Smoother(from), Letter::Kept(kept));
            }
            Letter::Kept(kept) => {
                for (slot, sealed) in kept {
                    let step = self.town.smoothers[which].handle_sealed_upload(&name, slot, sealed);
                    self.commit(which, step);
                }
            }
            _ => {}
        }
    }

    fn hear_certificate(&mut self, which: usize, certificate: &Endorsed<Entry>) {
        let smoother = &mut self.town.smoothers[which];
        if let Ok(step) = smoother.handle_certificate(certificate, at(self.minute)) {
            self.commit(which, step);
        }
    }

    fn hear_receipts(&mut self, which: usize, receipts: Vec<Receipt>) {
        for receipt in receipts {
            let smoother = &mut self.town.smoothers[which];
            if let Ok(step) = smoother.handle_receipt(&receipt, at(self.minute)) {
                self.commit(which, step);
            }
        }
    }

    fn hear(&mut self, which: usize, by: SmootherId, output: &Output) {
        let (now, rng) = (at(self.minute), &mut self.town.rng);
        let smoother = &mut self.town.smoothers[which];
        let id = smoother.id();
        let heard = match output {
            Output::Ready(ready) => smoother.handle_ready(ready, by, now, rng),
            Output::Opening(opening) => smoother.handle_opening(opening, by, now, rng),
            Output::Outcome(_) => return,
        };
        let Ok(step) = heard else { return };
        let said = self.commit(which, step);
        said.into_iter().flatten().for_each(|output| self.say(id, output));
    }

    pub(crate) fn tell_others(&mut self, id: SmootherId, letter: &Letter) {
        for other in (0..4).filter(|other| *other != usize::from(id.0)) {
            self.send(Party::Smoother(other), letter.clone());
        }
    }

    fn say(&mut self, id: SmootherId, output: Output) {
        let output = self.lie(id, output);
        if matches!(output, Output::Outcome(_)) {
            self.send(Party::Aggregator, Letter::Said(id, output));
        } else {
            let own = matches!(output, Output::Ready(_)).then_some(usize::from(id.0));
            let letter = Letter::Said(id, output);
            own.into_iter().for_each(|own| self.send(Party::Smoother(own), letter.clone()));
            self.tell_others(id, &letter);
        }
    }

    fn at_aggregator(&mut self, letter: Letter) {
        let (aggregator, ledger) = &mut self.town.aggregator;
        match letter {
            Letter::Release(by, release) => {
                let _ = aggregator.handle_release(release, by);
            }
            Letter::Said(by, Output::Outcome(outcome)) => {
                if let Ok(step) = aggregator.handle_outcome(&outcome, by) {
                    step.commit(ledger).unwrap();
                }
            }
            _ => {}
        }
    }

    /// What each party does on its own in a minute.
    fn tick(&mut self) {
        for who in 0..self.walkers.len() {
            if self.happens(self.weather.killed) {
                self.kill_person(who);
            }
            self.walk(who);
        }
        for which in 0..4 {
            if self.happens(self.weather.killed) {
                self.restart(which);
            }
            self.smoother_ticks(which);
        }
        if self.happens(self.weather.killed) {
            let (pinned, keys) = (&self.town.pinned, &self.town.keys);
            let ledger = &self.town.aggregator.1;
            self.town.aggregator.0 = Town::aggregator_of(pinned, &keys[0], ledger).unwrap();
            self.examined = false;
        }
        self.aggregator_ticks();
    }

    fn smoother_ticks(&mut self, which: usize) {
        let (now, id) = (at(self.minute), self.town.smoothers[which].id());
        let step = self.town.smoothers[which].poll(now);
        let said = self.commit(which, step);
        said.into_iter().flatten().for_each(|output| self.say(id, output));
        for output in self.town.smoothers[which].resend(now) {
            self.say(id, output);
        }
        if self.minute.is_multiple_of(4) && now < self.agreed.deadline() {
            let name = self.agreed.name();
            let smoother = &self.town.smoothers[which];
            let (certificates, receipts) = (smoother.certificates(&name), smoother.receipts(&name));
            let lacking = smoother.missing_deposits(&name);
            self.tell_others(id, &Letter::Receipts(certificates, receipts));
            self.tell_others(id, &Letter::WantKept(which, lacking));
        }
    }

    fn aggregator_ticks(&mut self) {
        let name = self.agreed.name();
        if at(self.minute) < self.agreed.release()
            || self.town.aggregator.0.outcome(&name).is_some()
        {
            return;
        }
        if !self.examined {
            self.examine();
        }
        let aggregator = &self.town.aggregator.0;
        if let (Some(shown), Some(closing)) = (aggregator.shown(&name), aggregator.closing(&name)) {
            for which in 0..4 {
                self.send(
                    Party::Smoother(which),
                    Letter::Closing(Arc::clone(&shown), closing.clone()),
                );
            }
        }
    }

    fn examine(&mut self) {
        for which in 0..4 {
            self.send(Party::Smoother(which), Letter::WantRelease);
        }
        let (aggregator, ledger) = &mut self.town.aggregator;
        let Ok(work) = aggregator.examination(&self.agreed.name()) else { return };
        let examined = work.run(&mut self.town.rng);
        if let Ok(step) = aggregator.close(examined) {
            step.commit(ledger).unwrap();
            self.examined = true;
        }
    }

    /// Checks what must hold at any time.
    fn check(&mut self) {
        let honest = self.town.smoothers.iter().filter(|s| Some(s.id()) != self.liar);
        for smoother in honest {
            for slot in 0..40 {
                let Some(entry) = smoother.certified(&self.agreed.name(), slot) else { continue };
                let first = *self.certified.entry(slot).or_insert(*entry);
                assert_eq!(first, *entry, "two entries of slot {slot}");
            }
        }
    }

    fn run(mut self) -> Option<Outcome> {
        while at(self.minute) <= self.agreed.deadline() {
            if self.minute == 195 {
                // A result in time needs a network in the end.
                self.weather = FAIR;
            }
            self.tick();
            let due = std::mem::take(&mut self.mail);
            let (mut now, later): (Vec<_>, Vec<_>) =
                due.into_iter().partition(|(due, ..)| *due <= self.minute);
            self.mail = later;
            while !now.is_empty() {
                let next = self.rng.next_u32() as usize % now.len();
                let (_, to, letter) = now.swap_remove(next);
                self.deliver(to, letter);
            }
            self.check();
            self.minute += 1;
        }
        let published = self.town.aggregator.0.outcome(&self.agreed.name());
        if let Some(Ok(result)) = published.map(|outcome| outcome.result) {
            self.check_result(result);
        }
        published
    }

    /// What was certified is what was counted. The cheat's upload and its victim's first have one
    /// tag, and one of them counts.
    fn check_result(&self, result: PublishedResult) {
        let PublishedResult::Full { count, sum, .. } = result else { panic!("a full result") };
        let values = self.certified.values().filter_map(|entry| self.given.get(&entry.ephemeral));
        let mut values: Vec<i64> = values.copied().collect();
        values.sort_unstable();
        // 20 is the victim's sample and the cheat's.
        let twice = values.iter().filter(|value| **value == 20).count() > 1;
        values.dedup();
        assert_eq!(
            (count, sum),
            (values.len() as u64, values.iter().map(|v| i128::from(*v)).sum())
        );
        assert!(self.certified.len() >= 38 && (!twice || count > 0));
    }
}

#[test]
fn without_faults_every_sample_counts_once() {
    let outcome = World::new(150, FAIR, None).run().unwrap();
    let Ok(PublishedResult::Full { count, .. }) = outcome.result else { panic!("{outcome:?}") };
    assert_eq!(count, 9);
}

#[test]
fn a_published_result_is_right_despite_faults() {
    let mut results = Vec::new();
    for seed in 151..155 {
        results.push(World::new(seed, FOUL, None).run().unwrap().result);
    }
    let published = results.iter().filter(|result| result.is_ok()).count();
    assert!(published >= 3, "{results:?}");
}

/// Aggregates may end without a result, but never with a wrong one.
#[test]
fn a_lying_smoother_does_not_change_a_result() {
    let mut results = Vec::new();
    for (seed, liar) in (160..164).zip([0, 1, 2, 3]) {
        let weather = if seed % 2 == 0 { FAIR } else { FOUL };
        results.push(World::new(seed, weather, Some(liar)).run().unwrap().result);
    }
    assert!(results.iter().any(Result::is_ok), "{results:?}");
    let why = |result: &Result<_, NoResultError>| result.as_ref().err().copied();
    assert!(!results.iter().any(|result| why(result) == Some(NoResultError::TooFew)));
}
