//! Who may write. A database looks whether a write's quota is unspent before it opens
//! the write, spends it with the write that is good, and expands no key before: so a member
//! who sends bad envelopes costs a decryption each, and never an expansion.

use crate::configuration::Epoch;
use crate::messages::{Tag, WriteName};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::sign::{Signature, SigningKey, VerifyingKey};
use alpheus_crypto::signed::{Message, Signed};
use serde::{Deserialize, Serialize};
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

impl<A: Admission + ?Sized> Admission for Box<A> {
    fn tag(&self, epoch: Epoch, write: &WriteName, ticket: &[u8]) -> Result<Tag, NotAdmitted> {
        (**self).tag(epoch, write, ticket)
    }

    fn digest(&self) -> Digest {
        (**self).digest()
    }
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

/// A writer may write once to a board in an epoch: what a doorkeeper says once it has
/// seen a pass that was not shown in that epoch before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// The board.
    pub board: [u8; 32],
    /// The epoch.
    pub epoch: Epoch,
    /// A key that the writer has drawn for this epoch alone.
    pub writer: VerifyingKey,
}

impl Message for Admitted {
    const LABEL: &'static str = labels::BOARD_ADMITTED;
}

/// Passes, shown to a doorkeeper: whoever holds one writes once in every epoch.
///
/// The doorkeeper is apart from the board's servers, since whoever checks passes can make
/// them: a database that did could make any crowd.
///
/// # Privacy
/// Nobody learns who takes part, the doorkeeper and the issuer of passes together neither,
/// and no two epochs of one writer can be linked, but by what the network shows.
pub struct Doorkeeper {
    key: VerifyingKey,
    passes: Digest,
    board: [u8; 32],
}

/// What a writer sends with a write.
#[derive(Serialize, Deserialize)]
struct DoorTicket {
    admitted: Signed<Admitted>,
    signature: Signature,
}

impl Doorkeeper {
    /// Who keeps a board's door by this key, for passes of one configuration, which
    /// `passes` names.
    #[must_use]
    pub fn new(key: VerifyingKey, passes: Digest, board: [u8; 32]) -> Self {
        Self { key, passes, board }
    }

    /// The tag of a writer that was admitted.
    #[must_use]
    pub fn tag_of(writer: &VerifyingKey) -> Tag {
        Tag(*writer.as_bytes())
    }

    /// A writer's ticket for a write; `signature` is its own, under
    /// [`BOARD_TICKET`](labels::BOARD_TICKET), of the write's name.
    #[must_use]
    pub fn ticket(admitted: &Signed<Admitted>, signature: Signature) -> Vec<u8> {
        let ticket = DoorTicket { admitted: admitted.clone(), signature };
        // Writing into memory does not fail.
        postcard::to_allocvec(&ticket).unwrap_or_default()
    }

    /// Whether the doorkeeper admits this writer to this epoch: what a writer looks at
    /// before it makes a write.
    ///
    /// # Errors
    /// [`NotAdmitted`].
    pub fn check(
        &self,
        epoch: Epoch,
        admitted: &Signed<Admitted>,
    ) -> Result<VerifyingKey, NotAdmitted> {
        let admitted = admitted.open(&self.key).map_err(|_| NotAdmitted)?;
        let fits = admitted.board == self.board && admitted.epoch == epoch;
        if fits { Ok(admitted.writer) } else { Err(NotAdmitted) }
    }
}

impl Admission for Doorkeeper {
    fn tag(&self, epoch: Epoch, write: &WriteName, ticket: &[u8]) -> Result<Tag, NotAdmitted> {
        let (ticket, rest) =
            postcard::take_from_bytes::<DoorTicket>(ticket).map_err(|_| NotAdmitted)?;
        let writer = self.check(epoch, &ticket.admitted)?;
        let signed = writer.verify(labels::BOARD_TICKET, write.0.as_ref(), &ticket.signature);
        if rest.is_empty() && signed.is_ok() { Ok(Self::tag_of(&writer)) } else { Err(NotAdmitted) }
    }

    fn digest(&self) -> Digest {
        labelled(labels::BOARD_DOOR, &[self.key.as_bytes(), self.passes.as_ref()])
    }
}
