//! An aggregator that drops, replaces, duplicates or splits opens nothing.

use crate::properties::helpers::{answers, begun, grant, mixed, opened, people, taken};
use crate::support::{AGGREGATOR, Person, Town, at, signing};
use alpheus_accountable_statistics::closing::Trees;
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::messages::{
    Closing, ClosingTuple, Entry, Ready, Receipt, Release,
};
use alpheus_accountable_statistics::messages::{SealedUpload, sealed_digest};
use alpheus_accountable_statistics::role_error::{
    AggregatorError, ClosingError, ReleaseError, StatementError,
};
use alpheus_accountable_statistics::smoother::Output;
use alpheus_accountable_statistics::tuple::{Binding, Contribution, Prover};
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use std::collections::BTreeMap;

/// Forty slots, of which two may be missing, all filled, and everything that an aggregator can
/// open.
struct FilledAggregate {
    town: Town,
    agreed: AgreedDefinition,
    people: Vec<Person>,
    shown: Vec<(Entry, ClosingTuple)>,
}

fn filled(seed: u8) -> FilledAggregate {
    filled_with(seed, |_, _, _| ())
}

/// The same, with something else first.
fn filled_with(
    seed: u8,
    first: impl Fn(&mut Town, &AgreedDefinition, &mut Vec<Person>),
) -> FilledAggregate {
    let mut town = Town::new(4, 2, seed).unwrap();
    let definition = town.definition("speed/a", 40).unwrap();
    let agreed = town.define(&definition).unwrap();
    let mut people = people(&mut town, 15);
    first(&mut town, &agreed, &mut people);
    for person in people.iter_mut().take(10) {
        town.upload(person, &agreed, at(70), Contribution::Sample(10)).unwrap();
    }
    town.fill(&mut people, &agreed, at(121)).unwrap();
    let release = town.smoothers[0].release(&agreed.name(), agreed.release()).unwrap();
    let shown = opened(&agreed, &release);
    assert_eq!(shown.len(), 40);
    FilledAggregate { town, agreed, people, shown }
}

impl FilledAggregate {
    fn shown(&self, slots: impl Fn(u32) -> bool) -> Vec<ClosingTuple> {
        let these = self.shown.iter().filter(|(entry, _)| slots(entry.slot));
        these.map(|(_, shown)| shown.clone()).collect()
    }

    fn check(
        &mut self,
        smoother: usize,
        shown: Vec<ClosingTuple>,
    ) -> Vec<Result<(), ClosingError>> {
        let name = self.agreed.name();
        self.town.smoothers[smoother].handle_tuples(&name, shown, self.agreed.release()).unwrap()
    }

    /// A closing over some of the slots, signed by the aggregator.
    fn closing(&self, counts: impl Fn(u32) -> bool) -> Signed<Closing> {
        let entries: BTreeMap<u32, Entry> =
            self.shown.iter().map(|(entry, _)| (entry.slot, *entry)).collect();
        let trees = Trees::new(40, &entries, &counts);
        let rejected = entries.keys().copied().filter(|slot| !counts(*slot)).collect();
        let (ledger, tuples) = (trees.ledger(), trees.tuples());
        let (aggregate, empty) = (self.agreed.name(), Vec::new());
        let closing = Closing { aggregate, ledger, tuples, empty, rejected };
        Signed::new(&closing, &signing(AGGREGATOR))
    }

    fn close(
        &mut self,
        smoother: usize,
        closing: &Signed<Closing>,
    ) -> Result<Signed<Ready>, ClosingError> {
        let step = self.town.smoothers[smoother].handle_closing(closing, self.agreed.release())?;
        Ok(step.commit(&mut self.town.ledgers[smoother]).unwrap())
    }

    /// Sends all of these to all smoothers; returns their answers.
    fn tell(&mut self, ready: &[(SmootherId, Signed<Ready>)]) -> Vec<Output> {
        let (now, mut said) = (self.agreed.release(), Vec::new());
        for (by, ready) in ready {
            for (other, ledger) in self.town.smoothers.iter_mut().zip(&mut self.town.ledgers) {
                if let Ok(step) = other.handle_ready(ready, *by, now, &mut self.town.rng) {
                    said.extend(step.commit(ledger).unwrap());
                }
            }
        }
        said
    }
}

