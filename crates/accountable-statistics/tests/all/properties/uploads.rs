//! What the aggregator opens and does not count: each rule of an upload is broken separately, by a
//! client with a slot and a correct deposit. It proves every one of these rejections, and can prove
//! no other.

use crate::properties::helpers::{Free, people};
use crate::support::{AGGREGATOR, Person, TODAY, Town, at, sealing, signing};
use alpheus_accountable_statistics::aggregator::ShownUploads;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::disclosure::DisclosedUpload;
use alpheus_accountable_statistics::messages::{
    Closing, Entry, PublishedResult, SealedUpload, Upload, content_digest, presentation_digest,
    upload_digest,
};
use alpheus_accountable_statistics::role_error::{ClosingError, DisclosureError};
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::holder::{Holder, SubjectPresenter};
use alpheus_anonymous_credential::schedule::Period;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::onetime::RecipientKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fault of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// None.
    None,
    /// It opens for nobody.
    Sealed,
    /// It is sealed for another aggregate.
    Place,
    /// It opens to no upload.
    Bytes,
    /// It differs from the entry's content.
    Content,
    /// The credential is presented for another tuple.
    Message,
    /// The presentation's proof is invalid.
    Presentation,
    /// The presentation's proof holds, for a credential that nobody has issued.
    Credential,
    /// The presentation is made for another V than its own.
    OtherV,
    /// The tuple's proof is invalid.
    Tuple,
    /// The tag is somebody else's, who uploads in a higher slot, and the presentation is invalid.
    StolenTag(Element),
}

const ALL: [Fault; 10] = [
    Fault::None,
    Fault::Sealed,
    Fault::Place,
    Fault::Bytes,
    Fault::Content,
    Fault::Message,
    Fault::Presentation,
    Fault::Credential,
    Fault::OtherV,
    Fault::Tuple,
];

/// A person's upload credential, separate from the client that would use it correctly.
fn credential(
    town: &Town,
    person: &Person,
    agreed: &AgreedDefinition,
    fault: Fault,
) -> SubjectPresenter {
    let strip = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        key.strip_prefix(b"u").map(|key| (key.to_vec(), value.clone()))
    };
    let mut records: BTreeMap<_, _> = person.store.iter().filter_map(strip).collect();
    if fault == Fault::Credential {
        let issued = records.iter_mut().find(|(key, _)| key.starts_with(b"credential"));
        // m1 ‖ U ‖ U'.
        issued.unwrap().1[64..].copy_from_slice(Element::base().as_bytes());
    }
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
) -> (Digest, SealedUpload) {
    let mut about = credential(town, person, agreed, fault);
    let any = SealedUpload::from_bytes(Vec::new());
    let own = about.next_tag().unwrap();
    let tag = if let Fault::StolenTag(tag) = fault { tag } else { own };
    let binding = free.entry(Digest([0; 32]), &any).binding(tag);
    let mut proven = binding;
    if fault == Fault::Tuple {
        proven.aggregate = Digest([8; 32]);
    }
    let given = Contribution::Sample(10);
    let tuple = Prover::new(*agreed.terms()).prove(given, &proven, &mut town.rng).unwrap();
    let tuple = tuple.to_bytes();
    let message = match fault {
        Fault::Message => Digest([1; 32]),
        _ => upload_digest(&binding, &tuple),
    };
    let step = about.present_openly(&message, &mut town.rng).unwrap();
    let mut presentation = step.commit(&mut BTreeMap::new()).unwrap();
    let last = presentation.len() - 32;
    match fault {
        Fault::Presentation => {
            presentation[last..].copy_from_slice(&[[1].as_slice(), &[0; 31]].concat());
        }
        Fault::OtherV => presentation[..32].copy_from_slice(Element::base().as_bytes()),
        // V, epoch, key, message, Ũ, C', Cm, tag.
        Fault::StolenTag(tag) => presentation[200..232].copy_from_slice(tag.as_bytes()),
        _ => {}
    }
    let content = match fault {
        Fault::Content => Digest([2; 32]),
        _ => content_digest(&tag, &tuple, &presentation_digest(&presentation)),
    };
    let upload = Upload { tuple, presentation };
    (content, sealed(town, (agreed, free), (&content, &upload), fault))
}

fn sealed(
    town: &Town,
    (agreed, free): (&AgreedDefinition, &Free),
    (content, upload): (&Digest, &Upload),
    fault: Fault,
) -> SealedUpload {
    let mut bytes = postcard::to_allocvec(upload).unwrap();
    if fault == Fault::Sealed {
        return SealedUpload::from_bytes(vec![3; bytes.len() + 16]);
    }
    if fault == Fault::Bytes {
        bytes.fill(0xff);
    }
    let aggregate = if fault == Fault::Place { Digest([9; 32]) } else { agreed.name() };
    let context = [aggregate.as_bytes().as_slice(), content.as_bytes()];
    let context = (labels::STATISTICS_UPLOAD_SEALING, context.as_slice());
    let sealed = free.key.seal(&town.pinned.sealing, context, &bytes).unwrap();
    SealedUpload::from_bytes(sealed)
}

