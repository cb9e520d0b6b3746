//! The parameter sets of the paper's scheme: one modulus, the order q of the groups, and
//! two degrees.

use alpheus_verifiable_table::parameters::Set;
use std::fmt;

/// A parameter set, bound into every label.
///
/// Security is that of the lattice, by the rows of the homomorphic encryption standard for
/// ternary secrets. The groups have some 120 bits.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum PairingSet {
    /// n = 8192, log q = 255: for the paper's 80-bit rows. By today's estimate, about the
    /// security of its 128-bit rows (n = 8820, log q = 272). For comparison only.
    P80,
    /// n = 16384, log q = 255: the standard allows 305 bits of q at 192 bits of security.
    P128,
}

impl PairingSet {
    /// All sets.
    pub const ALL: [Self; 2] = [Self::P80, Self::P128];

    /// The name, as files and command lines spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::P80 => "P80",
            Self::P128 => "P128",
        }
    }

    /// The set with this name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name().eq_ignore_ascii_case(name))
    }

    /// The set of the main scheme with the same degree, t and encoding.
    pub(crate) fn plain(self) -> Set {
        match self {
            Self::P80 => Set::X128,
            Self::P128 => Set::W128,
        }
    }
}

impl fmt::Display for PairingSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
