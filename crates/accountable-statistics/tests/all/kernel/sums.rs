//! Sums: in any order, of their own tuples only, and restored from a store.

use crate::kernel::support::{binding, interval, key, rng};
use alpheus_accountable_statistics::error::SumError;
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::logarithm::{Bounds, Table};
use alpheus_accountable_statistics::sums::{Part, Sums};
use alpheus_accountable_statistics::threshold::{KeyShare, SharedKey};
use alpheus_accountable_statistics::tuple::{CheckedTuple, Checker, Contribution, Prover, Terms};
use alpheus_crypto::hash::{Digest, labelled_hash};
use proptest::prelude::*;
use std::sync::LazyLock;

static KEY: LazyLock<(SharedKey, Vec<KeyShare>)> = LazyLock::new(|| key(4, 2));
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(10));

fn terms(interval: Interval) -> Terms {
    Terms::new(*KEY.0.key(), interval)
}

fn checked(interval: Interval, contributions: &[Contribution]) -> Vec<CheckedTuple> {
    let (prover, checker) = (Prover::new(terms(interval)), Checker::new(terms(interval)));
    let rng = &mut rng(5);
    let tuple = |(slot, contribution): (u32, &Contribution)| {
        (binding(slot), prover.prove(*contribution, &binding(slot), rng).unwrap())
    };
    let tuples = (0..).zip(contributions).map(tuple).collect();
    checker.check_batch(tuples).into_iter().map(Result::unwrap).collect()
}

fn aggregate() -> Digest {
    binding(0).aggregate
}

fn sums<'a>(interval: Interval, tuples: impl IntoIterator<Item = &'a CheckedTuple>) -> Sums {
    let mut sums = Sums::new(&terms(interval), aggregate());
    tuples.into_iter().for_each(|tuple| sums.add(tuple).unwrap());
    sums
}

fn open(sums: &Sums, part: Part, bounds: &Bounds) -> u64 {
    let (key, shares) = &*KEY;
    let (ciphertext, context) = (sums.ciphertext(part).unwrap(), aggregate());
    let partials = shares[1..3].iter().map(|share| {
        let partial = share.dangerous_open(key, &ciphertext, &context, &mut rng(6)).unwrap();
        key.verify(partial, &ciphertext, &context).unwrap()
    });
    let opened = key.combine(&ciphertext, &context, &partials.collect::<Vec<_>>()).unwrap();
    assert_eq!(opened.part(), part);
    TABLE.read(opened.total(), bounds).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    /// Encrypted, proven, checked, added up in any order and opened: the same as plain arithmetic.
    #[test]
    fn opened_sums_equal_the_sums_of_the_samples(
        samples in proptest::collection::vec(proptest::option::of(-20_i64..=80), 1..12),
        split in 0_usize..12,
    ) {
        let interval = interval(-20, 80, true);
        let given: Vec<Contribution> =
            samples.iter().map(|s| s.map_or(Contribution::Dummy, Contribution::Sample)).collect();
        let tuples = checked(interval, &given);
        let whole = sums(interval, &tuples);
        let (left, right) = tuples.split_at(split.min(tuples.len()));
        let mut parts = sums(interval, right.iter().rev());
        parts.merge(&sums(interval, left)).unwrap();
        prop_assert!(parts == whole && parts.to_bytes() == whole.to_bytes());
        let n = open(&whole, Part::Count, &Bounds::count(whole.tuples()));
        let s = open(&whole, Part::Value, &Bounds::value(&interval, n));
        let q = open(&whole, Part::Square, &Bounds::square(&interval, n, s));
        let moments = interval.moments(n, s, Some(q));
        let values: Vec<i128> = samples.iter().flatten().map(|v| i128::from(*v)).collect();
        prop_assert_eq!(moments.count, values.len() as u64);
        prop_assert_eq!(moments.sum, values.iter().sum::<i128>());
        prop_assert_eq!(moments.squares, Some(values.iter().map(|v| v * v).sum::<i128>()));
    }
}

#[test]
fn a_sum_accepts_its_own_tuples_only() {
    let (own, other) = (interval(0, 3, false), interval(0, 7, false));
    let tuples = checked(own, &[Contribution::Sample(3)]);
    let mut elsewhere = Sums::new(&terms(own), labelled_hash("alpheus/test-aggregate/v1", &[]));
    assert_eq!(elsewhere.add(&tuples[0]), Err(SumError::Aggregate));
    let mut of_other = Sums::new(&terms(other), aggregate());
    assert_eq!(of_other.add(&tuples[0]), Err(SumError::Terms));
    let whole = sums(own, &tuples);
    assert_eq!(of_other.merge(&whole), Err(SumError::Terms));
    assert_eq!(elsewhere.merge(&whole), Err(SumError::Aggregate));
    assert_eq!((elsewhere.tuples(), of_other.tuples(), whole.tuples()), (0, 0, 1));
    assert!(whole.ciphertext(Part::Square).is_none());
    assert!(elsewhere.ciphertext(Part::Count).is_none());
}

#[test]
fn stored_sums_are_read_back_and_damaged_ones_rejected() {
    let interval = interval(0, 3, true);
    let tuples = checked(interval, &[Contribution::Sample(3), Contribution::Dummy]);
    let (terms, whole) = (terms(interval), sums(interval, &tuples));
    let bytes = whole.to_bytes();
    assert_eq!(bytes.len(), Sums::LENGTH);
    let read = |bytes: &[u8]| Sums::from_bytes(bytes, &terms, aggregate());
    assert!(read(&bytes).unwrap() == whole);
    let empty = Sums::new(&terms, aggregate());
    assert!(read(&empty.to_bytes()).unwrap() == empty);
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        read(&bytes).err()
    };
    assert_eq!(with(0, bytes[0] ^ 1), Some(SumError::Terms));
    assert_eq!(with(40, bytes[40] ^ 1), Some(SumError::Aggregate));
    assert_eq!(with(64, 7), Some(SumError::Damaged));
    assert_eq!(with(100, 0xff), Some(SumError::Damaged));
    assert_eq!(read(&bytes[1..]).err(), Some(SumError::Damaged));
    assert_eq!(read(&[]).err(), Some(SumError::Damaged));
}