pub(crate) fn deposit(
    town: &mut Town,
    (agreed, free): (&AgreedDefinition, &Free),
    person: &Person,
    fault: Fault,
) -> Entry {
    let (content, sealed) = made(town, person, (agreed, free), fault);
    for (to, deposit) in free.deposits(content, &sealed) {
        assert!(town.receive(to, deposit, at(71)).unwrap().is_some(), "{fault:?}");
    }
    free.entry(content, &sealed)
}

/// Forty slots, of which two may be missing. Ten have uploads with each fault and without one, in
/// the order of [`ALL`]; the rest is filled.
struct Faulty {
    town: Town,
    agreed: AgreedDefinition,
    entries: Vec<Entry>,
}

impl Faulty {
    fn new(seed: u8) -> Self {
        let mut town = Town::new(4, 2, seed).unwrap();
        let agreed = town.define(&town.definition("speed/a", 40).unwrap()).unwrap();
        let mut people = people(&mut town, 24);
        let mut entries = Vec::new();
        for (fault, person) in ALL.into_iter().zip(&mut people) {
            let free = Free::with_a_slot(&mut town, person, &agreed);
            entries.push(deposit(&mut town, (&agreed, &free), person, fault));
        }
        for person in &mut people[10..14] {
            town.upload(person, &agreed, at(72), Contribution::Sample(10)).unwrap();
        }
        town.fill(&mut people[10..], &agreed, at(121)).unwrap();
        Self { town, agreed, entries }
    }

    fn entry(&self, fault: Fault) -> Entry {
        self.entries[ALL.iter().position(|other| *other == fault).unwrap()]
    }

    /// The closing, and what is shown of it.
    fn closed(&mut self) -> (Signed<Closing>, Arc<ShownUploads>) {
        let examined = self.town.gather(&self.agreed, self.agreed.release()).unwrap();
        let (aggregator, ledger) = &mut self.town.aggregator;
        let closing = aggregator.close(examined).unwrap().commit(ledger).unwrap();
        (closing, aggregator.shown(&self.agreed.name()).unwrap())
    }

    /// What smoother 0 says to a closing after it has seen the tuples and these disclosures.
    fn shown(
        &mut self,
        closing: &Signed<Closing>,
        shown: &ShownUploads,
        disclosed: &[DisclosedUpload],
    ) -> (Vec<Result<(), ClosingError>>, Option<ClosingError>) {
        let (name, now) = (self.agreed.name(), self.agreed.release());
        let smoother = &mut self.town.smoothers[0];
        let tuples = smoother.handle_tuples(&name, shown.tuples.clone(), now).unwrap();
        assert!(tuples.iter().all(Result::is_ok));
        let verdicts = smoother.handle_disclosures(&name, disclosed, now).unwrap();
        (verdicts, smoother.handle_closing(closing, now).err())
    }
}

/// No smoother can tell, so all have slots. The aggregator leaves out those with a fault, all of
/// them and nothing else, and proves each. So nine accounts with bad uploads do not stop an
/// aggregate of which two slots may be missing, and the sum is that of the others.
#[test]
fn uploads_with_faults_are_left_out_and_do_not_stop_an_aggregate() {
    let mut world = Faulty::new(150);
    let (closing, shown) = world.closed();
    let closing = closing.open(&signing(AGGREGATOR).verifying_key()).unwrap();
    let mut bad: Vec<u32> = world.entries[1..].iter().map(|entry| entry.slot).collect();
    bad.sort_unstable();
    assert_eq!((&closing.rejected, closing.empty.len()), (&bad, 0));
    assert_eq!(shown.disclosed.len(), 9);
    let refuted = shown.disclosed.iter().filter(|shown| shown.refutation.is_some());
    let refuted: Vec<u32> = refuted.map(|shown| shown.slot).collect();
    assert_eq!(refuted, [world.entry(Fault::Credential).slot], "the others show by themselves");
    let now = world.agreed.release();
    let examined = world.town.gather(&world.agreed, now).unwrap();
    let (_, ready) = world.town.close(examined, now).unwrap();
    let outcome = world.town.open(ready, now).unwrap().unwrap();
    let Ok(PublishedResult::Full { count, sum, .. }) = outcome.result else {
        panic!("{outcome:?}")
    };
    assert_eq!((count, sum), (5, 50));
}

