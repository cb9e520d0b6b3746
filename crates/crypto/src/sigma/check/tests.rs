//! Forgeries that broken verifiers accept and this one refuses. Each defect is a mutant here:
//! an ignored equation, a commitment left out of the hash, weights that do not depend on the
//! responses.

use super::*;
use crate::group::{IdentityError, SecretScalar};
use crate::sigma::{ElementIndex, Opening, absorb, encodings};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use proptest::prelude::*;
use sha2::{Digest as _, Sha512};

const LABEL: &str = "alpheus/test-statement/v1";

struct Witness {
    a: SecretScalar,
    b: SecretScalar,
    images: [Element; 3],
}

fn witness(rng: &mut ChaCha20Rng) -> Result<Witness, IdentityError> {
    let (a, b) = (SecretScalar::random(rng), SecretScalar::random(rng));
    let (g, h) = (Element::base(), Element::second_base());
    let five_a = a.times(&SecretScalar::from_small(5));
    let minus_b = b.times(&SecretScalar::from_public(&PublicScalar::of(-1)));
    let images = [
        Element::combine(&[(&a, &g), (&b, &h)], &[], &[])?,
        h.times(&five_a)?,
        Element::combine(&[(&minus_b, &g), (&a, &h)], &[], &[])?,
    ];
    Ok(Witness { a, b, images })
}

/// I₀ = aG + bH, I₁ = 5aH, I₂ = aH − bG.
fn statement(field: &[u8], images: &[Element; 3]) -> Statement {
    let mut s = Statement::new(LABEL, &[field]);
    let (a, b) = (s.secret(), s.secret());
    let (g, h) = (s.element(&Element::base()), s.element(&Element::second_base()));
    let i: Vec<ElementIndex> = images.iter().map(|image| s.element(image)).collect();
    s.equation(i[0], &[(1, a, g), (1, b, h)]);
    s.equation(i[1], &[(5, a, h)]);
    s.equation(i[2], &[(-1, b, g), (1, a, h)]);
    s
}

fn claim(rng: &mut ChaCha20Rng, field: &[u8]) -> Claim {
    let witness = witness(rng).unwrap();
    let s = statement(field, &witness.images);
    let proof = s.prove(&[&witness.a, &witness.b], rng).unwrap();
    let read = Proof::from_bytes(&proof.to_bytes(), &s).unwrap();
    assert_eq!((proof.to_bytes().len(), &read), (s.proof_length(), &proof));
    Claim::new(s, proof)
}

/// A defective verifier that checks equation by equation.
struct Mutant {
    /// The equation that it does not check.
    ignores: Option<usize>,
    /// The commitment that it leaves out of the hash.
    leaves_out: Option<usize>,
}

impl Mutant {
    fn challenge(&self, claim: &Claim) -> Scalar {
        let mut transcript = claim.statement.prefix();
        let mut hashed = claim.proof.commitments.clone();
        self.leaves_out.map(|j| hashed.remove(j));
        absorb(&mut transcript, &encodings(&hashed));
        Scalar::from_bytes_mod_order_wide(&Sha512::finalize(transcript).into())
    }

    fn accepts(&self, claim: &Claim) -> bool {
        let challenge = PublicScalar(self.challenge(claim));
        let claim = Claim {
            statement: statement_like(&claim.statement),
            proof: claim.proof.clone(),
            challenge,
        };
        (0..claim.statement.equations.len()).filter(|j| Some(*j) != self.ignores).all(|only| {
            let alone = |_: &[&Claim]| (0..3).map(|j| Scalar::from(u64::from(j == only))).collect();
            sum_vanishes(&[&claim], alone)
        })
    }
}

fn statement_like(s: &Statement) -> Statement {
    let equations = s.equations.iter();
    let equations = equations.map(|e| Equation { image: e.image, terms: e.terms.clone() });
    Statement {
        transcript: s.transcript.clone(),
        secrets: s.secrets,
        elements: s.elements.clone(),
        equations: equations.collect(),
    }
}

#[test]
fn only_a_verifier_that_ignores_an_equation_accepts_its_forgery() {
    let rng = &mut ChaCha20Rng::from_seed([1; 32]);
    let whole = Mutant { ignores: None, leaves_out: None };
    for wrong in 0..3 {
        let mut witness = witness(rng).unwrap();
        witness.images[wrong] = Element::from_hash(LABEL, &[b"nobody's"]);
        let s = statement(b"field", &witness.images);
        let proof = s.prove(&[&witness.a, &witness.b], rng).unwrap();
        let claim = Claim::new(s, proof);
        assert!(Mutant { ignores: Some(wrong), leaves_out: None }.accepts(&claim));
        assert!(!whole.accepts(&claim) && !claim.holds());
    }
    assert!(whole.accepts(&claim(rng, b"field")));
}

