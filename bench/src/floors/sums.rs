//! Adding the words of a frame to its stream's sum, and nothing else.

/// Sums of `streams` streams of `words` words.
pub(crate) struct Sums(Vec<Vec<u64>>);

impl Sums {
    /// All zero.
    pub(crate) fn new(streams: usize, words: usize) -> Sums {
        Sums(vec![vec![0; words]; streams])
    }

    /// Adds the last words of `frame`.
    pub(crate) fn add(&mut self, stream: usize, frame: &[u8]) {
        let sum = &mut self.0[stream];
        let words = &frame[frame.len() - 8 * sum.len()..];
        for (sum, word) in sum.iter_mut().zip(words.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
}
