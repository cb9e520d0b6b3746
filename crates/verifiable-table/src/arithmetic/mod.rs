//! Words, primes and transforms: the machine under the ring.

pub(crate) mod lanes;
pub(crate) mod ntt;
pub(crate) mod prime;