#[test]
fn only_a_verifier_that_does_not_hash_a_commitment_accepts_its_forgery() {
    let rng = &mut ChaCha20Rng::from_seed([2; 32]);
    for out in 0..3 {
        let mut witness = witness(rng).unwrap();
        witness.images[out] = Element::from_hash(LABEL, &[b"nobody's"]);
        let mutant = Mutant { ignores: None, leaves_out: Some(out) };
        let s = statement(b"field", &witness.images);
        // Everything is honest except the commitment, which is solved for once the challenge
        // is known.
        let nonces = [SecretScalar::random(rng), SecretScalar::random(rng)];
        let commitments = s.commitments(&nonces, &[]).unwrap();
        let proof = Proof { commitments, responses: vec![PublicScalar::of(0); 2] };
        let mut forged = Claim::new(s, proof);
        let c = PublicScalar(mutant.challenge(&forged));
        let secrets = [&witness.a, &witness.b];
        forged.proof.responses = nonces
            .into_iter()
            .zip(secrets)
            .map(|(nonce, secret)| SecretScalar::response(nonce, &c, secret))
            .collect();
        let responses = forged.proof.responses.iter().map(SecretScalar::from_public);
        let right = forged.statement.commitments(&responses.collect::<Vec<_>>(), &[]).unwrap()[out];
        let image = witness.images[out].times(&SecretScalar::from_public(&c)).unwrap();
        forged.proof.commitments[out] = Element::combine(&[], &[&right], &[&image]).unwrap();
        let forged = Claim::new(forged.statement, forged.proof);
        assert!(mutant.accepts(&forged));
        assert!(!forged.holds());
    }
}

fn shift(claim: &mut Claim, by: Scalar) {
    claim.proof.responses[0].0 += by;
}

#[test]
fn one_invalid_proof_among_256_is_found() {
    let rng = &mut ChaCha20Rng::from_seed([3; 32]);
    let mut claims: Vec<Claim> = (0u8..=255).map(|i| claim(rng, &[i])).collect();
    assert_eq!(check_all(&claims), Ok(()));
    assert_eq!(check_all(&[]), Ok(()));
    shift(&mut claims[77], Scalar::ONE);
    assert_eq!(check_all(&claims), Err(InvalidProofsError(vec![77])));
}

#[test]
fn two_errors_that_cancel_among_256_are_found() {
    let rng = &mut ChaCha20Rng::from_seed([4; 32]);
    let mut claims: Vec<Claim> = (0u8..=255).map(|i| claim(rng, &[i])).collect();
    // They cancel in a sum without weights ...
    shift(&mut claims[3], Scalar::ONE);
    shift(&mut claims[200], -Scalar::ONE);
    let all: Vec<&Claim> = claims.iter().collect();
    assert!(sum_vanishes(&all, |claims| vec![Scalar::ONE; 3 * claims.len()]));
    assert_eq!(check_all(&claims), Err(InvalidProofsError(vec![3, 200])));
    // ... and, with responses that are solved for, in a sum whose weights were drawn before
    // the responses.
    shift(&mut claims[3], -Scalar::ONE);
    shift(&mut claims[200], Scalar::ONE);
    let before = weights(&claims.iter().collect::<Vec<_>>());
    // The factors of G and H from a's and b's responses, under a claim's weights.
    let effect = |at: usize| {
        let [w0, w1, w2] = std::array::from_fn(|j| before[3 * at + j]);
        [[w0, w1 * Scalar::from(5_u8) + w2], [-w2, w0]]
    };
    let ([[g, h], _], [[ag, ah], [bg, bh]]) = (effect(3), effect(200));
    let inverse = (ag * bh - bg * ah).invert();
    shift(&mut claims[3], Scalar::ONE);
    claims[200].proof.responses[0].0 -= (g * bh - bg * h) * inverse;
    claims[200].proof.responses[1].0 -= (ag * h - g * ah) * inverse;
    let all: Vec<&Claim> = claims.iter().collect();
    assert!(sum_vanishes(&all, |_| before.clone()));
    assert_eq!(check_all(&claims), Err(InvalidProofsError(vec![3, 200])));
}

