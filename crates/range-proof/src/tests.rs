//! The library's own prover, over dalek's elements and over this crate's.

use super::*;
use crate::steady::{Bases, watched::FOLDS};
use alpheus_crypto::hash::labelled_hash;
use curve25519_dalek::traits::{Identity, IsIdentity, MultiscalarMul};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::ops::{Add, Mul};
use tari_bulletproofs_plus::protocols::curve_point_protocol::CurvePointProtocol;
use tari_bulletproofs_plus::traits::FixedBytesRepr;

const LABEL: &str = "alpheus/test-range/v1";

fn terms(bits: usize, values: usize) -> Terms {
    let (value_base, blinding_base) = (Element::base(), Element::second_base());
    Terms { shape: Shape::new(bits, values).unwrap(), value_base, blinding_base, label: LABEL }
}

fn bound() -> Digest {
    labelled_hash(LABEL, &[])
}

fn proven<P>(of: impl Fn(&RistrettoPoint) -> P, terms: &Terms, bound: &Digest) -> Vec<u8>
where
    for<'p> &'p P: Mul<Scalar, Output = P> + Add<Output = P>,
    P: CurvePointProtocol + Precomputable + MultiscalarMul<Point = P>,
    P::Compressed: FixedBytesRepr + IsIdentity + Identity,
{
    let parameters = parameters(terms, |element| of(&point(element)));
    let [values, blindings] = [point(&terms.value_base), point(&terms.blinding_base)];
    let (mut commitments, mut openings) = (Vec::new(), Vec::new());
    for side in 1..=terms.shape.values() as u64 {
        let (value, blinding) = (side * 17, Scalar::from(side * 1234));
        commitments.push(of(&(values * Scalar::from(value) + blindings * blinding)));
        openings.push(CommitmentOpening::new(value, vec![blinding]));
    }
    let promises = vec![None; commitments.len()];
    let statement = RangeStatement::init(parameters, commitments, promises, None).unwrap();
    let witness = RangeWitness::init(openings).unwrap();
    let rng = &mut ChaCha20Rng::from_seed([5; 32]);
    let proof =
        RangeProof::prove_with_rng(&mut transcript(LABEL, bound), &statement, &witness, rng);
    proof.unwrap().to_bytes()
}

#[test]
fn steady_elements_yield_the_same_proofs() {
    for (bits, values) in [(8, 1), (16, 1), (16, 2), (32, 2), (8, 8)] {
        let terms = terms(bits, values);
        let ours = proven(|element| Steady::of(*element), &terms, &bound());
        let theirs = proven(|element| *element, &terms, &bound());
        assert_eq!((ours.len(), ours == theirs), (1 + terms.shape.proof_length(), true));
    }
}

/// Only challenges are multiplied in variable time: in each round e⁻¹ and e·y⁻ⁿ for one half of
/// the bases, e and e⁻¹ for the other, each as often as there are pairs. y and e come from the
/// transcript.
#[test]
fn only_challenges_are_treated_as_public() {
    for (bits, values) in [(8, 1), (16, 1), (32, 2)] {
        let terms = terms(bits, values);
        FOLDS.with_borrow_mut(Vec::clear);
        proven(|element| Steady::of(*element), &terms, &bound());
        let mut folds = FOLDS.take().into_iter();
        let (mut pairs, mut before) = (bits * values, None);
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

/// Commitments to these values, and their openings.
fn committed(values: &[u64], seed: u32) -> (Vec<Commitment>, Vec<Opening>) {
    let (g, h) = (point(&Element::base()), point(&Element::second_base()));
    let blinded = || (seed + 1..).zip(values);
    let commitment = |(blinding, value): (u32, &u64)| {
        Commitment(g * Scalar::from(*value) + h * Scalar::from(blinding))
    };
    let opening =
        |(blinding, value): (u32, &u64)| Opening::new(*value, &SecretScalar::from_small(blinding));
    (blinded().map(commitment).collect(), blinded().map(opening).collect())
}

#[test]
fn a_batch_names_the_proofs_that_do_not_hold() {
    let terms = terms(8, 2);
    let (proving, checking) = (Proving::new(terms), Checking::new(terms));
    let rng = &mut ChaCha20Rng::from_seed([6; 32]);
    let mut claims = Vec::new();
    for seed in 0..5 {
        let (commitments, openings) = committed(&[255, u64::from(seed)], 10 * seed);
        let proof = proving.prove(openings, &commitments, &bound(), rng).unwrap();
        let bytes = Encoded::from_bytes(proof.as_bytes(), &terms.shape).unwrap();
        let about = if seed == 3 { committed(&[255, 9], 10 * seed).0 } else { commitments };
        claims.push(checking.claim(&about, &bytes, bound()).unwrap());
        assert!(checking.claim(&about[..1], &bytes, bound()).is_none());
    }
    claims[1].bound = labelled_hash(LABEL, &[&[1]]);
    let senders: Vec<Vec<Claim>> = claims.into_iter().map(|claim| vec![claim]).collect();
    assert_eq!(culprits(&senders), [1, 3]);
    let (one, other) = ([senders[0].as_slice(), &senders[1]].concat(), senders[2].clone());
    assert_eq!(culprits(&[vec![], one, other, vec![]]), [1]);
    let (commitments, openings) = committed(&[256, 0], 0);
    assert!(proving.prove(openings, &commitments, &bound(), rng).is_none());
}

/// A sender with many bad claims costs what one with a single bad claim costs: all of its claims are
/// one place, and a batch that fails is halved between senders only.
#[test]
fn the_cost_of_naming_does_not_grow_with_bad_claims() {
    for bad in [vec![], vec![5], (0..64).collect::<Vec<usize>>()] {
        let (mut batches, mut found, mut times) = (0, Vec::new(), [0; 64]);
        let mut holds = |senders: Range<usize>| {
            batches += 1;
            senders.clone().for_each(|sender| times[sender] += 1);
            senders.into_iter().all(|sender| !bad.contains(&sender))
        };
        bisect(0..64, &mut holds, &mut found);
        assert_eq!(found, bad);
        assert!(batches < 2 * 64 && times.iter().all(|times| *times <= 7), "{batches}");
    }
}
