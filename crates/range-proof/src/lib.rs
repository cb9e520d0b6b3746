//! Proofs that committed values lie in 0 ..= 2^bits − 1: Bulletproofs+ (Chung, Han, Ju, Kim, Seo
//! 2020), several values in one proof, by `tari_bulletproofs_plus`.
//!
//! An earlier version of the library's verifier was audited, and it has been rewritten since. Its prover is not constant-time, so ours runs over elements
//! of our own (`steady`); the proof is the same bytes. This is the only crate that knows the
//! library.
//!
//! # Privacy
//! In the random-oracle model a proof reveals nothing but that it holds, if the randomness is fresh
//! or the openings unknown.

mod commitment;
mod encoded_proof;
mod steady;

#[cfg(test)]
mod tests;

pub use commitment::Commitment;
pub use encoded_proof::{EncodedProof, RangeFormatError};

use crate::steady::Steady;
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::Digest;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use std::ops::Range;
use tari_bulletproofs_plus::commitment_opening::CommitmentOpening;
use tari_bulletproofs_plus::generators::pedersen_gens::ExtensionDegree;
use tari_bulletproofs_plus::range_parameters::RangeParameters;
use tari_bulletproofs_plus::range_proof::{RangeProof, VerifyAction};
use tari_bulletproofs_plus::range_statement::RangeStatement;
use tari_bulletproofs_plus::range_witness::RangeWitness;
use tari_bulletproofs_plus::ristretto::RistrettoRangeProof;
use tari_bulletproofs_plus::traits::{Compressable, FromUniformBytes, Precomputable};
use tari_bulletproofs_plus::{PedersenGens, Transcript};
use zeroize::Zeroizing;

/// How many values are proven together, and with how many bits each. Both are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    bits: usize,
    values: usize,
}

/// What a proof is about, besides the commitments.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Bits and number of values.
    pub shape: Shape,
    /// The base of values.
    pub value_base: Element,
    /// The base of blindings, whose logarithm to the base of values nobody knows.
    pub blinding_base: Element,
    /// Separates the proofs of one protocol from those of others.
    pub label: &'static str,
}

/// A value and the blinding of its commitment. Wiped when dropped.
pub struct Opening(CommitmentOpening);

/// What a prover needs.
pub struct RangeProver {
    terms: Terms,
    parameters: RangeParameters<Steady>,
}

/// What a checker needs.
pub struct RangeChecker {
    terms: Terms,
    parameters: RangeParameters<RistrettoPoint>,
}

/// One proof to check.
#[derive(Clone)]
pub struct Claim {
    statement: RangeStatement<RistrettoPoint>,
    proof: RistrettoRangeProof,
    label: &'static str,
    bound: Digest,
}

impl Shape {
    /// Most bits of a value.
    pub const MAX_BITS: usize = 64;
    /// Most values of a proof.
    pub const MAX_VALUES: usize = 64;

    /// None unless both are powers of two, and not above the most.
    #[must_use]
    pub fn new(bits: usize, values: usize) -> Option<Self> {
        let fits = bits.is_power_of_two() && bits <= Self::MAX_BITS;
        let few = values.is_power_of_two() && values <= Self::MAX_VALUES;
        (fits && few).then_some(Self { bits, values })
    }

    /// Bits of a value.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// How many values are proven together.
    #[must_use]
    pub fn values(&self) -> usize {
        self.values
    }
}

impl Opening {
    /// The opening of value · value base + blinding · blinding base.
    #[must_use]
    pub fn new(value: u64, blinding: &SecretScalar) -> Self {
        let bytes = blinding.expose();
        let scalar = Zeroizing::new(Scalar::from_bytes_mod_order(*bytes.expose()));
        Self(CommitmentOpening::new(value, vec![*scalar]))
    }
}

fn transcript(label: &'static str, bound: &Digest) -> Transcript {
    let mut transcript = Transcript::new(label.as_bytes());
    transcript.append_message(b"statement", bound.as_bytes());
    transcript
}

