//! Proves that v' lies in 0 ..= w: a range proof on C_v, aggregated with one on w·C_c − C_v if w is
//! not 2^bits − 1. M is the base of values, P that of blindings.

use crate::error::{ProvingError, TupleFormatError};
use crate::interval::Interval;
use crate::tuple::{Binding, Ciphertexts, Opening, Terms, message_base};
use alpheus_crypto::group::SecretScalar;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::sigma::Proof;
use alpheus_range_proof as range;
use alpheus_range_proof::{Commitment, RangeFormatError, Shape};
use rand_core::CryptoRng;

pub(crate) use alpheus_range_proof::{Claim, EncodedProof, culprits};

/// What a prover needs.
pub(crate) struct RangeProver {
    terms: Terms,
    inner: range::RangeProver,
}

/// What a checker needs.
pub(crate) struct RangeChecker {
    terms: Terms,
    inner: range::RangeChecker,
}

/// Two values are proven together for a two-sided interval, otherwise one.
fn shape(interval: &Interval) -> Shape {
    let sides = if interval.two_sided() { 2 } else { 1 };
    #[expect(clippy::expect_used, reason = "an interval's bits and sides are powers of two")]
    Shape::new(interval.bits(), sides).expect("powers of two")
}

/// Bytes of a range proof of the interval.
pub(crate) fn length(interval: &Interval) -> usize {
    shape(interval).proof_length()
}

/// Decodes a proof of the interval's size.
pub(crate) fn decoded(bytes: &[u8], interval: &Interval) -> Result<EncodedProof, TupleFormatError> {
    EncodedProof::from_bytes(bytes, &shape(interval)).map_err(|error| match error {
        RangeFormatError::Length => TupleFormatError::Length,
        RangeFormatError::Part => TupleFormatError::Range,
    })
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

fn range_terms(terms: &Terms) -> range::Terms {
    range::Terms {
        shape: shape(terms.interval()),
        value_base: message_base(),
        blinding_base: terms.key().0,
        label: labels::STATISTICS_RANGE,
    }
}

/// C_v and, for a two-sided interval, w·C_c − C_v.
fn commitments(interval: &Interval, ciphertexts: &Ciphertexts) -> Vec<Commitment> {
    let value = Commitment::of(&ciphertexts.value.c);
    if !interval.two_sided() {
        return vec![value];
    }
    let count = Commitment::of(&ciphertexts.count.c);
    vec![value, count.vartime_times(interval.width().into()) - value]
}

impl RangeProver {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self { terms: *terms, inner: range::RangeProver::new(range_terms(terms)) }
    }

    /// Proves that the value in `opening` is in the interval.
    pub(crate) fn prove(
        &self,
        opening: &Opening,
        ciphertexts: &Ciphertexts,
        bound: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<EncodedProof, ProvingError> {
        let proof = self.prove_openings(self.openings(opening), ciphertexts, bound, rng);
        proof.ok_or(ProvingError::Generator)
    }

    /// None if an opening does not match, or a value does not fit the bits.
    pub(crate) fn prove_openings(
        &self,
        openings: Vec<range::Opening>,
        ciphertexts: &Ciphertexts,
        bound: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Option<EncodedProof> {
        let commitments = commitments(self.terms.interval(), ciphertexts);
        self.inner.prove(openings, &commitments, bound, rng)
    }

    /// Of C_v: v', r_v; of w·C_c − C_v: w·c − v', w·r_c − r_v.
    fn openings(&self, opening: &Opening) -> Vec<range::Opening> {
        let blinding = &opening.r_value;
        let mut openings = vec![range::Opening::new(opening.offset().into(), blinding)];
        let interval = self.terms.interval();
        if interval.two_sided() {
            let width = interval.width();
            let above = u64::from(width) * u64::from(opening.real()) - u64::from(opening.offset());
            let by = SecretScalar::from_small(width).times(&opening.r_count).minus(blinding);
            openings.push(range::Opening::new(above, &by));
        }
        openings
    }
}

impl RangeChecker {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self { terms: *terms, inner: range::RangeChecker::new(range_terms(terms)) }
    }

    /// Joins a proof with what it is about; none if the bytes are not a proof.
    pub(crate) fn claim(
        &self,
        ciphertexts: &Ciphertexts,
        proof: &EncodedProof,
        bound: Digest,
    ) -> Option<Claim> {
        let commitments = commitments(self.terms.interval(), ciphertexts);
        self.inner.claim(&commitments, proof, bound)
    }
}
