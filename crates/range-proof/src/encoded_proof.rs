//! Proofs as bytes.

use crate::Shape;
use alpheus_crypto::group::Element;
use curve25519_dalek::scalar::Scalar;
use tari_bulletproofs_plus::generators::pedersen_gens::ExtensionDegree;
use tari_bulletproofs_plus::ristretto::RistrettoRangeProof;

/// d1, A, A1, B, r1, s1; then L and R of each round.
const FIXED: usize = 6;
const SCALARS: [usize; 3] = [0, 4, 5];

/// The library's first byte, which says that there is one base of blindings.
const ONE_BLINDING: u8 = ExtensionDegree::DefaultPedersen as u8;

/// Why bytes are not a range proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeFormatError {
    /// The length is wrong.
    #[error("the length of the range proof does not match its shape")]
    Length,
    /// A part is not in canonical form.
    #[error("a part of the range proof is not canonical, or is the identity")]
    Part,
}

/// A canonically encoded range proof, without the library's first byte. Every scalar is reduced
/// and no element is the identity. Elements off the curve show up when the proof is checked, and
/// make it invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedProof(Vec<u8>);

impl Shape {
    /// Bytes of a range proof.
    #[must_use]
    pub fn proof_length(&self) -> usize {
        let rounds = (self.bits * self.values).ilog2() as usize;
        Element::LENGTH * (FIXED + 2 * rounds)
    }
}

impl EncodedProof {
    /// Decodes a proof of this shape.
    ///
    /// # Errors
    /// [`RangeFormatError`].
    pub fn from_bytes(bytes: &[u8], shape: &Shape) -> Result<Self, RangeFormatError> {
        let (chunks, _) = bytes.as_chunks::<32>();
        if bytes.len() != shape.proof_length() {
            return Err(RangeFormatError::Length);
        }
        let fits = |(at, chunk): (usize, &[u8; 32])| match SCALARS.contains(&at) {
            true => bool::from(Scalar::from_canonical_bytes(*chunk).is_some()),
            false => may_be_element(chunk),
        };
        if !chunks.iter().enumerate().all(fits) {
            return Err(RangeFormatError::Part);
        }
        Ok(Self(bytes.to_vec()))
    }

    /// The encoding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn of_library(bytes: &[u8]) -> Option<Self> {
        bytes.get(1..).map(|bytes| Self(bytes.to_vec()))
    }

    pub(crate) fn for_library(&self) -> Option<RistrettoRangeProof> {
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
