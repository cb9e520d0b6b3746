//! What the aggregator opens and does not count: each rule of an upload is broken separately, by a
//! client with a slot and a correct deposit.

use crate::properties::helpers::{Free, people};
use crate::support::{AGGREGATOR, Person, TODAY, Town, at, signing};
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::messages::{
    Entry, PublishedResult, Upload, content_digest, presentation_digest, upload_digest,
};
use alpheus_accountable_statistics::tuple::{Binding, Contribution, Prover};
use alpheus_anonymous_credential::holder::{Holder, SubjectPresenter};
use alpheus_anonymous_credential::schedule::Period;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::seal::{Sealed, seal_bytes};
use std::collections::BTreeMap;

/// The fault of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// None.
    None,
    /// It opens for nobody.
    Sealed,
    /// It is sealed for another slot.
    Place,
    /// It differs from the entry's content.
    Content,
    /// The credential is presented for another tuple.
    Message,
    /// The presentation's proof is invalid.
    Presentation,
    /// The tuple's proof is invalid.
    Tuple,
}

const ALL: [Fault; 7] = [
    Fault::None,
    Fault::Sealed,
    Fault::Place,
    Fault::Content,
    Fault::Message,
    Fault::Presentation,
    Fault::Tuple,
];

/// A person's upload credential, separate from the client that would use it correctly.
fn credential(town: &Town, person: &Person, agreed: &AgreedDefinition) -> SubjectPresenter {
    let strip = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        key.strip_prefix(b"u").map(|key| (key.to_vec(), value.clone()))
    };
    let records: BTreeMap<_, _> = person.store.iter().filter_map(strip).collect();
    let uploads = town.pinned.uploads().clone();
    let subject = agreed.subject(&uploads);
    let holder = Holder::restore(uploads, Period(TODAY / 7), &records).unwrap().unwrap();
    holder.for_subject(subject, &records).unwrap()
}

/// The entry's content and the sealed upload.
fn made(
    town: &mut Town,
    person: &Person,
    (agreed, free): (&AgreedDefinition, &Free),
    fault: Fault,
) -> (Digest, Sealed) {
    let mut about = credential(town, person, agreed);
    let binding: Binding =
        free.entry(Digest([0; 32]), &Sealed::dummy(1)).binding(about.next_tag().unwrap());
    let proven = match fault {
        Fault::Tuple => Binding { revision: binding.revision ^ 1, ..binding },
        _ => binding,
    };
    let given = Contribution::Sample(10);
    let tuple = Prover::new(*agreed.terms()).prove(given, &proven, &mut town.rng).unwrap();
    let tuple = tuple.to_bytes();
    let message = match fault {
        Fault::Message => Digest([1; 32]),
        _ => upload_digest(&binding, &tuple),
    };
    let mut presentation =
        about.present(&message, &mut town.rng).unwrap().commit(&mut BTreeMap::new()).unwrap();
    if fault == Fault::Presentation {
        let last = presentation.len() - 32;
        presentation[last..].copy_from_slice(&[[1].as_slice(), &[0; 31]].concat());
    }
    let content = match fault {
        Fault::Content => Digest([2; 32]),
        _ => content_digest(&binding.tag, &tuple, &presentation_digest(&presentation)),
    };
    let bytes = postcard::to_allocvec(&Upload { tuple, presentation }).unwrap();
    if fault == Fault::Sealed {
        return (content, Sealed::dummy(bytes.len() + 48));
    }
    let slot = binding.slot ^ u32::from(fault == Fault::Place);
    let fields = [slot.to_be_bytes().to_vec(), binding.revision.to_be_bytes().to_vec()];
    let (aggregate, key) = (binding.aggregate, binding.ephemeral);
    let context = [aggregate.as_bytes(), &fields[0][..], &fields[1], key.as_bytes()];
    let to = &town.pinned.sealing;
    (
        content,
        seal_bytes(to, labels::STATISTICS_UPLOAD_SEALING, &context, &bytes, &mut town.rng).unwrap(),
    )
}

fn deposit(town: &mut Town, person: &mut Person, agreed: &AgreedDefinition, fault: Fault) -> Entry {
    let free = Free::with_a_slot(town, person, agreed);
    let (content, sealed) = made(town, person, (agreed, &free), fault);
    for (to, deposit) in free.deposits(content, &sealed) {
        assert!(town.receive(to, deposit, at(71)).unwrap().is_some(), "{fault:?}");
    }
    free.entry(content, &sealed)
}

/// No smoother can tell, so all have slots. The aggregator leaves out those with a fault, all of
/// them and nothing else. Its closing is accepted, and the sum is that of the others.
#[test]
fn an_upload_with_a_fault_is_left_out_and_the_aggregate_closes_without_it() {
    let mut town = Town::new(4, 2, 150).unwrap();
    let agreed = town.define(&town.definition("speed/a", 120).unwrap()).unwrap();
    let mut people = people(&mut town, 46);
    let mut bad = Vec::new();
    for (fault, person) in ALL.into_iter().zip(&mut people) {
        let entry = deposit(&mut town, person, &agreed, fault);
        if fault != Fault::None {
            bad.push(entry.slot);
        }
    }
    for person in &mut people[7..11] {
        town.upload(person, &agreed, at(72), Contribution::Sample(10)).unwrap();
    }
    town.fill(&mut people[7..], &agreed, at(121)).unwrap();
    let examined = town.gather(&agreed, agreed.release()).unwrap();
    let (closing, ready) = town.close(examined, agreed.release()).unwrap();
    let closing = closing.open(&signing(AGGREGATOR).verifying_key()).unwrap();
    bad.sort_unstable();
    assert_eq!((&closing.rejected, closing.empty.len()), (&bad, 0));
    let outcome = town.open(ready, agreed.release()).unwrap().unwrap();
    let Ok(PublishedResult::Full { count, sum, .. }) = outcome.result else {
        panic!("{outcome:?}")
    };
    assert_eq!((count, sum), (5, 50));
}
