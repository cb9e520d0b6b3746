//! Answers to requests: who asks, binary bodies, and how a request is refused: a
//! status, the rule as a word, what would fix it.

use crate::engine::EngineError;
use crate::errors::ErrorId;
use crate::network::error::Problem;
use crate::network::role::{Name, PeerNameError, Role};
use crate::service::http::Peer;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A refusal.
#[derive(Clone, Debug)]
pub struct ApiError(Problem);

impl ApiError {
    /// A refusal.
    #[must_use]
    pub fn new(status: StatusCode, rule: &str, detail: impl Into<String>) -> ApiError {
        let (rule, detail) = (rule.to_owned(), detail.into());
        let status = status.as_u16();
        ApiError(Problem { rule, detail, help: None, query: None, status, id: None })
    }

    /// Says what would fix it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<Box<str>>) -> ApiError {
        self.0.help = Some(help.into());
        self
    }

    /// Has the nearest query that would be allowed, as SQL.
    #[must_use]
    pub fn with_query(mut self, query: impl Into<Box<str>>) -> ApiError {
        self.0.query = Some(query.into());
        self
    }

    /// Says which kind of failure it is.
    #[must_use]
    pub fn with_id(mut self, id: ErrorId) -> ApiError {
        self.0.id = Some(id.id().to_owned());
        self
    }

    /// The rule that was broken, as a word.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.0.rule
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
        let allowed: Vec<&str> = allowed.iter().map(|role| role.with_article()).collect();
        let detail =
            format!("{} may not ask this, only {}", is.with_article(), allowed.join(" or "));
        ApiError::new(StatusCode::FORBIDDEN, "role", detail)
    }
}

/// A refusal of another process, handed on.
impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status);
        let body = serde_json::to_string(&self.0).unwrap_or_default();
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, kind, body).into_response();
        response.extensions_mut().insert(Rule(self.0.rule));
        response
    }
}

/// The rule of a refusal, for counters of answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule(pub String);

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", error.to_string())
    }
}

impl From<PeerNameError> for ApiError {
    fn from(error: PeerNameError) -> ApiError {
        ApiError::new(StatusCode::UNAUTHORIZED, "certificate", error.to_string())
    }
}

/// Who asks, if it has one of these roles.
///
/// # Errors
/// [`ApiError`] if it showed no certificate, or has another role.
pub fn caller(peer: &Peer, allowed: &[Role]) -> Result<Name, ApiError> {
    let certificate = peer.certificate.as_deref().ok_or(PeerNameError::Anonymous)?;
    let name = Name::of_certificate(certificate)?;
    if allowed.contains(&name.role) { Ok(name) } else { Err(ApiError::role(name.role, allowed)) }
}

/// Reads a binary body.
///
/// # Errors
/// [`ApiError`] if it is not one value of the kind, to the end.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        _ => Err(ApiError::malformed("the body is not what this request takes")),
    }
}

/// Writes a binary answer.
///
/// # Errors
/// [`ApiError`]; none in practice.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    postcard::to_allocvec(value).map_err(|_| ApiError::failed("the answer cannot be written"))
}

/// The answer of a request that only has an effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptyAnswer {}
