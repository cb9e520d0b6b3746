//! Ids of the errors of this crate, and of the system.

use crate::backup::BackupError;
use crate::card::CardError;
use crate::engine::EngineError;
use crate::errors::ErrorId;
use crate::failure::Category;
use crate::fence::FenceError;
use crate::files::{OpenFolderError, OpenKeyFileError};
use crate::ledger::FormatError;
use crate::network::base::BaseUrlError;
use crate::network::error::{Problem, RequestError};
use crate::network::identity::IdentityError;
use crate::network::peer::WrongPeerError;
use crate::network::revocation_list::RevocationError;
use crate::network::revocations::{AuthorityError, NotAListError};
use crate::network::role::PeerNameError;
use crate::proxy::ProxyError;
use crate::service::ServiceError;
use crate::service::http::ListenError;
use crate::service::log::LogError;
use crate::service::tls::TlsError;
use crate::settings::SettingsError;
use crate::settings::layers::ConfigError;
use crate::slots::SlotError;
use crate::start_clock::WrongClockError;
use crate::state_owner::OtherStateError;
use alpheus_transport::Error as StoreError;
use std::error::Error;
use std::io::{self, ErrorKind};

/// The id of an error of this crate or the system, if it is one.
#[must_use]
pub fn of(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    crate::error_ids!(error;
        io::Error as error => system(error),
        SettingsError as error => setting(error),
        ConfigError as _ => ErrorId::SettingWrong,
        LogError as _ => ErrorId::SettingWrong,
        RequestError as error => request(error),
        ServiceError as error => service(error),
        ListenError as _ => ErrorId::AddressInUse,
        WrongClockError as _ => ErrorId::ClockWrong,
        OtherStateError as _ => ErrorId::StateOfOther,
        TlsError as _ => ErrorId::IdentityInvalid,
        IdentityError as error => match error {
            IdentityError::Name(_) => ErrorId::IdentityInvalid,
            IdentityError::Role { .. } => ErrorId::RoleForbidden,
        },
        PeerNameError as _ => ErrorId::IdentityInvalid,
        AuthorityError as _ => ErrorId::IdentityInvalid,
        NotAListError as _ => ErrorId::IdentityInvalid,
        RevocationError as _ => ErrorId::IdentityInvalid,
        WrongPeerError as _ => ErrorId::WrongPeer,
        BaseUrlError as _ => ErrorId::UrlInvalid,
        ProxyError as _ => ErrorId::UrlInvalid,
        OpenKeyFileError as _ => ErrorId::FileOpenToOthers,
        OpenFolderError as _ => ErrorId::FileOpenToOthers,
        FenceError as error => fence(error),
        SlotError as error => slot(error),
        FormatError as _ => ErrorId::StateOtherFormat,
        BackupError as _ => ErrorId::BackupInvalid,
        CardError as _ => ErrorId::CardInvalid,
        EngineError as _ => ErrorId::InternalError,
        StoreError as error => store(error),
    )
}

/// The id where nothing more is known than the category.
#[must_use]
pub const fn of_category(category: Category) -> ErrorId {
    match category {
        Category::Check => ErrorId::CheckFailed,
        Category::Usage => ErrorId::CommandLine,
        Category::Refused => ErrorId::RequestRefused,
        Category::Input => ErrorId::FileInvalid,
        Category::Io => ErrorId::IoFailed,
        Category::Undecided => ErrorId::MustGuess,
        Category::Interrupted => ErrorId::Interrupted,
    }
}

/// The id of an error of the system.
#[must_use]
pub fn system(error: &io::Error) -> ErrorId {
    match error.kind() {
        ErrorKind::NotFound => ErrorId::FileMissing,
        ErrorKind::AlreadyExists => ErrorId::FileExists,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ErrorId::FileNotPermitted,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ErrorId::DiskFull,
        ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => ErrorId::AddressInUse,
        ErrorKind::InvalidData => ErrorId::FileInvalid,
        ErrorKind::Unsupported => ErrorId::CommandLine,
        _ => ErrorId::IoFailed,
    }
}

/// The id of a failed request.
#[must_use]
pub fn request(error: &RequestError) -> ErrorId {
    match error {
        RequestError::Unreachable { .. } => ErrorId::ServerUnreachable,
        RequestError::Malformed { .. } => ErrorId::ServerOtherVersion,
        RequestError::InsideRuntime => ErrorId::InternalError,
        RequestError::Refused(problem) => refusal(problem),
    }
}

