//! Accounts in a form that a controller's ledger can hold.

use super::calibrate::Cost;
use super::spent::{Slack, Spent};
use crate::ids::{OwnerId, PlanId};
use crate::time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

/// Version of the form below; another one is refused.
const VERSION: u8 = 1;

/// A release to be charged to one attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The plan.
    pub plan: PlanId,
    /// The window; for running totals all windows of the plan together.
    pub window: Window,
    /// What it costs.
    pub cost: Cost,
    /// −log2 of what the samplers leave out.
    pub slack_bits: u32,
}

/// One change of one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRecord {
    /// Whose.
    pub owner: OwnerId,
    /// Position of the attribute in the schema.
    pub attribute: u16,
    /// What changes.
    pub entry: Entry,
}

/// What changes in an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A release was charged. Durable before anything leaves.
    Charged {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
        /// What it cost.
        cost: Cost,
        /// What its samplers leave out.
        slack: Slack,
    },
    /// A charge was given back: the window is durably closed and the opening
    /// never left.
    Refunded {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
    },
    /// Entries of windows that ended by `before` are summed up; once
    /// this is durable their records may be deleted.
    Forgotten {
        /// The mark.
        before: Timestamp,
        /// What they cost together.
        sum: Spent,
    },
}

/// A value that is no budget record of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is no budget record of version {VERSION}; restore a newer program or a backup")]
pub struct UnreadableBudget;

impl BudgetRecord {
    /// A version byte and the record.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // A record holds only integers and bytes, so serialisation cannot fail.
        let body = postcard::to_allocvec(self).unwrap_or_default();
        std::iter::once(VERSION).chain(body).collect()
    }

    /// What the record stands under in a store: a refund takes the place of its
    /// charge, a later mark that of an earlier one.
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
    /// Another version, too little or too much.
    pub fn from_bytes(bytes: &[u8]) -> Result<BudgetRecord, UnreadableBudget> {
        let Some((&VERSION, body)) = bytes.split_first() else { return Err(UnreadableBudget) };
        match postcard::take_from_bytes(body) {
            Ok((record, [])) => Ok(record),
            _ => Err(UnreadableBudget),
        }
    }
}
