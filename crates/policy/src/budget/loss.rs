//! Accumulated privacy loss, and whether it is within a limit.

use super::amount::{Epsilon, Rho};
use super::calibrate::Cost;
use super::convert::{fits, min_epsilon};
use num_bigint::BigUint;
use serde::{Deserialize, Serialize};

/// The probability mass that samplers omit, in units of 2^−128. It is the part of δ that
/// nobody chooses.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Slack(pub u128);

impl Slack {
    /// The slack of a distribution within 2^−`bits` of the exact one. A release that would be
    /// ε-private is then (ε, δ)-private with δ = (1 + e^ε)·2^−bits. `micro_epsilon` bounds
    /// its ε.
    #[must_use]
    pub fn of(bits: u32, micro_epsilon: u64) -> Slack {
        // 1 + e^ε ≤ 2^(1 + ⌈3ε/2⌉).
        let exponent = (u128::from(micro_epsilon) * 3).div_ceil(2_000_000) + 1;
        let lost = u32::try_from(exponent).unwrap_or(u32::MAX).saturating_add(128);
        match lost.checked_sub(bits) {
            None => Slack(1),
            Some(shift) => Slack(1u128.checked_shl(shift).unwrap_or(u128::MAX)),
        }
    }

    /// In units of 10^−18, rounded up.
    #[must_use]
    pub fn atto(self) -> u64 {
        let product = BigUint::from(self.0) * 1_000_000_000_000_000_000u64;
        u64::try_from(super::convert::ceiling(product, 128)).unwrap_or(u64::MAX)
    }
}

/// The sum of privacy losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivacyLoss {
    /// Sum of the ε of purely private releases.
    pub epsilon: Epsilon,
    /// Sum of their ρ.
    pub rho_of_pure: Rho,
    /// Sum of the ρ of other releases.
    pub rho: Rho,
    /// Sum of what samplers omit.
    pub slack: Slack,
}

impl PrivacyLoss {
    /// The loss with one more release.
    #[must_use]
    pub fn with(mut self, cost: Cost, slack: Slack) -> PrivacyLoss {
        match cost {
            Cost::Pure(epsilon) => {
                self.epsilon = self.epsilon.plus(epsilon);
                self.rho_of_pure = self.rho_of_pure.plus(epsilon.rho());
            }
            Cost::Concentrated(rho) => self.rho = self.rho.plus(rho),
        }
        self.slack = Slack(self.slack.0.saturating_add(slack.0));
        self
    }

    /// The loss of so many equal releases.
    #[must_use]
    pub fn of_many(cost: Cost, slack: Slack, releases: u64) -> PrivacyLoss {
        let many = u128::from(releases);
        let slack = Slack(slack.0.saturating_mul(many));
        match cost {
            Cost::Pure(epsilon) => PrivacyLoss {
                epsilon: Epsilon(epsilon.0.saturating_mul(many)),
                rho_of_pure: Rho(epsilon.rho().0.saturating_mul(many)),
                slack,
                ..PrivacyLoss::default()
            },
            Cost::Concentrated(rho) => PrivacyLoss {
                rho: Rho(rho.0.saturating_mul(many)),
                slack,
                ..PrivacyLoss::default()
            },
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: PrivacyLoss) -> PrivacyLoss {
        PrivacyLoss {
            epsilon: self.epsilon.plus(other.epsilon),
            rho_of_pure: self.rho_of_pure.plus(other.rho_of_pure),
            rho: self.rho.plus(other.rho),
            slack: Slack(self.slack.0.saturating_add(other.slack.0)),
        }
    }

    /// Whether all of it together is (ε, δ)-differentially private, with δ in units of 10^−18.
    /// This uses the sum of ε if all was pure, or everything as zCDP. The part that samplers omit
    /// is taken from δ. A pure budget is granted 10^−18 for that.
    #[must_use]
    pub fn within(&self, epsilon: Epsilon, atto_delta: u64) -> bool {
        let slack = self.slack.atto();
        let pure = self.rho == Rho(0) && self.epsilon <= epsilon && slack <= atto_delta.max(1);
        let left = atto_delta.saturating_sub(slack);
        pure || (left > 0 && fits(self.rho.plus(self.rho_of_pure), epsilon, left))
    }
}

impl PrivacyLoss {
    /// The smallest ε that all of it together is [within](PrivacyLoss::within), if any.
    #[must_use]
    pub fn min_epsilon(&self, atto_delta: u64) -> Option<Epsilon> {
        let slack = self.slack.atto();
        let is_pure = self.rho == Rho(0) && slack <= atto_delta.max(1);
        let pure = is_pure.then_some(self.epsilon);
        let left = atto_delta.saturating_sub(slack);
        let together = min_epsilon(self.rho.plus(self.rho_of_pure), left);
        pure.into_iter().chain(together).min()
    }
}

impl std::fmt::Display for PrivacyLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.epsilon, self.rho) {
            (epsilon, Rho(0)) => write!(f, "ε = {epsilon}"),
            (Epsilon(0), rho) => write!(f, "ρ = {rho}"),
            (epsilon, rho) => write!(f, "ε = {epsilon} and ρ = {rho}"),
        }
    }
}