/// What a server says itself, if this version knows it; else what its rule means.
fn refusal(problem: &Problem) -> ErrorId {
    if let Some(known) = problem.id.as_deref().and_then(ErrorId::parse) {
        return known;
    }
    match (problem.rule.as_str(), problem.status) {
        ("policy", _) => ErrorId::PolicyForbids,
        ("role", _) => ErrorId::RoleForbidden,
        ("certificate" | "revoked", _) => ErrorId::CertificateRefused,
        ("missing", _) => ErrorId::NotFound,
        ("taken", _) => ErrorId::QueryNameTaken,
        ("malformed", _) => ErrorId::ServerOtherVersion,
        ("stopping" | "busy" | "unreachable", _) | (_, 408 | 429 | 502..=504) => {
            ErrorId::ServerBusy
        }
        (_, 500..) => ErrorId::ServerFailed,
        _ => ErrorId::RequestRefused,
    }
}

fn setting(error: &SettingsError) -> ErrorId {
    match error {
        SettingsError::Missing(_) => ErrorId::SettingMissing,
        SettingsError::Config(ConfigError::Read { source, .. }) => system(source),
        SettingsError::Config(_) => ErrorId::SettingWrong,
    }
}

fn service(error: &ServiceError) -> ErrorId {
    match error {
        ServiceError::Listen(_) => ErrorId::AddressInUse,
        ServiceError::Tls(_) => ErrorId::IdentityInvalid,
        ServiceError::Settings(error) => setting(error),
        ServiceError::Store(error) => store(error),
        ServiceError::Properties { source, .. }
        | ServiceError::Folder { source, .. }
        | ServiceError::Runtime(source) => system(source),
        ServiceError::NoKafka | ServiceError::SharedStore | ServiceError::Log(_) => {
            ErrorId::SettingWrong
        }
    }
}

/// The id of an error of a fence.
#[must_use]
pub fn fence(error: &FenceError) -> ErrorId {
    match error {
        FenceError::Io { source, .. } => system(source),
        FenceError::Behind { .. } => ErrorId::StateOld,
        FenceError::Held { .. } => ErrorId::StateInUse,
        FenceError::Format { .. } => ErrorId::StateOtherFormat,
        FenceError::Unreadable { .. } => ErrorId::StateDamaged,
    }
}

/// The id of an error of a slot file.
#[must_use]
pub fn slot(error: &SlotError) -> ErrorId {
    match error {
        SlotError::Io { source, .. } => system(source),
        SlotError::Format { .. } => ErrorId::StateOtherFormat,
        SlotError::Other { .. } | SlotError::Lost { .. } => ErrorId::StateDamaged,
    }
}

/// The id of an error of a store.
#[must_use]
pub fn store(error: &StoreError) -> ErrorId {
    match error {
        StoreError::Locked { .. } => ErrorId::StateInUse,
        StoreError::Version { .. } => ErrorId::StateOtherFormat,
        StoreError::NotAStore { .. } | StoreError::TopicDiffers { .. } => ErrorId::StateOfOther,
        StoreError::Corrupt { .. } | StoreError::CorruptRecords { .. } => ErrorId::StateDamaged,
        StoreError::DiskFull { .. } => ErrorId::DiskFull,
        _ => ErrorId::IoFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(rule: &str, status: u16, id: Option<&str>) -> RequestError {
        let (rule, id) = (rule.to_owned(), id.map(str::to_owned));
        let detail = String::new();
        RequestError::Refused(Problem { rule, detail, help: None, query: None, status, id })
    }

    #[test]
    fn errors_find_their_ids_through_their_types() {
        let missing = io::Error::from(ErrorKind::NotFound);
        assert_eq!(of(&missing), Some(ErrorId::FileMissing));
        assert_eq!(of(&SettingsError::Missing("state")), Some(ErrorId::SettingMissing));
        assert_eq!(of(&refused("role", 403, None)), Some(ErrorId::RoleForbidden));
        assert_eq!(of(&refused("other", 503, None)), Some(ErrorId::ServerBusy));
        assert_eq!(of(&std::fmt::Error), None);
    }

    #[test]
    fn what_the_server_says_counts_if_it_is_known() {
        let said = refused("policy", 403, Some("policy-forbids-window"));
        assert_eq!(of(&said), Some(ErrorId::PolicyForbidsWindow));
        let later = refused("policy", 403, Some("policy-forbids-mondays"));
        assert_eq!(of(&later), Some(ErrorId::PolicyForbids));
    }
}
