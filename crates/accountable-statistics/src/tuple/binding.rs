//! What a tuple is bound to, so that it counts nowhere else.

use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use serde::{Deserialize, Serialize};

/// One use of one slot. Both proofs of a tuple are about it: under another tag, aggregate, slot,
/// revision or key they are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The tag of the upload credential's presentation that pays for the tuple.
    pub tag: Element,
    /// The aggregate: location, time, definition.
    pub aggregate: Digest,
    /// The slot in the aggregate.
    pub slot: u32,
    /// Identifies the grant of the slot. Drawn at random, so that it reveals nothing.
    pub revision: u64,
    /// The client's key for this upload alone.
    pub ephemeral: VerifyingKey,
}

impl Binding {
    /// A digest of all fields.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let (slot, revision) = (self.slot.to_be_bytes(), self.revision.to_be_bytes());
        let ephemeral: [u8; 32] = self.ephemeral.into();
        let parts: [&[u8]; 5] =
            [self.tag.as_bytes(), self.aggregate.as_bytes(), &slot, &revision, &ephemeral];
        labelled_hash(labels::STATISTICS_BINDING, &parts)
    }
}
