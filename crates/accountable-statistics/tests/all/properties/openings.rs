//! What is opened, what is not, and by whom.

use crate::properties::helpers::people;
use crate::support::{Person, Town, at, signing};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::{AgreedDefinition, ReleaseRule};
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::error::PartialError;
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::messages::Release;
use alpheus_accountable_statistics::messages::{
    NoResultError, Opening, Outcome, PublishedResult, Ready,
};
use alpheus_accountable_statistics::role_error::{AggregatorError, StatementError};
use alpheus_accountable_statistics::smoother::Output;
use alpheus_accountable_statistics::sums::{Part, Sums};
use alpheus_accountable_statistics::tuple::{Binding, Checker, Contribution, Prover, ThresholdKey};
use alpheus_crypto::group::Element;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::signed_message::Signed;

fn filled(
    seed: u8,
    change: impl Fn(&mut alpheus_accountable_statistics::definition::Definition),
) -> (Town, AgreedDefinition, Vec<Person>) {
    filled_by(seed, 8, change)
}

fn filled_by(
    seed: u8,
    samples: usize,
    change: impl Fn(&mut alpheus_accountable_statistics::definition::Definition),
) -> (Town, AgreedDefinition, Vec<Person>) {
    let mut town = Town::new(4, 2, seed).unwrap();
    let mut definition = town.definition("speed/a", 24).unwrap();
    change(&mut definition);
    let agreed = town.define(&definition).unwrap();
    let mut people = people(&mut town, 10);
    for (value, person) in (60..).zip(people.iter_mut().take(samples)) {
        town.upload(person, &agreed, at(70), Contribution::Sample(value)).unwrap();
    }
    town.fill(&mut people, &agreed, at(121)).unwrap();
    (town, agreed, people)
}

const SUM: i128 = 60 + 61 + 62 + 63 + 64 + 65 + 66 + 67;

fn full(outcome: Option<Outcome>) -> (u64, i128) {
    match outcome.unwrap().result {
        Ok(PublishedResult::Full { count, sum, .. }) => (count, sum),
        other => panic!("{other:?}"),
    }
}

/// With a threshold of two, two accounts may have got nine slots together: a crowd of three needs
/// ten.
#[test]
fn below_the_crowd_smoothers_learn_only_the_count() {
    let (mut town, agreed, _) = filled(50, |definition| definition.accounts = 3);
    assert_eq!(agreed.crowd(), 10);
    let examined = town.gather(&agreed, agreed.release()).unwrap();
    let (_, ready) = town.close(examined, agreed.release()).unwrap();
    let outcome = town.open(ready, agreed.release()).unwrap().unwrap();
    assert_eq!(outcome.result, Err(NoResultError::TooFew));
    let said: Vec<Output> =
        town.smoothers.iter().flat_map(|smoother| smoother.resend(agreed.release())).collect();
    let parts = said.iter().filter_map(|output| match output {
        Output::Opening(opening) => Some(opening.clone()),
        _ => None,
    });
    let parts: Vec<u8> = parts
        .map(|opening| {
            let keys = town.pinned.ids().filter_map(|id| town.pinned.key(id));
            keys.filter_map(|key| opening.open(key).ok()).next().unwrap().part
        })
        .collect();
    assert!(!parts.is_empty() && parts.iter().all(|part| *part == 0), "{parts:?}");
    let (mut town, agreed, _) = filled(51, |definition| definition.accounts = 2);
    assert_eq!((agreed.crowd(), full(town.finish(&agreed).unwrap())), (5, (8, SUM)));
}

/// The limit itself: k_min samples are opened, and one fewer are not.
#[test]
fn a_sum_is_opened_from_the_crowd_on() {
    for (seed, samples) in [(58, 4), (59, 5)] {
        let (mut town, agreed, _) = filled_by(seed, samples, |definition| definition.accounts = 2);
        assert_eq!(agreed.crowd(), 5);
        let outcome = town.finish(&agreed).unwrap().unwrap();
        match samples {
            4 => assert_eq!(outcome.result, Err(NoResultError::TooFew)),
            _ => assert_eq!(full(Some(outcome)), (5, 60 + 61 + 62 + 63 + 64)),
        }
    }
}

/// How a set ends if other sums replace those that smoothers have agreed to.
fn ended_with(town: &mut Town, agreed: &AgreedDefinition, sums: &Sums) -> Outcome {
    let now = agreed.release();
    let examined = town.gather(agreed, now).unwrap();
    let (_, ready) = town.close(examined, now).unwrap();
    let latch = [b"a".as_slice(), agreed.name().as_bytes(), b"r"].concat();
    for id in 0..4 {
        let ledger = &mut town.ledgers[usize::from(id)];
        let (set, _): (Ready, Vec<u8>) = postcard::from_bytes(&ledger[&latch]).unwrap();
        let value = postcard::to_allocvec(&(set, sums.to_bytes())).unwrap();
        ledger.insert(latch.clone(), value);
        town.restart(id, StateOrigin::Intact, now).unwrap();
    }
    town.open(ready, now).unwrap().unwrap()
}

