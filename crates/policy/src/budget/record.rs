//! Changes of accounts as records of a controller's ledger.

use super::calibrate::Cost;
use super::loss::{PrivacyLoss, Slack};
use crate::ids::{OwnerId, PlanId};
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

/// Version of the encoding. Any other version is rejected.
const VERSION: u8 = 1;

/// A release to charge to an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The plan.
    pub plan: PlanId,
    /// The window. For running totals, all windows of the plan together.
    pub window: Window,
    /// Its cost.
    pub cost: Cost,
    /// −log2 of the probability mass that the samplers omit.
    pub slack_bits: u32,
}

/// A change of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRecord {
    /// The owner.
    pub owner: OwnerId,
    /// Position of the attribute in the schema.
    pub attribute: u16,
    /// The change.
    pub entry: Entry,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A release was charged. This is durable before anything is sent.
    Charged {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
        /// Its cost.
        cost: Cost,
        /// The probability mass that its samplers omit.
        slack: Slack,
    },
    /// A charge was refunded: the window is durably closed and the opening was never sent.
    Refunded {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
    },
    /// Entries of windows that ended by `before` are summed up. Once this is durable, their
    /// records may be deleted.
    Forgotten {
        /// The mark.
        before: Timestamp,
        /// Their total cost.
        sum: PrivacyLoss,
    },
}

/// The value is not a budget record of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the value is not a budget record of version {VERSION}; use a newer program or restore a backup"
)]
pub struct BudgetRecordError;

impl BudgetRecord {
    /// A version byte and the record.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // A record holds only integers and bytes, so serialisation cannot fail.
        let body = postcard::to_allocvec(self).unwrap_or_default();
        std::iter::once(VERSION).chain(body).collect()
    }

    /// The key of the record in a store. A refund replaces its charge, and a later mark
    /// replaces an earlier one.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        let mut key = self.owner.0.to_vec();
        key.extend(self.attribute.to_be_bytes());
        if let Entry::Charged { plan, window, .. } | Entry::Refunded { plan, window } = &self.entry
        {
            key.extend(window.start.0.to_be_bytes());
            key.extend(window.end.0.to_be_bytes());
            key.extend(plan.0);
        }
        key
    }

    /// Reads what [`BudgetRecord::to_bytes`] wrote.
    ///
    /// # Errors
    /// If the version differs, or bytes are missing or left over.
    pub fn from_bytes(bytes: &[u8]) -> Result<BudgetRecord, BudgetRecordError> {
        let Some((&VERSION, body)) = bytes.split_first() else { return Err(BudgetRecordError) };
        match postcard::take_from_bytes(body) {
            Ok((record, [])) => Ok(record),
            _ => Err(BudgetRecordError),
        }
    }
}