#[test]
fn nothing_is_released_early_or_unfilled() {
    let mut town = Town::new(4, 2, 40).unwrap();
    let definition = town.definition("speed/a", 40).unwrap();
    let agreed = town.define(&definition).unwrap();
    let mut people = people(&mut town, 15);
    town.fill(&mut people[..13], &agreed, at(121)).unwrap();
    let before = Timestamp(agreed.release().0 - 1);
    let ask = |town: &Town, now| town.smoothers[0].release(&agreed.name(), now).err();
    assert_eq!(ask(&town, before), Some(ReleaseError::Early));
    // 39 of 40: as many as the tolerance requires.
    assert_eq!(ask(&town, agreed.release()), None);
    let name = alpheus_crypto::hash::Digest([0; 32]);
    let other = town.smoothers[0].release(&name, before).err();
    assert_eq!(other, Some(ReleaseError::Unknown));
}

#[test]
fn dropping_more_than_the_tolerance_opens_nothing() {
    let mut world = filled(41);
    let (few, fewer) = (|slot| slot >= 2, |slot| slot >= 3);
    let shown = world.shown(fewer);
    assert!(world.check(0, shown).iter().all(Result::is_ok));
    let closing = world.closing(fewer);
    assert_eq!(world.close(0, &closing).err(), Some(ClosingError::TooManyMissing));
    // One that counts a tuple that was not sent.
    let closing = world.closing(|_| true);
    assert_eq!(world.close(0, &closing).err(), Some(ClosingError::NotShown));
    let shown = world.shown(|slot| slot == 2);
    assert!(world.check(0, shown).iter().all(Result::is_ok));
    let closing = world.closing(|slot| slot != 5 && slot >= 1);
    assert_eq!(world.close(0, &closing).err(), Some(ClosingError::NotShown));
    let closing = world.closing(few);
    assert!(world.close(0, &closing).is_ok());
}

/// K times a victim's ciphertext, one's own tuple in a victim's slot, a victim's tuple in another
/// slot: none matches the slot's entry.
#[test]
fn a_replaced_or_moved_tuple_is_not_certified() {
    let mut world = filled(42);
    let prover = Prover::new(*world.agreed.terms());
    let (entry, victim) = world.shown[0].clone();
    let binding: Binding = entry.binding(victim.tag);
    let own = prover.prove(Contribution::Sample(99), &binding, &mut world.town.rng).unwrap();
    let replaced = ClosingTuple { tuple: own.to_bytes(), ..victim.clone() };
    let moved = ClosingTuple { slot: world.shown[1].0.slot, ..victim.clone() };
    let mut other_tag = victim.clone();
    other_tag.tag = world.shown[1].1.tag;
    let mut bits = victim.clone();
    bits.tuple[40] ^= 1;
    let beyond = ClosingTuple { slot: 40, ..victim.clone() };
    for bad in [replaced, moved, other_tag, bits, beyond] {
        assert_eq!(world.check(0, vec![bad]), [Err(ClosingError::NotCertified)]);
    }
    // Sent twice, it counts once.
    assert_eq!(world.check(0, vec![victim.clone(), victim.clone()]), [Ok(()), Ok(())]);
    assert_eq!(world.check(0, vec![victim]), [Ok(())]);
    let shown = world.shown(|slot| slot != entry.slot);
    assert!(world.check(0, shown).iter().all(Result::is_ok));
    let closing = world.closing(|_| true);
    assert!(world.close(0, &closing).is_ok());
    assert_eq!(world.people.len(), 15);
}

/// A client with two accounts' slots uploads one tag twice. An aggregator that leaves out neither
/// finds no smoother that agrees: each checks that all tags differ.
#[test]
fn every_smoother_rejects_a_tag_that_is_counted_twice() {
    let mut world = filled_with(49, |town, agreed, people| {
        let slots = people.pop().unwrap();
        let mut cheat = mixed(town, &people[0], &slots);
        town.upload(&mut people[0], agreed, at(69), Contribution::Sample(20)).unwrap();
        town.upload(&mut cheat, agreed, at(69), Contribution::Sample(99)).unwrap();
    });
    let tag = |at: usize| world.shown[at].1.tag;
    let pairs = (0..40).flat_map(|one| (0..one).map(move |two| (one, two)));
    let same: Vec<(usize, usize)> = pairs.filter(|(one, two)| tag(*one) == tag(*two)).collect();
    let [(second, first)] = same[..] else { panic!("{same:?}") };
    let [first, second] = [first, second].map(|at| world.shown[at].0.slot);
    let (both, one) = (world.closing(|_| true), world.closing(|slot| slot != second));
    for smoother in 0..4 {
        let shown = world.shown(|_| true);
        assert!(world.check(smoother, shown).iter().all(Result::is_ok), "each holds by itself");
        assert_eq!(world.close(smoother, &both).err(), Some(ClosingError::Duplicate));
        let closing = if smoother < 2 { &one } else { &world.closing(|slot| slot != first) };
        assert!(world.close(smoother, closing).is_ok());
    }
}

