//! Messages between roles of statistics, one of each kind.

use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::Turn;
use alpheus_accountable_statistics::disclosure::DisclosedUpload;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::keymaking::{Content, KeyMessage, Vote};
use alpheus_accountable_statistics::messages::{
    Closing, ClosingTuple, Deposit, Entry, Evidence, ForwardedDeposit, Grant, NoResultError,
    Opening, Outcome, PublishedResult, Ready, Receipt, Release, ReleasedSlot, SealedUpload,
    SlotRequest, Upload,
};
use alpheus_accountable_statistics::publication::Publication;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::onetime::{Disclosure, OneTimePublic, OneTimeSignature};
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use serde::Serialize;

const DIGEST: Digest = Digest([2; 32]);

fn bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

/// Bare messages.
pub(crate) fn one_of_each() -> Vec<Vec<u8>> {
    let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    let (ephemeral, by) = (OneTimePublic::from_bytes([7; 32]), SmootherId(1));
    let grant = Grant { aggregate: DIGEST, slot: 7, turn: Turn(1), revision: 9, ephemeral };
    let sealed = SealedUpload::from_bytes(vec![8; 96]);
    let entry = Entry::of(&grant, KeyEpoch(3), DIGEST, &sealed);
    let receipt = Receipt { by, entry: Signed::new(&entry, &key) };
    let mut certificate = Endorsed::default();
    certificate.add(by, Signed::new(&entry, &key));
    let ready = Ready { aggregate: DIGEST, key_epoch: KeyEpoch(3), ledger: DIGEST, tuples: DIGEST };
    let granted = Signed::new(&grant, &key);
    let signature = OneTimeSignature::from_bytes([[4; 32], [5; 32]]);
    let deposit = Deposit {
        keeper: by,
        grant: granted.clone(),
        content: DIGEST,
        sealed: sealed.clone(),
        signature,
        presentation: vec![3; 64],
        receipts: vec![receipt.clone()],
    };
    let shown =
        ClosingTuple { slot: 7, tag: Element::base(), tuple: vec![5; 32], presentation: DIGEST };
    let released = ReleasedSlot { entry, sealed: sealed.clone() };
    let published = PublishedResult::Full { count: 3, sum: -4, squares: Some(9), uploads: 4 };
    let (aggregate, ledger, tuples) = (DIGEST, DIGEST, DIGEST);
    let closing = Closing { aggregate, ledger, tuples, empty: vec![4, 7], rejected: vec![1] };
    let mut all = vec![
        bytes(&SlotRequest { aggregate: DIGEST, ephemeral, presentation: vec![1; 40] }),
        bytes(&ForwardedDeposit { own: deposit.clone(), others: [(by, vec![4; 64])].into() }),
        bytes(&deposit),
        bytes(&publication(published, &key)),
        bytes(&receipt),
        bytes(&Evidence::Grants(by, granted.clone(), granted)),
        bytes(&Upload { tuple: vec![1; 32], presentation: vec![2; 32] }),
        bytes(&Release { aggregate: DIGEST, slots: vec![released] }),
        bytes(&vec![shown]),
        bytes(&vec![disclosed(sealed.clone())]),
        bytes(&closing),
        bytes(&ready),
        bytes(&Opening { ready, part: 2, partial: vec![6; 130] }),
        bytes(&Outcome { aggregate: DIGEST, result: Ok(published) }),
        bytes(&Outcome { aggregate: DIGEST, result: Err(NoResultError::Late) }),
        bytes(&certificate),
    ];
    all.extend(key_messages(&key));
    all
}

fn disclosed(sealed: SealedUpload) -> DisclosedUpload {
    let disclosure = Disclosure::from_parts(Element::base(), vec![6; 96]);
    DisclosedUpload { slot: 7, sealed, disclosure, refutation: Some(vec![9; 384]) }
}

fn publication(published: PublishedResult, key: &SigningKey) -> Publication {
    let mut outcomes = Endorsed::default();
    let outcome = Outcome { aggregate: DIGEST, result: Ok(published) };
    outcomes.add(SmootherId(1), Signed::new(&outcome, key));
    let claimed = Some(NoResultError::Late);
    Publication { definition: Endorsed::default(), outcomes, claimed }
}

/// Messages of making a key.
fn key_messages(key: &SigningKey) -> Vec<Vec<u8>> {
    let (epoch, by) = (KeyEpoch(0), SmootherId(1));
    let vote = Vote { epoch, attempt: 1, key: DIGEST };
    let announcement = Content::Announcement(SealingPublic([9; 32]), None);
    let message = |content| KeyMessage { epoch, attempt: 1, by, content };
    let signed = (by, Signed::new(&message(announcement.clone()), key));
    let kinds = vec![
        announcement,
        Content::Roster(vec![signed.clone()]),
        Content::Pledge(DIGEST, DIGEST),
        Content::Pledged(vec![signed.clone()]),
        Content::Dealing(vec![7; 448]),
        Content::Verdict(vec![0, 2]),
        Content::Answer(2, [1; 32]),
        Content::Outcome(vec![signed]),
        Content::Vote(Signed::new(&vote, key)),
    ];
    kinds.into_iter().map(|content| bytes(&message(content))).collect()
}
