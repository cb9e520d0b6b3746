//! Proofs that the prover knows scalars for which given linear equations between
//! group elements hold: Maurer's generalisation of Schnorr's protocol, made
//! non-interactive by hashing (Fiat and Shamir).
//!
//! A [`Statement`] defines what is proven. Prover and verifier build the same one.
//! The challenge hashes all of it: label, public fields, the shape of the equations,
//! every element, every commitment. Proofs are checked one by one or in batches, with
//! one multiplication. A batch that fails is halved until the invalid proofs are
//! found. `docs/protocol.md` defines the bytes.

mod check;
mod joint;

pub use check::{Claim, InvalidProofsError, check_all};
pub use joint::{JointContext, JointStatement, OwnCounts, PartDigest, prove_together};

use crate::group::{
    Element, ElementError, IdentityError, Multiple, PublicScalar, ScalarError, SecretScalar,
};
use crate::labels;
use crate::secret::Secret;
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use sha2::{Digest as _, Sha512};
use zeroize::Zeroizing;

/// The position of a secret in the witness of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretIndex(u16);

/// The position of an element in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementIndex(u16);

/// coefficient · secret · element.
pub type Term = (i64, SecretIndex, ElementIndex);

/// A prover's knowledge that an element of a statement is Σ scalar · element. Not `Debug`.
pub struct Opening {
    /// The element.
    pub of: ElementIndex,
    /// The scalars and elements whose sum it is.
    pub terms: Vec<(SecretScalar, ElementIndex)>,
}

/// image = Σ terms.
struct Equation {
    image: ElementIndex,
    terms: Vec<Term>,
}

/// The statement "I know scalars such that these equations hold". Public.
pub struct Statement {
    /// The hash state after label and fields.
    transcript: Sha512,
    secrets: u16,
    elements: Vec<Element>,
    equations: Vec<Equation>,
}

/// A proof of a statement. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// One per equation.
    commitments: Vec<Element>,
    /// One per secret.
    responses: Vec<PublicScalar>,
}

/// Why a proof could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvingError {
    /// The number of scalars in the witness differs from the number of secrets.
    #[error("the witness must have one scalar for each secret of the statement")]
    WitnessLength,
    /// A commitment is the identity: a chance of 2^-252, or a broken generator.
    #[error("a commitment is the identity; check the random number generator")]
    Identity,
}

/// Why bytes are not a proof of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFormatError {
    /// The length is wrong.
    #[error("the length of the proof does not match the statement")]
    Length,
    /// A commitment is not an element.
    #[error("a commitment of the proof is not an element: {0}")]
    Commitment(ElementError),
    /// A response is not a scalar.
    #[error("a response of the proof is not a scalar: {0}")]
    Response(ScalarError),
}

impl Statement {
    /// A statement without equations, about public fields. The label must determine
    /// the equations that follow and the number of fields.
    #[must_use]
    pub fn new(label: &str, fields: &[&[u8]]) -> Self {
        let mut transcript = Sha512::new();
        absorb(&mut transcript, label.as_bytes());
        fields.iter().for_each(|field| absorb(&mut transcript, field));
        Self { transcript, secrets: 0, elements: Vec::new(), equations: Vec::new() }
    }

    /// Adds a secret.
    pub fn secret(&mut self) -> SecretIndex {
        let at = SecretIndex(self.secrets);
        self.secrets += 1;
        at
    }

    /// Adds an element.
    pub fn element(&mut self, element: &Element) -> ElementIndex {
        #[expect(clippy::cast_possible_truncation, reason = "statements are written by hand")]
        let at = ElementIndex(self.elements.len() as u16);
        self.elements.push(*element);
        at
    }

    /// Adds an equation: image = Σ terms.
    pub fn equation(&mut self, image: ElementIndex, terms: &[Term]) {
        self.equations.push(Equation { image, terms: terms.to_vec() });
    }