/// Two sets, each within the tolerance, to two halves of the smoothers; a faulty smoother agrees
/// to both. At most one can be opened, and nobody else agrees twice.
#[test]
fn two_sets_of_one_aggregate_are_never_both_opened() {
    let mut world = filled(43);
    let (all, but_one) = (|_| true, |slot: u32| slot != 7);
    let (whole, part) = (world.closing(all), world.closing(but_one));
    for smoother in 0..4 {
        let shown = if smoother < 2 { world.shown(all) } else { world.shown(but_one) };
        assert!(world.check(smoother, shown).iter().all(Result::is_ok));
    }
    let ready = [(0, &whole), (1, &whole), (2, &part), (3, &part)];
    let ready = ready.map(|(at, closing)| {
        let id = SmootherId(u16::try_from(at).unwrap());
        (id, world.close(at, closing).unwrap())
    });
    // A smoother that has agreed to one agrees to it again, and to no other.
    assert_eq!(world.close(0, &whole).as_ref(), Ok(&ready[0].1));
    assert_eq!(world.close(0, &part).err(), Some(ClosingError::Latched));
    assert_eq!(world.close(2, &whole).err(), Some(ClosingError::Latched));
    let name = world.agreed.name();
    let shown = world.shown(all);
    let again = world.town.smoothers[2].handle_tuples(&name, shown, world.agreed.release()).err();
    assert_eq!(again, Some(ClosingError::Latched));
    // Two and two are no quorum: nobody opens anything.
    assert_eq!(world.tell(&ready).len(), 0);
    // Smoother 3 is faulty and signs both: now three are ready for the whole set, and only for it.
    let whole = ready[0].1.open(&signing(0).verifying_key()).unwrap().into_inner();
    let lie = Signed::new(&whole, &signing(3));
    let heard = |world: &mut FilledAggregate, at: usize| {
        let now = world.agreed.release();
        let step =
            world.town.smoothers[at].handle_ready(&lie, SmootherId(3), now, &mut world.town.rng);
        step.map(|step| step.commit(&mut world.town.ledgers[at]).unwrap().len())
    };
    for at in [0, 1, 2] {
        assert_eq!(heard(&mut world, at), Err(StatementError::Equivocation(SmootherId(3))));
    }
    // If they had received only the lie, they open the whole set, and smoother 2 nothing.
    for at in [0_u8, 1, 2] {
        world
            .town
            .restart(at, alpheus_crypto::ledger::StateOrigin::Intact, at_release(&world))
            .unwrap();
    }
    let others: Vec<_> = ready[..3].to_vec();
    assert_eq!(world.tell(&others).len(), 0);
    assert_eq!([0, 1, 2].map(|at| heard(&mut world, at)), [Ok(1), Ok(1), Ok(0)]);
}

fn at_release(world: &FilledAggregate) -> Timestamp {
    world.agreed.release()
}

