//! The parameter sets: ring, moduli and use.
//!
//! Security is by the lattice estimate that reproduces the 128-bit rows of the
//! homomorphic encryption standard, for ternary secrets.

use crate::ring::Ring;
use crate::spec::Spec;
use std::fmt;
use std::sync::OnceLock;

/// A parameter set. It is fixed for a table's life and bound into every label.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Set {
    /// n = 4096, Q of 2 × 51 bits, t of 60 bits, security 138: sums only.
    L128,
    /// n = 8192, Q of 3 × 51 bits, t of 60 bits, security 190: 20-bit items, sums,
    /// products, polynomials.
    S128,
    /// n = 8192, Q of 4 × 51 bits, t of 84 bits, security 138: exact sums of squares
    /// and products of 32-bit items. The default.
    X128,
    /// n = 16384, Q of 5 × 51 bits, t of 84 bits, security 236: weights on products.
    W128,
    /// n = 4096, Q of 3 × 51 bits, t of 60 bits, security 89: the paper's 80-bit rows,
    /// for comparison only.
    C80,
}

impl Set {
    /// All sets.
    pub const ALL: [Self; 5] = [Self::L128, Self::S128, Self::X128, Self::W128, Self::C80];

    /// The name, as files and command lines spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::L128 => "L128",
            Self::S128 => "S128",
            Self::X128 => "X128",
            Self::W128 => "W128",
            Self::C80 => "C80",
        }
    }

    /// The set with this name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name().eq_ignore_ascii_case(name))
    }

    /// Bits of security, by the estimate.
    #[must_use]
    pub fn security(self) -> u32 {
        match self {
            Self::L128 | Self::X128 => 138,
            Self::S128 => 190,
            Self::W128 => 236,
            Self::C80 => 89,
        }
    }

    pub(crate) fn spec(self) -> Spec {
        let (degree, q, t): (_, &'static [u64], _) = match self {
            Self::L128 => (4096, &Q[..2], T60),
            Self::C80 => (4096, &Q[..3], T60),
            Self::S128 => (8192, &Q[..3], T60),
            Self::X128 => (8192, &Q[..4], T84),
            Self::W128 => (16384, &Q_WIDE, T84_WIDE),
        };
        Spec { name: self.name(), degree, q, t, repetitions: REPETITIONS }
    }

    /// Its ring with all tables, some megabytes, made once per process.
    #[must_use]
    pub fn ring(self) -> &'static Ring {
        static RINGS: [OnceLock<Ring>; 5] = [const { OnceLock::new() }; 5];
        RINGS[self as usize].get_or_init(|| Ring::new(&self.spec()))
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The four largest primes below 2^51 that are 1 modulo 2^14. Each set takes the first few.
const Q: [u64; 4] =
    [2_251_799_813_554_177, 2_251_799_813_472_257, 2_251_799_813_406_721, 2_251_799_812_980_737];
/// The five largest primes below 2^51 that are 1 modulo 2^15.
const Q_WIDE: [u64; 5] = [
    2_251_799_813_554_177,
    2_251_799_811_391_489,
    2_251_799_810_670_593,
    2_251_799_810_605_057,
    2_251_799_809_916_929,
];
/// The two largest primes below 2^30 that are 1 modulo 2^14.
const T60: [u64; 2] = [1_073_692_673, 1_073_643_521];
/// The two smallest primes above 2^42 that are 1 modulo 2^14.
const T84: [u64; 2] = [4_398_047_051_777, 4_398_047_232_001];
/// The two smallest primes above 2^42 that are 1 modulo 2^15.
const T84_WIDE: [u64; 2] = [4_398_047_232_001, 4_398_048_575_489];

/// Independent hashes of a ciphertext: (2/q)^3 ≈ 2^−150.
const REPETITIONS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_found_by_its_name() {
        for set in Set::ALL {
            assert_eq!(Set::from_name(set.name()), Some(set));
        }
        assert_eq!(Set::from_name("X129"), None);
    }
}
