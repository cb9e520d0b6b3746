//! Ids of the errors of passes.

use crate::card::PassCardError;
use crate::client::LocalAddressError;
use crate::client::id_token::IdTokenError;
use crate::client::passes::NoPassError;
use crate::client::passfile::PassFileError;
use crate::client::session::SessionError;
use crate::gateway::PlainAddressError;
use crate::issuer::StateError;
use crate::issuer::accounts::AccountError;
use crate::scan::ScanError;
use crate::verifier::ShardError;
use crate::verifier::shards::NoVerifierError;
use alpheus_access_pass::error::{ClientError, CodeError};
use alpheus_anonymous_credential::error::HolderError;
use alpheus_node::error_ids::request;
use alpheus_node::errors::ErrorId;
use std::error::Error;

/// The id of an error of passes, if it is one.
#[must_use]
pub fn of(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    alpheus_node::error_ids!(error;
        SessionError as error => session(error),
        NoPassError as _ => ErrorId::PassMissing,
        HolderError as _ => ErrorId::PassRefused,
        ClientError as _ => ErrorId::PassRefused,
        CodeError as _ => ErrorId::PassRefused,
        ScanError as _ => ErrorId::PassRefused,
        IdTokenError as _ => ErrorId::PassRefused,
        PassFileError as error => match error {
            PassFileError::Locked => ErrorId::StateInUse,
            PassFileError::ShortKey => ErrorId::KeyWrong,
            PassFileError::Exists => ErrorId::FileExists,
            PassFileError::NotWritten => ErrorId::IoFailed,
            _ => ErrorId::PassfileInvalid,
        },
        PassCardError as _ => ErrorId::CardInvalid,
        AccountError as _ => ErrorId::FileInvalid,
        StateError as error => match error {
            StateError::Restored => ErrorId::StateOld,
            StateError::Absent | StateError::NotNew => ErrorId::StateOfOther,
        },
        LocalAddressError as _ => ErrorId::SettingWrong,
        PlainAddressError as _ => ErrorId::SettingWrong,
        ShardError as _ => ErrorId::SettingWrong,
        NoVerifierError as _ => ErrorId::SettingMissing,
    )
}

fn session(error: &SessionError) -> ErrorId {
    match error {
        SessionError::Link(error) | SessionError::NotConnected(error) => request(error),
        SessionError::NoPass(_) => ErrorId::PassMissing,
        SessionError::Malformed(_) => ErrorId::ServerOtherVersion,
        SessionError::Ledger(_) => ErrorId::IoFailed,
        SessionError::Configuration(_) => ErrorId::CardInvalid,
        SessionError::Failed(_) => ErrorId::PassfileInvalid,
        SessionError::Holder(_) | SessionError::Client(_) => ErrorId::PassRefused,
    }
}
