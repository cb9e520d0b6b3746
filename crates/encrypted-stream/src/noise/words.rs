//! Drawn noise, which must not leak.

use zeroize::Zeroizing;

/// Noise for the rows of a release, modulo 2^64. Wiped on drop, never printed, and
/// consumed by use.
///
/// ```compile_fail
/// fn print(noise: alpheus_encrypted_stream::noise::NoiseWords) {
///     println!("{noise:?}");
/// }
/// ```
pub struct NoiseWords(Zeroizing<Vec<u64>>);

impl NoiseWords {
    /// Takes the words. Their capacity must have been sufficient from the start, so that
    /// they were never moved.
    pub(super) fn new(words: Zeroizing<Vec<u64>>) -> Self {
        Self(words)
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.0.len()
    }

    /// Adds the noise to the rows of an opening (or of a lone controller's token), modulo
    /// 2^64. Further rows stay unchanged: the check row is last and has no noise.
    pub fn add_to(self, rows: &mut [u64]) {
        for (row, noise) in rows.iter_mut().zip(self.0.iter()) {
            *row = row.wrapping_add(*noise);
        }
    }

    /// The noise itself. Search for this name to audit where it is read.
    #[must_use]
    pub fn expose(&self) -> &[u64] {
        &self.0
    }
}
