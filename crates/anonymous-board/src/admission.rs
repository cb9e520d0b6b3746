//! Who may write. A database checks that the quota is unspent before it opens a write, and spends
//! the quota when it accepts the write. It expands no key before that. So a member who sends bad
//! envelopes costs one decryption each and never an expansion.

use crate::configuration::Epoch;
use crate::messages::{Tag, WriteName};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::sign::{Signature, SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::{Message, Signed};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A ticket is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ticket does not allow a write in this epoch; get one from the party that admits writers to this board"
)]
pub struct AdmissionError;

/// Decides whose quota a ticket spends. A tag allows one write per epoch; the database records
/// which tags are spent.
pub trait Admission {
    /// The tag that a ticket for this write spends.
    ///
    /// # Errors
    /// [`AdmissionError`].
    fn tag(&self, epoch: Epoch, write: &WriteName, ticket: &[u8]) -> Result<Tag, AdmissionError>;

    /// The digest that identifies this admission in the board's configuration.
    fn digest(&self) -> Digest;
}

impl<A: Admission + ?Sized> Admission for Box<A> {
    fn tag(&self, epoch: Epoch, write: &WriteName, ticket: &[u8]) -> Result<Tag, AdmissionError> {
        (**self).tag(epoch, write, ticket)
    }

    fn digest(&self) -> Digest {
        (**self).digest()
    }
}

/// Everybody sees which members took part in an epoch. Nobody sees what they wrote.
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

    /// A member's ticket for a write: the key and a signature.
    #[must_use]
    pub fn ticket(key: &SigningKey, write: &WriteName) -> Vec<u8> {
        let signature = key.sign(labels::BOARD_TICKET, write.0.as_ref());
        [key.verifying_key().as_bytes().as_slice(), &signature.to_bytes()].concat()
    }
}

impl Admission for Members {
    fn tag(&self, _: Epoch, write: &WriteName, ticket: &[u8]) -> Result<Tag, AdmissionError> {
        let (member, signature) = ticket.split_first_chunk::<32>().ok_or(AdmissionError)?;
        let signature: &[u8; 64] = signature.try_into().map_err(|_| AdmissionError)?;
        let tag = Tag(*member);
        let key = self.0.get(&tag).ok_or(AdmissionError)?;
        let signature = Signature::from_bytes(signature);
        let signed = key.verify(labels::BOARD_TICKET, write.0.as_ref(), &signature);
        signed.map(|()| tag).map_err(|_| AdmissionError)
    }

    fn digest(&self) -> Digest {
        let mut tags: Vec<&Tag> = self.0.keys().collect();
        tags.sort();
        let bytes: Vec<&[u8]> = tags.iter().map(|tag| tag.0.as_slice()).collect();
        labelled_hash(labels::BOARD_MEMBERS, &bytes)
    }
}

/// Allows a writer to write once to a board in an epoch. A doorkeeper signs it after it has checked
/// a pass that was not presented in that epoch before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// The board.
    pub board: [u8; 32],
    /// The epoch.
    pub epoch: Epoch,
    /// A key that the writer drew for this epoch only.
    pub writer: VerifyingKey,
}

impl Message for Permit {
    const LABEL: &'static str = labels::BOARD_ADMISSION;
}

/// Passes, presented to a doorkeeper: anyone who holds one writes once per epoch.
///
/// The doorkeeper is not one of the board's servers. A party that checks passes can make them, so a
/// database that did so could make any crowd.
///
/// # Privacy
/// Nobody learns who takes part, not even the doorkeeper together with the issuer of passes. Two
/// epochs of one writer cannot be linked, except through what the network reveals.
pub struct Doorkeeper {
    key: VerifyingKey,
    passes: Digest,
    board: [u8; 32],
}

/// The ticket that a writer sends with a write.
#[derive(Serialize, Deserialize)]
struct DoorTicket {
    permit: Signed<Permit>,
    signature: Signature,
}

impl Doorkeeper {
    /// The doorkeeper with this key, for passes of the configuration that `passes` identifies.
    #[must_use]
    pub fn new(key: VerifyingKey, passes: Digest, board: [u8; 32]) -> Self {
        Self { key, passes, board }
    }

    /// An admitted writer's tag.
    #[must_use]
    pub fn tag_of(writer: &VerifyingKey) -> Tag {
        Tag(*writer.as_bytes())
    }

    /// A writer's ticket for a write. `signature` is the writer's signature of the write's name
    /// under [`BOARD_TICKET`](labels::BOARD_TICKET).
    #[must_use]
    pub fn ticket(permit: &Signed<Permit>, signature: Signature) -> Vec<u8> {
        let ticket = DoorTicket { permit: permit.clone(), signature };
        // Writing into memory does not fail.
        postcard::to_allocvec(&ticket).unwrap_or_default()
    }

    /// Checks that the doorkeeper admits this writer to this epoch. A writer checks this before it
    /// makes a write.
    ///
    /// # Errors
    /// [`AdmissionError`].
    pub fn check(
        &self,
        epoch: Epoch,
        permit: &Signed<Permit>,
    ) -> Result<VerifyingKey, AdmissionError> {
        let permit = permit.open(&self.key).map_err(|_| AdmissionError)?;
        let fits = permit.board == self.board && permit.epoch == epoch;
        if fits { Ok(permit.writer) } else { Err(AdmissionError) }
    }
}

impl Admission for Doorkeeper {
    fn tag(&self, epoch: Epoch, write: &WriteName, ticket: &[u8]) -> Result<Tag, AdmissionError> {
        let (ticket, rest) =
            postcard::take_from_bytes::<DoorTicket>(ticket).map_err(|_| AdmissionError)?;
        let writer = self.check(epoch, &ticket.permit)?;
        let signed = writer.verify(labels::BOARD_TICKET, write.0.as_ref(), &ticket.signature);
        if rest.is_empty() && signed.is_ok() {
            Ok(Self::tag_of(&writer))
        } else {
            Err(AdmissionError)
        }
    }

    fn digest(&self) -> Digest {
        labelled_hash(labels::BOARD_DOOR, &[self.key.as_bytes(), self.passes.as_ref()])
    }
}
