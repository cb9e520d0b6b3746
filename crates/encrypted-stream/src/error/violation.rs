//! A policy violation as the service receives it.

use serde::{Deserialize, Serialize};

/// The policy rule that forbids something, as named by the policy crate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{explanation}")]
pub struct PolicyViolationError {
    /// Its name.
    pub rule: String,
    /// For people: the requested and the allowed numbers.
    pub explanation: String,
}

impl From<alpheus_policy::comply::ComplianceError> for PolicyViolationError {
    fn from(refusal: alpheus_policy::comply::ComplianceError) -> Self {
        Self { rule: refusal.rule().into(), explanation: refusal.to_string() }
    }
}
