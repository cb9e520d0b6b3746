//! The window sum as a commutative monoid: per tick the word-wise sum, the
//! number of data events and a public link digest, in any order of arrival.
//!
//! A producer's events of one tick `(a, b]` form a chain: each names the time of
//! the event before, the last is the border at b. With the public hash
//! `h = crypto::hash::link` the links `h(s, t_i) − h(s, t_{i−1})` telescope to
//! `h(s, b) − h(s, a)` exactly when every event came once: a gap, a duplicate, a
//! missing border and an event of a foreign session all show, with no secret
//! (but by a chance of 2^-64).

use crate::frame::{FrameError, Link, Words};
use alpheus_crypto::hash::link;
use alpheus_policy::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A sum over some events of one session and tick. Neutral: [`TickSum::new`];
/// associative and commutative: [`TickSum::merge`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickSum {
    words: Box<[u64]>,
    count: u64,
    digest: u64,
}

impl TickSum {
    /// The empty sum of vectors of this many words.
    #[must_use]
    pub fn new(words: usize) -> TickSum {
        TickSum { words: vec![0; words].into(), count: 0, digest: 0 }
    }

    /// The word-wise sum modulo 2^64.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Data events in it; borders do not count.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Σ h(s, t_i) − h(s, t_{i−1}) of all events in it, borders too.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Adds a data event.
    ///
    /// # Errors
    ///
    /// If it has another number of words; the sum is then as it was.
    #[inline]
    pub fn add_data(&mut self, link: &Link, words: &Words<'_>) -> Result<(), FrameError> {
        words.add_to(&mut self.words)?;
        self.count += 1;
        self.add_link(link);
        Ok(())
    }

    /// Adds a border, interior or closing.
    ///
    /// # Errors
    ///
    /// As [`TickSum::add_data`].
    #[inline]
    pub fn add_border(&mut self, link: &Link, words: &Words<'_>) -> Result<(), FrameError> {
        words.add_to(&mut self.words)?;
        self.add_link(link);
        Ok(())
    }

    /// Counts a data event without its words, for a sum of no words that is kept
    /// only to see whether a tick is complete.
    pub(crate) fn count_data(&mut self, link: &Link) {
        self.count += 1;
        self.add_link(link);
    }

    /// Adds a border's link alone, likewise.
    pub(crate) fn count_border(&mut self, link: &Link) {
        self.add_link(link);
    }

    fn add_link(&mut self, link: &Link) {
        self.digest = self.digest.wrapping_add(link.digest());
    }

    /// Adds another part of the same session and tick.
    ///
    /// # Errors
    ///
    /// If it has another number of words; the sum is then as it was.
    pub fn merge(&mut self, other: &TickSum) -> Result<(), FrameError> {
        if self.words.len() != other.words.len() {
            let (expected, found) = (self.words.len(), other.words.len());
            return Err(FrameError::WrongLength { expected, found });
        }
        add(&mut self.words, &other.words);
        self.count = self.count.wrapping_add(other.count);
        self.digest = self.digest.wrapping_add(other.digest);
        Ok(())
    }

    /// Whether it holds every event of `session` in `(from, to]` exactly once.
    #[must_use]
    pub fn complete(&self, session: u64, from: Timestamp, to: Timestamp) -> bool {
        self.digest == expected_digest(session, from, to)
    }
}

/// The digest of a tick or segment that is complete: h(s, to) − h(s, from).
/// Digests of adjacent segments of one session add up to that of both.
#[must_use]
#[inline]
pub fn expected_digest(session: u64, from: Timestamp, to: Timestamp) -> u64 {
    link(session, to.0).wrapping_sub(link(session, from.0))
}

/// Adds word by word, modulo 2^64, as far as both reach.
#[inline]
pub fn add(sum: &mut [u64], words: &[u64]) {
    for (sum, word) in sum.iter_mut().zip(words) {
        *sum = sum.wrapping_add(*word);
    }
}