/// A rejection without a proof counts as a missing slot.
#[test]
fn rejections_without_a_proof_are_missing() {
    let mut world = Faulty::new(151);
    let (closing, shown) = world.closed();
    let all = &shown.disclosed;
    let too_many = Some(ClosingError::TooManyMissing);
    assert_eq!(world.shown(&closing, &shown, &[]), (vec![], too_many));
    assert_eq!(world.shown(&closing, &shown, &all[..6]), (vec![Ok(()); 6], too_many));
    // Two may be missing.
    assert_eq!(world.shown(&closing, &shown, &all[6..7]), (vec![Ok(())], None));
    let (name, now) = (world.agreed.name(), world.agreed.release());
    let late = world.town.smoothers[0].handle_disclosures(&name, all, now).err();
    assert_eq!(late, Some(ClosingError::Latched));
}

/// What proves nothing: another upload's disclosure or sealed bytes, one by another key, another
/// presentation's refutation, and none where one is needed.
#[test]
fn a_false_disclosure_proves_nothing() {
    let mut world = Faulty::new(152);
    let (closing, shown) = world.closed();
    let of = |fault| {
        let slot = world.entry(fault).slot;
        shown.disclosed.iter().find(|shown| shown.slot == slot).unwrap().clone()
    };
    let (sealed, tuple) = (of(Fault::Sealed), of(Fault::Tuple));
    let entry = postcard::to_allocvec(&world.entry(Fault::Tuple)).unwrap();
    let about = (labels::STATISTICS_DISCLOSURE, entry.as_slice());
    let seed = Secret::from_bytes([1; 32]);
    let other_key = RecipientKey::from_seed(labels::STATISTICS_RECIPIENT, &seed).unwrap();
    let ephemeral = world.entry(Fault::Tuple).ephemeral;
    let by_other = other_key.disclose(&ephemeral, about, &mut world.town.rng).unwrap();
    // The right Z, with a proof for another entry of the same key.
    let elsewhere = Entry { slot: 1000, ..world.entry(Fault::Tuple) };
    let elsewhere = postcard::to_allocvec(&elsewhere).unwrap();
    let about = (labels::STATISTICS_DISCLOSURE, elsewhere.as_slice());
    let replayed = sealing().unwrap().disclose(&ephemeral, about, &mut world.town.rng).unwrap();
    let lies = [
        (DisclosedUpload { disclosure: sealed.disclosure.clone(), ..tuple.clone() }, true),
        (DisclosedUpload { disclosure: by_other, ..tuple.clone() }, true),
        (DisclosedUpload { disclosure: replayed, ..tuple.clone() }, true),
        (DisclosedUpload { sealed: sealed.sealed.clone(), ..tuple.clone() }, false),
        (DisclosedUpload { slot: tuple.slot, ..sealed.clone() }, false),
    ];
    for (lie, disclosure) in lies {
        let why = if disclosure { DisclosureError::Disclosure } else { DisclosureError::Sealed };
        let (verdicts, closed) = world.shown(&closing, &shown, &[lie]);
        assert_eq!(verdicts, [Err(ClosingError::Disclosed(why))]);
        assert_eq!(closed, Some(ClosingError::TooManyMissing));
    }
}

/// A presentation that looks valid is proven bad by its own refutation only. Where the upload itself
/// shows the fault, none is needed.
#[test]
fn a_false_refutation_proves_nothing() {
    let mut world = Faulty::new(152);
    let (closing, shown) = world.closed();
    let slot = world.entry(Fault::Credential).slot;
    let (own, others): (Vec<_>, Vec<_>) =
        shown.disclosed.iter().cloned().partition(|shown| shown.slot == slot);
    let mut bits = own[0].refutation.clone().unwrap();
    bits[383] ^= 1;
    for refutation in [Some(bits), Some(vec![1; 384]), Some(Vec::new())] {
        let lie = DisclosedUpload { refutation, ..own[0].clone() };
        let (verdicts, _) = world.shown(&closing, &shown, &[lie]);
        assert_eq!(verdicts, [Err(ClosingError::Disclosed(DisclosureError::Refutation))]);
    }
    // Without one it opens, and shows nothing: with two others it is one too many.
    let lie = DisclosedUpload { refutation: None, ..own[0].clone() };
    assert_eq!(world.shown(&closing, &shown, &[lie]).0, [Ok(())]);
    let (_, closed) = world.shown(&closing, &shown, &others[2..]);
    assert_eq!(closed, Some(ClosingError::TooManyMissing));
    assert!(others.iter().all(|shown| shown.refutation.is_none()));
    assert_eq!(world.shown(&closing, &shown, &others[1..2]).1, None);
}
