//! What a tuple may be, and that nothing else counts.

use crate::support::{binding, checker, prover, rng, terms, terms_of};
use alpheus_accountable_statistics::error::{Malformed, Refused};
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::tuple::{Contribution, Tuple};
use alpheus_crypto::group::InvalidElement;

/// One-sided and two-sided, with squares and without.
fn intervals() -> Vec<Interval> {
    let shapes = [(0, 3), (-3, 97), (10, 265), (0, 65_535), (0, 100_000), (-1 << 31, (1 << 31) - 1)];
    let new = |(lowest, highest): (i64, i64), square| Interval::new(lowest, highest, square).unwrap();
    shapes.iter().flat_map(|shape| [false, true].map(|square| new(*shape, square))).collect()
}

#[test]
fn every_value_of_an_interval_is_proven_and_checked() {
    let rng = &mut rng(1);
    for interval in intervals() {
        let terms = terms(interval);
        let (prover, checker) = (prover(terms), checker(terms));
        let middle = i64::midpoint(interval.lowest(), interval.highest());
        let samples = [interval.lowest(), middle, interval.highest()].map(Contribution::Sample);
        for (slot, contribution) in samples.into_iter().chain([Contribution::Dummy]).enumerate() {
            let binding = binding(u32::try_from(slot).unwrap());
            let tuple = prover.prove(contribution, &binding, rng).unwrap();
            let bytes = tuple.to_bytes();
            assert_eq!(bytes.len(), Tuple::length(&interval));
            assert_eq!(Tuple::from_bytes(&bytes, &interval), Ok(tuple.clone()));
            assert!(checker.check(binding, tuple).is_ok(), "{interval:?} {slot}");
        }
    }
}
