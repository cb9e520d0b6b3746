//! Message authentication: HMAC-SHA256, truncated to 16 bytes.

use crate::secret::Secret;
use hmac::{Hmac, KeyInit, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// A key for tags, expanded once. Not `Clone`, not `Debug`, wiped on drop.
pub struct MacKey(Hmac<Sha256>);

/// A tag. Public. It has 16 bytes, so each attempt at a forgery succeeds with probability 2^-128.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Tag(pub [u8; 16]);

impl PartialEq for Tag {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Tag {}

/// A tag does not match the message under this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tag does not match this message under this key")]
pub struct TagError;

impl MacKey {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &Secret<32>) -> Self {
        #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
        Self(Hmac::new_from_slice(key.expose()).expect("any length"))
    }

    /// Computes the tag of a label and parts, each preceded by its length.
    #[must_use]
    pub fn tag(&self, label: &str, parts: &[&[u8]]) -> Tag {
        let mut mac = self.0.clone();
        for part in std::iter::once(label.as_bytes()).chain(parts.iter().copied()) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        let full: [u8; 32] = mac.finalize().into_bytes().into();
        let mut tag = [0; 16];
        tag.copy_from_slice(&full[..16]);
        Tag(tag)
    }

    /// Checks a tag in constant time.
    ///
    /// # Errors
    /// [`TagError`] if the message, label, key or tag differs.
    pub fn verify(&self, label: &str, parts: &[&[u8]], tag: &Tag) -> Result<(), TagError> {
        if self.tag(label, parts) == *tag { Ok(()) } else { Err(TagError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_verifies_only_for_its_message_label_and_key() {
        let key = MacKey::new(&Secret::from_bytes([1; 32]));
        let tag = key.tag("label", &[b"a", b"bc"]);
        assert_eq!(key.verify("label", &[b"a", b"bc"], &tag), Ok(()));
        assert_eq!(key.verify("label", &[b"ab", b"c"], &tag), Err(TagError));
        assert_eq!(key.verify("other", &[b"a", b"bc"], &tag), Err(TagError));
        let other = MacKey::new(&Secret::from_bytes([2; 32]));
        assert_eq!(other.verify("label", &[b"a", b"bc"], &tag), Err(TagError));
        for bit in 0..128 {
            let mut forged = tag;
            forged.0[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.verify("label", &[b"a", b"bc"], &forged), Err(TagError));
        }
    }
}
