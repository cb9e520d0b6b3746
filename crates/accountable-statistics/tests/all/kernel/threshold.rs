//! What t of n open with their key.

use crate::kernel::support::{binding, interval, key, rng};
use alpheus_accountable_statistics::error::{
    PartialError, ProvingError, ShareError, TooFewPartialsError,
};
use alpheus_accountable_statistics::logarithm::{Bounds, Table};
use alpheus_accountable_statistics::sums::{Ciphertext, Part, Sums};
use alpheus_accountable_statistics::threshold::decryption::{PartialDecryption, VerifiedPartial};
use alpheus_accountable_statistics::threshold::{Committee, KeyShare, SharedKey};
use alpheus_accountable_statistics::tuple::{Checker, Contribution, Prover, Terms};
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::secret::Secret;

fn context(what: &[u8]) -> Digest {
    labelled_hash("alpheus/test-context/v1", &[what])
}

/// The count of three samples and a dummy.
fn three(key: &SharedKey) -> Ciphertext {
    let terms = Terms::new(*key.key(), interval(0, 3, false));
    let (prover, checker) = (Prover::new(terms), Checker::new(terms));
    let mut sums = Sums::new(&terms, binding(0).aggregate);
    let given = [1, 2, 3].map(Contribution::Sample).into_iter().chain([Contribution::Dummy]);
    for (slot, contribution) in (0..).zip(given) {
        let tuple = prover.prove(contribution, &binding(slot), &mut rng(1)).unwrap();
        sums.add(&checker.check(binding(slot), tuple).unwrap()).unwrap();
    }
    sums.ciphertext(Part::Count).unwrap()
}

fn partial(
    key: &SharedKey,
    share: &KeyShare,
    of: &Ciphertext,
    context: &Digest,
) -> PartialDecryption {
    share.dangerous_open(key, of, context, &mut rng(2)).unwrap()
}

fn verified(key: &SharedKey, share: &KeyShare, of: &Ciphertext, c: &Digest) -> VerifiedPartial {
    let sent = PartialDecryption::from_bytes(&partial(key, share, of, c).to_bytes()).unwrap();
    key.verify(sent, of, c).unwrap()
}

#[test]
fn any_t_members_open_and_fewer_do_not() {
    for (members, threshold) in [(1, 1), (4, 2), (7, 3)] {
        let (key, shares) = key(members, threshold);
        let (sum, context, table) = (three(&key), context(b""), Table::new(8));
        let partials: Vec<VerifiedPartial> =
            shares.iter().map(|share| verified(&key, share, &sum, &context)).collect();
        for subset in 0_u32..1 << members {
            let some = (0..members).filter(|member| subset >> member & 1 == 1);
            let some: Vec<VerifiedPartial> =
                some.map(|member| partials[usize::from(member)].clone()).collect();
            let opened = key.combine(&sum, &context, &some);
            if some.len() < usize::from(threshold) {
                let needed = usize::from(threshold);
                assert_eq!(opened.err(), Some(TooFewPartialsError { have: some.len(), needed }));
            } else {
                let read = table.read(opened.unwrap().total(), &Bounds::count(4));
                assert_eq!(read, Ok(3), "{subset:b} of {members}");
            }
        }
        let twice = vec![partials[0].clone(); usize::from(threshold) + 1];
        assert_eq!(key.combine(&sum, &context, &twice).is_ok(), threshold == 1);
    }
}

#[test]
fn a_wrong_partial_decryption_identifies_its_member() {
    let (key, shares) = key(4, 2);
    let (sum, context) = (three(&key), context(b""));
    // Another member's share under one's own name: not the key's share.
    let mut bytes = partial(&key, &shares[1], &sum, &context).to_bytes();
    bytes[..2].copy_from_slice(&2_u16.to_be_bytes());
    let wrong = PartialDecryption::from_bytes(&bytes).unwrap();
    assert_eq!(key.verify(wrong, &sum, &context), Err(PartialError::Wrong(2)));
    // Another element with the honest proof.
    let mut bytes = partial(&key, &shares[2], &sum, &context).to_bytes();
    bytes[2..34].copy_from_slice(key.key().0.as_bytes());
    let wrong = PartialDecryption::from_bytes(&bytes).unwrap();
    assert_eq!(key.verify(wrong, &sum, &context), Err(PartialError::Wrong(2)));
    let mut bytes = partial(&key, &shares[2], &sum, &context).to_bytes();
    bytes[..2].copy_from_slice(&4_u16.to_be_bytes());
    let nobody = PartialDecryption::from_bytes(&bytes).unwrap();
    assert_eq!(key.verify(nobody, &sum, &context), Err(PartialError::NoMember(4)));
    for length in [0, 1, 2, 33, 34, PartialDecryption::LENGTH - 1, PartialDecryption::LENGTH + 1] {
        bytes.resize(length, 0);
        assert_eq!(PartialDecryption::from_bytes(&bytes), Err(PartialError::Malformed));
    }
    let others = [&shares[0], &shares[3]].map(|share| verified(&key, share, &sum, &context));
    let opened = key.combine(&sum, &context, &others).unwrap();
    assert_eq!(Table::new(8).read(opened.total(), &Bounds::count(4)), Ok(3));
}

