//! A board's card: its configuration, where its servers are, their authority. It is
//! public, signed, and pinned by everybody; who holds another card is on another
//! board.

use crate::board::keys;
use crate::failure::{Blame, Category, Failure};
use crate::pass::link::{BadBase, Base};
use crate::replay::inputs::read_text;
use alpheus_anonymous_board::admission::{Admission, Doorkeeper};
use alpheus_anonymous_board::configuration::{BadConfiguration, Configuration, Party, Pinned};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::{Message, Rejected, Signed};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use std::path::Path;

const VERSION: u32 = 2;

/// The card's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    version: u32,
    /// Verifies the rest: 32 bytes in hexadecimal digits.
    operator: String,
    /// What is signed, in hexadecimal digits.
    card: String,
}

/// What is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    configuration: Signed<Configuration>,
    /// Addresses, in the servers' order.
    at: Vec<String>,
    /// Authorities of their certificates, in PEM form.
    authority: Option<String>,
    /// Who admits by passes, if the board has no members.
    door: Option<Door<String>>,
}

/// The doorkeeper of a board whose writers show passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door<At> {
    /// Where it is.
    pub at: At,
    /// Its key.
    pub key: VerifyingKey,
    /// Names the passes' configuration.
    pub passes: Digest,
}

impl<At> Door<At> {
    /// What a board's servers check its word by.
    #[must_use]
    pub fn keeper(&self, board: &Configuration) -> Doorkeeper {
        Doorkeeper::new(self.key, self.passes, board.board)
    }
}

impl Message for Content {
    const LABEL: &'static str = labels::BOARD_CARD;
}

/// A card that was checked.
#[derive(Clone)]
pub struct Opened {
    /// The board.
    pub board: Pinned,
    /// Where its servers are, in their order.
    pub at: Vec<Base>,
    /// Authorities of their certificates.
    pub authority: Option<String>,
    /// Who admits by passes, if the board has no members.
    pub door: Option<Door<Base>>,
}

/// A card that is not to be used.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// Another version.
    #[error("version {0} of a board's card is not known here, only version 2")]
    Version(u32),
    /// Not what it should be.
    #[error(
        "the card is damaged: `operator` and `card` hold hexadecimal digits of a key and of what it signed"
    )]
    Damaged,
    /// Not signed by its operator.
    #[error("the card is not signed by its operator: {0}")]
    Signature(Rejected),
    /// The configuration is not to be used.
    #[error(transparent)]
    Configuration(#[from] BadConfiguration),
    /// An address is none.
    #[error("the {0}'s address: {1}")]
    Address(Party, BadBase),
    /// The doorkeeper's address is none.
    #[error("the doorkeeper's address: {0}")]
    DoorAddress(BadBase),
    /// Another doorkeeper than the configuration's.
    #[error("the doorkeeper is another than the one of the board's configuration")]
    Door,
}

impl Card {
    /// Signs a card.
    #[must_use]
    pub fn new(
        configuration: &Configuration,
        at: Vec<String>,
        authority: Option<String>,
        door: Option<Door<String>>,
        operator: &SigningKey,
    ) -> Self {
        let configuration = Signed::new(configuration, operator);
        let signed = Signed::new(&Content { configuration, at, authority, door }, operator);
        let card = HEXLOWER.encode(&postcard::to_allocvec(&signed).unwrap_or_default());
        Self { version: VERSION, operator: keys::hex(&operator.verifying_key()), card }
    }

    /// Checks a card.
    ///
    /// # Errors
    /// [`CardError`].
    pub fn open(&self) -> Result<Opened, CardError> {
        if self.version != VERSION {
            return Err(CardError::Version(self.version));
        }
        let operator: VerifyingKey = keys::public(&self.operator).ok_or(CardError::Damaged)?;
        let bytes =
            HEXLOWER_PERMISSIVE.decode(self.card.as_bytes()).map_err(|_| CardError::Damaged)?;
        let signed: Signed<Content> =
            postcard::from_bytes(&bytes).map_err(|_| CardError::Damaged)?;
        let content = signed.open(&operator).map_err(CardError::Signature)?.into_inner();
        let board = Pinned::open(&content.configuration, &operator)?;
        if content.at.len() != board.parties().len() {
            return Err(CardError::Damaged);
        }
        let base = |(party, at): (&Party, &String)| {
            Base::parse(at).map_err(|bad| CardError::Address(*party, bad))
        };
        let at = board.parties().iter().zip(&content.at).map(base).collect::<Result<_, _>>()?;
        let door = content.door.clone().map(|door| {
            let known = door.keeper(&board).digest() == board.admission;
            let at = Base::parse(&door.at).map_err(CardError::DoorAddress)?;
            let Door { key, passes, .. } = door;
            known.then_some(Door { at, key, passes }).ok_or(CardError::Door)
        });
        Ok(Opened { board, at, authority: content.authority.clone(), door: door.transpose()? })
    }
}

/// Reads a card and opens it.
///
/// # Errors
/// If it cannot be read, or is not to be used.
pub fn open(path: &Path) -> Result<Opened, Failure> {
    let card: Card = serde_json::from_str(&read_text(path)?).blame_input(path)?;
    card.open().map_err(|error| Failure::new(Category::Input, error).at(path.display().to_string()))
}
