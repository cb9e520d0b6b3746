//! Receipts of verified windows: what the members of a window said, from which anyone who trusts
//! the deployment's authority recomputes the row (`docs/protocol.md`, *Receipts*).
//!
//! | file | contents |
//! | --- | --- |
//! | [`verify`](crate::receipt::Receipt::verify) | the checks, a pure function |
//! | [`error`] | what does not hold |
//! | [`exclusions`](ExcludingPresence) | who left out streams, and signed that |
//! | [`bounded_receipt`](BoundedReceipt::verify) | the same of bounded windows, with all proofs |
//! | [`window`](WindowReceipt) | either of them, as bytes |
//!
//! # Privacy
//! A receipt shows which controllers were present and how many owners with data each stated. Its
//! readers learn of values what the service learns: the sum, as long as no more than t of the
//! members help them.

mod bounded_receipt;
pub mod error;
mod exclusions;
mod verify;
mod window;

pub use bounded_receipt::{BoundedReceipt, BoundedShare, BoundedWindow, BoundsError};
pub use error::{ReceiptError, SharePart};
pub use exclusions::{ExcludingPresence, SignedExclusions};
pub use verify::VerifiedRow;
pub use window::{SignedRow, WindowReceipt};

use std::sync::Arc;

use alpheus_crypto::signed_message::Signed;
use serde::{Deserialize, Serialize};

use crate::announced_plan::AnnouncedPlan;
use crate::certificate::Deployment;
use crate::error::PlanRefusalError;
use crate::messages::{Listing, Membership, Opening, OpeningSet, Token};

/// Version of the format.
const VERSION: u8 = 2;
/// The same with the list of the window's members.
const LISTED_VERSION: u8 = 3;
/// That of a bounded window. Other versions are refused.
const BOUNDED_VERSION: u8 = 4;
/// Longest receipt that is read, in bytes: one of eight million controllers with 16 outputs, or with proofs of
/// five million owners. More than a window can have in practice, and than a reader wants to hold.
pub const MAX_BYTES: u64 = 1 << 32;

/// What the members of a verified window said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// M.
    pub membership: Signed<Membership>,
    /// S. None with a single controller, whose share opens by itself.
    pub opening_set: Option<Signed<OpeningSet>>,
    /// One for each member of S, in roster order.
    pub shares: Vec<Share>,
    /// One for each member of M that left out streams of its summons, in roster order.
    pub exclusions: Vec<ExcludingPresence>,
    /// By epochs: the list from which the window's plan follows, with its call and its members'
    /// certificates. Nobody keeps it elsewhere.
    #[serde(skip)]
    pub listing: Option<Arc<Listing>>,
}

/// What one member of S said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Z: its owners' window sums, under its masks.
    pub token: Signed<Token>,
    /// o. None with a single controller.
    pub opening: Option<Signed<Opening>>,
}

/// The bytes are not a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptFormatError {
    /// Longer than any receipt.
    #[error("a receipt cannot have as many as {0} bytes")]
    TooLong(usize),
    /// Written by another version of the program.
    #[error("the receipt has format {0}, but this version reads {VERSION} to {BOUNDED_VERSION}")]
    Version(u8),
    /// Truncated, too long, or in another than the one form.
    #[error("the bytes are not a receipt")]
    Malformed,
}

impl Receipt {
    /// The receipt as bytes: a version and its content. Each receipt has one form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = match &self.listing {
            None => postcard::to_extend(self, vec![VERSION]),
            Some(listing) => postcard::to_extend(&(self, &**listing), vec![LISTED_VERSION]),
        };
        // Plain data, so serialisation cannot fail.
        bytes.unwrap_or_default()
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
        let listing = self.listing.as_ref()?;
        Some(AnnouncedPlan::open_list(listing, deployment))
    }

    /// Reads a receipt. Nothing of it is checked.
    ///
    /// # Errors
    /// [`ReceiptFormatError`] if the bytes are not the one form of a receipt.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReceiptFormatError> {
        let (version, content) = version_of(bytes)?;
        let receipt: Self = match version {
            VERSION => postcard::from_bytes(content),
            LISTED_VERSION => postcard::from_bytes::<(Self, Listing)>(content)
                .map(|(receipt, listing)| receipt.with(listing)),
            other => return Err(ReceiptFormatError::Version(other)),
        }
        .map_err(|_| ReceiptFormatError::Malformed)?;
        // Bytes that follow are no part of that form either.
        if receipt.to_bytes() == bytes { Ok(receipt) } else { Err(ReceiptFormatError::Malformed) }
    }

    fn with(self, listing: Listing) -> Self {
        Self { listing: Some(Arc::new(listing)), ..self }
    }
}

/// The version of a receipt that is not too long to be read, and what follows it.
fn version_of(bytes: &[u8]) -> Result<(u8, &[u8]), ReceiptFormatError> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ReceiptFormatError::TooLong(bytes.len()));
    }
    let (version, content) = bytes.split_first().ok_or(ReceiptFormatError::Malformed)?;
    Ok((*version, content))
}
