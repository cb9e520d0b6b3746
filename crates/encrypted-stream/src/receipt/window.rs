//! The receipt of a window, whichever its plan asks for, as bytes. The first byte says which.

use std::sync::Arc;

use alpheus_bounded_influence::check::Checker;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Window;

use super::{
    BOUNDED_VERSION, BoundedReceipt, BoundedWindow, BoundsError, Receipt, ReceiptError,
    ReceiptFormatError, VerifiedRow, version_of,
};
use crate::announced_plan::AnnouncedPlan;
use crate::certificate::Deployment;
use crate::consumer::SealedSum;
use crate::error::PlanRefusalError;
use crate::messages::{Listing, Membership, OpeningSet};

/// The receipt of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowReceipt {
    /// Of a verified plan.
    Verified(Receipt),
    /// Of a bounded one.
    Bounded(BoundedReceipt),
}

/// A row as its window's members have signed it. Only [`WindowReceipt::verify`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignedRow {
    /// Any of them could have changed it.
    Verified(VerifiedRow),
    /// Each could have changed it by its owners' bounds.
    Bounded(BoundedWindow),
}

impl From<Receipt> for WindowReceipt {
    fn from(receipt: Receipt) -> Self {
        Self::Verified(receipt)
    }
}

impl From<BoundedReceipt> for WindowReceipt {
    fn from(receipt: BoundedReceipt) -> Self {
        Self::Bounded(receipt)
    }
}

impl WindowReceipt {
    /// The receipt as bytes: a version and its content. Each receipt has one form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Verified(receipt) => receipt.to_bytes(),
            // Plain data, so serialisation cannot fail.
            Self::Bounded(own) => {
                postcard::to_extend(own, vec![BOUNDED_VERSION]).unwrap_or_default()
            }
        }
    }

    /// Reads a receipt. Nothing of it is checked.
    ///
    /// # Errors
    /// [`ReceiptFormatError`] if the bytes are not the one form of a receipt.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReceiptFormatError> {
        let (version, content) = version_of(bytes)?;
        if version != BOUNDED_VERSION {
            return Receipt::from_bytes(bytes).map(Self::Verified);
        }
        let (receipt, rest) =
            postcard::take_from_bytes(content).map_err(|_| ReceiptFormatError::Malformed)?;
        let read = Self::Bounded(receipt);
        let canonical = rest.is_empty() && read.to_bytes() == bytes;
        if canonical { Ok(read) } else { Err(ReceiptFormatError::Malformed) }
    }

    /// Checks that the members of a window of this plan have signed a row, and returns it. `checker` is
    /// what [checks](AnnouncedPlan::checker) a bounded plan's windows.
    ///
    /// # Errors
    /// [`ReceiptError`] with the first rule that does not hold. A receipt without proofs does not hold
    /// for a bounded plan, nor one with proofs where nobody can check them.
    pub fn verify(
        &self,
        announced: &AnnouncedPlan,
        checker: Option<&Checker>,
        window: Window,
    ) -> Result<SignedRow, ReceiptError> {
        match self {
            Self::Verified(_) if announced.plan().integrity.is_bounded() => {
                Err(BoundsError::NoProofs.into())
            }
            Self::Verified(receipt) => receipt.verify(announced, window).map(SignedRow::Verified),
            Self::Bounded(receipt) => {
                let checker = checker.ok_or(BoundsError::NotBounded)?;
                receipt.verify(announced, checker, window).map(SignedRow::Bounded)
            }
        }
    }

    /// M, as it was signed.
    #[must_use]
    pub fn membership(&self) -> &Signed<Membership> {
        match self {
            Self::Verified(receipt) => &receipt.membership,
            Self::Bounded(receipt) => &receipt.membership,
        }
    }

    /// S, as it was signed. None with a single controller.
    #[must_use]
    pub fn opening_set(&self) -> Option<&Signed<OpeningSet>> {
        match self {
            Self::Verified(receipt) => receipt.opening_set.as_ref(),
            Self::Bounded(receipt) => Some(&receipt.opening_set),
        }
    }

    /// By epochs: the list of the window's members.
    #[must_use]
    pub fn listing(&self) -> Option<&Arc<Listing>> {
        match self {
            Self::Verified(receipt) => receipt.listing.as_ref(),
            Self::Bounded(_) => None,
        }
    }

    /// By epochs: the window's plan, from its list.
    ///
    /// # Errors
    /// [`PlanRefusalError`] if the plan breaks a rule, or the service did not sign it.
    #[must_use]
    pub fn listed_plan(
        &self,
        deployment: &Deployment,
    ) -> Option<Result<AnnouncedPlan, PlanRefusalError>> {
        match self {
            Self::Verified(receipt) => receipt.listed_plan(deployment),
            Self::Bounded(_) => None,
        }
    }
}

impl SignedRow {
    /// One word for each row of the release.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        match self {
            Self::Verified(row) => row.words(),
            Self::Bounded(row) => row.words(),
        }
    }

    /// Owners with data, as the members have stated them.
    #[must_use]
    pub fn population(&self) -> u32 {
        match self {
            Self::Verified(row) => row.population(),
            Self::Bounded(row) => row.population(),
        }
    }

    /// Of a bounded row: the members of its window without which it opened.
    #[must_use]
    pub fn left_out(&self) -> Option<u32> {
        match self {
            Self::Verified(_) => None,
            Self::Bounded(row) => Some(row.left_out()),
        }
    }

    /// The sum as it is sealed to the plan's consumer. Bounded rows are sealed to nobody.
    #[must_use]
    pub fn sealed(&self) -> Option<SealedSum> {
        match self {
            Self::Verified(row) => Some(row.sealed()),
            Self::Bounded(_) => None,
        }
    }

    /// Checks that a row states at least as many streams as left out as controllers have signed.
    ///
    /// # Errors
    /// [`ReceiptError::FewerExcluded`].
    pub fn check_excluded(&self, stated: u64) -> Result<(), ReceiptError> {
        match self {
            Self::Verified(row) => row.check_excluded(stated),
            Self::Bounded(row) => row.check_excluded(stated),
        }
    }
}

/// What the row is, in the words that people read.
impl std::fmt::Display for SignedRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Verified(row) => row.fmt(f),
            Self::Bounded(row) => row.fmt(f),
        }
    }
}
