//! A window's sum under the pads of those who count in it.

use alpheus_crypto::hash::Digest;
use alpheus_policy::ids::PlanId;
use alpheus_policy::time::Window;
use serde::{Deserialize, Serialize};

use crate::mask::set::RosterSet;

/// Version of the form below; another one is refused.
const VERSION: u8 = 1;

/// What the service publishes of a window that is sealed to a consumer: all that the
/// consumer needs beside its key and the plan.
///
/// # Privacy
/// The words are as good as random to whoever lacks the consumer's key and that of
/// one controller of the set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedSum {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// H(M): what the pads are bound to.
    pub membership: Digest,
    /// S: whose pads are in the words.
    pub set: RosterSet,
    /// One word for each row of the release.
    pub words: Vec<u64>,
}

/// Bytes that are no sealed sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSealedSum {
    /// Of another version.
    #[error(
        "the sealed sum has version {0}, and this program reads version {VERSION}: use the version that the service has"
    )]
    Version(u8),
    /// Cut short, with something behind it, or not in its one form.
    #[error("the bytes are not one sealed sum; ask the service for the row again")]
    Malformed,
}

impl SealedSum {
    /// Its one form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Only integers, bytes and lists, so serialisation cannot fail.
        let body = postcard::to_allocvec(self).unwrap_or_default();
        std::iter::once(VERSION).chain(body).collect()
    }

    /// Reads it back.
    ///
    /// # Errors
    /// [`NotSealedSum`].
    pub fn from_bytes(bytes: &[u8]) -> Result<SealedSum, NotSealedSum> {
        let (version, body) = bytes.split_first().ok_or(NotSealedSum::Malformed)?;
        if *version != VERSION {
            return Err(NotSealedSum::Version(*version));
        }
        let sum: SealedSum = postcard::from_bytes(body).map_err(|_| NotSealedSum::Malformed)?;
        if sum.to_bytes() == bytes { Ok(sum) } else { Err(NotSealedSum::Malformed) }
    }
}
