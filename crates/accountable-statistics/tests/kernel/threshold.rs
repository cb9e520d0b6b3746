//! What t of n open with the key that they hold.

use crate::support::{binding, interval, key, rng};
use alpheus_accountable_statistics::error::{BadPartial, BadShare, NotOpened, NotProven};
use alpheus_accountable_statistics::logarithm::{Bounds, Table};
use alpheus_accountable_statistics::sums::{Ciphertext, Part, Sums};
use alpheus_accountable_statistics::threshold::decrypting::{Partial, VerifiedPartial};
use alpheus_accountable_statistics::threshold::{Committee, KeyShare, SharedKey};
use alpheus_accountable_statistics::tuple::{Checker, Contribution, Prover, Terms};
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::secret::Secret;

fn context(what: &[u8]) -> Digest {
    labelled("alpheus/test-context/v1", &[what])
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

fn partial(key: &SharedKey, share: &KeyShare, of: &Ciphertext, context: &Digest) -> Partial {
    share.dangerous_open(key, of, context, &mut rng(2)).unwrap()
}

fn verified(key: &SharedKey, share: &KeyShare, of: &Ciphertext, c: &Digest) -> VerifiedPartial {
    let sent = Partial::from_bytes(&partial(key, share, of, c).to_bytes()).unwrap();
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
                assert_eq!(opened.err(), Some(NotOpened { have: some.len(), needed }));
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
fn a_wrong_partial_decryption_is_caught_by_name_and_anothers_is_used() {
    let (key, shares) = key(4, 2);
    let (sum, context) = (three(&key), context(b""));
    // Another member's share under one's own name: a share that is not the key's.
    let mut bytes = partial(&key, &shares[1], &sum, &context).to_bytes();
    bytes[..2].copy_from_slice(&2_u16.to_be_bytes());
    let wrong = Partial::from_bytes(&bytes).unwrap();
    assert_eq!(key.verify(wrong, &sum, &context), Err(BadPartial::Wrong(2)));
    // Another element, with the honest proof.
    let mut bytes = partial(&key, &shares[2], &sum, &context).to_bytes();
    bytes[2..34].copy_from_slice(key.key().0.as_bytes());
    let wrong = Partial::from_bytes(&bytes).unwrap();
    assert_eq!(key.verify(wrong, &sum, &context), Err(BadPartial::Wrong(2)));
    let mut bytes = partial(&key, &shares[2], &sum, &context).to_bytes();
    bytes[..2].copy_from_slice(&4_u16.to_be_bytes());
    let nobody = Partial::from_bytes(&bytes).unwrap();
    assert_eq!(key.verify(nobody, &sum, &context), Err(BadPartial::NoMember(4)));
    for length in [0, 1, 2, 33, 34, Partial::LENGTH - 1, Partial::LENGTH + 1] {
        bytes.resize(length, 0);
        assert_eq!(Partial::from_bytes(&bytes), Err(BadPartial::Malformed));
    }
    let others = [&shares[0], &shares[3]].map(|share| verified(&key, share, &sum, &context));
    let opened = key.combine(&sum, &context, &others).unwrap();
    assert_eq!(Table::new(8).read(opened.total(), &Bounds::count(4)), Ok(3));
}

#[test]
fn a_partial_decryption_serves_its_own_sum_and_context_alone() {
    let (key, shares) = key(4, 2);
    let (sum, own, other) = (three(&key), context(b"own"), context(b"other"));
    let made = partial(&key, &shares[0], &sum, &own);
    assert_eq!(key.verify(made.clone(), &sum, &other), Err(BadPartial::Wrong(0)));
    let of_one = Sums::new(&Terms::new(*key.key(), interval(0, 3, false)), own);
    assert!(of_one.ciphertext(Part::Count).is_none());
    let a = key.verify(made, &sum, &own).unwrap();
    let b = verified(&key, &shares[1], &sum, &other);
    assert_eq!(key.combine(&sum, &own, &[a, b]).err(), Some(NotOpened { have: 1, needed: 2 }));
}

#[test]
fn shares_are_stored_and_others_are_refused() {
    let (key, shares) = key(4, 2);
    let stored = shares[1].expose();
    assert_eq!(KeyShare::restore(&key, 1, &stored).unwrap().member(), 1);
    assert_eq!(KeyShare::restore(&key, 2, &stored).err(), Some(BadShare));
    assert_eq!(KeyShare::restore(&key, 9, &stored).err(), Some(BadShare));
    let zero = Secret::from_bytes([0; 32]);
    assert_eq!(KeyShare::restore(&key, 1, &zero).err(), Some(BadShare));
}

#[test]
fn committees_need_two_thirds_and_more() {
    let new = |members, threshold| Committee::new(context(b""), members, threshold).is_ok();
    assert!(new(1, 1) && new(2, 1) && new(4, 2) && new(7, 3) && new(64, 22));
    assert!(!new(3, 2) && !new(6, 3) && !new(0, 0) && !new(4, 0) && !new(0, 1) && !new(65, 2));
    let bytes = postcard::to_allocvec(&(context(b""), 3_u16, 2_u16)).unwrap();
    assert!(postcard::from_bytes::<Committee>(&bytes).is_err());
}

/// A share of one day, used for a sum of another: nobody is blamed for it.
#[test]
fn a_share_opens_under_its_own_key_alone() {
    let (own, shares) = key(4, 2);
    let (other, _) = key(5, 2);
    let (sum, context) = (three(&other), context(b""));
    let made = shares[0].dangerous_open(&other, &sum, &context, &mut rng(2));
    assert_eq!(made.err(), Some(NotProven::OtherKey));
    assert!(shares[0].dangerous_open(&own, &three(&own), &context, &mut rng(2)).is_ok());
}

/// What is public of a key is read back, and refused if it is of no one polynomial.
#[test]
fn what_is_said_to_be_a_key_is_one() {
    let (key, _) = key(7, 3);
    let bytes = postcard::to_allocvec(&key).unwrap();
    assert_eq!(postcard::from_bytes::<SharedKey>(&bytes).unwrap(), key);
    // Purpose, n, t, then P, then the shares with their number.
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
