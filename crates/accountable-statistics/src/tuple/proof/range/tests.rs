//! The library's own prover, over dalek's elements and over this crate's.

use super::super::steady::{Bases, watched::FOLDS};
use super::*;
use crate::tuple::ThresholdKey;
use curve25519_dalek::traits::{Identity, IsIdentity, MultiscalarMul};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::ops::{Add, Mul};
use tari_bulletproofs_plus::protocols::curve_point_protocol::CurvePointProtocol;
use tari_bulletproofs_plus::traits::FixedBytesRepr;

fn proven<P>(of: impl Fn(&RistrettoPoint) -> P, terms: &Terms, bound: &Digest) -> Vec<u8>
where
    for<'p> &'p P: Mul<Scalar, Output = P> + Add<Output = P>,
    P: CurvePointProtocol + Precomputable + MultiscalarMul<Point = P>,
    P::Compressed: FixedBytesRepr + IsIdentity + Identity,
{
    let parameters = parameters(terms, |element| of(&point(element)));
    let [values, blindings] = [point(&message_base()), point(&terms.key().0)];
    let (mut commitments, mut openings) = (Vec::new(), Vec::new());
    for side in 1..=sides(terms.interval()) as u64 {
        let (value, blinding) = (side * 77, Scalar::from(side * 1234));
        commitments.push(of(&(values * Scalar::from(value) + blindings * blinding)));
        openings.push(CommitmentOpening::new(value, vec![blinding]));
    }
    let promises = vec![None; commitments.len()];
    let statement = RangeStatement::init(parameters, commitments, promises, None).unwrap();
    let witness = RangeWitness::init(openings).unwrap();
    let rng = &mut ChaCha20Rng::from_seed([5; 32]);
    let proof = RangeProof::prove_with_rng(&mut transcript(bound), &statement, &witness, rng);
    proof.unwrap().to_bytes()
}

#[test]
fn steady_elements_yield_the_same_proofs() {
    let key = ThresholdKey(Element::second_base());
    for highest in [255, 65_535, 50_000, 100_000] {
        let terms = Terms::new(key, Interval::new(0, highest, false).unwrap());
        let ours = proven(|element| Steady::of(*element), &terms, terms.digest());
        let theirs = proven(|element| *element, &terms, terms.digest());
        assert_eq!((ours.len(), ours == theirs), (1 + length(terms.interval()), true));
    }
}

/// Only challenges are multiplied in variable time: in each round e⁻¹ and e·y⁻ⁿ for one half of
/// the bases, e and e⁻¹ for the other, each as often as there are pairs. y and e come from the
/// transcript.
#[test]
fn only_challenges_are_treated_as_public() {
    let key = ThresholdKey(Element::second_base());
    for highest in [255, 65_535, 100_000] {
        let terms = Terms::new(key, Interval::new(0, highest, false).unwrap());
        FOLDS.with_borrow_mut(Vec::clear);
        proven(|element| Steady::of(*element), &terms, terms.digest());
        let mut folds = FOLDS.take().into_iter();
        let (mut pairs, mut before) = (terms.interval().bits() * sides(terms.interval()), None);
        while pairs > 1 {
            pairs /= 2;
            let round: Vec<[Scalar; 2]> = folds.by_ref().take(2 * pairs).collect();
            let ([_, e_y], [e, inverse]) = (round[0], round[pairs]);
            assert_eq!((round.len(), e * inverse), (2 * pairs, Scalar::ONE));
            assert!(round[..pairs].iter().all(|fold| *fold == [inverse, e_y]));
            assert!(round[pairs..].iter().all(|fold| *fold == [e, inverse]));
            // y⁻ⁿ of this round is the root of the last one's.
            let y = e_y * inverse;
            assert!(before.is_none_or(|before| y * y == before));
            before = Some(y);
        }
        assert!(folds.next().is_none());
    }
}

/// A value's bits choose bases; other scalars multiply them.
#[test]
fn bases_are_chosen_or_multiplied_alike() {
    use curve25519_dalek::traits::VartimePrecomputedMultiscalarMul;
    let points: Vec<RistrettoPoint> =
        (1..=6_u64).map(|k| RistrettoPoint::mul_base(&Scalar::from(k))).collect();
    let bases = Bases::new(points.iter().copied().map(Steady::of));
    let blind = [Scalar::from(77_u64)];
    for last in [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(5_u64)] {
        let scalars = [Scalar::ONE, -Scalar::ONE, Scalar::ZERO, Scalar::ONE, -Scalar::ONE, last];
        let expected = RistrettoPoint::multiscalar_mul(scalars.iter().chain(&blind), {
            points.iter().chain(&points[2..3])
        });
        let ours = bases.vartime_mixed_multiscalar_mul(scalars, blind, [Steady::of(points[2])]);
        assert!(ours == Steady::of(expected));
    }
    let few = [Scalar::ONE; 5];
    let point = [Some(Steady::of(points[2]))];
    assert!(bases.optional_mixed_multiscalar_mul(few, blind, point).is_none());
}
