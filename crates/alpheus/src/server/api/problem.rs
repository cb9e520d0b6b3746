//! How a request is refused: a status, the rule as a word, what would mend it.

use crate::network::client::Problem;
use crate::network::role::{NoName, Role};
use crate::runtime::embedded::RuntimeError;
use crate::runtime::manager::NotAsked;
use crate::server::engine::Stopped;
use crate::server::registry::NotIntroduced;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A refusal.
#[derive(Clone, Debug)]
pub struct ApiError(Problem);

impl ApiError {
    fn new(status: StatusCode, rule: &str, detail: impl Into<String>) -> ApiError {
        let (rule, detail) = (rule.to_owned(), detail.into());
        ApiError(Problem { rule, detail, help: None, status: status.as_u16() })
    }

    /// Says what would mend it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> ApiError {
        self.0.help = Some(help.into());
        self
    }

    /// The body or the path is not what the request takes.
    #[must_use]
    pub fn malformed(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    /// There is no such thing.
    #[must_use]
    pub fn missing(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "missing", detail)
    }

    /// Policies forbid it.
    #[must_use]
    pub fn policy(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "policy", detail)
    }

    /// The server failed.
    #[must_use]
    pub fn failed(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", detail)
    }

    /// The caller's role may not.
    #[must_use]
    pub fn role(is: Role, allowed: &[Role]) -> ApiError {
        let allowed: Vec<&str> = allowed.iter().map(|role| role.as_str()).collect();
        let detail = format!("a {is} may not ask this, only a {}", allowed.join(" or a "));
        ApiError::new(StatusCode::FORBIDDEN, "role", detail)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status);
        let body = serde_json::to_string(&self.0).unwrap_or_default();
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        (status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), kind, body).into_response()
    }
}

impl From<NoName> for ApiError {
    fn from(error: NoName) -> ApiError {
        ApiError::new(StatusCode::UNAUTHORIZED, "certificate", error.to_string())
    }
}

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
            refused @ NotAsked::Refused(_) => ApiError::policy(refused.to_string()),
        }
    }
}
