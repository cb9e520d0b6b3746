//! What comes of a server's refusals on the wire.

use crate::network::answer::ApiError;
use crate::runtime::embedded::RuntimeError;
use crate::runtime::manager::NotAsked;
use crate::server::engine::Stopped;
use crate::server::registry::NotIntroduced;
use axum::http::StatusCode;

impl From<Stopped> for ApiError {
    fn from(error: Stopped) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", error.to_string())
    }
}

impl From<RuntimeError> for ApiError {
    fn from(error: RuntimeError) -> ApiError {
        tracing::error!(%error, "a request failed");
        ApiError::failed("the service could not do it; its log says why")
    }
}

impl From<alpheus_transport::Error> for ApiError {
    fn from(error: alpheus_transport::Error) -> ApiError {
        RuntimeError::from(error).into()
    }
}

impl From<NotIntroduced> for ApiError {
    fn from(error: NotIntroduced) -> ApiError {
        match error {
            NotIntroduced::Runtime(error) => error.into(),
            refused => ApiError::new(StatusCode::FORBIDDEN, "introduction", refused.to_string()),
        }
    }
}

impl From<NotAsked> for ApiError {
    fn from(error: NotAsked) -> ApiError {
        match error {
            NotAsked::Runtime(error) => error.into(),
            NotAsked::NotStarted(taken) => {
                ApiError::new(StatusCode::CONFLICT, "taken", taken.to_string())
            }
            refused @ (NotAsked::Refused(_) | NotAsked::NotSummed(_)) => {
                ApiError::policy(refused.to_string())
            }
        }
    }
}
