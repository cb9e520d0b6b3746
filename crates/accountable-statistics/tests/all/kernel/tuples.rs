//! Which tuples are valid, and where they count.

use crate::kernel::support::{binding, interval, rng, terms, terms_of};
use alpheus_accountable_statistics::error::{TupleError, TupleFormatError};
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::tuple::{Binding, Checker, Contribution, Prover, Tuple};
use alpheus_crypto::group::{Element, ElementError, SecretScalar};
use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma::ProofFormatError;

/// One-sided and two-sided, with and without squares.
fn intervals() -> Vec<Interval> {
    let ends = [(0, 3), (-3, 97), (10, 265), (0, 65_535), (0, 100_000), (-1 << 31, (1 << 31) - 1)];
    ends.iter().flat_map(|(a, b)| [false, true].map(|square| interval(*a, *b, square))).collect()
}

#[test]
fn every_value_of_an_interval_is_proven_and_checked() {
    let rng = &mut rng(1);
    for interval in intervals() {
        let (prover, checker) = (Prover::new(terms(interval)), Checker::new(terms(interval)));
        let middle = i64::midpoint(interval.lowest(), interval.highest());
        let samples = [interval.lowest(), middle, interval.highest()].map(Contribution::Sample);
        for (slot, contribution) in (0..).zip(samples.into_iter().chain([Contribution::Dummy])) {
            let tuple = prover.prove(contribution, &binding(slot), rng).unwrap();
            let bytes = tuple.to_bytes();
            assert_eq!(bytes.len(), Tuple::length(&interval));
            assert_eq!(Tuple::from_bytes(&bytes, &interval), Ok(tuple.clone()));
            assert!(checker.check(binding(slot), tuple).is_ok(), "{interval:?} {slot}");
        }
    }
}

fn one(square: bool) -> (Interval, Tuple, Vec<u8>) {
    let interval = interval(0, 255, square);
    let prover = Prover::new(terms(interval));
    let tuple = prover.prove(Contribution::Sample(200), &binding(0), &mut rng(2)).unwrap();
    let bytes = tuple.to_bytes();
    (interval, tuple, bytes)
}

fn verdict(interval: Interval, binding: Binding, tuple: Tuple) -> Option<TupleError> {
    Checker::new(terms(interval)).check(binding, tuple).err()
}

#[test]
fn a_tuple_counts_under_its_own_binding_only() {
    let (interval, tuple, _) = one(true);
    let own = binding(0);
    assert_eq!(verdict(interval, own, tuple.clone()), None);
    let ephemeral = OneTimePublic::from_bytes([4; 32]);
    let others = [
        Binding { tag: Element::base(), ..own },
        Binding { aggregate: labelled_hash("alpheus/test-aggregate/v1", &[b"there"]), ..own },
        Binding { ephemeral, ..own },
    ];
    for other in others {
        assert_eq!(verdict(interval, other, tuple.clone()), Some(TupleError::Statement));
    }
}

#[test]
fn a_tuple_counts_under_its_own_key_and_interval_only() {
    let (own, tuple, _) = one(true);
    let key = SecretScalar::from_small(78);
    let of_other_key = Checker::new(terms_of(&key, own)).check(binding(0), tuple.clone());
    assert_eq!(of_other_key.err(), Some(TupleError::Statement));
    for other in [interval(1, 256, true), interval(0, 200, true), interval(0, 65_535, true)] {
        assert_eq!(verdict(other, binding(0), tuple.clone()), Some(TupleError::Statement));
    }
}

