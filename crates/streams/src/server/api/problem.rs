//! How the server's errors appear on the wire.

use crate::server::evidence::EvidenceError;
use crate::server::intake::IntakeError;
use crate::server::registry::IntroductionError;
use alpheus_node::errors::ErrorId;
use alpheus_node::network::answer::ApiError;
use alpheus_stream_runtime::error::RuntimeError;
use axum::http::StatusCode;

/// The refusal of a request that failed for the service's own reasons, which its log says.
pub(super) fn runtime_failed(error: RuntimeError) -> ApiError {
    tracing::error!(%error, "a request failed");
    ApiError::failed("the service failed to process the request; see its log")
}

/// The refusal of a request for which the store failed.
pub(super) fn store_failed(error: alpheus_transport::Error) -> ApiError {
    runtime_failed(error.into())
}

/// The refusal of uploads.
pub(super) fn not_taken(error: IntakeError) -> ApiError {
    match error {
        IntakeError::Store(error) => store_failed(error),
        IntakeError::Quota(error) => {
            let id = ErrorId::StreamQuota;
            let refusal = ApiError::new(StatusCode::TOO_MANY_REQUESTS, id.id(), error.to_string());
            refusal.with_id(id).with_help(id.fix())
        }
    }
}

impl From<EvidenceError> for ApiError {
    fn from(error: EvidenceError) -> ApiError {
        match error {
            EvidenceError::TooMuch => ApiError::malformed(error.to_string()),
            EvidenceError::Store(error) => store_failed(error),
            EvidenceError::Runtime(error) => runtime_failed(error),
        }
    }
}

impl From<IntroductionError> for ApiError {
    fn from(error: IntroductionError) -> ApiError {
        match error {
            IntroductionError::Runtime(error) => runtime_failed(error),
            refused => ApiError::new(StatusCode::FORBIDDEN, "introduction", refused.to_string()),
        }
    }
}
