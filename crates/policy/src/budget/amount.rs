//! Amounts of privacy loss as integers of small units, always rounded up.

use num_bigint::BigUint;
use serde::{Deserialize, Serialize};
use std::fmt;

/// ε in units of 10^−18.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epsilon(pub u128);

/// ρ of zero-concentrated differential privacy, in units of 10^−24.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Rho(pub u128);

impl Epsilon {
    /// Units in one millionth.
    pub const MICRO: u128 = 1_000_000_000_000;
    /// Larger than any budget.
    pub const MAX: Epsilon = Epsilon(u128::MAX);

    /// From millionths, the unit of policies.
    #[must_use]
    pub fn from_micro(micro: u64) -> Epsilon {
        Epsilon(u128::from(micro) * Self::MICRO)
    }

    /// In millionths, rounded down.
    #[must_use]
    pub fn floor_micro(self) -> u64 {
        u64::try_from(self.0 / Self::MICRO).unwrap_or(u64::MAX)
    }

    /// In millionths, rounded up.
    #[must_use]
    pub fn ceil_micro(self) -> u64 {
        u64::try_from(self.0.div_ceil(Self::MICRO)).unwrap_or(u64::MAX)
    }

    /// `above / below`, rounded up to a unit.
    #[must_use]
    pub fn at_least(above: &BigUint, below: &BigUint) -> Epsilon {
        Epsilon(units_up(above, below, 18))
    }

    /// The saturating sum.
    #[must_use]
    pub fn plus(self, other: Epsilon) -> Epsilon {
        Epsilon(self.0.saturating_add(other.0))
    }

    /// The concentrated loss of a purely private release: ε²/2, rounded up (Bun
    /// and Steinke 2016, proposition 1.4).
    #[must_use]
    pub fn rho(self) -> Rho {
        let twice = BigUint::from(10u8).pow(12) * 2u8;
        Rho(narrow((BigUint::from(self.0).pow(2) + &twice - 1u8) / twice))
    }
}

impl Rho {
    /// Larger than any budget.
    pub const MAX: Rho = Rho(u128::MAX);

    /// `above / below`, rounded up to a unit.
    #[must_use]
    pub fn at_least(above: &BigUint, below: &BigUint) -> Rho {
        Rho(units_up(above, below, 24))
    }

    /// The saturating sum.
    #[must_use]
    pub fn plus(self, other: Rho) -> Rho {
        Rho(self.0.saturating_add(other.0))
    }
}

fn units_up(above: &BigUint, below: &BigUint, places: u32) -> u128 {
    if *below == BigUint::ZERO {
        return u128::MAX;
    }
    let units = above * BigUint::from(10u8).pow(places);
    narrow((units + below - 1u8) / below)
}

fn narrow(number: BigUint) -> u128 {
    u128::try_from(number).unwrap_or(u128::MAX)
}

impl fmt::Display for Epsilon {
    /// A decimal number, rounded up to six places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimals(f, self.0, 18, 6)
    }
}

impl fmt::Display for Rho {
    /// A decimal number, rounded up to nine places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimals(f, self.0, 24, 9)
    }
}

fn decimals(f: &mut fmt::Formatter<'_>, units: u128, places: u32, shown: u32) -> fmt::Result {
    let (one, rounded) =
        (10u128.pow(shown), units.div_ceil(10u128.pow(places.saturating_sub(shown))));
    let width = shown as usize;
    let text = format!("{}.{:0width$}", rounded / one, rounded % one);
    f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_round_up() {
        let third = Epsilon::at_least(&BigUint::from(1u8), &BigUint::from(3u8));
        assert_eq!(third.0, 333_333_333_333_333_334);
        assert_eq!(Epsilon(1).rho(), Rho(1));
        assert_eq!(Epsilon::from_micro(1_000_000).rho().0, 500_000_000_000_000_000_000_000);
        assert_eq!(Epsilon(u128::MAX).rho(), Rho::MAX);
        assert_eq!(Rho::at_least(&BigUint::from(1u8), &BigUint::ZERO), Rho::MAX);
    }

    #[test]
    fn amounts_are_displayed_rounded_up() {
        assert_eq!(Epsilon::from_micro(500_000).to_string(), "0.5");
        assert_eq!(Epsilon(1).to_string(), "0.000001");
        assert_eq!(Epsilon::from_micro(12_000_000).to_string(), "12");
        assert_eq!(Rho(1).to_string(), "0.000000001");
    }
}
