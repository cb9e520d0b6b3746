//! Proofs that one knows scalars for which given linear equations between
//! group elements hold: Maurer's generalisation of Schnorr's protocol, made
//! non-interactive by hashing (Fiat and Shamir).
//!
//! A [`Statement`] says what is proven; who proves and who checks builds the
//! same one. All of it goes into the challenge: label, public fields, the shape
//! of the equations, every element, every commitment. Proofs are checked alone
//! or in batches, in one multiplication; a batch that fails is halved until the
//! culprits are found. `docs/protocol.md` has the bytes.

mod check;
mod together;

pub use check::{Claim, Culprits, check_all};
pub use together::{Beside, Joined, Own, Part, prove_together};

use crate::group::{
    Element, InvalidElement, InvalidScalar, Multiple, PublicScalar, SecretScalar, Vanished,
};
use crate::labels;
use crate::secret::Secret;
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use sha2::{Digest as _, Sha512};
use zeroize::Zeroizing;

/// A secret of a statement, by its position in the witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretAt(u16);

/// An element of a statement, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementAt(u16);

/// coefficient · secret · element.
pub type Term = (i64, SecretAt, ElementAt);

/// What a prover knows an element of a statement to be: Σ scalar · element. Not `Debug`.
pub struct Opening {
    /// The element.
    pub of: ElementAt,
    /// What it is made of.
    pub terms: Vec<(SecretScalar, ElementAt)>,
}

/// image = Σ terms.
struct Equation {
    image: ElementAt,
    terms: Vec<Term>,
}

/// What is proven: "I know scalars such that these equations hold". Public.
pub struct Statement {
    /// Label and fields have been hashed.
    transcript: Sha512,
    secrets: u16,
    elements: Vec<Element>,
    equations: Vec<Equation>,
}

/// A proof of a statement. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// One for each equation.
    commitments: Vec<Element>,
    /// One for each secret.
    responses: Vec<PublicScalar>,
}

/// Why no proof was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotProven {
    /// The witness has not as many scalars as the statement has secrets.
    #[error("the witness has not as many scalars as the statement has secrets")]
    WitnessLength,
    /// A commitment vanished: a chance of 2^-252, or a broken generator.
    #[error("a commitment is the identity; mend the random number generator")]
    Vanished,
}

/// Why bytes are no proof of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedProof {
    /// Of another length.
    #[error("the proof has another length than the statement asks for")]
    Length,
    /// A commitment that is no element.
    #[error("a commitment of the proof is no element")]
    Commitment(InvalidElement),
    /// A response that is no scalar.
    #[error("a response of the proof is no scalar")]
    Response(InvalidScalar),
}

impl Statement {
    /// A statement of a kind, about public fields. The label says which
    /// equations follow and how many fields there are.
    #[must_use]
    pub fn new(label: &str, fields: &[&[u8]]) -> Self {
        let mut transcript = Sha512::new();
        absorb(&mut transcript, label.as_bytes());
        fields.iter().for_each(|field| absorb(&mut transcript, field));
        Self { transcript, secrets: 0, elements: Vec::new(), equations: Vec::new() }
    }

    /// One secret more.
    pub fn secret(&mut self) -> SecretAt {
        let at = SecretAt(self.secrets);
        self.secrets += 1;
        at
    }

    /// One element more.
    pub fn element(&mut self, element: &Element) -> ElementAt {
        #[expect(clippy::cast_possible_truncation, reason = "statements are written by hand")]
        let at = ElementAt(self.elements.len() as u16);
        self.elements.push(*element);
        at
    }

    /// One equation more: image = Σ terms.
    pub fn equation(&mut self, image: ElementAt, terms: &[Term]) {
        self.equations.push(Equation { image, terms: terms.to_vec() });
    }

    /// How many bytes a proof of it has.
    #[must_use]
    pub fn proof_length(&self) -> usize {
        Element::LENGTH * (self.equations.len() + usize::from(self.secrets))
    }

    /// Proves the statement with a witness, in a time that does not depend on
    /// it. That the witness fits is the caller's to know: the proof of one that
    /// does not is refused.
    ///
    /// Nonces are hedged: they depend on fresh randomness, on the witness and on
    /// the statement, so that a generator that repeats itself does not give the
    /// witness away.
    ///
    /// # Errors
    /// [`NotProven`].
    ///
    /// # Privacy
    /// The proof says nothing but that the statement holds, in the random-oracle
    /// model, if the randomness is fresh or the witness unknown.
    pub fn prove(
        &self,
        witness: &[&SecretScalar],
        rng: &mut impl CryptoRng,
    ) -> Result<Proof, NotProven> {
        self.prove_by(witness, &[], rng)
    }

