//! An aggregator that follows no rule, and would like to leave valid uploads out: it discloses what it
//! can, and that proves nothing.

use crate::properties::helpers::{Free, mixed, opened, people};
use crate::properties::uploads::{Fault, deposit};
use crate::support::{AGGREGATOR, Person, Town, at, sealing, signing};
use alpheus_accountable_statistics::closing::Trees;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::disclosure::DisclosedUpload;
use alpheus_accountable_statistics::messages::{Closing, Entry, Release, ReleasedSlot};
use alpheus_accountable_statistics::role_error::ClosingError;
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_crypto::group::Element;
use alpheus_crypto::labels;
use alpheus_crypto::signed_message::Signed;
use std::collections::BTreeMap;

/// An aggregator that follows no rule: a closing over these counted slots.
fn lying(world: &Town, agreed: &AgreedDefinition, counts: impl Fn(u32) -> bool) -> Signed<Closing> {
    let name = agreed.name();
    let certified = |slot| world.smoothers[0].certified(&name, slot).map(|entry| (slot, *entry));
    let entries: BTreeMap<u32, Entry> = (0..agreed.slots).filter_map(certified).collect();
    let trees = Trees::new(agreed.slots, &entries, &counts);
    let rejected = entries.keys().copied().filter(|slot| !counts(*slot)).collect();
    let empty = (0..agreed.slots).filter(|slot| !entries.contains_key(slot)).collect();
    let (ledger, tuples) = (trees.ledger(), trees.tuples());
    Signed::new(&Closing { aggregate: name, ledger, tuples, empty, rejected }, &signing(AGGREGATOR))
}

/// What an aggregator that follows no rule can disclose of a slot.
fn disclosed(town: &mut Town, agreed: &AgreedDefinition, slot: u32) -> DisclosedUpload {
    let name = agreed.name();
    let entry = *town.smoothers[0].certified(&name, slot).unwrap();
    let sealed = town.smoothers[0].sealed_upload(&name, slot).unwrap().clone();
    let bytes = postcard::to_allocvec(&entry).unwrap();
    let about = (labels::STATISTICS_DISCLOSURE, bytes.as_slice());
    let disclosure = sealing().unwrap().disclose(&entry.ephemeral, about, &mut town.rng).unwrap();
    DisclosedUpload { slot, sealed, disclosure, refutation: None }
}

/// Valid uploads cannot be rejected with a proof, even by an aggregator that follows no rule.
#[test]
fn a_valid_upload_is_never_proven_bad() {
    let mut town = Town::new(4, 2, 153).unwrap();
    let agreed = town.define(&town.definition("speed/a", 40).unwrap()).unwrap();
    let mut people = people(&mut town, 15);
    for person in &mut people[..10] {
        town.upload(person, &agreed, at(72), Contribution::Sample(10)).unwrap();
    }
    town.fill(&mut people, &agreed, at(121)).unwrap();
    let now = agreed.release();
    let examined = town.gather(&agreed, now).unwrap();
    assert_eq!(examined.rejected(), 0);
    let (aggregator, ledger) = &mut town.aggregator;
    let _ = aggregator.close(examined).unwrap().commit(ledger).unwrap();
    let shown = aggregator.shown(&agreed.name()).unwrap();
    assert!(shown.disclosed.is_empty());
    let all: Vec<_> = (0..10).map(|slot| disclosed(&mut town, &agreed, slot)).collect();
    let lie = lying(&town, &agreed, |slot| slot >= 10);
    let smoother = &mut town.smoothers[0];
    let name = agreed.name();
    let tuples = smoother.handle_tuples(&name, shown.tuples.clone(), now).unwrap();
    assert!(tuples.iter().all(Result::is_ok));
    let verdicts = smoother.handle_disclosures(&name, &all, now).unwrap();
    assert_eq!(verdicts, vec![Ok(()); 10], "they open, and prove nothing");
    let refused = smoother.handle_closing(&lie, now).err();
    assert_eq!(refused, Some(ClosingError::TooManyMissing));
}

/// Forty slots, of which somebody with five accounts' slots has filled five with one tag.
fn same_tags(seed: u8) -> (Town, AgreedDefinition, Vec<u32>) {
    let mut town = Town::new(4, 2, seed).unwrap();
    let agreed = town.define(&town.definition("speed/a", 40).unwrap()).unwrap();
    let mut people = people(&mut town, 19);
    let slots: Vec<Person> = people.drain(15..).collect();
    let mut same = vec![town.upload(&mut people[0], &agreed, at(69), Contribution::Sample(9))];
    for lent in &slots {
        let mut cheat = mixed(&town, &people[0], lent);
        same.push(town.upload(&mut cheat, &agreed, at(69), Contribution::Sample(99)));
    }
    let mut same: Vec<u32> =
        same.into_iter().map(|upload| upload.unwrap().entry().unwrap().slot).collect();
    same.sort_unstable();
    town.fill(&mut people, &agreed, at(121)).unwrap();
    (town, agreed, same)
}

