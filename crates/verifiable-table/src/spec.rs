//! The numbers that define a ring.

/// The numbers that define a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    /// The name, bound into every label.
    pub(crate) name: &'static str,
    /// n, a power of two of at least 512.
    pub(crate) degree: usize,
    /// The primes of Q, each 1 modulo 2n, below 2^51 and within a factor of two.
    pub(crate) q: &'static [u64],
    /// The primes of t, each 1 modulo 2n and within a factor of two.
    pub(crate) t: [u64; 2],
    /// Independent hashes in a tag, one to three.
    pub(crate) repetitions: usize,
}