    /// The same proof, for less where the prover knows what elements are made of that others
    /// have tables for, or that equations have anyway. With an opening that is none the proof is
    /// refused.
    ///
    /// # Errors
    /// [`NotProven`].
    ///
    /// # Privacy
    /// As of [`Statement::prove`]; openings stay with the prover.
    pub fn prove_by(
        &self,
        witness: &[&SecretScalar],
        openings: &[Opening],
        rng: &mut impl CryptoRng,
    ) -> Result<Proof, NotProven> {
        if witness.len() != usize::from(self.secrets) {
            return Err(NotProven::WitnessLength);
        }
        let prefix = self.prefix();
        let nonces = nonces(witness, &prefix, rng);
        let commitments = self.commitments(&nonces, openings);
        let commitments = commitments.map_err(|Vanished| NotProven::Vanished)?;
        let challenge = challenge(prefix, &commitments);
        let responses = nonces.into_iter().zip(witness);
        let responses =
            responses.map(|(nonce, secret)| SecretScalar::response(nonce, &challenge, secret));
        Ok(Proof { responses: responses.collect(), commitments })
    }

    /// Σ coefficient · nonce · element, for each equation.
    fn commitments(
        &self,
        nonces: &[SecretScalar],
        openings: &[Opening],
    ) -> Result<Vec<Element>, Vanished> {
        let equations = self.equations.iter();
        let scaled: Vec<Vec<(ElementAt, SecretScalar)>> =
            equations.map(|equation| scaled(equation, nonces, openings)).collect();
        let sums: Vec<Vec<Multiple<'_>>> =
            scaled.iter().map(|s| s.iter().map(|(at, by)| (by, self.at(*at))).collect()).collect();
        Element::combine_all(&sums.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn at(&self, element: ElementAt) -> &Element {
        &self.elements[usize::from(element.0)]
    }

    /// The transcript up to the commitments.
    fn prefix(&self) -> Sha512 {
        let mut transcript = self.transcript.clone();
        absorb(&mut transcript, &self.shape());
        absorb(&mut transcript, &encodings(&self.elements));
        transcript
    }

    /// What the equations are, without the elements.
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
    /// [`MalformedProof`].
    pub fn from_bytes(bytes: &[u8], statement: &Statement) -> Result<Self, MalformedProof> {
        let (chunks, rest) = bytes.as_chunks::<32>();
        if bytes.len() != statement.proof_length() || !rest.is_empty() {
            return Err(MalformedProof::Length);
        }
        let (commitments, responses) = chunks.split_at(statement.equations.len());
        let commitments = commitments.iter().map(Element::from_bytes).collect::<Result<_, _>>();
        let responses = responses.iter().map(PublicScalar::from_bytes).collect::<Result<_, _>>();
        Ok(Self {
            commitments: commitments.map_err(MalformedProof::Commitment)?,
            responses: responses.map_err(MalformedProof::Response)?,
        })
    }

    /// The encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let responses = self.responses.iter().flat_map(PublicScalar::to_bytes);
        self.commitments.iter().flat_map(|c| *c.as_bytes()).chain(responses).collect()
    }
}

/// A part of a transcript: its length as eight big-endian bytes, then itself.
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

/// What each element of an equation is multiplied by: an element that stands in many terms is
/// multiplied once, and one that is opened not at all.
fn scaled(
    equation: &Equation,
    nonces: &[SecretScalar],
    openings: &[Opening],
) -> Vec<(ElementAt, SecretScalar)> {
    let mut scaled: Vec<(ElementAt, SecretScalar)> = Vec::new();
    let mut add = |at: ElementAt, by: SecretScalar| match scaled.iter_mut().find(|s| s.0 == at) {
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

/// One nonce for each secret, from randomness, witness and statement.
fn nonces(
    witness: &[&SecretScalar],
    prefix: &Sha512,
    rng: &mut impl CryptoRng,
) -> Vec<SecretScalar> {
    let fresh = Secret::<32>::random(rng);
    let mut secrets = Zeroizing::new(Vec::with_capacity(32 * witness.len()));
    witness.iter().for_each(|secret| secrets.extend_from_slice(secret.expose().expose()));
    let statement: [u8; 64] = prefix.clone().finalize().into();
    // All but the number is the same for each, and hashed once.
    let mut same = Sha512::new();
    let parts = [labels::PROOF_NONCE.as_bytes(), fresh.expose(), &secrets, &statement];
    parts.iter().for_each(|part| absorb(&mut same, part));
    let nonce = |j: usize| {
        let mut hash = same.clone();
        absorb(&mut hash, &(j as u64).to_be_bytes());
        SecretScalar::from_wide(&Zeroizing::new(hash.finalize().into()))
    };
    (0..witness.len()).map(nonce).collect()
}