#[test]
fn a_closing_counts_only_from_the_aggregator_in_time_and_over_the_ledger() {
    let mut world = filled(44);
    let shown = world.shown(|_| true);
    assert!(world.check(0, shown).iter().all(Result::is_ok));
    let good = world.closing(|_| true);
    let closing = good.open(&signing(AGGREGATOR).verifying_key()).unwrap().into_inner();
    let by_other = Signed::new(&closing, &signing(1));
    assert_eq!(world.close(0, &by_other).err(), Some(ClosingError::Signature));
    let ledger = alpheus_crypto::hash::Digest([1; 32]);
    let other = Signed::new(&Closing { ledger, ..closing.clone() }, &signing(AGGREGATOR));
    assert_eq!(world.close(0, &other).err(), Some(ClosingError::OtherRoots));
    let twice = Closing { rejected: vec![3, 3], ..closing.clone() };
    let both = Closing { rejected: vec![3], empty: vec![3], ..closing.clone() };
    let beyond = Closing { empty: vec![40], ..closing };
    for bad in [twice, both, beyond] {
        let bad = Signed::new(&bad, &signing(AGGREGATOR));
        assert_eq!(world.close(0, &bad).err(), Some(ClosingError::OtherRoots));
    }
    let (early, late) = (Timestamp(world.agreed.release().0 - 1), world.agreed.deadline());
    let name = world.agreed.name();
    for now in [early, late] {
        let smoother = &mut world.town.smoothers[0];
        assert_eq!(smoother.handle_closing(&good, now).err(), Some(ClosingError::Time));
        assert_eq!(smoother.handle_tuples(&name, Vec::new(), now).err(), Some(ClosingError::Time));
        let disclosed = smoother.handle_disclosures(&name, &[], now).err();
        assert_eq!(disclosed, Some(ClosingError::Time));
    }
    assert!(world.close(0, &good).is_ok());
}

/// Once an aggregate has ended at a smoother, nothing of it is closed there.
#[test]
fn what_has_ended_is_not_closed_again() {
    let mut world = filled(51);
    let (now, name) = (world.agreed.release(), world.agreed.name());
    let examined = world.town.gather(&world.agreed, now).unwrap();
    let (closing, ready) = world.town.close(examined, now).unwrap();
    assert!(world.town.open(ready, now).unwrap().unwrap().result.is_ok());
    assert_eq!(world.close(0, &closing).err(), Some(ClosingError::Time));
    let tuples = world.town.smoothers[0].handle_tuples(&name, Vec::new(), now).err();
    assert_eq!(tuples, Some(ClosingError::Time));
}

/// A faulty smoother withholds its receipt until the aggregator has closed, and shows it to one
/// other smoother. An entry certified there since is missing in the closing, and within the
/// tolerance.
#[test]
fn a_late_receipt_does_not_stop_an_aggregate() {
    let mut town = Town::new(4, 2, 45).unwrap();
    let definition = town.definition("speed/a", 40).unwrap();
    let agreed = town.define(&definition).unwrap();
    let mut all = people(&mut town, 16);
    let mut accomplice = all.pop().unwrap();
    let mut attempt = begun(&mut town, &mut accomplice, &agreed, 1);
    let given = grant(&agreed, 0, 0, attempt.ephemeral());
    let deposits = taken(&mut town, &mut accomplice, &mut attempt, (0, &given)).unwrap();
    answers(&mut town, deposits[..2].to_vec());
    for person in all.iter_mut().take(9) {
        town.upload(person, &agreed, at(71), Contribution::Sample(10)).unwrap();
    }
    let filled = town.fill(&mut all, &agreed, at(121)).unwrap();
    assert_eq!(filled, 30, "one slot is half signed");
    let now = agreed.release();
    let examined = town.gather(&agreed, now).unwrap();
    let entry = *attempt.entry().unwrap();
    let late = Receipt { by: SmootherId(3), entry: Signed::new(&entry, &signing(3)) };
    town.smoothers[0].handle_receipt(&late, now).unwrap().commit(&mut town.ledgers[0]).unwrap();
    assert_eq!(town.smoothers[0].certified(&agreed.name(), 0), Some(&entry));
    let (closing, ready) = town.close(examined, now).unwrap();
    assert_eq!(ready.len(), 4);
    let closing = closing.open(&signing(AGGREGATOR).verifying_key()).unwrap();
    assert_eq!(closing.empty, [0]);
    let outcome = town.open(ready, now).unwrap().unwrap();
    assert!(outcome.result.is_ok(), "{outcome:?}");
}

/// A smoother without the certificate of an entry in the closing fetches it, then agrees.
#[test]
fn a_smoother_that_lacks_a_certificate_fetches_it() {
    let mut town = Town::new(4, 2, 47).unwrap();
    let definition = town.definition("speed/a", 24).unwrap();
    let agreed = town.define(&definition).unwrap();
    let mut all = people(&mut town, 9);
    town.cut_off = vec![SmootherId(3)];
    town.fill(&mut all, &agreed, at(121)).unwrap();
    town.fill(&mut all, &agreed, at(131)).unwrap();
    let now = agreed.release();
    let examined = town.gather(&agreed, now).unwrap();
    let (aggregator, ledger) = &mut town.aggregator;
    let closing = aggregator.close(examined).unwrap().commit(ledger).unwrap();
    let refusal = town.smoothers[3].handle_closing(&closing, now).err();
    assert_eq!(refusal, Some(ClosingError::Lacking));
    town.cut_off.clear();
    town.sync(&agreed, now).unwrap();
    let shown = town.aggregator.0.shown(&agreed.name()).unwrap().tuples.clone();
    let verdicts = town.smoothers[3].handle_tuples(&agreed.name(), shown, now).unwrap();
    assert!(verdicts.iter().all(Result::is_ok));
    assert!(town.smoothers[3].handle_closing(&closing, now).is_ok());
}

