//! Proves that v' lies in 0 ..= w: Bulletproofs+ (Chung, Han, Ju, Kim, Seo 2020) on C_v,
//! aggregated with one on w·C_c − C_v if w is not 2^bits − 1. By `tari_bulletproofs_plus`, whose
//! verifier was audited; its prover runs over [`Steady`] elements. M is the base of values, P that
//! of blindings.

use super::steady::Steady;
use crate::error::{ProvingError, TupleFormatError};
use crate::interval::Interval;
use crate::tuple::{Binding, Ciphertexts, Opening, Terms, message_base};
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::sigma::Proof;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
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

/// d1, A, A1, B, r1, s1; then L and R of each round.
const FIXED: usize = 6;
const SCALARS: [usize; 3] = [0, 4, 5];

/// The library's first byte, which says that there is one base of blindings.
const ONE_BLINDING: u8 = ExtensionDegree::DefaultPedersen as u8;

/// A canonically encoded range proof, without the library's first byte. Every scalar is reduced
/// and no element is the identity. Elements off the curve show up when the proof is checked, and
/// make it invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encoded(Vec<u8>);

/// What a prover needs.
pub(crate) struct Proving {
    terms: Terms,
    parameters: RangeParameters<Steady>,
}

/// What a checker needs.
pub(crate) struct Checking {
    terms: Terms,
    parameters: RangeParameters<RistrettoPoint>,
}

/// One range proof to check.
#[derive(Clone)]
pub(crate) struct Claim {
    statement: RangeStatement<RistrettoPoint>,
    proof: RistrettoRangeProof,
    bound: Digest,
}

/// How many commitments are proven together: two for a two-sided interval, otherwise one.
fn sides(interval: &Interval) -> usize {
    if interval.two_sided() { 2 } else { 1 }
}

/// Bytes of a range proof of the interval.
pub(crate) fn length(interval: &Interval) -> usize {
    let rounds = (interval.bits() * sides(interval)).ilog2() as usize;
    Element::LENGTH * (FIXED + 2 * rounds)
}

/// What a range proof is bound to: terms, binding, ciphertexts and the proof of the equations.
pub(crate) fn bound(
    terms: &Terms,
    binding: &Binding,
    ciphertexts: &Ciphertexts,
    proof: &Proof,
) -> Digest {
    let (binding, tuple, proof) = (binding.digest(), ciphertexts.to_bytes(), proof.to_bytes());
    let parts: [&[u8]; 4] = [terms.digest().as_bytes(), binding.as_bytes(), &tuple, &proof];
    labelled_hash(labels::STATISTICS_RANGE_STATEMENT, &parts)
}

fn transcript(bound: &Digest) -> Transcript {
    let mut transcript = Transcript::new(labels::STATISTICS_RANGE.as_bytes());
    transcript.append_message(b"statement", bound.as_bytes());
    transcript
}

fn parameters<P>(terms: &Terms, of: impl Fn(&Element) -> P) -> RangeParameters<P>
where
    P: FromUniformBytes + Compressable + Clone + Precomputable,
{
    let [values, blindings] = [of(&message_base()), of(&terms.key().0)];
    let bases = PedersenGens {
        h_base_compressed: values.compress(),
        g_base_compressed_vec: vec![blindings.compress()],
        h_base: values,
        g_base_vec: vec![blindings],
        extension_degree: ExtensionDegree::DefaultPedersen,
    };
    let interval = terms.interval();
    #[expect(clippy::expect_used, reason = "an interval's bits and sides are powers of two")]
    RangeParameters::init(interval.bits(), sides(interval), bases).expect("powers of two")
}

/// An element, for the library's arithmetic.
fn point(element: &Element) -> RistrettoPoint {
    #[expect(clippy::expect_used, reason = "an element is canonical by type")]
    CompressedRistretto(*element.as_bytes()).decompress().expect("an element")
}

/// A secret, for the library's arithmetic.
fn scalar(secret: &SecretScalar) -> Zeroizing<Scalar> {
    Zeroizing::new(Scalar::from_bytes_mod_order(*secret.expose().expose()))
}

/// w·P, in a time that depends on w, which is public.
fn vartime_times(width: u32, point: &RistrettoPoint) -> RistrettoPoint {
    let mut sum = RistrettoPoint::default();
    for bit in (0..u32::BITS - width.leading_zeros()).rev() {
        sum += sum;
        if width >> bit & 1 == 1 {
            sum += point;
        }
    }
    sum
}

/// C_v and, for a two-sided interval, w·C_c − C_v.
fn commitments(interval: &Interval, ciphertexts: &Ciphertexts) -> Vec<RistrettoPoint> {
    let value = point(&ciphertexts.value.c);
    if !interval.two_sided() {
        return vec![value];
    }
    let above = vartime_times(interval.width(), &point(&ciphertexts.count.c));
    vec![value, above - value]
}

