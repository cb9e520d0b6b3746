//! A window's sum under the pads of its opening set.

use alpheus_crypto::hash::Digest;
use alpheus_policy::ids::PlanId;
use alpheus_time::Window;
use serde::{Deserialize, Serialize};

use crate::mask::set::RosterSet;

/// Version of the encoding below; other versions are rejected.
const VERSION: u8 = 1;

/// What the service publishes for a window that is sealed to a consumer. It is all
/// that the consumer needs besides its key and the plan.
///
/// # Privacy
/// The words look random to anyone who lacks the consumer's key and the key of
/// at least one controller of the set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedSum {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// H(M): the membership that the pads are bound to.
    pub membership: Digest,
    /// S: the controllers whose pads are in the words.
    pub set: RosterSet,
    /// One word for each row of the release.
    pub words: Vec<u64>,
}

/// Why bytes are not a sealed sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealedSumError {
    /// The version is not supported.
    #[error(
        "the sealed sum has version {0} and this program reads version {VERSION}; use the same version as the service"
    )]
    Version(u8),
    /// Truncated, with trailing bytes, or not in canonical form.
    #[error("the bytes are not one sealed sum; request the row from the service again")]
    Malformed,
}

impl SealedSum {
    /// The canonical encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Only integers, bytes and lists, so serialisation cannot fail.
        let body = postcard::to_allocvec(self).unwrap_or_default();
        std::iter::once(VERSION).chain(body).collect()
    }

    /// Decodes a sealed sum.
    ///
    /// # Errors
    /// [`SealedSumError`] if the bytes are not the canonical form of one.
    pub fn from_bytes(bytes: &[u8]) -> Result<SealedSum, SealedSumError> {
        let (version, body) = bytes.split_first().ok_or(SealedSumError::Malformed)?;
        if *version != VERSION {
            return Err(SealedSumError::Version(*version));
        }
        let sum: SealedSum = postcard::from_bytes(body).map_err(|_| SealedSumError::Malformed)?;
        if sum.to_bytes() == bytes { Ok(sum) } else { Err(SealedSumError::Malformed) }
    }
}
