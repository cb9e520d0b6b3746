//! How many slots one account or one keeper can keep from being filled.

use crate::properties::helpers::{answers, begun, grant, people, taken};
use crate::support::{Person, Town, at};
use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::role_error::SlotError;

const SLOTS: u32 = 24;

fn town(seed: u8) -> (Town, AgreedDefinition, Vec<Person>) {
    let mut town = Town::new(4, 2, seed).unwrap();
    let agreed = town.define(&town.definition("speed/a", SLOTS).unwrap()).unwrap();
    let people = people(&mut town, 13);
    (town, agreed, people)
}

/// Asks all four keepers for a slot and uses none. Returns how many it gets.
fn hold(town: &mut Town, attempt: &mut Attempt, minutes: u64) -> usize {
    let mut held = 0;
    while let Ok((keeper, request)) = attempt.request() {
        let by = usize::from(keeper.0);
        if let Ok(step) = town.smoothers[by].handle_request(&request, at(minutes), &mut town.rng) {
            step.commit(&mut town.ledgers[by]).unwrap();
            held += 1;
        }
        attempt.handle_refusal();
    }
    held
}

fn filled(town: &Town, agreed: &AgreedDefinition) -> usize {
    let certified = |slot| town.smoothers[0].certified(&agreed.name(), slot).is_some();
    (0..SLOTS).filter(|slot| certified(*slot)).count()
}

/// An account that asks first at each turn, with each of its keys at each keeper, and uses
/// nothing: what it held at one turn is filled at the next.
#[test]
fn an_account_does_not_get_a_lapsed_slot_again() {
    let (mut town, agreed, mut people) = town(110);
    let (account, volunteers) = people.split_first_mut().unwrap();
    let mut attempts: Vec<Attempt> =
        (0..3).map(|_| begun(&mut town, account, &agreed, 1)).collect();
    let mut held = Vec::new();
    for minutes in [121, 131, 141] {
        let now = attempts.iter_mut().map(|attempt| hold(&mut town, attempt, minutes)).sum();
        held.push(now);
        town.fill(volunteers, &agreed, at(minutes)).unwrap();
    }
    assert_eq!((held, filled(&town, &agreed)), (vec![12, 0, 0], 24));
}

/// Spread over the turns it keeps as many empty as `max_wasted_slots` says, and no more.
#[test]
fn an_account_leaves_no_more_slots_empty_than_the_bound() {
    let (mut town, agreed, mut people) = town(111);
    let (account, volunteers) = people.split_first_mut().unwrap();
    for minutes in [121, 131, 141] {
        let mut attempt = begun(&mut town, account, &agreed, 1);
        assert_eq!(hold(&mut town, &mut attempt, minutes), 4);
        town.fill(volunteers, &agreed, at(minutes)).unwrap();
    }
    let empty = u64::from(SLOTS) - filled(&town, &agreed) as u64;
    assert_eq!(empty, 4);
    assert!(empty <= town.pinned.max_wasted_slots(3, 1, agreed.closing.turns));
    assert_eq!([1, 2, 3, 9].map(|turns| town.pinned.max_wasted_slots(3, 1, turns)), [12, 6, 6, 6]);
}

/// A keeper that grants slots twice is found out by the first one, and its later grants do not
/// count: its slots have another keeper at the next turn.
#[test]
fn a_keeper_that_grants_a_slot_twice_loses_its_grants() {
    let (mut town, agreed, mut people) = town(112);
    let mut sent = Vec::new();
    for (person, slot) in people.iter_mut().zip([3, 3, 7]) {
        let mut attempt = begun(&mut town, person, &agreed, 50);
        let granted = grant(&agreed, 3, slot, attempt.ephemeral());
        sent.push(taken(&mut town, person, &mut attempt, (3, &granted)).unwrap());
    }
    let [ones, twos, later] = &sent[..] else { panic!("three") };
    // Shown to one first, and to two the other way round: nobody has a quorum.
    assert_eq!(answers(&mut town, ones[..2].to_vec()), vec![Ok(()); 2]);
    assert_eq!(answers(&mut town, twos[2..3].to_vec()), vec![Ok(())]);
    for (to, deposit) in ones[2..3].iter().chain(&twos[..2]) {
        let refusal = town.receive(*to, deposit.clone(), at(70)).err();
        assert_eq!(refusal, Some(SlotError::SlotTaken));
        let by = usize::from(to.0);
        town.smoothers[by].compare_grants(deposit).commit(&mut town.ledgers[by]).unwrap();
    }
    let honest = later.iter().filter(|(to, _)| *to != SmootherId(3)).cloned().collect();
    assert_eq!(answers(&mut town, honest), vec![Err(SlotError::NotGranted); 3]);
    // That one slot is lost, and no other.
    for minutes in [121, 131, 141] {
        town.cut_off = vec![SmootherId(3)];
        town.fill(&mut people[3..], &agreed, at(minutes)).unwrap();
    }
    assert_eq!(filled(&town, &agreed), 23);
}