fn parameters<P>(terms: &Terms, of: impl Fn(&Element) -> P) -> RangeParameters<P>
where
    P: FromUniformBytes + Compressable + Clone + Precomputable,
{
    let [values, blindings] = [of(&terms.value_base), of(&terms.blinding_base)];
    let bases = PedersenGens {
        h_base_compressed: values.compress(),
        g_base_compressed_vec: vec![blindings.compress()],
        h_base: values,
        g_base_vec: vec![blindings],
        extension_degree: ExtensionDegree::DefaultPedersen,
    };
    let Shape { bits, values } = terms.shape;
    #[expect(clippy::expect_used, reason = "a shape's bits and values are powers of two")]
    RangeParameters::init(bits, values, bases).expect("powers of two")
}

impl RangeProver {
    /// Computes the bases of proofs.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self { parameters: parameters(&terms, |element| Steady::of(*element.as_point())), terms }
    }

    /// Proves that the values in `openings` fit the bits. The time does not depend on values and
    /// blindings. None if an opening does not match its commitment, or does not fit the bits.
    #[must_use]
    pub fn prove(
        &self,
        openings: Vec<Opening>,
        commitments: &[Commitment],
        bound: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Option<EncodedProof> {
        let steady = commitments.iter().map(|commitment| Steady::of(commitment.0)).collect();
        let promises = vec![None; commitments.len()];
        let statement = RangeStatement::init(self.parameters.clone(), steady, promises, None);
        let openings = openings.into_iter().map(|opening| opening.0).collect();
        let witness = RangeWitness::init(openings).ok()?;
        let transcript = &mut transcript(self.terms.label, bound);
        let proof: RangeProof<Steady> =
            RangeProof::prove_with_rng(transcript, &statement.ok()?, &witness, rng).ok()?;
        EncodedProof::of_library(&proof.to_bytes())
    }
}

impl RangeChecker {
    /// Computes the bases of proofs.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self { parameters: parameters(&terms, |element| *element.as_point()), terms }
    }

    /// Bits and number of values.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.terms.shape
    }

    /// Joins a proof with what it is about. None if the bytes are not a proof, or the number of
    /// commitments is not that of the shape.
    #[must_use]
    pub fn claim(
        &self,
        commitments: &[Commitment],
        proof: &EncodedProof,
        bound: Digest,
    ) -> Option<Claim> {
        if commitments.len() != self.terms.shape.values {
            return None;
        }
        let promises = vec![None; commitments.len()];
        let points = commitments.iter().map(|commitment| commitment.0).collect();
        let statement = RangeStatement::init(self.parameters.clone(), points, promises, None);
        let (statement, proof) = (statement.ok()?, proof.for_library()?);
        Some(Claim { statement, proof, label: self.terms.label, bound })
    }
}

/// The senders with a claim that does not hold, ascending. `claims` has each sender's at its place.
/// All are checked together, with weights that depend on every proof. Senders whose batch fails are
/// halved until single ones are left, and nobody asks which claims of a sender are bad. So n senders
/// cost at most 2n − 1 batches, in which a claim is at most ⌈log2 n⌉ + 1 times, however many are bad.
/// All claims must be of one [`RangeChecker`].
#[must_use]
pub fn culprits(claims: &[Vec<Claim>]) -> Vec<usize> {
    let mut found = Vec::new();
    bisect(0..claims.len(), &mut |senders| together(claims.get(senders)), &mut found);
    found
}

fn bisect(
    senders: Range<usize>,
    holds: &mut impl FnMut(Range<usize>) -> bool,
    found: &mut Vec<usize>,
) {
    if senders.is_empty() || holds(senders.clone()) {
        return;
    }
    if senders.len() == 1 {
        found.push(senders.start);
        return;
    }
    let middle = usize::midpoint(senders.start, senders.end);
    bisect(senders.start..middle, holds, found);
    bisect(middle..senders.end, holds, found);
}

/// A sender without claims has none that does not hold.
fn together(claims: Option<&[Vec<Claim>]>) -> bool {
    let claims: Vec<&Claim> = claims.into_iter().flatten().flatten().collect();
    if claims.is_empty() {
        return true;
    }
    let mut transcripts: Vec<Transcript> =
        claims.iter().map(|claim| transcript(claim.label, &claim.bound)).collect();
    let statements: Vec<_> = claims.iter().map(|claim| claim.statement.clone()).collect();
    let proofs: Vec<_> = claims.iter().map(|claim| claim.proof.clone()).collect();
    let action = VerifyAction::VerifyOnly;
    RistrettoRangeProof::verify_batch(&mut transcripts, &statements, &proofs, action).is_ok()
}
