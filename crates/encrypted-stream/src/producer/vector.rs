//! The vector of an event during its encoding.

use super::VectorError;

/// A sum that an event's words are added to. It starts as the encryption of zero, or as zero.
/// An addend to a word is added to the word's plaintext.
pub struct EventVector<'a> {
    /// All words except the check word.
    words: &'a mut [[u8; 8]],
    error: Option<VectorError>,
}

impl<'a> EventVector<'a> {
    /// Over a vector whose last word is the check word.
    pub(super) fn over(words: &'a mut [[u8; 8]]) -> Self {
        let data = words.len().saturating_sub(1);
        Self { words: words.get_mut(..data).unwrap_or_default(), error: None }
    }

    /// Adds to a word, modulo 2^64. The whole event is rejected if the position is not a
    /// statistic's, in particular if it is the check word's.
    #[inline]
    pub fn add(&mut self, word: u16, addend: u64) {
        match self.words.get_mut(usize::from(word)) {
            Some(bytes) => *bytes = u64::from_le_bytes(*bytes).wrapping_add(addend).to_le_bytes(),
            None => self.reject(word),
        }
    }

    /// Whether the encoding wrote only to statistics.
    #[inline]
    pub(super) fn check(self) -> Result<(), VectorError> {
        self.error.map_or(Ok(()), Err)
    }

    #[cold]
    fn reject(&mut self, word: u16) {
        let words = self.words.len() + 1;
        self.error = Some(if usize::from(word) + 1 == words {
            VectorError::CheckWord { word }
        } else {
            VectorError::OutOfRange { word, words }
        });
    }
}
