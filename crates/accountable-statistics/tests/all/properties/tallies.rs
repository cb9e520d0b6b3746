//! Pure counts: one per account, without smoothers.

use crate::properties::helpers::{copy, people};
use crate::support::{Person, Town, at, signing};
use alpheus_accountable_statistics::aggregator::Node;
use alpheus_accountable_statistics::definition::Location;
use alpheus_accountable_statistics::tally::{CountError, Counter, Tally, TallyDefinition};
use alpheus_crypto::ledger::FailingLedger;
use alpheus_crypto::signed_message::Signed;
use std::collections::BTreeMap;

fn tally(town: &Town, place: &str) -> Tally {
    let question = TallyDefinition {
        deployment: town.pinned.fingerprint(),
        location: Location::try_from(place.to_owned()).unwrap(),
        start: at(60),
        end: at(120),
        closes: at(180),
        min_count: 3,
    };
    let by_other = Signed::new(&question, &signing(1));
    assert!(Tally::open(&by_other, &town.pinned).is_err());
    let turned = TallyDefinition { closes: at(120), ..question.clone() };
    assert!(Tally::open(&Signed::new(&turned, &town.operator), &town.pinned).is_err());
    Tally::open(&Signed::new(&question, &town.operator), &town.pinned).unwrap()
}

#[test]
fn each_account_counts_once_and_also_after_a_crash() {
    let mut town = Town::new(1, 1, 70).unwrap();
    let (tally, other) = (tally(&town, "park/gate"), tally(&town, "park/pond"));
    let mut counter = Counter::restore(tally.clone(), &town.pinned, Node::ALONE, []).unwrap();
    let mut ledger: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut people = people(&mut town, 4);
    let mut twin = copy(&town, &people[0]);
    let verifier = town.aggregator.0.verifier();
    let mut presentations = Vec::new();
    for person in &mut people {
        let presentation = person.client.count(&tally, &mut town.rng).unwrap();
        presentations.push(presentation.commit(&mut person.store).unwrap());
    }
    assert_eq!(counter.handle(&presentations[0], at(119), verifier).err(), Some(CountError::Time));
    assert_eq!(counter.handle(&presentations[0], at(180), verifier).err(), Some(CountError::Time));
    let take = |counter: &mut Counter, ledger: &mut BTreeMap<_, _>, presentation: &[u8]| {
        counter.handle(presentation, at(130), verifier).map(|step| step.commit(ledger).unwrap())
    };
    assert_eq!(take(&mut counter, &mut ledger, &presentations[0]), Ok(()));
    assert_eq!(take(&mut counter, &mut ledger, &presentations[0]), Ok(()), "sent again");
    // A copy of the device presents the same tag, however often it proves it again.
    let again = twin.client.count(&tally, &mut town.rng).unwrap();
    let again = again.commit(&mut twin.store).unwrap();
    assert_eq!(take(&mut counter, &mut ledger, &again), Ok(()));
    assert_eq!(take(&mut counter, &mut ledger, &presentations[1]), Ok(()));
    assert_eq!(counter.result(at(181)), None, "two are too few");
    // Killed before the third is durable: it was not acknowledged, and is sent again.
    let lost = counter.handle(&presentations[2], at(131), verifier).unwrap();
    assert!(lost.commit(&mut FailingLedger).is_err());
    let mut counter =
        Counter::restore(tally.clone(), &town.pinned, Node::ALONE, ledger.clone()).unwrap();
    assert_eq!(take(&mut counter, &mut ledger, &presentations[2]), Ok(()));
    let counter =
        Counter::restore(tally.clone(), &town.pinned, Node::ALONE, ledger.clone()).unwrap();
    assert_eq!((counter.result(at(179)), counter.result(at(180))), (None, Some(3)));
    sent_elsewhere(&mut town, (tally, other), &mut people, (presentations, ledger));
}

/// A client whose time comes just before the close would fail at the first lost packet.
#[test]
fn presentations_are_sent_at_any_time_but_the_last_quarter() {
    let mut town = Town::new(1, 1, 70).unwrap();
    let tally = tally(&town, "park/gate");
    // End and close are a minute apart.
    let drawn: Vec<_> = (0..1000).map(|_| tally.draw(&mut town.rng)).collect();
    assert!(drawn.iter().all(|when| (at(120)..at(165)).contains(when)));
    for third in 0..3 {
        let part = at(120 + 15 * third)..at(135 + 15 * third);
        assert!(drawn.iter().filter(|when| part.contains(when)).count() > 250);
    }
}

/// A presentation is about its own count, at one node, and a client repeats the one that it has
/// made.
fn sent_elsewhere(
    town: &mut Town,
    (tally, other): (Tally, Tally),
    people: &mut [Person],
    (presentations, ledger): (Vec<Vec<u8>>, crate::support::Ledger),
) {
    let verifier = town.aggregator.0.verifier();
    let mut elsewhere = Counter::restore(other, &town.pinned, Node::ALONE, ledger.clone()).unwrap();
    let moved = elsewhere.handle(&presentations[3], at(130), verifier).err();
    assert_eq!(moved, Some(CountError::OtherPresentation));
    // A client repeats its presentation, also after a restart.
    let mut back = crate::properties::helpers::restored(town, people[0].store.clone());
    for client in [&mut people[0].client, &mut back.client] {
        let again = client.count(&tally, &mut town.rng).unwrap();
        assert_eq!(again.commit(&mut BTreeMap::new()).unwrap(), presentations[0]);
    }
    // One of two nodes counts.
    let of_two = [0, 1].map(|index| {
        let node = Node { index, of: 2 };
        let mut counter =
            Counter::restore(tally.clone(), &town.pinned, node, ledger.clone()).unwrap();
        counter.handle(&presentations[3], at(130), town.aggregator.0.verifier()).err()
    });
    assert!(of_two.contains(&None) && of_two.contains(&Some(CountError::Elsewhere)));
}
