//! Sums of tuples: the same tuples give the same sums, in any order.

use crate::error::SumError;
use crate::interval::Interval;
use crate::tuple::{CheckedTuple, Pair, Terms};
use alpheus_crypto::group::{Element, IdentityError, Total};
use alpheus_crypto::hash::Digest;

/// One of the sums of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Σ c, the samples that count.
    Count,
    /// Σ v'.
    Value,
    /// Σ v'².
    Square,
}

/// Running sums of one aggregate's checked tuples under one key. A tuple counts as often as it is
/// added: the caller must add each slot once.
#[derive(Clone, PartialEq, Eq)]
pub struct Sums {
    terms: Digest,
    aggregate: Digest,
    square: bool,
    tuples: u32,
    /// R and C of count, value, square.
    totals: [[Total; 2]; 3],
}

/// (ΣR, ΣC) of one part: an encryption of the part's sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ciphertext {
    part: Part,
    pair: Pair,
}

impl Part {
    /// The parts of an interval, in the order in which they are opened.
    #[must_use]
    pub fn of(interval: &Interval) -> &'static [Self] {
        let all = &[Self::Count, Self::Value, Self::Square];
        if interval.square() { all } else { &[Self::Count, Self::Value] }
    }

    /// The part's number in hashes and messages.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Count => 0,
            Self::Value => 1,
            Self::Square => 2,
        }
    }
}

impl Sums {
    /// Bytes of stored sums.
    pub const LENGTH: usize = 32 + 32 + 1 + 4 + 6 * Element::LENGTH;

    /// The sums of no tuples.
    #[must_use]
    pub fn new(terms: &Terms, aggregate: Digest) -> Self {
        Self {
            terms: *terms.digest(),
            aggregate,
            square: terms.interval().square(),
            tuples: 0,
            totals: [[Total::zero(); 2]; 3],
        }
    }

    /// How many tuples have been added.
    #[must_use]
    pub fn tuples(&self) -> u32 {
        self.tuples
    }

    /// Adds a tuple.
    ///
    /// # Errors
    /// [`SumError`] if it was checked for something else; nothing is added.
    pub fn add(&mut self, tuple: &CheckedTuple) -> Result<(), SumError> {
        if *tuple.terms() != self.terms {
            return Err(SumError::Terms);
        }
        if tuple.binding().aggregate != self.aggregate {
            return Err(SumError::Aggregate);
        }
        let ciphertexts = tuple.ciphertexts();
        let pairs = [Some(ciphertexts.count), Some(ciphertexts.value), ciphertexts.square];
        for (total, pair) in self.totals.iter_mut().zip(pairs) {
            let Some(Pair { r, c }) = pair else { continue };
            total.iter_mut().zip([r, c]).for_each(|(total, element)| total.add(&element));
        }
        self.tuples = self.tuples.saturating_add(1);
        Ok(())
    }

    /// Adds another shard's sums.
    ///
    /// # Errors
    /// [`SumError`] if they are another aggregate's; nothing is added.
    pub fn merge(&mut self, other: &Self) -> Result<(), SumError> {
        if other.terms != self.terms {
            return Err(SumError::Terms);
        }
        if other.aggregate != self.aggregate {
            return Err(SumError::Aggregate);
        }
        let ours = self.totals.iter_mut().flatten();
        ours.zip(other.totals.iter().flatten()).for_each(|(ours, theirs)| ours.merge(theirs));
        self.tuples = self.tuples.saturating_add(other.tuples);
        Ok(())
    }

    /// The encrypted sum of a part. None if the interval has no such part, or without any honest
    /// tuple.
    #[must_use]
    pub fn ciphertext(&self, part: Part) -> Option<Ciphertext> {
        if part == Part::Square && !self.square {
            return None;
        }
        let [r, c] = self.totals.get(usize::from(part.number()))?;
        let pair = || Ok::<Pair, IdentityError>(Pair { r: r.element()?, c: c.element()? });
        pair().ok().map(|pair| Ciphertext { part, pair })
    }

    /// The encoding, for the owner's own store.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::LENGTH);
        bytes.extend_from_slice(self.terms.as_bytes());
        bytes.extend_from_slice(self.aggregate.as_bytes());
        bytes.push(self.square.into());
        bytes.extend_from_slice(&self.tuples.to_be_bytes());
        self.totals.iter().flatten().for_each(|total| bytes.extend_from_slice(&total.to_bytes()));
        bytes
    }

    /// Decodes stored sums of an aggregate.
    ///
    /// # Errors
    /// [`SumError`].
    pub fn from_bytes(bytes: &[u8], terms: &Terms, aggregate: Digest) -> Result<Self, SumError> {
        let mut sums = Self::new(terms, aggregate);
        let (head, totals) = bytes.split_at_checked(69).ok_or(SumError::Damaged)?;
        let (chunks, rest) = totals.as_chunks::<32>();
        let tuples = head.last_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        sums.tuples = tuples.ok_or(SumError::Damaged)?;
        if chunks.len() != 6 || !rest.is_empty() {
            return Err(SumError::Damaged);
        }
        for (total, chunk) in sums.totals.iter_mut().flatten().zip(chunks) {
            *total = Total::from_bytes(chunk).map_err(|_| SumError::Damaged)?;
        }
        match head {
            _ if !head.starts_with(sums.terms.as_bytes()) => Err(SumError::Terms),
            _ if head.get(32..64) != Some(aggregate.as_ref()) => Err(SumError::Aggregate),
            _ if sums.to_bytes() != bytes => Err(SumError::Damaged),
            _ => Ok(sums),
        }
    }
}

impl Ciphertext {
    /// The part whose sum it encrypts.
    #[must_use]
    pub fn part(&self) -> Part {
        self.part
    }

    /// ΣR.
    pub(crate) fn r(&self) -> &Element {
        &self.pair.r
    }

    /// ΣC.
    pub(crate) fn c(&self) -> &Element {
        &self.pair.c
    }

    /// part:8 ‖ ΣR ‖ ΣC.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 65] {
        let mut bytes = [self.part.number(); 65];
        bytes[1..33].copy_from_slice(self.pair.r.as_bytes());
        bytes[33..].copy_from_slice(self.pair.c.as_bytes());
        bytes
    }
}