impl Encoded {
    /// Decodes a proof of the interval's size.
    pub(crate) fn from_bytes(bytes: &[u8], interval: &Interval) -> Result<Self, TupleFormatError> {
        let (chunks, _) = bytes.as_chunks::<32>();
        if bytes.len() != length(interval) {
            return Err(TupleFormatError::Length);
        }
        let fits = |(at, chunk): (usize, &[u8; 32])| match SCALARS.contains(&at) {
            true => bool::from(Scalar::from_canonical_bytes(*chunk).is_some()),
            false => may_be_element(chunk),
        };
        if !chunks.iter().enumerate().all(fits) {
            return Err(TupleFormatError::Range);
        }
        Ok(Self(bytes.to_vec()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn proof(&self) -> Option<RistrettoRangeProof> {
        let bytes = [&[ONE_BLINDING], self.0.as_slice()].concat();
        RistrettoRangeProof::from_bytes(&bytes).ok()
    }
}

/// Whether bytes may encode an element: not the identity, not negative and reduced (RFC 9496
/// §4.3.1, the checks before the root).
fn may_be_element(bytes: &[u8; 32]) -> bool {
    let [first, middle @ .., last] = bytes;
    let reduced = *last < 0x7f
        || (*last == 0x7f && (*first < 0xed || middle.iter().any(|byte| *byte != 0xff)));
    reduced && first & 1 == 0 && *bytes != [0; 32]
}

impl Proving {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self { terms: *terms, parameters: parameters(terms, |element| Steady::of(point(element))) }
    }

    /// Proves that the value in `opening` is in the interval.
    pub(crate) fn prove(
        &self,
        opening: &Opening,
        ciphertexts: &Ciphertexts,
        bound: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<Encoded, ProvingError> {
        let proof = self.prove_openings(self.openings(opening), ciphertexts, bound, rng);
        proof.ok_or(ProvingError::Generator)
    }

    /// The library refuses an opening that does not match, or a value that does not fit the bits.
    pub(crate) fn prove_openings(
        &self,
        openings: Vec<CommitmentOpening>,
        ciphertexts: &Ciphertexts,
        bound: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Option<Encoded> {
        let commitments = commitments(self.terms.interval(), ciphertexts);
        let promises = vec![None; commitments.len()];
        let steady = commitments.into_iter().map(Steady::of).collect();
        let statement = RangeStatement::init(self.parameters.clone(), steady, promises, None);
        let witness = RangeWitness::init(openings).ok()?;
        let transcript = &mut transcript(bound);
        let proof: RangeProof<Steady> =
            RangeProof::prove_with_rng(transcript, &statement.ok()?, &witness, rng).ok()?;
        proof.to_bytes().get(1..).map(|bytes| Encoded(bytes.to_vec()))
    }

    /// Of C_v: v', r_v; of w·C_c − C_v: w·c − v', w·r_c − r_v.
    fn openings(&self, opening: &Opening) -> Vec<CommitmentOpening> {
        let blinding = scalar(&opening.r_value);
        let mut openings = vec![CommitmentOpening::new(opening.offset().into(), vec![*blinding])];
        let interval = self.terms.interval();
        if interval.two_sided() {
            let width = interval.width();
            let above = u64::from(width) * u64::from(opening.real()) - u64::from(opening.offset());
            let above_by = Scalar::from(width) * *scalar(&opening.r_count) - *blinding;
            openings.push(CommitmentOpening::new(above, vec![above_by]));
        }
        openings
    }
}

impl Checking {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self { terms: *terms, parameters: parameters(terms, point) }
    }

    /// Joins a proof with what it is about; none if the bytes are not a proof.
    pub(crate) fn claim(
        &self,
        ciphertexts: &Ciphertexts,
        proof: &Encoded,
        bound: Digest,
    ) -> Option<Claim> {
        let commitments = commitments(self.terms.interval(), ciphertexts);
        let promises = vec![None; commitments.len()];
        let statement = RangeStatement::init(self.parameters.clone(), commitments, promises, None);
        Some(Claim { statement: statement.ok()?, proof: proof.proof()?, bound })
    }
}

/// The positions of invalid claims, ascending. All are checked together, with weights that depend
/// on every proof. A batch that fails is halved until single claims are left.
pub(crate) fn culprits(claims: &[Claim]) -> Vec<usize> {
    let mut found = Vec::new();
    bisect(claims, 0, &mut found);
    found
}

fn bisect(claims: &[Claim], first: usize, found: &mut Vec<usize>) {
    if claims.is_empty() || together(claims) {
        return;
    }
    if claims.len() == 1 {
        found.push(first);
        return;
    }
    let (left, right) = claims.split_at(claims.len() / 2);
    bisect(left, first, found);
    bisect(right, first + left.len(), found);
}

fn together(claims: &[Claim]) -> bool {
    let mut transcripts: Vec<Transcript> =
        claims.iter().map(|claim| transcript(&claim.bound)).collect();
    let statements: Vec<_> = claims.iter().map(|claim| claim.statement.clone()).collect();
    let proofs: Vec<_> = claims.iter().map(|claim| claim.proof.clone()).collect();
    let action = VerifyAction::VerifyOnly;
    RistrettoRangeProof::verify_batch(&mut transcripts, &statements, &proofs, action).is_ok()
}

#[cfg(test)]
mod tests;