/// A ready statement of another key epoch does not count: nobody opens with another day's share.
#[test]
fn a_ready_statement_of_another_day_is_rejected() {
    let mut world = filled(48);
    let shown = world.shown(|_| true);
    assert!(world.check(0, shown).iter().all(Result::is_ok));
    let closing = world.closing(|_| true);
    let ready = world.close(0, &closing).unwrap();
    let honest = ready.open(&signing(0).verifying_key()).unwrap().into_inner();
    let key_epoch = KeyEpoch(honest.key_epoch.0 + 1);
    let lie = Signed::new(&Ready { key_epoch, ..honest }, &signing(3));
    let (now, rng) = (world.agreed.release(), &mut world.town.rng);
    let heard = world.town.smoothers[0].handle_ready(&lie, SmootherId(3), now, rng);
    assert_eq!(heard.err(), Some(StatementError::OtherSet));
    let truth = Signed::new(&honest, &signing(3));
    assert!(world.town.smoothers[0].handle_ready(&truth, SmootherId(3), now, rng).is_ok());
}

/// A release comes from a known smoother and has this aggregate's slots, each once and in order.
#[test]
fn a_malformed_release_is_rejected() {
    let mut world = filled(46);
    let (now, name) = (world.agreed.release(), world.agreed.name());
    let good = world.town.smoothers[0].release(&name, now).unwrap();
    let mut changed = |change: &dyn Fn(&mut Release)| {
        let mut release = good.clone();
        change(&mut release);
        world.town.aggregator.0.handle_release(release, SmootherId(0)).err()
    };
    let malformed = Some(AggregatorError::Malformed);
    assert_eq!(changed(&|release| release.slots.swap(3, 4)), malformed);
    assert_eq!(changed(&|release| release.slots[4] = release.slots[3].clone()), malformed);
    assert_eq!(changed(&|release| release.slots[39].entry.slot = 40), malformed);
    let elsewhere = alpheus_crypto::hash::Digest([1; 32]);
    assert_eq!(changed(&|release| release.slots[0].entry.aggregate = elsewhere), malformed);
    assert_eq!(changed(&|release| release.aggregate = elsewhere), Some(AggregatorError::Unknown));
    // Its digest is right, and only its length wrong: it would be kept for nothing.
    let long = |release: &mut Release| {
        let sealed = SealedUpload::from_bytes(vec![7; 1 << 20]);
        release.slots[0].entry.sealed = sealed_digest(&sealed);
        release.slots[0].sealed = sealed;
    };
    assert_eq!(changed(&long), malformed);
    assert_eq!(changed(&|_| ()), None);
    let by_nobody = world.town.aggregator.0.handle_release(good, SmootherId(4)).err();
    assert_eq!(by_nobody, malformed);
}

/// A closed aggregate stays closed, whatever smoothers release before or after.
#[test]
fn an_aggregate_is_closed_over_one_ledger() {
    let mut world = filled(46);
    let (now, name) = (world.agreed.release(), world.agreed.name());
    let (aggregator, ledger) = &mut world.town.aggregator;
    let mut examined = |slots: u32| {
        for smoother in &world.town.smoothers {
            let mut release = smoother.release(&name, now).unwrap();
            release.slots.retain(|listed| listed.entry.slot < slots);
            let _ = aggregator.handle_release(release, smoother.id()).unwrap();
        }
        aggregator.examination(&name).unwrap().run(&mut world.town.rng)
    };
    let (fewer, all, again) = (examined(39), examined(40), examined(40));
    let closing = aggregator.close(all).unwrap().commit(ledger).unwrap();
    assert_eq!(aggregator.close(fewer).err(), Some(AggregatorError::Closed));
    assert_eq!(aggregator.close(again).unwrap().commit(ledger).unwrap(), closing);
}
