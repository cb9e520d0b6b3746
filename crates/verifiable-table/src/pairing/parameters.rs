//! The parameter sets of the paper's scheme: one modulus, the order q of the groups, and
//! two degrees.

use super::ring::PairingRing;
use crate::parameters::Set;
use std::fmt;
use std::sync::OnceLock;

/// A parameter set, bound into every label.
///
/// Security is that of the lattice, by the rows of the homomorphic encryption standard for
/// ternary secrets; the groups have some 120 bits.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum PairingSet {
    /// n = 8192, log q = 255: for the paper's 80-bit rows, and about what its 128-bit rows
    /// have by today's estimate (n = 8820, log q = 272). For comparison only.
    P80,
    /// n = 16384, log q = 255: the standard bears 305 bits of q at 192 bits of security.
    P128,
}

impl PairingSet {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::P80, Self::P128];

    /// Its name, as files and command lines spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::P80 => "P80",
            Self::P128 => "P128",
        }
    }

    /// The set of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name().eq_ignore_ascii_case(name))
    }

    /// The set of mode A with the same degree, whose t and encoding this one has too.
    pub(crate) fn plain(self) -> Set {
        match self {
            Self::P80 => Set::X128,
            Self::P128 => Set::W128,
        }
    }

    /// Its ring, with all tables: made once for the process.
    #[must_use]
    pub fn ring(self) -> &'static PairingRing {
        static RINGS: [OnceLock<PairingRing>; 2] = [const { OnceLock::new() }; 2];
        RINGS[self as usize].get_or_init(|| PairingRing::new(self))
    }
}

impl fmt::Display for PairingSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
