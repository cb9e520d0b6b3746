//! Why a statement is refused: an SQLSTATE, a message and a hint.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion_postgres::pgwire::error::{ErrorInfo, PgWireError};
use tonic::{Code, Status};

/// What a client gets instead of rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct StatementError {
    /// The SQLSTATE.
    pub(crate) code: &'static str,
    /// What is wrong.
    pub(crate) message: String,
    /// How to fix it.
    pub(crate) hint: Option<String>,
}

/// The statement is not in the language.
pub(crate) const SYNTAX: &str = "42601";
/// No such table.
pub(crate) const NO_TABLE: &str = "42P01";
/// No such column.
pub(crate) const NO_COLUMN: &str = "42703";
/// No such schema.
pub(crate) const NO_SCHEMA: &str = "3F000";
/// There is one already.
pub(crate) const TAKEN: &str = "42P07";
/// The role may not do this.
pub(crate) const FORBIDDEN: &str = "42501";
/// A view would refer to itself.
pub(crate) const ENDLESS: &str = "42P17";
/// Others depend on it.
pub(crate) const DEPENDED_ON: &str = "2BP01";
/// This endpoint cannot do this.
pub(crate) const UNSUPPORTED: &str = "0A000";
/// Released rows are read-only.
pub(crate) const READ_ONLY: &str = "25006";
/// It needs more memory than there is.
pub(crate) const NO_MEMORY: &str = "53200";
/// Nobody has logged in over this connection.
pub(crate) const NOT_LOGGED_IN: &str = "28000";
/// Too many clients are connected.
pub(crate) const CROWDED: &str = "53300";
/// `alpheus` does not answer.
pub(crate) const UNREACHABLE: &str = "08001";

impl StatementError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> StatementError {
        StatementError { code, message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> StatementError {
        self.hint = Some(hint.into());
        self
    }
}

impl From<StatementError> for PgWireError {
    fn from(refusal: StatementError) -> PgWireError {
        let code = refusal.code.to_owned();
        let mut info = ErrorInfo::new("ERROR".to_owned(), code, refusal.message);
        info.hint = refusal.hint;
        PgWireError::UserError(Box::new(info))
    }
}

impl From<StatementError> for Status {
    fn from(refusal: StatementError) -> Status {
        let code = match refusal.code {
            FORBIDDEN | READ_ONLY => Code::PermissionDenied,
            NO_TABLE | NO_COLUMN | NO_SCHEMA => Code::NotFound,
            TAKEN => Code::AlreadyExists,
            UNSUPPORTED => Code::Unimplemented,
            NO_MEMORY => Code::ResourceExhausted,
            UNREACHABLE => Code::Unavailable,
            _ => Code::InvalidArgument,
        };
        let hint = refusal.hint.map(|hint| format!("\nHINT: {hint}")).unwrap_or_default();
        Status::new(code, format!("{} (SQLSTATE {}){hint}", refusal.message, refusal.code))
    }
}

impl From<DataFusionError> for StatementError {
    fn from(error: DataFusionError) -> StatementError {
        let code = code_of(&error);
        let text = error.find_root().strip_backtrace();
        let text = PREFIXES.iter().fold(text.as_str(), |text, own| text.trim_start_matches(own));
        let refusal = StatementError::new(code, text);
        match code {
            NO_TABLE => refusal.with_hint("`about.queries` lists the queries whose rows are here"),
            NO_MEMORY => refusal.with_hint("ask for less, or start with more --memory-megabytes"),
            _ => refusal,
        }
    }
}

/// What DataFusion writes in front of its messages.
const PREFIXES: [&str; 4] =
    ["Error during planning: ", "Schema error: ", "SQL error: ", "Arrow error: "];

fn code_of(error: &DataFusionError) -> &'static str {
    let root = error.find_root();
    let text = root.to_string();
    match root {
        DataFusionError::SQL(..) => SYNTAX,
        DataFusionError::SchemaError(own, _) => match **own {
            SchemaError::FieldNotFound { .. } => NO_COLUMN,
            SchemaError::AmbiguousReference { .. } => "42702",
            _ => SYNTAX,
        },
        DataFusionError::NotImplemented(_) => UNSUPPORTED,
        DataFusionError::ResourcesExhausted(_) => NO_MEMORY,
        DataFusionError::Plan(_) if text.contains("table '") && text.contains("not found") => {
            NO_TABLE
        }
        DataFusionError::Plan(_) if text.contains("Invalid function") => "42883",
        DataFusionError::Plan(_) => "42000",
        DataFusionError::ArrowError(..) if text.contains("Divide by zero") => "22012",
        DataFusionError::ArrowError(..) if text.contains("Cast error") => "22P02",
        DataFusionError::ArrowError(..) => "22000",
        _ => "XX000",
    }
}

/// Gives an error of a library its SQLSTATE, before it is sent.
pub(crate) fn explain(error: &mut PgWireError) {
    let PgWireError::ApiError(inner) = error else { return };
    let refusal = match std::mem::replace(inner, "".into()).downcast::<DataFusionError>() {
        Ok(own) => StatementError::from(*own),
        Err(other) => StatementError::new(SYNTAX, other.to_string()),
    };
    *error = refusal.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_engine_gets_its_sqlstate_and_no_prefix() {
        let plan = DataFusionError::Plan("table 'a.b.c' not found".to_owned());
        let refusal = StatementError::from(plan);
        assert_eq!((refusal.code, refusal.message.as_str()), (NO_TABLE, "table 'a.b.c' not found"));
        let mut error =
            PgWireError::ApiError(Box::new(DataFusionError::NotImplemented("x".into())));
        explain(&mut error);
        let info = ErrorInfo::from(error);
        assert_eq!(info.code, UNSUPPORTED);
    }

    #[test]
    fn a_status_has_message_sqlstate_and_hint() {
        let status = Status::from(StatementError::new(FORBIDDEN, "no").with_hint("ask"));
        assert_eq!(status.code(), Code::PermissionDenied);
        assert_eq!(status.message(), "no (SQLSTATE 42501)\nHINT: ask");
    }
}
