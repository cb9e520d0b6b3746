//! A rule of the policy crate on its way to the service.

use serde::{Deserialize, Serialize};

/// The rule of a policy that forbids something, as the policy crate names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{explanation}")]
pub struct PolicyViolation {
    /// Its name.
    pub rule: String,
    /// For people: the numbers asked and allowed.
    pub explanation: String,
}

impl From<alpheus_policy::comply::Refusal> for PolicyViolation {
    fn from(refusal: alpheus_policy::comply::Refusal) -> Self {
        Self { rule: refusal.rule().into(), explanation: refusal.to_string() }
    }
}