    /// The length of a proof in bytes.
    #[must_use]
    pub fn proof_length(&self) -> usize {
        Element::LENGTH * (self.equations.len() + usize::from(self.secrets))
    }

    /// Proves the statement. The time does not depend on the witness. The caller must
    /// know that the witness is correct: verifiers refuse a proof by an incorrect one.
    ///
    /// Nonces are hedged: they depend on fresh randomness, the witness and the
    /// statement. A generator that repeats itself therefore does not reveal the
    /// witness.
    ///
    /// # Errors
    /// [`ProvingError`].
    ///
    /// # Privacy
    /// In the random-oracle model, the proof reveals only that the statement holds,
    /// if the randomness is fresh or the witness unknown.
    pub fn prove(
        &self,
        witness: &[&SecretScalar],
        rng: &mut impl CryptoRng,
    ) -> Result<Proof, ProvingError> {
        self.prove_with_openings(witness, &[], rng)
    }

    /// Makes the same proof at a lower cost. It helps if an opening consists of elements that
    /// have precomputed tables, or that the equations contain anyway. Verifiers refuse a
    /// proof by a wrong opening.
    ///
    /// # Errors
    /// [`ProvingError`].
    ///
    /// # Privacy
    /// As for [`Statement::prove`]. Openings stay with the prover.
    pub fn prove_with_openings(
        &self,
        witness: &[&SecretScalar],
        openings: &[Opening],
        rng: &mut impl CryptoRng,
    ) -> Result<Proof, ProvingError> {
        if witness.len() != usize::from(self.secrets) {
            return Err(ProvingError::WitnessLength);
        }
        let prefix = self.prefix();
        let nonces = nonces(witness, &prefix, rng);
        let commitments = self.commitments(&nonces, openings);
        let commitments = commitments.map_err(|IdentityError| ProvingError::Identity)?;
        let challenge = challenge(prefix, &commitments);
        let responses = nonces.into_iter().zip(witness);
        let responses =
            responses.map(|(nonce, secret)| SecretScalar::response(nonce, &challenge, secret));
        Ok(Proof { responses: responses.collect(), commitments })
    }

