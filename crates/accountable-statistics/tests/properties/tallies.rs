//! Pure counts: one for each account, without smoothers.

use crate::folk::{Broken, copy, people};
use crate::support::{Town, at, signing};
use alpheus_accountable_statistics::aggregator::Node;
use alpheus_accountable_statistics::definition::Place;
use alpheus_accountable_statistics::tally::{Counter, NotTallied, Question, Tally};
use alpheus_crypto::signed::Signed;
use std::collections::BTreeMap;

fn tally(town: &Town, place: &str) -> Tally {
    let question = Question {
        deployment: town.pinned.fingerprint(),
        place: Place::try_from(place.to_owned()).unwrap(),
        start: at(60),
        end: at(120),
        closes: at(180),
        fewest: 3,
    };
    let by_other = Signed::new(&question, &signing(1));
    assert!(Tally::open(&by_other, &town.pinned).is_err());
    let turned = Question { closes: at(120), ..question.clone() };
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
    let mut showings = Vec::new();
    for person in &mut people {
        let showing = person.client.count(&tally, &mut town.rng).unwrap();
        showings.push(showing.commit(&mut person.store).unwrap());
        let when = tally.draw(&mut town.rng);
        assert!(tally.end <= when && when < tally.closes);
    }
    assert_eq!(counter.take(at(119), &showings[0], verifier).err(), Some(NotTallied::Time));
    assert_eq!(counter.take(at(180), &showings[0], verifier).err(), Some(NotTallied::Time));
    let take = |counter: &mut Counter, ledger: &mut BTreeMap<_, _>, showing: &[u8]| {
        counter.take(at(130), showing, verifier).map(|step| step.commit(ledger).unwrap())
    };
    assert_eq!(take(&mut counter, &mut ledger, &showings[0]), Ok(()));
    assert_eq!(take(&mut counter, &mut ledger, &showings[0]), Ok(()), "sent again");
    // A copy of the device shows the same tag, however often it proves it anew.
    let again = twin.client.count(&tally, &mut town.rng).unwrap();
    let again = again.commit(&mut twin.store).unwrap();
    assert_eq!(take(&mut counter, &mut ledger, &again), Ok(()));
    assert_eq!(take(&mut counter, &mut ledger, &showings[1]), Ok(()));
    assert_eq!(counter.result(at(181)), None, "two are too few");
    // Killed before the third is durable: it was not acknowledged, and is sent again.
    let lost = counter.take(at(131), &showings[2], verifier).unwrap();
    assert!(lost.commit(&mut Broken).is_err());
    let mut counter =
        Counter::restore(tally.clone(), &town.pinned, Node::ALONE, ledger.clone()).unwrap();
    assert_eq!(take(&mut counter, &mut ledger, &showings[2]), Ok(()));
    let counter =
        Counter::restore(tally.clone(), &town.pinned, Node::ALONE, ledger.clone()).unwrap();
    assert_eq!((counter.result(at(179)), counter.result(at(180))), (None, Some(3)));
    // A showing is about its question, and a client knows what it has shown.
    let mut elsewhere = Counter::restore(other, &town.pinned, Node::ALONE, ledger.clone()).unwrap();
    let moved = elsewhere.take(at(130), &showings[3], verifier).err();
    assert_eq!(moved, Some(NotTallied::OtherShowing));
    // A client sends what it has shown, also after a restart.
    let mut back = crate::folk::restored(&town, people[0].store.clone());
    for client in [&mut people[0].client, &mut back.client] {
        let again = client.count(&tally, &mut town.rng).unwrap();
        assert_eq!(again.commit(&mut BTreeMap::new()).unwrap(), showings[0]);
    }
    // Of two nodes one counts.
    let of_two = [0, 1].map(|index| {
        let node = Node { index, of: 2 };
        let mut counter =
            Counter::restore(tally.clone(), &town.pinned, node, ledger.clone()).unwrap();
        counter.take(at(130), &showings[3], town.aggregator.0.verifier()).err()
    });
    assert!(of_two.contains(&None) && of_two.contains(&Some(NotTallied::Elsewhere)));
}
