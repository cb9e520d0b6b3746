//! What a tuple is bound to, so that it counts nowhere else.

use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::onetime::OneTimePublic;
use serde::{Deserialize, Serialize};

/// One upload. Both proofs of a tuple are about it: under another tag, aggregate or key they are
/// invalid. The key has one slot ever, so nothing else need name the slot, and a tuple can be proven
/// before there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The tag of the upload credential's presentation that pays for the tuple.
    pub tag: Element,
    /// The aggregate: location, time, definition.
    pub aggregate: Digest,
    /// The client's key for this upload alone.
    pub ephemeral: OneTimePublic,
}

impl Binding {
    /// A digest of all fields.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let parts: [&[u8]; 3] =
            [self.tag.as_bytes(), self.aggregate.as_bytes(), self.ephemeral.as_bytes()];
        labelled_hash(labels::STATISTICS_BINDING, &parts)
    }
}
