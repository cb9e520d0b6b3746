//! Ids of the errors of the board.

use crate::card::{BoardCardError, MismatchError};
use crate::client::BoardError;
use crate::content::MessageError;
use crate::entry::EntryError;
use crate::init::ServersError;
use crate::keys::KeyFileError;
use crate::member::InUseError;
use crate::member::store::DamagedFileError;
use crate::post::UnconfirmedError;
use crate::post::background::NotWrittenError;
use crate::settings::FenceInsideError;
use alpheus_anonymous_board::error::{RestoreError, WriteError};
use alpheus_anonymous_board::reader::ReadError;
use alpheus_node::error_ids::request;
use alpheus_node::errors::ErrorId;
use std::error::Error;

/// The id of an error of the board, if it is one.
#[must_use]
pub fn of(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    alpheus_node::error_ids!(error;
        BoardError as error => board(error),
        EntryError as _ => ErrorId::BoardEntry,
        MessageError as _ => ErrorId::BoardMessage,
        UnconfirmedError as _ => ErrorId::BoardNotWritten,
        NotWrittenError as _ => ErrorId::BoardNotWritten,
        WriteError as _ => ErrorId::BoardNotWritten,
        ReadError as _ => ErrorId::BoardDisagrees,
        RestoreError as _ => ErrorId::StateDamaged,
        DamagedFileError as _ => ErrorId::StateDamaged,
        InUseError as _ => ErrorId::StateInUse,
        BoardCardError as _ => ErrorId::CardInvalid,
        MismatchError as _ => ErrorId::CardInvalid,
        ServersError as _ => ErrorId::CommandLine,
        KeyFileError as _ => ErrorId::KeyWrong,
        FenceInsideError as _ => ErrorId::SettingWrong,
    )
}

fn board(error: &BoardError) -> ErrorId {
    match error {
        BoardError::Server(_, error) => request(error),
        BoardError::Malformed(_) => ErrorId::ServerOtherVersion,
        BoardError::NotWritten(_) | BoardError::SmallCrowd { .. } | BoardError::NoEpoch => {
            ErrorId::BoardNotWritten
        }
        BoardError::Receipt(_) | BoardError::NotRead(_) | BoardError::TwoBegins(..) => {
            ErrorId::BoardDisagrees
        }
        BoardError::NoServer(_) => ErrorId::CommandLine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_not_the_writers_has_its_own_id() {
        assert_eq!(of(&EntryError::OtherKey).map(ErrorId::id), Some("board-entry"));
    }
}
