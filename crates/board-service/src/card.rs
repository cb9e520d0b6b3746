//! A board's card: its configuration, the addresses of its servers, and their certificate
//! authority. The card is public and signed, and all participants pin it. A different card means
//! a different board.

use alpheus_anonymous_board::admission::{Admission, Doorkeeper};
use alpheus_anonymous_board::configuration::{
    Board, Configuration, ConfigurationError, Party, Schedule,
};
use alpheus_anonymous_credential::schedule::Schedule as PassSchedule;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use alpheus_node::card::{self, CardContent, CardError};
use alpheus_node::failure::Failure;
use alpheus_node::network::base::{Base, BaseUrlError};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The card's file.
pub type Card = card::Card<Content>;

/// The signed content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    configuration: Signed<Configuration>,
    /// Addresses, in the servers' order.
    at: Vec<String>,
    /// Certificate authorities of the servers, in PEM form.
    authority: Option<String>,
    /// The doorkeeper, if the board admits by pass.
    door: Option<Door<String>>,
}

/// The doorkeeper of a board that admits by pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door<At> {
    /// Its address.
    pub at: At,
    /// Its key.
    pub key: VerifyingKey,
    /// The fingerprint of the passes' configuration.
    pub passes: Digest,
}

impl<At> Door<At> {
    /// The verifier of its permits, for a board's servers.
    #[must_use]
    pub fn keeper(&self, board: &Configuration) -> Doorkeeper {
        Doorkeeper::new(self.key, self.passes, board.board)
    }
}

impl Message for Content {
    const LABEL: &'static str = labels::BOARD_CARD;
}

/// A verified card.
#[derive(Clone)]
pub struct VerifiedCard {
    /// The board.
    pub board: Board,
    /// The servers' addresses, in their order.
    pub at: Vec<Base>,
    /// Certificate authorities of the servers.
    pub authority: Option<String>,
    /// The doorkeeper, if the board admits by pass.
    pub door: Option<Door<Base>>,
}

/// A card cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BoardCardError {
    /// The file is invalid.
    #[error(transparent)]
    File(#[from] CardError),
    /// The number of addresses is wrong.
    #[error(
        "the card must have one address per server; get the card from the board's operator again"
    )]
    Number,
    /// The configuration is invalid.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// A server's address is invalid.
    #[error("the {0}'s address: {1}")]
    Address(Party, BaseUrlError),
    /// The doorkeeper's address is invalid.
    #[error("the doorkeeper's address: {0}")]
    DoorAddress(BaseUrlError),
    /// The doorkeeper differs from the configuration's.
    #[error(
        "the doorkeeper differs from the one in the board's configuration; get the card from the board's operator again"
    )]
    Door,
}

/// Files that do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MismatchError {
    /// No server of this role has the key.
    #[error(
        "no server of this role on the card has this key; give the key whose public half is on the card"
    )]
    Key,
    /// The members differ from the card's.
    #[error(
        "the list of members differs from the card's; give the list that the card was created with"
    )]
    Members,
    /// The doorkeeper differs from the card's.
    #[error(
        "the key or the passes differ from the card's; give the key and the deployment that `alpheus board init` received with --door-key and --passes"
    )]
    Door,
    /// The board's epochs differ from the passes' epochs.
    #[error(
        "the board's epochs differ from those of the passes, so a pass would write twice in one epoch or not at all; create the card with `alpheus board init --passes`"
    )]
    Epochs,
}

impl Content {
    /// The content for a configuration, which `operator` signs.
    #[must_use]
    pub fn new(
        configuration: &Configuration,
        at: Vec<String>,
        authority: Option<String>,
        door: Option<Door<String>>,
        operator: &SigningKey,
    ) -> Self {
        Self { configuration: Signed::new(configuration, operator), at, authority, door }
    }
}

impl CardContent for Content {
    const VERSION: u32 = 2;
    type ValidCard = VerifiedCard;
    type Error = BoardCardError;

    fn check(content: Verified<Self>) -> Result<VerifiedCard, BoardCardError> {
        let board = Board::open(&content.configuration, content.signer())?;
        let Self { at, authority, door, .. } = content.into_inner();
        if at.len() != board.parties().len() {
            return Err(BoardCardError::Number);
        }
        let base = |(party, at): (&Party, &String)| {
            Base::parse(at).map_err(|bad| BoardCardError::Address(*party, bad))
        };
        let at = board.parties().iter().zip(&at).map(base).collect::<Result<_, _>>()?;
        let door = door.map(|door| {
            let known = door.keeper(&board).digest() == board.admission;
            let at = Base::parse(&door.at).map_err(BoardCardError::DoorAddress)?;
            let Door { key, passes, .. } = door;
            known.then_some(Door { at, key, passes }).ok_or(BoardCardError::Door)
        });
        Ok(VerifiedCard { board, at, authority, door: door.transpose()? })
    }
}

/// Reads a card and opens it.
///
/// # Errors
/// If it cannot be read or used.
pub fn open(path: &Path) -> Result<VerifiedCard, Failure> {
    Ok(Card::load(path)?.1)
}

/// Whether a board's epochs match the passes' epochs. If they were longer, a pass could be
/// presented, and write, more than once per board epoch.
#[must_use]
pub fn same_epochs(board: &Schedule, passes: &PassSchedule) -> bool {
    let apart = board.start.0.abs_diff(passes.start.0);
    board.length == passes.epoch && apart.checked_rem(passes.epoch.0) == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_time::{Span, Timestamp};

    /// Ten presentations per board epoch would make one holder a crowd.
    #[test]
    fn board_epochs_must_match_pass_epochs() {
        let same = |start, length| {
            let board = Schedule {
                start: Timestamp(start),
                length: Span(length),
                complaints: Span(1),
                patience: Span(1),
            };
            let passes = PassSchedule {
                start: Timestamp(1_000),
                epoch: Span(60),
                pre_login: Span(0),
                border_pre_login: Span(0),
                epochs_per_period: 10,
                ahead: 0,
            };
            same_epochs(&board, &passes)
        };
        assert!(same(1_000, 60) && same(1_600, 60) && same(940, 60));
        assert!(!same(1_000, 600) && !same(1_000, 30) && !same(1_001, 60));
    }
}