    /// Σ coefficient · nonce · element for each equation.
    fn commitments(
        &self,
        nonces: &[SecretScalar],
        openings: &[Opening],
    ) -> Result<Vec<Element>, IdentityError> {
        let equations = self.equations.iter();
        let scaled: Vec<Vec<(ElementIndex, SecretScalar)>> =
            equations.map(|equation| scaled(equation, nonces, openings)).collect();
        let sums: Vec<Vec<Multiple<'_>>> =
            scaled.iter().map(|s| s.iter().map(|(at, by)| (by, self.at(*at))).collect()).collect();
        Element::combine_all(&sums.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn at(&self, element: ElementIndex) -> &Element {
        &self.elements[usize::from(element.0)]
    }

    /// The transcript up to the commitments.
    fn prefix(&self) -> Sha512 {
        let mut transcript = self.transcript.clone();
        absorb(&mut transcript, &self.shape());
        absorb(&mut transcript, &encodings(&self.elements));
        transcript
    }

    /// The encoding of the equations, without the elements.
    fn shape(&self) -> Vec<u8> {
        let mut shape = Vec::with_capacity(16 + 64 * self.equations.len());
        let mut count = |n: usize| shape.extend_from_slice(&(n as u64).to_be_bytes()[6..]);
        count(usize::from(self.secrets));
        count(self.elements.len());
        count(self.equations.len());
        for Equation { image, terms } in &self.equations {
            shape.extend_from_slice(&image.0.to_be_bytes());
            shape.extend_from_slice(&(terms.len() as u64).to_be_bytes()[6..]);
            for (coefficient, secret, element) in terms {
                shape.extend_from_slice(&coefficient.to_be_bytes());
                shape.extend_from_slice(&secret.0.to_be_bytes());
                shape.extend_from_slice(&element.0.to_be_bytes());
            }
        }
        shape
    }
}

impl Proof {
    /// Decodes a proof of a statement: commitments, then responses.
    ///
    /// # Errors
    /// [`ProofFormatError`].
    pub fn from_bytes(bytes: &[u8], statement: &Statement) -> Result<Self, ProofFormatError> {
        let (chunks, rest) = bytes.as_chunks::<32>();
        if bytes.len() != statement.proof_length() || !rest.is_empty() {
            return Err(ProofFormatError::Length);
        }
        let (commitments, responses) = chunks.split_at(statement.equations.len());
        let commitments = commitments.iter().map(Element::from_bytes).collect::<Result<_, _>>();
        let responses = responses.iter().map(PublicScalar::from_bytes).collect::<Result<_, _>>();
        Ok(Self {
            commitments: commitments.map_err(ProofFormatError::Commitment)?,
            responses: responses.map_err(ProofFormatError::Response)?,
        })
    }

    /// The encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let responses = self.responses.iter().flat_map(PublicScalar::to_bytes);
        self.commitments.iter().flat_map(|c| *c.as_bytes()).chain(responses).collect()
    }
}

/// Adds a part to a transcript: its length as eight big-endian bytes, then the part.
fn absorb(transcript: &mut Sha512, part: &[u8]) {
    transcript.update((part.len() as u64).to_be_bytes());
    transcript.update(part);
}

fn encodings(elements: &[Element]) -> Vec<u8> {
    elements.iter().flat_map(|element| *element.as_bytes()).collect()
}

/// SHA-512 of the transcript and the commitments, modulo the group order.
fn challenge(mut transcript: Sha512, commitments: &[Element]) -> PublicScalar {
    absorb(&mut transcript, &encodings(commitments));
    PublicScalar(Scalar::from_bytes_mod_order_wide(&transcript.finalize().into()))
}

/// The factor of each element of an equation. An element that occurs in several terms is
/// multiplied once. One with an opening is replaced by its parts.
fn scaled(
    equation: &Equation,
    nonces: &[SecretScalar],
    openings: &[Opening],
) -> Vec<(ElementIndex, SecretScalar)> {
    let mut scaled: Vec<(ElementIndex, SecretScalar)> = Vec::new();
    let mut add = |at: ElementIndex, by: SecretScalar| match scaled.iter_mut().find(|s| s.0 == at) {
        Some((_, sum)) => *sum = sum.plus(&by),
        None => scaled.push((at, by)),
    };
    for (coefficient, secret, element) in &equation.terms {
        let coefficient = SecretScalar::from_public(&PublicScalar::of(*coefficient));
        let by = nonces[usize::from(secret.0)].times(&coefficient);
        match openings.iter().find(|opening| opening.of == *element) {
            Some(opening) => opening.terms.iter().for_each(|(s, at)| add(*at, s.times(&by))),
            None => add(*element, by),
        }
    }
    scaled
}

/// One nonce per secret, from randomness, witness and statement.
fn nonces(
    witness: &[&SecretScalar],
    prefix: &Sha512,
    rng: &mut impl CryptoRng,
) -> Vec<SecretScalar> {
    let fresh = Secret::<32>::random(rng);
    let mut secrets = Zeroizing::new(Vec::with_capacity(32 * witness.len()));
    witness.iter().for_each(|secret| secrets.extend_from_slice(secret.expose().expose()));
    let statement: [u8; 64] = prefix.clone().finalize().into();
    // Only the number differs between nonces, so the rest is hashed once.
    let mut common = Sha512::new();
    let parts = [labels::PROOF_NONCE.as_bytes(), fresh.expose(), &secrets, &statement];
    parts.iter().for_each(|part| absorb(&mut common, part));
    let nonce = |j: usize| {
        let mut hash = common.clone();
        absorb(&mut hash, &(j as u64).to_be_bytes());
        SecretScalar::from_wide(&Zeroizing::new(hash.finalize().into()))
    };
    (0..witness.len()).map(nonce).collect()
}
