//! Why a request has no answer that helps.

use super::answer::ApiError;
use crate::failure::{Category, Failure};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;

/// Why a request has no answer that helps.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Nobody answered; asking again later may help.
    #[error("{base}: no answer: {reason}")]
    Unreachable {
        /// The server's address.
        base: String,
        /// Why not.
        reason: String,
    },
    /// The server refused.
    #[error("{0}")]
    Refused(Problem),
    /// The answer is not of the agreed form.
    #[error("{base}: the answer is not what this version of alpheus expects")]
    Malformed {
        /// The server's address.
        base: String,
    },
    /// A blocking request would stop the tasks of an asynchronous runtime.
    #[error("a blocking request inside an asynchronous task, which is a bug in Alpheus")]
    InsideRuntime,
}

/// A refusal on the wire (after RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The rule, as a word that programs can tell apart.
    pub rule: String,
    /// What is wrong, for people.
    pub detail: String,
    /// How to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<Box<str>>,
    /// The nearest query that would be allowed, as SQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<Box<str>>,
    /// The HTTP status.
    pub status: u16,
    /// The kind of failure, as [`ErrorId`](crate::errors::ErrorId) names it.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Problem {
    /// Reads the body of a refusal. Servers of others refuse in other forms. Anybody may have written
    /// it, and a terminal or a log may show it: it has no control characters and is not long.
    pub(super) fn read(status: StatusCode, body: &[u8]) -> Self {
        let read = serde_json::from_slice(body).unwrap_or_else(|_| Self {
            rule: "http".to_owned(),
            detail: format!("it answered {status}"),
            help: None,
            query: None,
            status: status.as_u16(),
            id: None,
        });
        let boxed = |text: Box<str>| shown(&text).into_boxed_str();
        Self {
            rule: shown(&read.rule),
            detail: shown(&read.detail),
            help: read.help.map(boxed),
            query: read.query.map(boxed),
            status: read.status,
            id: read.id.as_deref().map(shown),
        }
    }
}

/// The most characters of another party's text.
const MAX_TEXT: usize = 8192;

/// Another party's text without what would move a terminal's cursor, colour it, or turn the direction
/// of what is read.
fn shown(text: &str) -> String {
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut clean = String::new();
    for c in text.chars().take(MAX_TEXT) {
        match c {
            '\n' | '\t' => clean.push(c),
            c if c.is_control() || turns(c) => clean.extend(c.escape_default()),
            c => clean.push(c),
        }
    }
    clean
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.split_once('\n') {
            // Below the first line stand lists, and carets under words.
            Some((first, rest)) => write!(f, "{first} ({})\n{rest}", self.rule),
            None => write!(f, "{} ({})", self.detail, self.rule),
        }
    }
}

impl RequestError {
    /// The rule of a refusal.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::Refused(problem) => Some(&problem.rule),
            _ => None,
        }
    }

    /// Whether the same request may be answered later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            // 408: the request came too slowly. 429: this client has asked too much at once.
            Self::Refused(problem) => problem.status >= 500 || matches!(problem.status, 408 | 429),
            Self::Malformed { .. } | Self::InsideRuntime => false,
        }
    }

    /// A failure in which whatever the server refuses counts as refused, not as bad input.
    #[must_use]
    pub fn into_refusal(self) -> Failure {
        match self {
            Self::Refused(problem) if problem.status < 500 => {
                Failure::new(Category::Refused, Self::Refused(problem))
            }
            error => error.into(),
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Failure {
        let (category, help, query) = match &error {
            RequestError::Refused(Problem { rule, status, help, query, .. }) => {
                let category = match status {
                    _ if matches!(rule.as_str(), "policy" | "quota") => Category::Refused,
                    ..500 => Category::Input,
                    _ => Category::Io,
                };
                (category, help.clone(), query.clone())
            }
            _ => (Category::Io, None, None),
        };
        let failure = Failure::new(category, error);
        let failure = help.into_iter().fold(failure, Failure::with_help);
        query.into_iter().fold(failure, Failure::with_query)
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Refused(problem) => problem.into(),
            error => {
                tracing::warn!(%error, "another process does not answer");
                let detail = "another process of the service does not answer; try again";
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unreachable", detail)
            }
        }
    }
}

/// The causes of an error, outermost first. Hyper's outer messages help nobody.
pub(super) fn causes(error: &dyn Error) -> String {
    let mut next = Some(error.source().unwrap_or(error));
    let mut text = String::new();
    while let Some(cause) = next {
        let separator = if text.is_empty() { "" } else { ": " };
        text = format!("{text}{separator}{cause}");
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_stands_on_the_first_line() {
        let of = |detail: &str| Problem {
            rule: "policy".to_owned(),
            detail: detail.to_owned(),
            help: None,
            query: None,
            status: 403,
            id: None,
        };
        assert_eq!(of("no").to_string(), "no (policy)");
        assert_eq!(of("no\n1 | SELECT\n  | ^").to_string(), "no (policy)\n1 | SELECT\n  | ^");
    }

    /// A server that is not trusted could otherwise write over what this program says.
    #[test]
    fn text_of_another_party_moves_no_cursor() {
        let sent = Problem {
            rule: "a\u{7}".to_owned(),
            detail: "gone\u{1b}[2K\u{1b}[1Aall is well\u{9b}\r\u{202e}\nnext".to_owned(),
            help: Some("\u{1b}]0;title\u{7}".into()),
            query: Some("SELECT\u{8}".into()),
            status: 409,
            id: Some("\u{1b}".to_owned()),
        };
        let read = Problem::read(StatusCode::CONFLICT, &serde_json::to_vec(&sent).unwrap());
        let text = format!("{read}{:?}{:?}{:?}", read.help, read.query, read.id);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        let clean = "gone\\u{1b}[2K\\u{1b}[1Aall is well\\u{9b}\\r\\u{202e}\nnext";
        assert_eq!((read.detail.as_str(), read.status), (clean, 409));
        let long = Problem { detail: "ä".repeat(MAX_TEXT + 1), ..read };
        let read = Problem::read(StatusCode::CONFLICT, &serde_json::to_vec(&long).unwrap());
        assert_eq!(read.detail, "ä".repeat(MAX_TEXT));
    }
}
