//! Tuples added up: whoever has the same tuples has the same sums, in any order.

use crate::error::NotOfThisSum;
use crate::interval::Interval;
use crate::tuple::{CheckedTuple, Pair, Terms};
use alpheus_crypto::group::{Element, Total, Vanished};
use alpheus_crypto::hash::Digest;

/// Which number of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Σ c, the samples that count.
    Count,
    /// Σ v'.
    Value,
    /// Σ v'².
    Square,
}

/// Running sums of one aggregate's checked tuples under one key. Each tuple counts as
/// often as it is added: that each slot is added once is the caller's to see to.
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
    /// Those of an interval, in the order in which they are opened.
    #[must_use]
    pub fn of(interval: &Interval) -> &'static [Self] {
        let all = &[Self::Count, Self::Value, Self::Square];
        if interval.square() { all } else { &[Self::Count, Self::Value] }
    }

    /// The part's number in what is hashed and sent.
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

    /// Of no tuples yet.
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

    /// How many tuples are in.
    #[must_use]
    pub fn tuples(&self) -> u32 {
        self.tuples
    }

    /// Adds a tuple.
    ///
    /// # Errors
    /// [`NotOfThisSum`] if it was checked for something else; nothing is added.
    pub fn add(&mut self, tuple: &CheckedTuple) -> Result<(), NotOfThisSum> {
        if *tuple.terms() != self.terms {
            return Err(NotOfThisSum::Terms);
        }
        if tuple.binding().aggregate != self.aggregate {
            return Err(NotOfThisSum::Aggregate);
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

    /// Adds what another shard added up.
    ///
    /// # Errors
    /// [`NotOfThisSum`] if it is another aggregate's; nothing is added.
    pub fn merge(&mut self, other: &Self) -> Result<(), NotOfThisSum> {
        if other.terms != self.terms {
            return Err(NotOfThisSum::Terms);
        }
        if other.aggregate != self.aggregate {
            return Err(NotOfThisSum::Aggregate);
        }
        let ours = self.totals.iter_mut().flatten();
        ours.zip(other.totals.iter().flatten()).for_each(|(ours, theirs)| ours.merge(theirs));
        self.tuples = self.tuples.saturating_add(other.tuples);
        Ok(())
    }

    /// The encrypted sum of a part; none if the interval has no such part, or if no
    /// honest tuple is in.
    #[must_use]
    pub fn ciphertext(&self, part: Part) -> Option<Ciphertext> {
        if part == Part::Square && !self.square {
            return None;
        }
        let [r, c] = self.totals.get(usize::from(part.number()))?;
        let pair = || Ok::<Pair, Vanished>(Pair { r: r.element()?, c: c.element()? });
        pair().ok().map(|pair| Ciphertext { part, pair })
    }

    /// For a store of one's own.
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

    /// Reads stored sums of an aggregate.
    ///
    /// # Errors
    /// [`NotOfThisSum`].
    pub fn from_bytes(
        bytes: &[u8],
        terms: &Terms,
        aggregate: Digest,
    ) -> Result<Self, NotOfThisSum> {
        let mut sums = Self::new(terms, aggregate);
        let (head, totals) = bytes.split_at_checked(69).ok_or(NotOfThisSum::Damaged)?;
        let (chunks, rest) = totals.as_chunks::<32>();
        let tuples = head.last_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        sums.tuples = tuples.ok_or(NotOfThisSum::Damaged)?;
        if chunks.len() != 6 || !rest.is_empty() {
            return Err(NotOfThisSum::Damaged);
        }
        for (total, chunk) in sums.totals.iter_mut().flatten().zip(chunks) {
            *total = Total::from_bytes(chunk).map_err(|_| NotOfThisSum::Damaged)?;
        }
        match head {
            _ if !head.starts_with(sums.terms.as_bytes()) => Err(NotOfThisSum::Terms),
            _ if head.get(32..64) != Some(aggregate.as_ref()) => Err(NotOfThisSum::Aggregate),
            _ if sums.to_bytes() != bytes => Err(NotOfThisSum::Damaged),
            _ => Ok(sums),
        }
    }
}

impl Ciphertext {
    /// Which part's sum it encrypts.
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
