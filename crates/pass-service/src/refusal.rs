//! How issuers, verifiers and gateways report refusals over HTTP: a status, and the
//! rule as a word.

use alpheus_access_pass::error::{CodeError, GatewayError};
use alpheus_anonymous_credential::error::{IssuerError, VerifierError};
use alpheus_node::engine::EngineError;
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::error::RequestError;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// A refusal of a request. Any error of its handling converts into one.
#[derive(Clone, Debug)]
pub struct Refusal(ApiError);

impl Refusal {
    /// The rule that was broken, as a word.
    #[must_use]
    pub fn rule(&self) -> &str {
        self.0.rule()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        Self(error.into())
    }
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        Self(error.into())
    }
}

impl From<VerifierError> for Refusal {
    fn from(refused: VerifierError) -> Self {
        Refusal(ApiError::new(status(refused), rule(refused), refused.to_string()))
    }
}

/// The rule's word.
#[must_use]
pub const fn rule(refused: VerifierError) -> &'static str {
    match refused {
        VerifierError::Malformed(_) => "malformed",
        VerifierError::Epoch => "epoch",
        VerifierError::ClockStepped => "clock",
        VerifierError::MayHaveForgotten => "may-have-forgotten",
        VerifierError::Proof => "proof",
        VerifierError::Spent => "spent",
        VerifierError::NoSession => "no-session",
        VerifierError::Ended => "ended",
        VerifierError::NotCurrent => "not-current",
        VerifierError::NeedsLogin => "needs-login",
        VerifierError::LimitForbids => "limit",
        VerifierError::Signature => "signature",
        VerifierError::NoCodes => "no-codes",
        VerifierError::Used => "used",
    }
}

/// Whether a request that breaks this rule will be refused for the rest of its epoch, so
/// that sending it again is useless.
#[must_use]
pub fn lasts(word: &str) -> bool {
    const RULES: [VerifierError; 11] = [
        VerifierError::MayHaveForgotten,
        VerifierError::Proof,
        VerifierError::Spent,
        VerifierError::NoSession,
        VerifierError::Ended,
        VerifierError::NotCurrent,
        VerifierError::NeedsLogin,
        VerifierError::LimitForbids,
        VerifierError::Signature,
        VerifierError::NoCodes,
        VerifierError::Used,
    ];
    word == GatewayError::Malformed.rule() || RULES.iter().any(|refused| rule(*refused) == word)
}

const fn status(refused: VerifierError) -> StatusCode {
    match refused {
        VerifierError::Malformed(_) => StatusCode::BAD_REQUEST,
        VerifierError::ClockStepped => StatusCode::SERVICE_UNAVAILABLE,
        VerifierError::NoSession => StatusCode::NOT_FOUND,
        VerifierError::Spent
        | VerifierError::Used
        | VerifierError::NotCurrent
        | VerifierError::MayHaveForgotten => StatusCode::CONFLICT,
        _ => StatusCode::FORBIDDEN,
    }
}

impl From<IssuerError> for Refusal {
    fn from(refused: IssuerError) -> Self {
        let (status, rule) = match refused {
            IssuerError::Malformed(_) => (StatusCode::BAD_REQUEST, "malformed"),
            IssuerError::Period => (StatusCode::FORBIDDEN, "period"),
            IssuerError::AlreadyIssued => (StatusCode::CONFLICT, "already-issued"),
            IssuerError::Proof => (StatusCode::FORBIDDEN, "proof"),
            IssuerError::MayHaveForgotten => (StatusCode::CONFLICT, "may-have-forgotten"),
            IssuerError::NotProven(_) | IssuerError::Ledger(_) | IssuerError::OtherKey => {
                (StatusCode::INTERNAL_SERVER_ERROR, "failed")
            }
        };
        Refusal(ApiError::new(status, rule, refused.to_string()))
    }
}

impl From<GatewayError> for Refusal {
    fn from(denied: GatewayError) -> Self {
        Refusal(ApiError::new(denied_status(denied), denied.rule(), denied.to_string()))
    }
}

/// 401 if a login or a connection would help.
#[must_use]
pub const fn denied_status(denied: GatewayError) -> StatusCode {
    match denied {
        GatewayError::Malformed => StatusCode::BAD_REQUEST,
        GatewayError::TooMany => StatusCode::TOO_MANY_REQUESTS,
        GatewayError::ClockStepped => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNAUTHORIZED,
    }
}

impl From<CodeError> for Refusal {
    fn from(refused: CodeError) -> Self {
        let rule = match refused {
            CodeError::Refused(refused) => return refused.into(),
            CodeError::Malformed(_) => "malformed",
            CodeError::Binding => "binding",
            CodeError::Stale => "stale",
            CodeError::Signature => "signature",
        };
        Refusal(ApiError::new(StatusCode::FORBIDDEN, rule, refused.to_string()))
    }
}
