//! The window sum as a commutative monoid. Each tick has a word-wise sum, a
//! number of data events and a public link digest; arrival order does not matter.
//!
//! A producer's events of one tick `(a, b]` form a chain. Each event names the
//! time of its predecessor, and the last event is the border at b. With the
//! public hash `h = crypto::hash::link`, the links `h(s, t_i) − h(s, t_{i−1})`
//! telescope to `h(s, b) − h(s, a)` exactly when every event arrived once. A gap,
//! a duplicate, a missing border or an event of another session changes the
//! digest, except with probability 2^-64. No secret is needed.

use crate::frame::{FrameError, Link, Words};
use alpheus_crypto::hash::link;
use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};

/// A sum over some events of one session and tick. [`TickSum::new`] is the
/// neutral element; [`TickSum::merge`] is associative and commutative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickSum {
    words: Box<[u64]>,
    count: u64,
    digest: u64,
}

impl TickSum {
    /// The empty sum of vectors with this many words.
    #[must_use]
    pub fn new(words: usize) -> TickSum {
        TickSum { words: vec![0; words].into(), count: 0, digest: 0 }
    }

    /// The word-wise sum modulo 2^64.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The number of data events, without borders.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Σ h(s, t_i) − h(s, t_{i−1}) over all events, including borders.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Adds a data event.
    ///
    /// # Errors
    ///
    /// If the event has a different number of words. The sum is then unchanged.
    #[inline]
    pub fn add_data(&mut self, link: &Link, words: &Words<'_>) -> Result<(), FrameError> {
        words.add_to(&mut self.words)?;
        self.count += 1;
        self.add_link(link);
        Ok(())
    }

    /// Adds an interior or closing border.
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

    /// Counts a data event without its words. For a sum without words, which
    /// only tracks whether a tick is complete.
    pub(crate) fn count_data(&mut self, link: &Link) {
        self.count += 1;
        self.add_link(link);
    }

    /// Adds only a border's link, for the same purpose.
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
    /// If it has a different number of words. The sum is then unchanged.
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

    /// Whether the sum holds every event of `session` in `(from, to]` exactly once.
    #[must_use]
    pub fn complete(&self, session: u64, from: Timestamp, to: Timestamp) -> bool {
        self.digest == expected_digest(session, from, to)
    }
}

/// The digest of a complete tick or segment: h(s, to) − h(s, from).
/// The digests of adjacent segments of one session add up to that of the whole.
#[must_use]
#[inline]
pub fn expected_digest(session: u64, from: Timestamp, to: Timestamp) -> u64 {
    link(session, to.0).wrapping_sub(link(session, from.0))
}

/// Adds word by word modulo 2^64, up to the shorter length.
#[inline]
pub fn add(sum: &mut [u64], words: &[u64]) {
    for (sum, word) in sum.iter_mut().zip(words) {
        *sum = sum.wrapping_add(*word);
    }
}
