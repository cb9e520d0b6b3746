//! Ids of the errors of streams: of their files, keys and state, and of what policies forbid.

use crate::controller::guard::GuardError;
use crate::controller::keystore::KeyStoreError;
use crate::deployment::DeploymentError;
use crate::produce::LateLineError;
use crate::produce::outbox::OutboxError;
use crate::query::receipts::RefusedRowError;
use crate::settings::EngineNeedsKafkaError;
use alpheus_encrypted_stream::error::{
    AnnotationError, CertificateError, GrantError, PlanRefusalError, ReleaseError, RestoreError,
    UnsealError,
};
use alpheus_input::error_ids as input;
use alpheus_node::error_ids::{self as node, store};
use alpheus_node::errors::ErrorId;
use alpheus_policy::planner::PlanningError;
use alpheus_stream_runtime::controller_host::HostError;
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::refusal_ids;
use alpheus_stream_runtime::service::ServiceError;
use std::error::Error;

/// The id of an error of streams, if it is one.
#[must_use]
pub fn of(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    input::of(error).or_else(|| of_roles(error)).or_else(|| of_protocol(error))
}

fn of_roles(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    alpheus_node::error_ids!(error;
        KeyStoreError as error => keys(error),
        GuardError as error => guard(error),
        RuntimeError as error => runtime(error),
        ServiceError as error => service(error),
        HostError as error => host(error),
        OutboxError as error => match error {
            OutboxError::Store(error) => store(error),
            OutboxError::Closed => ErrorId::ServerUnreachable,
        },
        DeploymentError as _ => ErrorId::IdentityInvalid,
        LateLineError as _ => ErrorId::LineRefused,
        EngineNeedsKafkaError as _ => ErrorId::SettingWrong,
        RefusedRowError as _ => ErrorId::CheckFailed,
    )
}

fn of_protocol(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    alpheus_node::error_ids!(error;
        PlanningError as error => refusal_ids::of_refusal(error),
        CertificateError as _ => ErrorId::CertificateRefused,
        RestoreError as _ => ErrorId::StateDamaged,
        AnnotationError as _ => ErrorId::PoliciesInvalid,
        GrantError as _ => ErrorId::PolicyForbids,
        PlanRefusalError as _ => ErrorId::PolicyForbids,
        ReleaseError as _ => ErrorId::CheckFailed,
        UnsealError as _ => ErrorId::KeyWrong,
    )
}

fn keys(error: &KeyStoreError) -> ErrorId {
    match error {
        KeyStoreError::Store(error) => store(error),
        KeyStoreError::Slots(error) => node::slot(error),
        KeyStoreError::Format(_) => ErrorId::StateOtherFormat,
        KeyStoreError::ShortKey(_) | KeyStoreError::WrongKey => ErrorId::KeyWrong,
        _ => ErrorId::StateDamaged,
    }
}

fn guard(error: &GuardError) -> ErrorId {
    match error {
        GuardError::Keys(error) => keys(error),
        GuardError::Store(error) => store(error),
        GuardError::Host(error) => host(error),
        GuardError::Fence(error) => node::fence(error),
        GuardError::Restore(_) => ErrorId::StateDamaged,
        GuardError::Uncertified(_) | GuardError::Owner(_) => ErrorId::CertificateRefused,
        GuardError::Annotation(_) | GuardError::WrongSchema => ErrorId::PoliciesInvalid,
        GuardError::OtherController => ErrorId::NotFound,
        GuardError::NoRandomness => ErrorId::IoFailed,
        GuardError::Panicked => ErrorId::InternalError,
        _ => ErrorId::RequestRefused,
    }
}

fn runtime(error: &RuntimeError) -> ErrorId {
    match error {
        RuntimeError::Store(error) => store(error),
        RuntimeError::Service(error) => service(error),
        RuntimeError::Host(error) => host(error),
        RuntimeError::Fence(error) => node::fence(error),
        RuntimeError::Root(_) | RuntimeError::Restore(_) => ErrorId::StateDamaged,
        RuntimeError::Certificate(_) => ErrorId::CertificateRefused,
        RuntimeError::Annotation(_) => ErrorId::PoliciesInvalid,
        RuntimeError::Plan(_) => ErrorId::PolicyForbids,
        RuntimeError::Layout(_) | RuntimeError::Encoder(_) => ErrorId::SchemaInvalid,
        _ => ErrorId::StateDamaged,
    }
}

fn service(error: &ServiceError) -> ErrorId {
    match error {
        ServiceError::Store(error) => store(error),
        _ => ErrorId::StateDamaged,
    }
}

fn host(error: &HostError) -> ErrorId {
    match error {
        HostError::Ledger(_) => ErrorId::IoFailed,
        HostError::Fence(error) => node::fence(error),
    }
}
