//! Words, primes and transforms: the arithmetic below the ring.

pub(crate) mod lanes;
pub(crate) mod ntt;
pub(crate) mod prime;