/// The aggregator counts the lowest of several uploads with one tag, and discloses all: without the
/// one that counts the others are missing.
#[test]
fn a_tag_in_several_slots_is_proven_by_all_of_them() {
    let (mut town, agreed, same) = same_tags(154);
    let now = agreed.release();
    let examined = town.gather(&agreed, now).unwrap();
    let (aggregator, ledger) = &mut town.aggregator;
    let closing = aggregator.close(examined).unwrap().commit(ledger).unwrap();
    let shown = aggregator.shown(&agreed.name()).unwrap();
    let rejected = closing.open(&signing(AGGREGATOR).verifying_key()).unwrap().rejected.clone();
    assert_eq!(rejected, same[1..]);
    let slots: Vec<u32> = shown.disclosed.iter().map(|shown| shown.slot).collect();
    assert_eq!(slots, same);
    let name = agreed.name();
    let mut close = |by: usize, disclosed: &[DisclosedUpload]| {
        let smoother = &mut town.smoothers[by];
        let _ = smoother.handle_tuples(&name, shown.tuples.clone(), now).unwrap();
        let verdicts = smoother.handle_disclosures(&name, disclosed, now).unwrap();
        assert!(verdicts.iter().all(Result::is_ok));
        smoother.handle_closing(&closing, now).err()
    };
    assert_eq!(close(0, &shown.disclosed[1..]), Some(ClosingError::TooManyMissing));
    assert_eq!(close(0, &shown.disclosed[..1]), None);
    assert_eq!(close(1, &shown.disclosed), None);
}

/// An aggregator does not choose which of them counts: only rejections of higher ones are proven.
#[test]
fn of_several_uploads_with_one_tag_the_lowest_counts() {
    let (mut town, agreed, same) = same_tags(156);
    let (name, now) = (agreed.name(), agreed.release());
    town.sync(&agreed, now).unwrap();
    let highest = *same.last().unwrap();
    let counts = |slot: u32| slot == highest || !same.contains(&slot);
    let closing = lying(&town, &agreed, counts);
    let release = town.smoothers[0].release(&name, now).unwrap();
    let tuples = opened(&agreed, &release).into_iter().map(|(_, shown)| shown);
    let tuples: Vec<_> = tuples.filter(|shown| counts(shown.slot)).collect();
    let all: Vec<_> = same.iter().map(|slot| disclosed(&mut town, &agreed, *slot)).collect();
    let smoother = &mut town.smoothers[0];
    assert!(smoother.handle_tuples(&name, tuples, now).unwrap().iter().all(Result::is_ok));
    let verdicts = smoother.handle_disclosures(&name, &all, now).unwrap();
    assert!(verdicts.iter().all(Result::is_ok));
    let refused = smoother.handle_closing(&closing, now).err();
    assert_eq!(refused, Some(ClosingError::TooManyMissing));
}

/// An aggregator that opens uploads before the release, with a faulty smoother's help, deposits
/// their tags in slots of its own accounts, counts those and rejects their owners. But only
/// the one who knows a tag's secret can show that.
#[test]
fn a_stolen_tag_does_not_get_its_owner_rejected() {
    let mut town = Town::new(4, 2, 155).unwrap();
    let agreed = town.define(&town.definition("speed/a", 40).unwrap()).unwrap();
    let mut people = people(&mut town, 22);
    let prover = Prover::new(*agreed.terms());
    let (mut stolen, mut owners) = (Vec::new(), Vec::new());
    for at_person in 0..3 {
        let free = Free::with_a_slot(&mut town, &mut people[10 + at_person], &agreed);
        let owner = loop {
            // The owner's slot is above the thief's.
            let given = Contribution::Sample(10);
            let owner = &mut people[at_person];
            let begun = owner.client.begin((&agreed, &prover), given, at(70), &mut town.rng);
            let mut attempt = begun.unwrap().commit(&mut owner.store).unwrap();
            town.ask(owner, &mut attempt, at(70)).unwrap();
            if attempt.entry().unwrap().slot > free.grant().slot {
                break attempt;
            }
        };
        owners.push((at_person, owner, free));
    }
    for (at_person, mut owner, free) in owners {
        let slot = owner.entry().unwrap().slot;
        assert!(town.deposit(&mut people[at_person], &mut owner, at(71)).unwrap());
        let tag = tag_of(&town, &agreed, slot);
        let thief = &people[10 + at_person];
        let entry = deposit(&mut town, (&agreed, &free), thief, Fault::StolenTag(tag));
        stolen.push((entry.slot, slot));
    }
    town.fill(&mut people[3..10], &agreed, at(121)).unwrap();
    town.fill(&mut people[13..], &agreed, at(121)).unwrap();
    let (name, now) = (agreed.name(), agreed.release());
    town.sync(&agreed, now).unwrap();
    let closing = lying(&town, &agreed, |slot| stolen.iter().all(|(_, owner)| *owner != slot));
    let release = town.smoothers[0].release(&name, now).unwrap();
    let shown = opened(&agreed, &release);
    let counted = shown.into_iter().map(|(_, shown)| shown);
    let counted: Vec<_> =
        counted.filter(|shown| stolen.iter().all(|(_, owner)| *owner != shown.slot)).collect();
    let both = stolen.iter().flat_map(|(thief, owner)| [*thief, *owner]);
    let all: Vec<_> = both.map(|slot| disclosed(&mut town, &agreed, slot)).collect();
    let smoother = &mut town.smoothers[0];
    let verdicts = smoother.handle_tuples(&name, counted, now).unwrap();
    assert!(verdicts.iter().all(Result::is_ok));
    let verdicts = smoother.handle_disclosures(&name, &all, now).unwrap();
    assert!(verdicts.iter().all(Result::is_ok));
    let refused = smoother.handle_closing(&closing, now).err();
    assert_eq!(refused, Some(ClosingError::TooManyMissing));
}

/// The tag in a slot, as the aggregator opens it.
fn tag_of(town: &Town, agreed: &AgreedDefinition, slot: u32) -> Element {
    let name = agreed.name();
    let entry = *town.smoothers[0].certified(&name, slot).unwrap();
    let sealed = town.smoothers[0].sealed_upload(&name, slot).unwrap().clone();
    let release = Release { aggregate: name, slots: vec![ReleasedSlot { entry, sealed }] };
    opened(agreed, &release).pop().unwrap().1.tag
}