/// One party whose blindings cancel out makes sums whose every R vanishes. There is nothing to
/// decrypt, and that is the reported reason.
#[test]
fn sums_whose_blindings_cancel_are_unreadable() {
    let (mut town, agreed, _) = filled(150, |_| {});
    let nothing = Sums::new(agreed.terms(), agreed.name());
    assert!(nothing.ciphertext(Part::Count).is_none());
    let outcome = ended_with(&mut town, &agreed, &nothing);
    assert_eq!(outcome.result, Err(NoResultError::Unreadable));
}

/// A sum that is no number within its bounds is unreadable: here a count above the slots.
#[test]
fn a_sum_out_of_bounds_is_unreadable() {
    let (mut town, agreed, _) = filled(151, |_| {});
    let (prover, checker) = (Prover::new(*agreed.terms()), Checker::new(*agreed.terms()));
    let mut sums = Sums::new(agreed.terms(), agreed.name());
    for slot in 0..25 {
        let (aggregate, ephemeral) = (agreed.name(), OneTimePublic::from_bytes([slot; 32]));
        let tag = Element::base();
        let binding = Binding { tag, aggregate, ephemeral };
        let tuple = prover.prove(Contribution::Sample(1), &binding, &mut town.rng).unwrap();
        sums.add(&checker.check(binding, tuple).unwrap()).unwrap();
    }
    let outcome = ended_with(&mut town, &agreed, &sums);
    assert_eq!(outcome.result, Err(NoResultError::Unreadable));
}

#[test]
fn a_mean_is_rounded_and_published_without_its_count() {
    let (mut town, agreed, _) = filled(52, |d| {
        (d.rule, d.interval) =
            (ReleaseRule::Mean { grain: 5, resolution: 1 }, Interval::new(0, 100, false).unwrap());
    });
    let outcome = town.finish(&agreed).unwrap().unwrap();
    // 63.5, rounded to fives.
    assert_eq!(outcome.result, Ok(PublishedResult::Mean(65)));
}

/// A definition under another key than that of its day, as too many faulty smoothers could sign it: an
/// honest one opens nothing of it.
#[test]
fn nothing_is_opened_under_another_key_than_the_definitions() {
    let mut town = Town::new(4, 2, 54).unwrap();
    let mut definition = town.definition("speed/a", 24).unwrap();
    definition.key = ThresholdKey(Element::second_base());
    let mut endorsed = Endorsed::default();
    for by in 0..4_u8 {
        endorsed.add(SmootherId(by.into()), Signed::new(&definition, &signing(by)));
    }
    let agreed = town.adopt(&endorsed).unwrap();
    let mut people = people(&mut town, 10);
    for (value, person) in (60..).zip(people.iter_mut().take(8)) {
        town.upload(person, &agreed, at(70), Contribution::Sample(value)).unwrap();
    }
    town.fill(&mut people, &agreed, at(121)).unwrap();
    let now = agreed.release();
    let examined = town.gather(&agreed, now).unwrap();
    let (_, ready) = town.close(examined, now).unwrap();
    assert_eq!(ready.len(), 4, "they agree to a set all the same");
    assert_eq!(town.open(ready, now).unwrap(), None);
    let said = town.smoothers.iter().flat_map(|smoother| smoother.resend(now));
    assert_eq!(said.filter(|said| matches!(said, Output::Opening(_))).count(), 0);
}

/// A wrong partial decryption identifies its smoother, and those of others suffice.
#[test]
fn a_wrong_partial_identifies_its_smoother_and_others_suffice() {
    let (mut town, agreed, _) = filled(53, |_| {});
    let now = agreed.release();
    let examined = town.gather(&agreed, now).unwrap();
    let (_, ready) = town.close(examined, now).unwrap();
    // Smoothers 0 and 1 are ready, and receive statements from 2 and 3.
    let mut openings = Vec::new();
    for (by, said) in &ready {
        for at in 0..4 {
            let step = town.smoothers[at].handle_ready(said, *by, now, &mut town.rng).unwrap();
            let id = town.smoothers[at].id();
            let said = step.commit(&mut town.ledgers[at]).unwrap();
            openings.extend(said.into_iter().map(|output| (id, output)));
        }
    }
    let ready: Ready = ready[0].1.open(&signing(0).verifying_key()).unwrap().into_inner();
    let partial_of = |of: u16| {
        let (_, Output::Opening(opening)) = openings.iter().find(|(id, _)| id.0 == of).unwrap()
        else {
            panic!("no opening")
        };
        let key = signing(u8::try_from(of).unwrap()).verifying_key();
        opening.open(&key).unwrap().into_inner().partial
    };
    let mut wrong = partial_of(2);
    wrong[2..34].copy_from_slice(&partial_of(3)[2..34]);
    let said = |partial, by| Signed::new(&Opening { ready, part: 0, partial }, &signing(by));
    let mut hear = |by: u16, opening: &Signed<Opening>| {
        let by = SmootherId(by);
        let step = town.smoothers[0].handle_opening(opening, by, now, &mut town.rng);
        step.map(|step| step.commit(&mut town.ledgers[0]).unwrap().len())
    };
    let caught = hear(2, &said(wrong, 2));
    assert_eq!(caught, Err(StatementError::Partial(SmootherId(2), PartialError::Wrong(2))));
    let malformed = hear(2, &said(vec![1; 9], 2));
    assert_eq!(malformed, Err(StatementError::Partial(SmootherId(2), PartialError::Malformed)));
    // Another's share under one's own name, and one's own statement under another's.
    let borrowed = hear(2, &said(partial_of(3), 2));
    assert_eq!(borrowed, Err(StatementError::Signature(SmootherId(2))));
    assert_eq!(hear(3, &said(partial_of(3), 2)), Err(StatementError::Signature(SmootherId(3))));
    let other = Ready { tuples: alpheus_crypto::hash::Digest([0; 32]), ..ready };
    let elsewhere = Opening { ready: other, part: 0, partial: partial_of(3) };
    assert_eq!(hear(3, &Signed::new(&elsewhere, &signing(3))), Err(StatementError::OtherSet));
    // With 3's own the count opens, and smoother 0 continues with the sums.
    assert!(hear(3, &said(partial_of(3), 3)).unwrap() > 0);
}

