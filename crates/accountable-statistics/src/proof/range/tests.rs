//! The library's own prover, over dalek's elements and over ours.

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
fn steady_elements_give_the_same_proofs() {
    let key = ThresholdKey(Element::second_base());
    for highest in [255, 65_535, 50_000, 100_000] {
        let terms = Terms::new(key, Interval::new(0, highest, false).unwrap());
        let ours = proven(|element| Steady(*element), &terms, terms.digest());
        let theirs = proven(|element| *element, &terms, terms.digest());
        assert_eq!((ours.len(), ours == theirs), (1 + length(terms.interval()), true));
    }
}