/// "K times a victim's ciphertext" in one's own slot. The elements are multiplied, which needs no
/// secret; the proofs are the victim's, or multiplied too.
#[test]
fn a_multiple_of_anothers_ciphertext_does_not_count() {
    let (interval, _, bytes) = one(true);
    let twice = |chunk: &[u8; 32]| {
        let element = Element::from_bytes(chunk).unwrap();
        *Element::combine(&[], &[&element, &element], &[]).unwrap().as_bytes()
    };
    let two = SecretScalar::from_small(2);
    let twice_scalar = |chunk: &[u8; 32]| {
        let scalar = SecretScalar::from_bytes(&Secret::from_bytes(*chunk)).unwrap();
        *scalar.times(&two).expose().expose()
    };
    let mut scaled = bytes.clone();
    scaled.as_chunks_mut::<32>().0[..6].iter_mut().for_each(|chunk| *chunk = twice(chunk));
    let tuple = Tuple::from_bytes(&scaled, &interval).unwrap();
    assert_eq!(verdict(interval, binding(0), tuple), Some(TupleError::Statement));
    // Commitments and responses multiplied as well: the challenge differs.
    scaled.as_chunks_mut::<32>().0[6..14].iter_mut().for_each(|chunk| *chunk = twice(chunk));
    scaled.as_chunks_mut::<32>().0[14..21]
        .iter_mut()
        .for_each(|chunk| *chunk = twice_scalar(chunk));
    let tuple = Tuple::from_bytes(&scaled, &interval).unwrap();
    assert_eq!(verdict(interval, binding(0), tuple), Some(TupleError::Statement));
}

/// Every element and scalar of a tuple, and the decoder's verdict on it.
#[test]
fn the_decoder_rejects_invalid_elements_and_scalars() {
    for square in [false, true] {
        let (interval, _, bytes) = one(square);
        let (elements, equations, secrets) = if square { (6, 8, 7) } else { (4, 6, 6) };
        let commitments = elements + equations;
        let range = commitments + secrets;
        let scalars = [range, range + 4, range + 5];
        for at in 0..bytes.len() / 32 {
            let with = |chunk: [u8; 32]| {
                let mut bytes = bytes.clone();
                bytes[32 * at..32 * at + 32].copy_from_slice(&chunk);
                Tuple::from_bytes(&bytes, &interval).err()
            };
            let (identity, not_canonical) = match at {
                at if at < elements => (
                    Some(TupleFormatError::Element(ElementError::Identity)),
                    Some(TupleFormatError::Element(ElementError::NotCanonical)),
                ),
                at if at < commitments => (
                    Some(TupleFormatError::Proof(ProofFormatError::Commitment(
                        ElementError::Identity,
                    ))),
                    Some(TupleFormatError::Proof(ProofFormatError::Commitment(
                        ElementError::NotCanonical,
                    ))),
                ),
                at if at < range => {
                    let why = alpheus_crypto::group::ScalarError::NotCanonical;
                    (None, Some(TupleFormatError::Proof(ProofFormatError::Response(why))))
                }
                at if scalars.contains(&at) => (None, Some(TupleFormatError::Range)),
                _ => (Some(TupleFormatError::Range), Some(TupleFormatError::Range)),
            };
            assert_eq!(with([0; 32]), identity, "{at}");
            assert_eq!(with([0xff; 32]), not_canonical, "{at}");
        }
        for length in [0, 31, bytes.len() - 1, bytes.len() + 1] {
            let mut cut = bytes.clone();
            cut.resize(length, 0);
            assert_eq!(Tuple::from_bytes(&cut, &interval).err(), Some(TupleFormatError::Length));
        }
    }
}

/// An encoding in the range proof that looks like an element's but is none.
#[test]
fn an_element_off_the_curve_invalidates_a_range_proof() {
    let (interval, _, bytes) = one(false);
    let off = (2_u8..).step_by(2).map(|byte| {
        let mut chunk = [0; 32];
        chunk[0] = byte;
        chunk
    });
    let off = off.clone().find(|chunk| Element::from_bytes(chunk).is_err()).unwrap();
    let first = Tuple::length(&interval) / 32 - 12;
    for at in (first..first + 12).filter(|at| ![first, first + 4, first + 5].contains(at)) {
        let mut bytes = bytes.clone();
        bytes[32 * at..32 * at + 32].copy_from_slice(&off);
        let tuple = Tuple::from_bytes(&bytes, &interval).unwrap();
        assert_eq!(verdict(interval, binding(0), tuple), Some(TupleError::Range), "{at}");
    }
}

#[test]
fn every_byte_of_a_tuple_matters() {
    let (interval, tuple, bytes) = one(true);
    for at in (0..bytes.len()).step_by(13) {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        if let Ok(other) = Tuple::from_bytes(&changed, &interval) {
            assert_ne!(other.digest(), tuple.digest());
            assert!(verdict(interval, binding(0), other).is_some(), "{at}");
        }
    }
}
