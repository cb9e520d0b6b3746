//! An aggregator and a client of its own: what they can do with a victim's upload that the
//! aggregator has opened, and what another node of it can.

use crate::folk::{Free, begun, opened, people};
use crate::support::{AGGREGATOR, Person, Town, at, copy, sealing, signing};
use alpheus_accountable_statistics::aggregator::{Aggregator, Identity, Node};
use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::Agreed;
use alpheus_accountable_statistics::error::{Malformed, Refused};
use alpheus_accountable_statistics::messages::{
    Listed, Outcome, Reason, Release, Shown, Upload, content_digest,
};
use alpheus_accountable_statistics::refused::{NotClosed, NotGathered, NotHeard};
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::signed::Signed;

/// What a client has deposited, as the aggregator opens it.
fn opened_by_the_aggregator(agreed: &Agreed, attempt: &Attempt) -> Shown {
    let entry = *attempt.entry().unwrap();
    let (_, deposit) = attempt.deposits().pop().unwrap();
    let listed = vec![Listed { entry, sealed: deposit.sealed }];
    let release = Release { aggregate: agreed.name(), listed };
    opened(agreed, &release).pop().unwrap().1
}

/// Deposits whatever content in one's own slot, at all smoothers.
fn deposit(town: &mut Town, person: &mut Person, agreed: &Agreed, shown: &mut Shown) {
    let free = Free::with_a_slot(town, person, agreed);
    let sealed = Sealed::nothing(Upload::length(agreed) + 48);
    let content = content_digest(&shown.tag, &shown.tuple, &shown.showing);
    shown.slot = free.grant().slot;
    for (to, deposit) in free.deposits(content, &sealed) {
        assert!(town.receive(to, deposit, at(71)).unwrap().is_some());
    }
}

/// K times the victim's ciphertexts, with its proofs, as they are and for a tag of its own.
#[test]
fn a_multiple_of_a_victims_ciphertext_in_an_own_slot_is_refused_by_every_smoother() {
    let mut town = Town::new(4, 2, 130).unwrap();
    let agreed = town.define(&town.definition("speed/a", 24).unwrap()).unwrap();
    let mut people = people(&mut town, 10);
    let mut attempt = begun(&mut town, &mut people[0], &agreed, 37);
    town.ask(&mut people[0], &mut attempt, at(70)).unwrap();
    let victim = opened_by_the_aggregator(&agreed, &attempt);
    assert!(town.deposit(&mut people[0], &mut attempt, at(70)).unwrap());
    let multiple = |k: u32| {
        let mut tuple = victim.tuple.clone();
        for at in 0..6 {
            let chunk: [u8; 32] = tuple[32 * at..32 * at + 32].try_into().unwrap();
            let element = Element::from_bytes(&chunk).unwrap();
            let times = element.times(&SecretScalar::from_small(k)).unwrap();
            tuple[32 * at..32 * at + 32].copy_from_slice(times.as_bytes());
        }
        Shown { tuple, ..victim.clone() }
    };
    let short = Shown { tuple: vec![7; 9], ..victim.clone() };
    let mut forged = [multiple(1), multiple(20), short];
    for (person, shown) in people[1..].iter_mut().zip(&mut forged) {
        deposit(&mut town, person, &agreed, shown);
    }
    for minutes in [121, 131] {
        town.fill(&mut people[4..], &agreed, at(minutes)).unwrap();
    }
    for by in 0..4 {
        let all = [std::slice::from_ref(&victim), &forged[..]].concat();
        let smoother = &mut town.smoothers[by];
        let verdicts = smoother.check(agreed.release(), &agreed.name(), all).unwrap();
        let refused = Err(NotClosed::Refused(Refused::Statement));
        let malformed = Err(NotClosed::Malformed(Malformed::Length));
        assert_eq!(verdicts, [Ok(()), refused, refused, malformed]);
    }
}

/// An aggregate's tags are at one node: no other takes anything of it.
#[test]
fn an_aggregate_is_one_nodes() {
    let mut town = Town::new(4, 2, 131).unwrap();
    let agreed = town.define(&town.definition("speed/a", 12).unwrap()).unwrap();
    let mut people = people(&mut town, 5);
    town.upload(&mut people[0], &agreed, at(70), Contribution::Sample(5)).unwrap();
    town.fill(&mut people, &agreed, at(121)).unwrap();
    town.sync(&agreed, agreed.release()).unwrap();
    let release = town.smoothers[0].release(agreed.release(), &agreed.name()).unwrap();
    let name = agreed.name();
    let outcome = Outcome { aggregate: name, result: Err(Reason::Late) };
    let outcome = Signed::new(&outcome, &signing(0));
    let mut ours = 0;
    for index in 0..3 {
        let uploads = copy(&town.keys[0]).unwrap();
        let identity = Identity { key: signing(AGGREGATOR), sealing: sealing(), uploads };
        let (node, records) = (Node { index, of: 3 }, town.aggregator.1.clone());
        let mut node = Aggregator::restore(&town.pinned, identity, node, records).unwrap();
        let took = node.take(SmootherId(0), release.clone()).err();
        let work = node.work(&name).err();
        let heard = node.hear(SmootherId(0), &outcome).map(|_| ()).err();
        if node.aggregates().any(|known| known.name() == name) {
            ours += 1;
            assert_eq!((took, work, heard), (None, Some(NotGathered::NoLedger), None));
        } else {
            let elsewhere = Some(NotGathered::Elsewhere);
            assert_eq!((took, work, heard), (elsewhere, elsewhere, Some(NotHeard::Unknown)));
        }
    }
    assert_eq!(ours, 1);
}
