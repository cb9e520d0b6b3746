//! How a client decides how an aggregate ended, whatever the aggregator and some smoothers say.

use crate::properties::helpers::people;
use crate::support::{Town, at, entry_of, signing};
use alpheus_accountable_statistics::closing::{Leaves, OtherSetError, Trees};
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::messages::{
    End, Entry, NoResultError, Outcome, PublishedResult, Ready,
};
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_accountable_statistics::verdict::{Verdict, verdict};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use std::collections::BTreeMap;

/// An aggregate that has ended with a result, and one entry in it.
struct EndedAggregate {
    town: Town,
    agreed: AgreedDefinition,
    entry: Entry,
}

fn ended(seed: u8) -> EndedAggregate {
    let mut town = Town::new(4, 2, seed).unwrap();
    let agreed = town.define(&town.definition("speed/a", 24).unwrap()).unwrap();
    let mut people = people(&mut town, 10);
    let mut entry = None;
    for (value, person) in (60..).zip(people.iter_mut().take(8)) {
        let given = Contribution::Sample(value);
        let attempt = town.upload(person, &agreed, at(70), given).unwrap();
        entry = Some(entry_of(&attempt).unwrap());
    }
    town.fill(&mut people, &agreed, at(121)).unwrap();
    let examined = town.gather(&agreed, agreed.release()).unwrap();
    let (_, ready) = town.close(examined, agreed.release()).unwrap();
    assert!(town.open(ready, agreed.release()).unwrap().is_some());
    EndedAggregate { town, agreed, entry: entry.unwrap() }
}

impl EndedAggregate {
    fn verdict(&self, ends: &[(SmootherId, End)]) -> Option<Verdict> {
        verdict(ends, &self.agreed, &self.town.pinned)
    }

    fn leaves(&mut self) -> Leaves {
        self.town.aggregator.0.leaves(&self.agreed.name()).unwrap()
    }

    /// A set of this entry alone, or of nothing, which nobody has agreed to.
    fn other(&self, counts: bool) -> Trees {
        let entries = BTreeMap::from([(self.entry.slot, self.entry)]);
        Trees::new(self.agreed.slots, &entries, |_| counts)
    }

    /// A smoother's report of another set, or of none.
    fn lie(&self, by: u8, result: Result<PublishedResult, NoResultError>) -> (SmootherId, End) {
        let aggregate = self.agreed.name();
        let other = self.other(true);
        let (ledger, tuples) = (other.ledger(), other.tuples());
        let ready = Ready { aggregate, key_epoch: self.agreed.key_epoch, ledger, tuples };
        let outcome = Signed::new(&Outcome { aggregate, result }, &signing(by));
        (SmootherId(by.into()), End { outcome, ready: Some(Signed::new(&ready, &signing(by))) })
    }
}

const RESULT: Result<PublishedResult, NoResultError> = Ok(PublishedResult::Mean(7));

#[test]
fn a_client_accepts_the_set_that_a_quorum_agreed_to() {
    let mut world = ended(130);
    let ends = world.town.ends(&world.agreed);
    assert_eq!(ends.len(), 4);
    for without in 0..4 {
        let mut three = ends.clone();
        three.remove(without);
        let Some(Verdict::Result(PublishedResult::Full { count: 8, .. }, set)) =
            world.verdict(&three)
        else {
            panic!("three of four are a quorum");
        };
        let counted = world.leaves().check(&world.agreed, &set).unwrap();
        assert!(counted.has(&world.entry));
        let moved = Entry { slot: (world.entry.slot + 1) % 24, ..world.entry };
        let changed = Entry { revision: world.entry.revision ^ 1, ..world.entry };
        let beyond = Entry { slot: 24, ..world.entry };
        let elsewhere = Entry { aggregate: Digest([1; 32]), ..world.entry };
        for other in [moved, changed, beyond, elsewhere] {
            assert!(!counted.has(&other));
        }
    }
    assert_eq!(world.verdict(&ends[..2]), None, "two are no quorum");
}

