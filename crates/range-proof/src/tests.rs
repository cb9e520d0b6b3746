//! The library's own prover, over dalek's elements and over this crate's.

use super::*;
use crate::steady::{Bases, watched::FOLDS};
use alpheus_crypto::hash::labelled_hash;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use curve25519_dalek::traits::{Identity, IsIdentity, MultiscalarMul};
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
    let parameters = parameters(terms, |element| of(element.as_point()));
    let [values, blindings] = [*terms.value_base.as_point(), *terms.blinding_base.as_point()];
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
        // Whether it chooses says nothing about which bits they are.
        assert_eq!(bases.choose(&scalars).is_some(), last != Scalar::from(5_u64));
    }
    for bits in [[Scalar::ONE; 6], [Scalar::ZERO; 6], [-Scalar::ONE; 6]] {
        assert!(bases.choose(&bits).is_some());
    }
    let few = [Scalar::ONE; 5];
    let point = [Some(Steady::of(points[2]))];
    assert!(bases.optional_mixed_multiscalar_mul(few, blind, point).is_none());
}

/// Commitments to these values, and their openings.
fn committed(values: &[u64], seed: u32) -> (Vec<Commitment>, Vec<Opening>) {
    let (g, h) = (*Element::base().as_point(), *Element::second_base().as_point());
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
    let (proving, checking) = (RangeProver::new(terms), RangeChecker::new(terms));
    let rng = &mut ChaCha20Rng::from_seed([6; 32]);
    let mut claims = Vec::new();
    for seed in 0..5 {
        let (commitments, openings) = committed(&[255, u64::from(seed)], 10 * seed);
        let proof = proving.prove(openings, &commitments, &bound(), rng).unwrap();
        let bytes = EncodedProof::from_bytes(proof.as_bytes(), &terms.shape).unwrap();
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

/// Each against dalek's own arithmetic.
#[test]
fn commitments_are_summed_and_multiplied_as_their_elements_are() {
    let (one, other) = (Commitment::of(&Element::base()), Commitment::of(&Element::second_base()));
    let (p, q) = (*Element::base().as_point(), *Element::second_base().as_point());
    assert_eq!((one, other), (Commitment(p), Commitment(q)));
    assert_eq!(one + other, Commitment(p + q));
    assert_eq!(one - other, Commitment(p - q));
    assert_eq!(-one, Commitment(-p));
    let mut sum = one;
    sum += other;
    assert_eq!(sum, Commitment(p + q));
    for factor in [0, 1, 2, 3, 5, 6, 1 << 90, i128::MAX] {
        let expected = p * Scalar::from(factor.unsigned_abs());
        assert_eq!(one.vartime_times(factor), Commitment(expected), "{factor}");
        assert_eq!(one.vartime_times(-factor), Commitment(-expected), "-{factor}");
    }
    let lowest = one.vartime_times(i128::MIN);
    assert_eq!(lowest, Commitment(-(p * Scalar::from(1_u128 << 127))));
}

#[test]
fn a_shape_has_powers_of_two_and_no_more_than_the_most() {
    for (bits, values) in [(1, 1), (64, 64), (64, 1), (1, 64)] {
        let shape = Shape::new(bits, values).unwrap();
        assert_eq!((shape.bits(), shape.values()), (bits, values));
    }
    for (bits, values) in [(0, 1), (1, 0), (3, 1), (1, 3), (128, 1), (1, 128), (128, 128)] {
        assert_eq!(Shape::new(bits, values), None, "{bits} bits, {values} values");
    }
    // Six parts of 32 bytes, and two for each halving of bits times values.
    for (bits, values, parts) in [(1, 1, 6), (8, 1, 12), (8, 2, 14), (64, 64, 30)] {
        assert_eq!(Shape::new(bits, values).unwrap().proof_length(), 32 * parts);
    }
    let terms = terms(8, 2);
    assert_eq!(RangeChecker::new(terms).shape(), terms.shape);
}

/// A byte string in little-endian order: the first, the last, and all between them.
fn number(first: u8, middle: u8, last: u8) -> [u8; 32] {
    let mut bytes = [middle; 32];
    (bytes[0], bytes[31]) = (first, last);
    bytes
}

/// 2^255 − 19 and its neighbours: smaller even numbers may be elements, and zero is the identity.
fn near_the_modulus() -> (Vec<[u8; 32]>, Vec<[u8; 32]>) {
    let mut one_lower = number(0xee, 0xff, 0x7f);
    one_lower[16] = 0xfe;
    let allowed =
        vec![number(2, 0, 0), number(0xec, 0xff, 0x7f), number(0xfe, 0xff, 0x7e), one_lower];
    let forbidden = vec![
        number(0, 0, 0),
        number(1, 0, 0),
        number(3, 7, 0),
        number(0xee, 0xff, 0x7f),
        number(0xfe, 0xff, 0x7f),
        number(0, 0, 0x80),
        number(0xeb, 0xff, 0x7e),
    ];
    (allowed, forbidden)
}

/// Parts 0, 4 and 5 are scalars, all others elements.
#[test]
fn parts_of_a_proof_that_are_not_canonical_are_rejected() {
    let shape = Shape::new(8, 1).unwrap();
    let (commitments, openings) = committed(&[9], 1);
    let rng = &mut ChaCha20Rng::from_seed([7; 32]);
    let proof = RangeProver::new(terms(8, 1)).prove(openings, &commitments, &bound(), rng).unwrap();
    let with = |part: usize, bytes: [u8; 32]| {
        let mut changed = proof.as_bytes().to_vec();
        changed[32 * part..][..32].copy_from_slice(&bytes);
        EncodedProof::from_bytes(&changed, &shape).map(|read| read.as_bytes() == changed)
    };
    let (allowed, forbidden) = near_the_modulus();
    // The order of the group is the first number that is no scalar.
    let largest = (-Scalar::ONE).to_bytes();
    let mut order = largest;
    order[0] += 1;
    for part in 0..12 {
        if [0, 4, 5].contains(&part) {
            assert_eq!(with(part, number(1, 0, 0)), Ok(true));
            assert_eq!(with(part, number(0, 0, 0)), Ok(true));
            assert_eq!(with(part, largest), Ok(true));
            assert_eq!(with(part, order), Err(RangeFormatError::Part));
            continue;
        }
        for &bytes in &allowed {
            assert_eq!(with(part, bytes), Ok(true), "part {part}: {bytes:?}");
        }
        for &bytes in &forbidden {
            assert_eq!(with(part, bytes), Err(RangeFormatError::Part), "part {part}: {bytes:?}");
        }
    }
    let bytes = [proof.as_bytes(), &[2; 32]].concat();
    for length in [0, 32, 383, 385, 416] {
        let read = EncodedProof::from_bytes(&bytes[..length], &shape);
        assert_eq!(read, Err(RangeFormatError::Length), "{length}");
    }
    assert_eq!(EncodedProof::from_bytes(&bytes[..384], &shape), Ok(proof));
    assert_eq!(EncodedProof::of_library(&[]), None);
}

/// Elements also support the operations of the library's prover that the proofs do not show.
#[test]
fn steady_elements_are_compared_encoded_and_multiplied_like_dalek_s() {
    use crate::steady::Encoding;
    use curve25519_dalek::traits::{VartimeMultiscalarMul, VartimePrecomputedMultiscalarMul};
    use subtle::ConstantTimeEq;
    use tari_bulletproofs_plus::traits::Decompressable;
    let points = [*Element::base().as_point(), *Element::second_base().as_point()];
    let [p, q] = points.map(Steady::of);
    assert!(p == p.clone() && p != q);
    assert!(p.clone() + q.clone() == Steady::of(points[0] + points[1]));
    assert!(&p + &q == Steady::of(points[0] + points[1]));
    let mut sum = p.clone();
    sum += q.clone();
    assert!(sum == Steady::of(points[0] + points[1]));
    assert!(&p * Scalar::from(3_u8) == Steady::of(points[0] * Scalar::from(3_u8)));
    assert!(Steady::identity() == Steady::of(RistrettoPoint::identity()));

    let encoded = p.compress();
    assert_eq!(encoded.as_fixed_bytes(), Element::base().as_bytes());
    assert!(encoded.decompress().unwrap() == p);
    assert!(Encoding::from_fixed_bytes([0xff; 32]).decompress().is_none());
    assert!(bool::from(encoded.ct_eq(&p.compress())));
    assert!(!bool::from(encoded.ct_eq(&q.compress())));
    assert!(Encoding::identity().decompress().unwrap() == Steady::identity());

    let bases = Bases::new([p.clone(), q.clone()]);
    assert_eq!((bases.len(), bases.is_empty()), (2, false));
    let none = Bases::new(Vec::<Steady>::new());
    assert_eq!((none.len(), none.is_empty()), (0, true));

    // Scalars and elements of different numbers have no sum.
    let scalars = [Scalar::from(2_u8), Scalar::from(5_u8), Scalar::ONE];
    let elements = [Some(p.clone()), Some(q.clone()), Some(p.clone())];
    let expected = points[0] * Scalar::from(3_u8) + points[1] * Scalar::from(5_u8);
    let whole = Steady::optional_multiscalar_mul(scalars, elements.clone());
    assert!(whole.unwrap() == Steady::of(expected));
    assert!(Steady::optional_multiscalar_mul(&scalars[..2], elements.clone()).is_none());
    assert!(Steady::optional_multiscalar_mul(scalars, elements[..2].to_vec()).is_none());
    // So have bases and others.
    let others = |many: usize| {
        let given = elements[..2].to_vec();
        bases.optional_mixed_multiscalar_mul(&scalars[..2], &scalars[..many], given)
    };
    assert!(others(2).is_some() && others(1).is_none() && others(3).is_none());
}
