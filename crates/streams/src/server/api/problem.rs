//! How the server's errors appear on the wire.

use crate::runtime::embedded::RuntimeError;
use crate::runtime::manager::QueryError;
use crate::runtime::refusal_ids::of_refusal;
use crate::server::engine::StoppedError;
use crate::server::evidence::EvidenceError;
use crate::server::registry::IntroductionError;
use alpheus_node::errors::ErrorId;
use alpheus_node::network::answer::ApiError;
use axum::http::StatusCode;

impl From<StoppedError> for ApiError {
    fn from(error: StoppedError) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", error.to_string())
    }
}

impl From<RuntimeError> for ApiError {
    fn from(error: RuntimeError) -> ApiError {
        tracing::error!(%error, "a request failed");
        ApiError::failed("the service failed to process the request; see its log")
    }
}

/// The refusal of a request for which the store failed.
pub(super) fn store_failed(error: alpheus_transport::Error) -> ApiError {
    RuntimeError::from(error).into()
}

impl From<EvidenceError> for ApiError {
    fn from(error: EvidenceError) -> ApiError {
        match error {
            EvidenceError::TooMuch => ApiError::malformed(error.to_string()),
            EvidenceError::Store(error) => store_failed(error),
            EvidenceError::Runtime(error) => error.into(),
        }
    }
}

impl From<IntroductionError> for ApiError {
    fn from(error: IntroductionError) -> ApiError {
        match error {
            IntroductionError::Runtime(error) => error.into(),
            refused => ApiError::new(StatusCode::FORBIDDEN, "introduction", refused.to_string()),
        }
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> ApiError {
        match error {
            QueryError::Runtime(error) => error.into(),
            QueryError::Conflict(taken) => {
                ApiError::new(StatusCode::CONFLICT, "taken", taken.to_string())
                    .with_id(ErrorId::PolicyReleasedOnce)
            }
            QueryError::Refused(ref refusal) => {
                let id = of_refusal(refusal);
                let error = ApiError::policy(error.to_string()).with_id(id);
                refusal.query().into_iter().fold(error, ApiError::with_query)
            }
            refused @ QueryError::UnsupportedPlanError(_) => ApiError::policy(refused.to_string()),
        }
    }
}