#[test]
fn a_proof_holds_only_for_its_own_field_bytes_and_shape() {
    let rng = &mut ChaCha20Rng::from_seed([5; 32]);
    let witness = witness(rng).unwrap();
    let s = statement(b"field", &witness.images);
    let proof = s.prove(&[&witness.a, &witness.b], rng).unwrap();
    assert!(Claim::new(statement(b"field", &witness.images), proof.clone()).holds());
    assert!(!Claim::new(statement(b"fielc", &witness.images), proof.clone()).holds());
    for at in (0..s.proof_length()).step_by(7) {
        let mut bytes = proof.to_bytes();
        bytes[at] ^= 2;
        if let Ok(other) = Proof::from_bytes(&bytes, &s) {
            assert!(!Claim::new(statement_like(&s), other).holds(), "byte {at}");
        }
    }
    let mut other_shape = statement_like(&s);
    other_shape.equations[1].terms[0].0 = 6;
    assert!(!Claim::new(other_shape, proof.clone()).holds());
    let mut fewer = statement_like(&s);
    fewer.equations.pop();
    assert!(!Claim::new(fewer, proof).holds());
}

/// Openings save the prover work, but change no byte.
#[test]
fn correct_openings_give_the_same_proof_and_wrong_ones_an_invalid_proof() {
    let rng = &mut ChaCha20Rng::from_seed([8; 32]);
    let [one, other, bit, blind, square] = std::array::from_fn(|_| SecretScalar::random(rng));
    let (g, h) = (Element::base(), Element::second_base());
    let made_of = |blind: &SecretScalar| Element::combine(&[(&bit, &g), (blind, &h)], &[], &[]);
    let d = made_of(&blind).unwrap();
    let image = Element::combine(&[(&one, &d), (&other, &h)], &[], &[]).unwrap();
    let proven = |blinds: &[&SecretScalar]| {
        let mut s = Statement::new(LABEL, &[]);
        let (one_at, other_at) = (s.secret(), s.secret());
        let [g, h, d, image] = [g, h, d, image].map(|element| s.element(&element));
        s.equation(image, &[(1, one_at, d), (1, other_at, h), (-3, one_at, h), (3, one_at, h)]);
        let opened = |blind: &&SecretScalar| Opening {
            of: d,
            terms: vec![(bit.duplicate(), g), (blind.duplicate(), h)],
        };
        let openings: Vec<Opening> = blinds.iter().map(opened).collect();
        let rng = &mut ChaCha20Rng::from_seed([9; 32]);
        let proof = s.prove_with_openings(&[&one, &other], &openings, rng).unwrap();
        (proof.to_bytes(), Claim::new(s, proof).holds())
    };
    let (plain, holds) = proven(&[]);
    assert!(holds);
    assert_eq!(proven(&[&blind]), (plain, true));
    assert!(!proven(&[&square]).1);
}

/// A generator repeats itself, for example, after a virtual machine's snapshot is resumed.
#[test]
fn a_generator_that_repeats_itself_reveals_no_secret() {
    let witness = witness(&mut ChaCha20Rng::from_seed([6; 32])).unwrap();
    let proofs: Vec<Proof> = [b"one", b"two"]
        .iter()
        .map(|field| {
            let s = statement(*field, &witness.images);
            s.prove(&[&witness.a, &witness.b], &mut ChaCha20Rng::from_seed([7; 32])).unwrap()
        })
        .collect();
    assert_ne!(proofs[0].commitments, proofs[1].commitments);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_batch_reports_exactly_the_proofs_that_do_not_hold(bad in proptest::collection::btree_set(0usize..20, 0..6), seed: [u8; 32]) {
        let rng = &mut ChaCha20Rng::from_seed(seed);
        let mut claims: Vec<Claim> = (0..20).map(|i| claim(rng, &[i])).collect();
        bad.iter().for_each(|at| shift(&mut claims[*at], Scalar::from(*at as u64 + 1)));
        let expected: Vec<usize> = bad.into_iter().collect();
        let alone: Vec<usize> = (0..20).filter(|at| !claims[*at].holds()).collect();
        prop_assert_eq!(&alone, &expected);
        let found = check_all(&claims).err().map_or(Vec::new(), |InvalidProofsError(found)| found);
        prop_assert_eq!(found, expected);
    }
}
