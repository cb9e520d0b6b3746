//! Batches: exactly the bad tuples are identified, and no two of them cancel.

use crate::kernel::support::{binding, interval, rng, terms};
use alpheus_accountable_statistics::error::TupleError;
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::tuple::{Binding, Checker, Contribution, Prover, Tuple};
use alpheus_crypto::group::Element;
use curve25519_dalek::scalar::Scalar;

/// Positions of scalars in a tuple of `scale`: the response of r_v, and d1 of the range proof.
/// Errors of two proofs there cancel for a checker that adds up without weights.
const RESPONSE: usize = 4 + 6 + 1;
const RANGE: usize = 4 + 6 + 6;

fn scale() -> Interval {
    interval(0, 3, false)
}

fn batch(count: u32) -> Vec<(Binding, Vec<u8>)> {
    let (prover, rng) = (Prover::new(terms(scale())), &mut rng(3));
    let one = |slot: u32| {
        let binding = binding(slot);
        let tuple = prover.prove(Contribution::Sample(i64::from(slot % 4)), &binding, rng);
        (binding, tuple.unwrap().to_bytes())
    };
    (0..count).map(one).collect()
}

fn shift(batch: &mut [(Binding, Vec<u8>)], at: usize, chunk: usize, by: Scalar) {
    let chunk = &mut batch[at].1.as_chunks_mut::<32>().0[chunk];
    *chunk = (Scalar::from_canonical_bytes(*chunk).unwrap() + by).to_bytes();
}

fn refusals(batch: &[(Binding, Vec<u8>)]) -> Vec<(usize, TupleError)> {
    let read = |(binding, bytes): &(Binding, Vec<u8>)| {
        (*binding, Tuple::from_bytes(bytes, &scale()).unwrap())
    };
    let verdicts = Checker::new(terms(scale())).check_batch(batch.iter().map(read).collect());
    assert_eq!(verdicts.len(), batch.len());
    let bound = |(verdict, (binding, _)): (&Result<_, _>, &(Binding, _))| match verdict {
        Ok(checked) => {
            let checked: &alpheus_accountable_statistics::tuple::CheckedTuple = checked;
            assert_eq!(checked.binding(), binding);
            None
        }
        Err(refused) => Some(*refused),
    };
    let found = verdicts.iter().zip(batch).map(bound).enumerate();
    found.filter_map(|(at, refused)| refused.map(|refused| (at, refused))).collect()
}

/// 256 and two more, so also across the border between two batches.
#[test]
fn one_bad_tuple_and_two_cancelling_ones_are_found_among_256() {
    let mut batch = batch(258);
    assert_eq!(refusals(&batch), []);
    let good = batch.clone();
    for (chunk, refused) in [(RESPONSE, TupleError::Statement), (RANGE, TupleError::Range)] {
        batch.clone_from(&good);
        shift(&mut batch, 77, chunk, Scalar::ONE);
        assert_eq!(refusals(&batch), [(77, refused)]);
        batch.clone_from(&good);
        shift(&mut batch, 3, chunk, Scalar::ONE);
        shift(&mut batch, 200, chunk, -Scalar::ONE);
        assert_eq!(refusals(&batch), [(3, refused), (200, refused)]);
        shift(&mut batch, 200, chunk, Scalar::ONE);
        shift(&mut batch, 257, chunk, -Scalar::ONE);
        assert_eq!(refusals(&batch), [(3, refused), (257, refused)]);
    }
}

#[test]
fn any_number_of_bad_tuples_of_either_kind_is_identified() {
    let mut batch = batch(9);
    let bad = [(0, RANGE), (4, RESPONSE), (5, RANGE), (8, RANGE)];
    bad.iter().for_each(|(at, chunk)| shift(&mut batch, *at, *chunk, Scalar::from(5_u8)));
    let of = |chunk| if chunk == RANGE { TupleError::Range } else { TupleError::Statement };
    assert_eq!(refusals(&batch), bad.map(|(at, chunk)| (at, of(chunk))));
    batch.iter_mut().for_each(|(binding, _)| binding.tag = Element::base());
    assert_eq!(refusals(&batch).len(), 9);
    assert_eq!(refusals(&[]), []);
}

/// A tuple in two slots: each verdict is its own.
#[test]
fn a_repeated_tuple_counts_only_where_it_is_bound() {
    let mut batch = batch(2);
    batch.push((batch[1].0, batch[0].1.clone()));
    assert_eq!(refusals(&batch), [(2, TupleError::Statement)]);
}