/// Any three of four, and not two.
#[test]
fn a_quorum_opens_a_sum_and_fewer_do_not() {
    let (mut town, agreed, _) = filled(54, |_| {});
    town.cut_off = vec![SmootherId(2)];
    assert_eq!(full(town.finish(&agreed).unwrap()), (8, SUM));
    let (mut town, agreed, _) = filled(55, |_| {});
    let examined = town.gather(&agreed, agreed.release()).unwrap();
    town.cut_off = vec![SmootherId(2), SmootherId(3)];
    let (_, mut ready) = town.close(examined, agreed.release()).unwrap();
    ready.retain(|(by, _)| by.0 < 2);
    assert_eq!(town.open(ready, agreed.release()).unwrap(), None);
    // In the end there is a reason.
    let outcome = town.smoothers[0].poll(agreed.deadline());
    let said = outcome.commit(&mut town.ledgers[0]).unwrap();
    assert_eq!(said.len(), 1);
    let ended = town.smoothers[0].outcome(&agreed.name()).unwrap();
    assert_eq!(ended.result, Err(NoResultError::Late));
}

/// Too few volunteers: nobody gets anything, and everybody is informed.
#[test]
fn an_aggregate_that_cannot_be_filled_ends_with_a_reason() {
    let mut town = Town::new(4, 2, 56).unwrap();
    let definition = town.definition("speed/a", 24).unwrap();
    let agreed = town.define(&definition).unwrap();
    let mut people = people(&mut town, 3);
    town.fill(&mut people, &agreed, at(121)).unwrap();
    let name = agreed.name();
    assert!(town.smoothers[0].release(&name, agreed.release()).is_err());
    let mut published = None;
    for at in 0..4 {
        let before = alpheus_time::Timestamp(agreed.deadline().0 - 1);
        let early = town.smoothers[at].poll(before).commit(&mut town.ledgers[at]).unwrap();
        assert_eq!(early.len(), 0);
        let said = town.smoothers[at].poll(agreed.deadline());
        let id = town.smoothers[at].id();
        for output in said.commit(&mut town.ledgers[at]).unwrap() {
            let Output::Outcome(outcome) = output else { panic!("not an outcome") };
            let (aggregator, ledger) = &mut town.aggregator;
            published = aggregator.handle_outcome(&outcome, id).unwrap().commit(ledger).unwrap();
        }
    }
    assert_eq!(published.unwrap().result, Err(NoResultError::NotFilled));
    // Deposits are gone from the ledgers, and the outcome is there.
    let left = |ledger: &crate::support::Ledger| ledger.keys().filter(|key| key[0] == b'a').count();
    assert_eq!(town.ledgers.iter().map(left).max(), Some(2));
}

/// One smoother alone cannot publish, nor report two outcomes.
#[test]
fn an_outcome_needs_as_many_smoothers_as_a_decryption() {
    let (mut town, agreed, _) = filled(57, |_| {});
    let lie = |sum| Outcome {
        aggregate: agreed.name(),
        result: Ok(PublishedResult::Full { count: 8, sum, squares: None, uploads: 9 }),
    };
    let (aggregator, ledger) = &mut town.aggregator;
    let mut hear = |by: u8, outcome: &Outcome| {
        let signed = Signed::new(outcome, &signing(by));
        aggregator
            .handle_outcome(&signed, SmootherId(by.into()))
            .map(|step| step.commit(ledger).unwrap())
    };
    assert_eq!(hear(3, &lie(1)), Ok(None));
    assert_eq!(hear(3, &lie(2)), Err(StatementError::Equivocation(SmootherId(3))));
    assert_eq!(full(town.finish(&agreed).unwrap()), (8, SUM));
    // What has ended takes no more memory.
    let again = Release { aggregate: agreed.name(), slots: Vec::new() };
    let again = town.aggregator.0.handle_release(again, SmootherId(0)).err();
    assert_eq!(again, Some(AggregatorError::Ended));
}
