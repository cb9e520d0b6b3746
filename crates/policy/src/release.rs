//! What leaves a group of streams: sums of some of their words.

use serde::{Deserialize, Serialize};

/// A sparse 0/1 linear map from an event's words to outputs. The last row is
/// the check word alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// Each output is the sum of these words, positions ascending.
    pub rows: Vec<Vec<u16>>,
}

impl Release {
    /// The number of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.rows.len()
    }

    /// Adds the map of `words` to `outputs`, modulo 2^64.
    pub fn add(&self, words: &[u64], outputs: &mut [u64]) {
        self.add_from(|word| words[usize::from(word)], outputs);
    }

    /// The same where words are read one by one: only those that it releases are.
    pub fn add_from(&self, word: impl Fn(u16) -> u64, outputs: &mut [u64]) {
        for (row, output) in self.rows.iter().zip(outputs) {
            for position in row {
                *output = output.wrapping_add(word(*position));
            }
        }
    }
}
