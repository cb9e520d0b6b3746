//! Receipts of verified windows: what the members of a window said, from which anyone who trusts
//! the deployment's authority recomputes the row (`docs/protocol.md`, *Receipts*).
//!
//! | file | contents |
//! | --- | --- |
//! | [`verify`](crate::receipt::Receipt::verify) | the checks, a pure function |
//! | [`error`] | what does not hold |
//! | [`exclusions`](ExcludingPresence) | who left out streams, and signed that |
//!
//! # Privacy
//! A receipt shows which controllers were present and how many owners with data each stated. Its
//! readers learn of values what the service learns: the sum, as long as no more than t of the
//! members help them.

pub mod error;
mod exclusions;
mod verify;

pub use error::{ReceiptError, SharePart};
pub use exclusions::{ExcludingPresence, SignedExclusions};
pub use verify::VerifiedRow;

use alpheus_crypto::signed::Signed;
use serde::{Deserialize, Serialize};

use crate::messages::{Membership, Opening, OpeningSet, Token};

/// Version of the format. Others are refused.
const VERSION: u8 = 2;
/// Longest receipt that is read, in bytes: one of a million controllers with 16 outputs.
pub const MAX_BYTES: usize = 1 << 29;

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
    #[error("{0} bytes are more than a receipt has")]
    TooLong(usize),
    /// Written by another version of the program.
    #[error("the receipt has format {0}, but this version reads format {VERSION}")]
    Version(u8),
    /// Truncated, too long, or in another than the one form.
    #[error("the bytes are not a receipt")]
    Malformed,
}

impl Receipt {
    /// The receipt as bytes: a version and its content. Each receipt has one form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Plain data, so serialisation cannot fail.
        postcard::to_extend(self, vec![VERSION]).unwrap_or_default()
    }

    /// Reads a receipt. Nothing of it is checked.
    ///
    /// # Errors
    /// [`ReceiptFormatError`] if the bytes are not the one form of a receipt.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReceiptFormatError> {
        if bytes.len() > MAX_BYTES {
            return Err(ReceiptFormatError::TooLong(bytes.len()));
        }
        let (version, content) = bytes.split_first().ok_or(ReceiptFormatError::Malformed)?;
        if *version != VERSION {
            return Err(ReceiptFormatError::Version(*version));
        }
        let (receipt, rest): (Self, &[u8]) =
            postcard::take_from_bytes(content).map_err(|_| ReceiptFormatError::Malformed)?;
        let canonical = rest.is_empty() && receipt.to_bytes() == bytes;
        if canonical { Ok(receipt) } else { Err(ReceiptFormatError::Malformed) }
    }
}