/// The aggregator leaves an entry out, or shows a set that contains it to one client alone.
#[test]
fn a_client_detects_another_set_than_the_agreed_one() {
    let mut world = ended(131);
    let Some(Verdict::Result(_, set)) = world.verdict(&world.town.ends(&world.agreed)) else {
        panic!("it has ended");
    };
    for counts in [true, false] {
        let other = world.other(counts).leaves().clone();
        assert_eq!(other.check(&world.agreed, &set).err(), Some(OtherSetError));
    }
    let short = Trees::new(23, &BTreeMap::new(), |_| true).leaves().clone();
    assert_eq!(short.check(&world.agreed, &set).err(), Some(OtherSetError));
    // Of another aggregate with as many slots.
    let definition = world.town.definition("speed/b", 24).unwrap();
    let other = world.town.define(&definition).unwrap();
    assert_eq!(world.leaves().check(&other, &set).err(), Some(OtherSetError));
}

/// One smoother of four lies; its report changes nothing.
#[test]
fn a_lying_smoother_decides_nothing() {
    let world = ended(132);
    let honest = world.town.ends(&world.agreed);
    let right = world.verdict(&honest);
    for lie in [world.lie(0, RESULT), world.lie(0, Err(NoResultError::Late))] {
        let three = [vec![lie.clone()], honest[1..].to_vec()].concat();
        assert_eq!(world.verdict(&three), right);
        // With one honest one absent there is no quorum; nor is there one for the lie.
        assert_eq!(world.verdict(&three[..3]), None);
        // Signed by one, shown as if another had.
        let as_others = (0..4).map(|id| (SmootherId(id), lie.1.clone()));
        assert_eq!(world.verdict(&as_others.collect::<Vec<_>>()), None);
    }
}

/// A result without its set, or of another day's key, does not count.
#[test]
fn a_result_needs_its_agreed_set() {
    let world = ended(133);
    let mut ends = world.town.ends(&world.agreed);
    ends.iter_mut().for_each(|(_, end)| end.ready = None);
    assert_eq!(world.verdict(&ends), None);
    let tomorrow = |(by, end): (SmootherId, End)| {
        let key = signing(u8::try_from(by.0).unwrap());
        let ready = end.ready.unwrap().open(&key.verifying_key()).unwrap().into_inner();
        let ready = Ready { key_epoch: KeyEpoch(ready.key_epoch.0 + 1), ..ready };
        (by, End { ready: Some(Signed::new(&ready, &key)), ..end })
    };
    let ends = world.town.ends(&world.agreed);
    assert_eq!(world.verdict(&ends.into_iter().map(tomorrow).collect::<Vec<_>>()), None);
}

/// No result takes a quorum, whatever reason each gives.
#[test]
fn an_end_without_a_result_takes_a_quorum() {
    let world = ended(134);
    let none = |by, why| world.lie(by, Err(why));
    let late = [
        none(0, NoResultError::Late),
        none(1, NoResultError::NotFilled),
        none(2, NoResultError::NotFilled),
    ];
    assert_eq!(world.verdict(&late[..2]), None);
    assert_eq!(world.verdict(&late), Some(Verdict::Without(NoResultError::NotFilled)));
    let twice = [late[0].clone(), late[0].clone(), late[1].clone()];
    assert_eq!(world.verdict(&twice), None);
}

/// A quorum says that there is no result, beside a result that one smoother has signed and that may
/// be published with another signature.
#[test]
fn a_signed_result_beside_a_quorum_without_one_is_a_dispute() {
    let world = ended(135);
    let late = |by| world.lie(by, Err(NoResultError::Late));
    let ends = |result| [late(1), late(2), late(3), (SmootherId(0), result)];
    let signed = world.lie(0, RESULT).1;
    assert_eq!(world.verdict(&ends(signed.clone())), Some(Verdict::Disputed));
    let without = Some(Verdict::Without(NoResultError::Late));
    // Not signed by this smoother, or about another aggregate.
    assert_eq!(world.verdict(&ends(world.lie(1, RESULT).1)), without);
    let elsewhere = Outcome { aggregate: Digest([1; 32]), result: RESULT };
    let outcome = Signed::new(&elsewhere, &signing(0));
    assert_eq!(world.verdict(&ends(End { outcome, ..signed })), without);
}
