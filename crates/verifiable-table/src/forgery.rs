//! Tests at toy sizes, where forgeries succeed as often as theory predicts, and tests of noise
//! against its bound.

use crate::cipher::{Add, Ciphertext, Tensor};
use crate::hash::HashKey;
use crate::keys::{Keys, TableKey};
use crate::label::{Address, Column, DataSet, Kind, Order, Segment};
use crate::mask::Masks;
use crate::messages::{Run, Weights};
use crate::parameters::Set;
use crate::planner;
use crate::ring::Ring;
use crate::sampling;
use crate::spec::Spec;
use alpheus_crypto::secret::Secret;
use num_bigint::{BigInt, BigUint};
use subtle::ConstantTimeEq;

/// An insecure ring with a modulus small enough for forgeries.
fn toy(q: &'static [u64], repetitions: usize) -> &'static Ring {
    Spec { name: "toy", degree: 512, q, t: [13_313, 15_361], repetitions }.dangerous_ring()
}

/// One residue is changed and the tag is not: `A[v]·B = 0` with probability 2/q − 1/q².
#[test]
fn one_repetition_at_a_toy_modulus_accepts_as_often_as_predicted() {
    let ring = toy(&[12_289], 1);
    let (trials, mut accepted) = (600_000_u32, 0);
    let honest = vec![5_u64; 512];
    let mut forged = honest.clone();
    forged[77] += 1;
    for trial in 0..trials {
        let mut key = [0; 16];
        key[..4].copy_from_slice(&trial.to_le_bytes());
        let hash = HashKey::new(ring, &alpheus_crypto::prf::Prf::from_bytes(&key));
        let [a, b] = [&honest, &forged].map(|c| hash.hash(ring, &[c]));
        accepted += u32::from(bool::from(a.ct_eq(&b)));
    }
    // Expected 97.6, within six deviations of 9.9.
    assert!((38..158).contains(&accepted), "{accepted} of {trials}");
}

/// A forger sees each verdict before the next attempt, 10^6 times.
#[test]
fn a_million_adaptive_forgeries_are_rejected() {
    let ring = toy(&[2_251_799_813_554_177], 3);
    let keys =
        Keys::new(&TableKey::new(Secret::from_bytes([3; 32])), ring, DataSet([1; 16]), Order::ONE);
    let (kind, segment) = (Kind::Column(Column(0)), Segment([2; 16]));
    let address = Address { segment, epoch: 0, index: 4 };
    let (_, ciphertext) = keys.encrypt(&address, kind, &[9; 512], &[0; 32]);
    let tag = keys.tag(&address, kind, &ciphertext);
    let masks = Masks::new(&keys, (segment, 0), kind);
    let run = Run { segment, epoch: 0, from: 4, to: 5 };
    let accepts = |components: &[&[u64]], tag: &crate::tag::Tag| {
        let mut expected = keys.hash.hash(ring, components);
        masks.add_run(&mut expected, &run, &Weights::Ones);
        bool::from(expected.ct_eq(tag))
    };
    assert!(accepts(&ciphertext.parts(), &tag));
    let (mut forged, mut guess) = (ciphertext.clone(), tag.clone());
    for query in 0..1_000_000_u64 {
        // A walk over differences of the sum and of the tag: each attempt starts from the one
        // before.
        let at = usize::try_from(query % 1024).unwrap();
        let word = &mut forged.0[at / 512][at % 512];
        *word = (*word + 1 + query) % 2_251_799_813_554_177;
        let limb = &mut guess.0[0][usize::try_from(query % 3).unwrap()];
        *limb = (*limb + query / 3) % 2_251_799_813_554_177;
        assert!(!accepts(&forged.parts(), &guess), "query {query}");
    }
    assert!(accepts(&ciphertext.parts(), &tag));
}

/// The largest centred coefficient of a phase.
fn largest(ring: &Ring, keys: &Keys, ciphertext: &Ciphertext) -> BigUint {
    let mut phase = keys.secret.phase(ring, ciphertext);
    ring.limbs_of(&mut phase).for_each(|(ntt, limb)| ntt.inverse(limb));
    let modulus = BigInt::from(ring.modulus());
    let terms = ring.q.iter().map(|ntt| {
        let rest = BigInt::from(ring.modulus() / ntt.prime.p);
        let residue = u64::try_from(&rest % BigInt::from(ntt.prime.p)).unwrap();
        rest * ntt.prime.invert(residue)
    });
    let terms: Vec<BigInt> = terms.collect();
    let coefficient = |i: usize| {
        let limbs = terms.iter().zip(phase.chunks_exact(ring.degree()));
        let x: BigInt = limbs.map(|(term, limb)| term * limb[i]).sum::<BigInt>() % &modulus;
        let centred = if &x * 2_u32 > modulus { x - &modulus } else { x };
        centred.magnitude().clone()
    };
    (0..ring.degree()).map(coefficient).max().unwrap()
}

/// Fresh, summed and multiplied ciphertexts, with random and extreme items, stay within the
/// planner's bound; and the bound is not much too large.
#[test]
fn noise_stays_within_its_bound() {
    [Set::S128, Set::X128].into_iter().for_each(check_noise);
}

fn check_noise(set: Set) {
    let ring = set.ring();
    let keys =
        Keys::new(&TableKey::new(Secret::from_bytes([5; 32])), ring, DataSet([2; 16]), Order::ONE);
    let kind = Kind::Column(Column(0));
    let (top, n) = ((1_i64 << 50) - 1, ring.degree());
    let random = |seed: u64| {
        let mut words = vec![0; n];
        sampling::Stream::new(&alpheus_crypto::prf::Prf::from_bytes(&[1; 16]), seed)
            .fill(&mut words);
        words.into_iter().map(|word| (word >> 14).cast_signed() - (1 << 49)).collect::<Vec<i64>>()
    };
    let alternating = (0..n).map(|i| if i % 2 == 0 { top } else { -top }).collect();
    let inputs = [vec![top; n], vec![-top; n], alternating, vec![0; n], random(1), random(2)];
    let encrypt = |(index, slots): (usize, &Vec<i64>)| {
        let address = Address { segment: Segment([0; 16]), epoch: 0, index: index as u64 };
        keys.encrypt(&address, kind, slots, &[0; 32]).1
    };
    let fresh: Vec<Ciphertext> = inputs.iter().enumerate().map(encrypt).collect();
    let linear = planner::noise(ring, kind);
    let mut sum = Ciphertext::zero(ring, 2);
    for (slots, ciphertext) in inputs.iter().zip(&fresh) {
        let noise = largest(ring, &keys, ciphertext);
        assert!(noise <= linear && &noise * 8_u32 > linear, "a fresh one");
        let opened = keys.secret.decrypt(ring, ciphertext);
        assert!(opened.iter().zip(slots).all(|(a, b)| *a == i128::from(*b)));
        ring.backend.run(Add { ring, sum: &mut sum, other: ciphertext, weight: None });
    }
    assert!(largest(ring, &keys, &sum) <= &linear * inputs.len());
    let product = planner::noise(ring, Kind::Product(Column(0), Column(0)));
    for (a, b) in [(0, 0), (0, 1), (2, 2), (4, 5), (3, 3)] {
        let mut tensor = Ciphertext::zero(ring, 3);
        let (x, y) = (&fresh[a], &fresh[b]);
        ring.backend.run(Tensor { ring, sum: &mut tensor, a: x, b: y });
        let noise = largest(ring, &keys, &tensor);
        assert!(noise <= product, "products of inputs {a} and {b}");
        assert!(&noise << 20_usize > product, "the bound is not vacuous");
    }
}
