//! An aggregator with its own client: what they can do with a victim's upload that the aggregator
//! has opened, and what another aggregator node can do.

use crate::properties::helpers::{Free, begun, opened, people};
use crate::support::{AGGREGATOR, Person, Town, at, copy, sealing, signing};
use alpheus_accountable_statistics::aggregator::{Aggregator, Identity, Node};
use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::error::{TupleError, TupleFormatError};
use alpheus_accountable_statistics::messages::{
    ClosingTuple, NoResultError, Outcome, Release, ReleasedSlot, SealedUpload, content_digest,
};
use alpheus_accountable_statistics::role_error::{AggregatorError, ClosingError, StatementError};
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::signed_message::Signed;

/// A client's deposit, as the aggregator opens it.
fn opened_by_the_aggregator(agreed: &AgreedDefinition, attempt: &Attempt) -> ClosingTuple {
    let entry = *attempt.entry().unwrap();
    let (_, deposit) = attempt.deposits().pop().unwrap();
    let slots = vec![ReleasedSlot { entry, sealed: deposit.sealed }];
    let release = Release { aggregate: agreed.name(), slots };
    opened(agreed, &release).pop().unwrap().1
}

/// Deposits any content in one's own slot, at all smoothers.
fn deposit(
    town: &mut Town,
    person: &mut Person,
    agreed: &AgreedDefinition,
    shown: &mut ClosingTuple,
) {
    let free = Free::with_a_slot(town, person, agreed);
    let sealed = SealedUpload::from_bytes(vec![0; SealedUpload::length(agreed)]);
    let content = content_digest(&shown.tag, &shown.tuple, &shown.presentation);
    shown.slot = free.grant().slot;
    for (to, deposit) in free.deposits(content, &sealed) {
        assert!(town.receive(to, deposit, at(71)).unwrap().is_some());
    }
}

/// K times the victim's ciphertexts with its proofs, unchanged and for one's own tag.
#[test]
fn every_smoother_rejects_a_multiple_of_a_victims_ciphertext() {
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
        ClosingTuple { tuple, ..victim.clone() }
    };
    let short = ClosingTuple { tuple: vec![7; 9], ..victim.clone() };
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
        let verdicts = smoother.handle_tuples(&agreed.name(), all, agreed.release()).unwrap();
        let refused = Err(ClosingError::Refused(TupleError::Statement));
        let malformed = Err(ClosingError::Malformed(TupleFormatError::Length));
        assert_eq!(verdicts, [Ok(()), refused, refused, malformed]);
    }
}

/// An aggregate's tags are at one node: no other accepts anything of it.
#[test]
fn an_aggregate_belongs_to_one_node() {
    let mut town = Town::new(4, 2, 131).unwrap();
    let agreed = town.define(&town.definition("speed/a", 12).unwrap()).unwrap();
    let mut people = people(&mut town, 5);
    town.upload(&mut people[0], &agreed, at(70), Contribution::Sample(5)).unwrap();
    town.fill(&mut people, &agreed, at(121)).unwrap();
    town.sync(&agreed, agreed.release()).unwrap();
    let release = town.smoothers[0].release(&agreed.name(), agreed.release()).unwrap();
    let name = agreed.name();
    let outcome = Outcome { aggregate: name, result: Err(NoResultError::Late) };
    let outcome = Signed::new(&outcome, &signing(0));
    let mut ours = 0;
    for index in 0..3 {
        let uploads = copy(&town.keys[0]).unwrap();
        let identity = Identity { key: signing(AGGREGATOR), sealing: sealing().unwrap(), uploads };
        let (node, records) = (Node { index, of: 3 }, town.aggregator.1.clone());
        let mut node = Aggregator::restore(&town.pinned, identity, node, records).unwrap();
        let took = node.handle_release(release.clone(), SmootherId(0)).err();
        let work = node.examination(&name).err();
        let heard = node.handle_outcome(&outcome, SmootherId(0)).map(|_| ()).err();
        if node.aggregates().any(|known| known.name() == name) {
            ours += 1;
            assert_eq!((took, work, heard), (None, Some(AggregatorError::NoLedger), None));
        } else {
            let elsewhere = Some(AggregatorError::Elsewhere);
            assert_eq!((took, work, heard), (elsewhere, elsewhere, Some(StatementError::Unknown)));
        }
    }
    assert_eq!(ours, 1);
}
