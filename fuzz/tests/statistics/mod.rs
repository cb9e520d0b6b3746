//! What roles of statistics tell each other, one of each kind.

use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::Turn;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::keymaking::{KeyWord, Vote, What};
use alpheus_accountable_statistics::messages::{
    Closing, Deposit, Entry, Evidence, Grant, Listed, Opening, Outcome, Published, Ready, Reason,
    Receipt, Release, Shown, SlotRequest, Upload,
};
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::{Sealed, SealingPublic};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use serde::Serialize;

const DIGEST: Digest = Digest([2; 32]);

fn bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

/// Bare messages.
pub(crate) fn one_of_each() -> Vec<Vec<u8>> {
    let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    let (ephemeral, by) = (key.verifying_key(), SmootherId(1));
    let grant = Grant { aggregate: DIGEST, slot: 7, turn: Turn(1), revision: 9, ephemeral };
    let sealed = Sealed::nothing(96);
    let entry = Entry::of(&grant, KeyEpoch(3), DIGEST, &sealed);
    let receipt = Receipt { by, entry: Signed::new(&entry, &key) };
    let mut certificate = Endorsed::default();
    certificate.add(by, Signed::new(&entry, &key));
    let ready = Ready { aggregate: DIGEST, key_epoch: KeyEpoch(3), ledger: DIGEST, tuples: DIGEST };
    let granted = Signed::new(&grant, &key);
    let signature = key.sign("alpheus/fuzz/v1", b"deposit");
    let deposit = Deposit {
        keeper: by,
        grant: granted.clone(),
        content: DIGEST,
        sealed: sealed.clone(),
        signature,
        showing: vec![3; 64],
        receipts: vec![receipt.clone()],
    };
    let shown = Shown { slot: 7, tag: Element::base(), tuple: vec![5; 32], showing: DIGEST };
    let listed = Listed { entry, sealed };
    let (closed, published) = (vec![4, 7], Published::Full { count: 3, sum: -4, squares: Some(9) });
    let closing = Closing {
        aggregate: DIGEST,
        ledger: DIGEST,
        tuples: DIGEST,
        empty: closed,
        rejected: vec![1],
    };
    let mut all = vec![
        bytes(&SlotRequest { aggregate: DIGEST, ephemeral, showing: vec![1; 40] }),
        bytes(&deposit),
        bytes(&receipt),
        bytes(&Evidence::Grants(by, granted.clone(), granted)),
        bytes(&Upload { tuple: vec![1; 32], showing: vec![2; 32] }),
        bytes(&Release { aggregate: DIGEST, listed: vec![listed] }),
        bytes(&vec![shown]),
        bytes(&closing),
        bytes(&ready),
        bytes(&Opening { ready, part: 2, partial: vec![6; 130] }),
        bytes(&Outcome { aggregate: DIGEST, result: Ok(published) }),
        bytes(&Outcome { aggregate: DIGEST, result: Err(Reason::Late) }),
        bytes(&certificate),
    ];
    all.extend(words(&key));
    all
}

/// What is said while a key is made.
fn words(key: &SigningKey) -> Vec<Vec<u8>> {
    let (epoch, by) = (KeyEpoch(0), SmootherId(1));
    let vote = Vote { epoch, attempt: 1, key: DIGEST };
    let announcement = What::Announcement(SealingPublic([9; 32]), None);
    let word = |what| KeyWord { epoch, attempt: 1, by, what };
    let said = (by, Signed::new(&word(announcement.clone()), key));
    let kinds = vec![
        announcement,
        What::Roster(vec![said.clone()]),
        What::Pledge(DIGEST, DIGEST),
        What::Pledged(vec![said.clone()]),
        What::Dealing(vec![7; 448]),
        What::Verdict(vec![0, 2]),
        What::Answer(2, [1; 32]),
        What::Outcome(vec![said]),
        What::Vote(Signed::new(&vote, key)),
    ];
    kinds.into_iter().map(|what| bytes(&word(what))).collect()
}
