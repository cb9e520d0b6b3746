//! How refusals of the credential and of gateways look on the wire: a status and
//! the rule as a word.

use crate::network::answer::ApiError;
use alpheus_access_pass::error::{CodeRefused, Denied};
use alpheus_anonymous_credential::error::{IssueRefused, Refused};
use axum::http::StatusCode;

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        ApiError::new(status(refused), rule(refused), refused.to_string())
    }
}

/// The rule's word.
#[must_use]
pub const fn rule(refused: Refused) -> &'static str {
    match refused {
        Refused::Malformed(_) => "malformed",
        Refused::Epoch => "epoch",
        Refused::ClockStepped => "clock",
        Refused::MayHaveForgotten => "may-have-forgotten",
        Refused::Proof => "proof",
        Refused::Spent => "spent",
        Refused::NoSession => "no-session",
        Refused::Ended => "ended",
        Refused::NotCurrent => "not-current",
        Refused::NeedsLogin => "needs-login",
        Refused::LimitForbids => "limit",
        Refused::Signature => "signature",
        Refused::NoCodes => "no-codes",
        Refused::Used => "used",
    }
}

/// Whether what was refused by this rule is refused for as long as its epoch runs, so that
/// there is no use in sending it again.
#[must_use]
pub fn lasts(word: &str) -> bool {
    const RULES: [Refused; 11] = [
        Refused::MayHaveForgotten,
        Refused::Proof,
        Refused::Spent,
        Refused::NoSession,
        Refused::Ended,
        Refused::NotCurrent,
        Refused::NeedsLogin,
        Refused::LimitForbids,
        Refused::Signature,
        Refused::NoCodes,
        Refused::Used,
    ];
    word == Denied::Malformed.rule() || RULES.iter().any(|refused| rule(*refused) == word)
}

const fn status(refused: Refused) -> StatusCode {
    match refused {
        Refused::Malformed(_) => StatusCode::BAD_REQUEST,
        Refused::ClockStepped => StatusCode::SERVICE_UNAVAILABLE,
        Refused::NoSession => StatusCode::NOT_FOUND,
        Refused::Spent | Refused::Used | Refused::NotCurrent | Refused::MayHaveForgotten => {
            StatusCode::CONFLICT
        }
        _ => StatusCode::FORBIDDEN,
    }
}

impl From<IssueRefused> for ApiError {
    fn from(refused: IssueRefused) -> Self {
        let (status, rule) = match refused {
            IssueRefused::Malformed(_) => (StatusCode::BAD_REQUEST, "malformed"),
            IssueRefused::Period => (StatusCode::FORBIDDEN, "period"),
            IssueRefused::AlreadyIssued => (StatusCode::CONFLICT, "already-issued"),
            IssueRefused::Proof => (StatusCode::FORBIDDEN, "proof"),
            IssueRefused::MayHaveForgotten => (StatusCode::CONFLICT, "may-have-forgotten"),
            IssueRefused::NotProven(_) | IssueRefused::Ledger(_) | IssueRefused::OtherKey => {
                (StatusCode::INTERNAL_SERVER_ERROR, "failed")
            }
        };
        ApiError::new(status, rule, refused.to_string())
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        ApiError::new(denied_status(denied), denied.rule(), denied.to_string())
    }
}

/// 401 for what a login or a connection would mend.
#[must_use]
pub const fn denied_status(denied: Denied) -> StatusCode {
    match denied {
        Denied::Malformed => StatusCode::BAD_REQUEST,
        Denied::TooMany => StatusCode::TOO_MANY_REQUESTS,
        Denied::ClockStepped => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNAUTHORIZED,
    }
}

impl From<CodeRefused> for ApiError {
    fn from(refused: CodeRefused) -> Self {
        let rule = match refused {
            CodeRefused::Refused(refused) => return refused.into(),
            CodeRefused::Malformed(_) => "malformed",
            CodeRefused::Binding => "binding",
            CodeRefused::Stale => "stale",
            CodeRefused::Signature => "signature",
        };
        ApiError::new(StatusCode::FORBIDDEN, rule, refused.to_string())
    }
}