#[test]
fn a_partial_decryption_is_valid_for_its_sum_and_context_only() {
    let (key, shares) = key(4, 2);
    let (sum, own, other) = (three(&key), context(b"own"), context(b"other"));
    let made = partial(&key, &shares[0], &sum, &own);
    assert_eq!(key.verify(made.clone(), &sum, &other), Err(PartialError::Wrong(0)));
    let of_one = Sums::new(&Terms::new(*key.key(), interval(0, 3, false)), own);
    assert!(of_one.ciphertext(Part::Count).is_none());
    let a = key.verify(made, &sum, &own).unwrap();
    let b = verified(&key, &shares[1], &sum, &other);
    assert_eq!(
        key.combine(&sum, &own, &[a, b]).err(),
        Some(TooFewPartialsError { have: 1, needed: 2 })
    );
}

#[test]
fn a_stored_share_is_read_back_by_its_own_member_only() {
    let (key, shares) = key(4, 2);
    let stored = shares[1].expose();
    assert_eq!(KeyShare::restore(&key, 1, &stored).unwrap().member(), 1);
    assert_eq!(KeyShare::restore(&key, 2, &stored).err(), Some(ShareError));
    assert_eq!(KeyShare::restore(&key, 9, &stored).err(), Some(ShareError));
    let zero = Secret::from_bytes([0; 32]);
    assert_eq!(KeyShare::restore(&key, 1, &zero).err(), Some(ShareError));
}

#[test]
fn committees_need_two_thirds_and_more() {
    let new = |members, threshold| Committee::new(context(b""), members, threshold).is_ok();
    assert!(new(1, 1) && new(2, 1) && new(4, 2) && new(7, 3) && new(64, 22));
    assert!(!new(3, 2) && !new(6, 3) && !new(0, 0) && !new(4, 0) && !new(0, 1) && !new(65, 2));
    let bytes = postcard::to_allocvec(&(context(b""), 3_u16, 2_u16)).unwrap();
    assert!(postcard::from_bytes::<Committee>(&bytes).is_err());
}

/// A share of one day, used for a sum of another: nobody is blamed.
#[test]
fn a_share_opens_under_its_own_key_only() {
    let (own, shares) = key(4, 2);
    let (other, _) = key(5, 2);
    let (sum, context) = (three(&other), context(b""));
    let made = shares[0].dangerous_open(&other, &sum, &context, &mut rng(2));
    assert_eq!(made.err(), Some(ProvingError::OtherKey));
    assert!(shares[0].dangerous_open(&own, &three(&own), &context, &mut rng(2)).is_ok());
}

/// The public side of a key is read back, and rejected if it is not of one polynomial.
#[test]
fn public_shares_must_lie_on_one_polynomial() {
    let (key, _) = key(7, 3);
    let bytes = postcard::to_allocvec(&key).unwrap();
    assert_eq!(postcard::from_bytes::<SharedKey>(&bytes).unwrap(), key);
    // Purpose, n, t, then P, then the number of shares and the shares.
    let p = 34;
    assert_eq!(bytes[p..p + 32], *key.key().0.as_bytes());
    let fewer =
        [&bytes[..p + 32], &[6], &bytes[p + 33..p + 33 + 192], &bytes[p + 33 + 224..]].concat();
    assert!(postcard::from_bytes::<SharedKey>(&fewer).is_err());
    for at in (0..8).map(|which| if which == 0 { p } else { p + 33 + 32 * (which - 1) }) {
        let mut other = bytes.clone();
        other[at..at + 32].copy_from_slice(Element::second_base().as_bytes());
        assert!(postcard::from_bytes::<SharedKey>(&other).is_err(), "{at}");
    }
}
