//! One contribution as it is sent: lifted ElGamal under a key that t of n hold, and the proofs
//! that it is well-formed.
//!
//! R_v = r_v·B, C_v = v'·M + r_v·P; R_c, C_c alike for c, which is 1 for a sample and 0 for a
//! dummy; with squares C_q = v'·C_v + r_q·P, R_q = v'·R_v + r_q·B.

mod binding;
mod check;
mod proof;
mod prove;

pub use binding::Binding;
pub use check::{CheckedTuple, Checker};
pub(crate) use prove::Opening;
pub use prove::Prover;

use crate::error::TupleFormatError;
use crate::interval::Interval;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::sigma::Proof;
use proof::{range, statement};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

static MESSAGE_BASE: LazyLock<Element> =
    LazyLock::new(|| Element::from_hash(labels::STATISTICS_MESSAGE_BASE, &[]));

/// M, the base of values. Nobody knows its logarithm, not even the holders of the key, so they
/// cannot open a commitment to another value.
#[must_use]
pub fn message_base() -> Element {
    *MESSAGE_BASE
}

/// P = s·B, the key that tuples are encrypted to. t of n hold s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdKey(pub Element);

/// The key and the interval under which tuples are made and checked. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    key: ThresholdKey,
    interval: Interval,
    digest: Digest,
}

/// What a client contributes. Nobody can tell which of the two it was.
#[derive(Clone, Copy)]
pub enum Contribution {
    /// A value, in steps.
    Sample(i64),
    /// Nothing, to fill a slot.
    Dummy,
}

/// Ciphertexts of c, v' and, with squares, v'².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ciphertexts {
    pub(crate) value: Pair,
    pub(crate) count: Pair,
    pub(crate) square: Option<Pair>,
}

/// (R, C) of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) r: Element,
    pub(crate) c: Element,
}

/// One contribution with its proofs. Elements are canonical and not the identity. [`Checker`]
/// decides whether the proofs are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuple {
    pub(crate) ciphertexts: Ciphertexts,
    pub(crate) proof: Proof,
    pub(crate) range: range::EncodedProof,
}

impl Terms {
    /// The terms of a key and an interval.
    #[must_use]
    pub fn new(key: ThresholdKey, interval: Interval) -> Self {
        let parts: [&[u8]; 2] = [key.0.as_bytes(), &interval.encode()];
        Self { key, interval, digest: labelled_hash(labels::STATISTICS_TERMS, &parts) }
    }

    /// P.
    #[must_use]
    pub fn key(&self) -> &ThresholdKey {
        &self.key
    }

    /// The allowed values.
    #[must_use]
    pub fn interval(&self) -> &Interval {
        &self.interval
    }

    /// A digest that every proof under these terms is bound to.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

impl Ciphertexts {
    /// In the order in which they are sent: R_v, C_v, R_c, C_c, R_q, C_q.
    pub(crate) fn elements(&self) -> Vec<Element> {
        let pairs = [Some(self.value), Some(self.count), self.square];
        pairs.into_iter().flatten().flat_map(|pair| [pair.r, pair.c]).collect()
    }

    /// The concatenated encodings.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        self.elements().iter().flat_map(|element| *element.as_bytes()).collect()
    }

    fn length(interval: &Interval) -> usize {
        Element::LENGTH * if interval.square() { 6 } else { 4 }
    }

    fn from_bytes(bytes: &[u8], interval: &Interval) -> Result<Self, TupleFormatError> {
        let (chunks, _) = bytes.as_chunks::<32>();
        let elements = chunks.iter().map(Element::from_bytes);
        let elements = elements.collect::<Result<Vec<Element>, _>>()?;
        let pair = |r: Element, c: Element| Pair { r, c };
        match (elements.as_slice(), interval.square()) {
            (&[rv, cv, rc, cc], false) => {
                Ok(Self { value: pair(rv, cv), count: pair(rc, cc), square: None })
            }
            (&[rv, cv, rc, cc, rq, cq], true) => {
                Ok(Self { value: pair(rv, cv), count: pair(rc, cc), square: Some(pair(rq, cq)) })
            }
            _ => Err(TupleFormatError::Length),
        }
    }
}

impl Tuple {
    /// Bytes of a tuple of an interval: the same for every content.
    #[must_use]
    pub fn length(interval: &Interval) -> usize {
        Ciphertexts::length(interval) + statement::length(interval) + range::length(interval)
    }

    /// Decodes a tuple: ciphertexts, proof of well-formedness, range proof.
    ///
    /// # Errors
    /// [`TupleFormatError`].
    pub fn from_bytes(bytes: &[u8], interval: &Interval) -> Result<Self, TupleFormatError> {
        if bytes.len() != Self::length(interval) {
            return Err(TupleFormatError::Length);
        }
        let (ciphertexts, proofs) = bytes.split_at(Ciphertexts::length(interval));
        let (proof, range) = proofs.split_at(statement::length(interval));
        let ciphertexts = Ciphertexts::from_bytes(ciphertexts, interval)?;
        let proof = Proof::from_bytes(proof, &statement::shape(interval))?;
        Ok(Self { ciphertexts, proof, range: range::decoded(range, interval)? })
    }

    /// The encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.ciphertexts.to_bytes();
        bytes.extend_from_slice(&self.proof.to_bytes());
        bytes.extend_from_slice(self.range.as_bytes());
        bytes
    }

    /// The tuple's digest. It does not cover where the tuple belongs: presentations and signatures
    /// for it must cover its [`Binding`] too.
    #[must_use]
    pub fn digest(&self) -> Digest {
        labelled_hash(labels::STATISTICS_TUPLE_DIGEST, &[&self.to_bytes()])
    }
}

#[cfg(test)]
mod tests;
