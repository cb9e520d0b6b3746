//! What a service signs of a text that it states as evidence (`docs/wire-formats.md`).

use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::signed_message::Message;
use serde::{Deserialize, Serialize};

/// "These lines are what I state." It does not show that they are true; what they name, does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceSeal {
    /// Of the text.
    pub digest: Digest,
    /// How many lines it has.
    pub lines: u64,
}

impl Message for EvidenceSeal {
    const LABEL: &'static str = labels::EVIDENCE;
}

impl EvidenceSeal {
    /// Of this text.
    #[must_use]
    pub fn of(text: &str) -> EvidenceSeal {
        let digest = labelled_hash(labels::EVIDENCE_LINES, &[text.as_bytes()]);
        EvidenceSeal { digest, lines: text.lines().count() as u64 }
    }
}

/// The digest by which a text names an announcement or a receipt.
#[must_use]
pub fn exhibit(bytes: &[u8]) -> Digest {
    labelled_hash(labels::EVIDENCE_EXHIBIT, &[bytes])
}
