//! Who may write. A database looks whether a write's quota is unspent before it opens
//! the write, spends it with the write that is good, and expands no key before: so a member
//! who sends bad envelopes costs a decryption each, and never an expansion.

use crate::configuration::Epoch;
use crate::messages::{Tag, WriteName};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::sign::{Signature, SigningKey, VerifyingKey};
use std::collections::HashMap;

/// A ticket entitles to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ticket entitles to no write in this epoch; get one from whoever admits to this board")]
pub struct NotAdmitted;

/// Says whose quota a ticket spends. A tag is worth one write in each epoch; the
/// database keeps which are spent.
pub trait Admission {
    /// The tag of a ticket for this write.
    ///
    /// # Errors
    /// [`NotAdmitted`].
    fn tag(&self, epoch: Epoch, write: &WriteName, ticket: &[u8]) -> Result<Tag, NotAdmitted>;

    /// What the board's configuration names this admission by.
    fn digest(&self) -> Digest;
}

/// Members by their keys: each writes once in every epoch, messages or covers.
///
/// # Privacy
/// Everybody sees which members took part in an epoch, and nobody what they wrote.
pub struct Members(HashMap<Tag, VerifyingKey>);

impl Members {
    /// A list of members.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = VerifyingKey>) -> Self {
        Self(keys.into_iter().map(|key| (Self::tag_of(&key), key)).collect())
    }

    /// A member's tag.
    #[must_use]
    pub fn tag_of(key: &VerifyingKey) -> Tag {
        Tag(*key.as_bytes())
    }

    /// A member's ticket for a write: key and signature.
    #[must_use]
    pub fn ticket(key: &SigningKey, write: &WriteName) -> Vec<u8> {
        let signature = key.sign(labels::BOARD_TICKET, write.0.as_ref());
        [key.verifying_key().as_bytes().as_slice(), &signature.to_bytes()].concat()
    }
}

impl Admission for Members {
    fn tag(&self, _: Epoch, write: &WriteName, ticket: &[u8]) -> Result<Tag, NotAdmitted> {
        let (member, signature) = ticket.split_first_chunk::<32>().ok_or(NotAdmitted)?;
        let signature: &[u8; 64] = signature.try_into().map_err(|_| NotAdmitted)?;
        let tag = Tag(*member);
        let key = self.0.get(&tag).ok_or(NotAdmitted)?;
        let signature = Signature::from_bytes(signature);
        let signed = key.verify(labels::BOARD_TICKET, write.0.as_ref(), &signature);
        signed.map(|()| tag).map_err(|_| NotAdmitted)
    }

    fn digest(&self) -> Digest {
        let mut tags: Vec<&Tag> = self.0.keys().collect();
        tags.sort();
        let bytes: Vec<&[u8]> = tags.iter().map(|tag| tag.0.as_slice()).collect();
        labelled(labels::BOARD_MEMBERS, &bytes)
    }
}
