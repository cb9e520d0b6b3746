//! Structured logs on standard error, for eyes or as one JSON object a line.
//!
//! # Privacy
//! A log names files, addresses, plans, windows, counts and reasons. It never
//! holds a secret, a plaintext value or a person's identifier; error types of
//! ours are made so that they cannot either.

use std::str::FromStr;
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For eyes.
    #[default]
    Plain,
    /// For programs.
    Json,
}

/// Why logs cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is no list of levels.
    #[error(
        "a log filter is a level (off, error, warn, info, debug, trace), or such per module as in `warn,alpheus=info`"
    )]
    Filter(#[source] ParseError),
    /// Somebody else in the process did it first.
    #[error("logging was started already")]
    Started(#[source] TryInitError),
}

/// Starts logging for the whole process.
///
/// # Errors
/// The filter cannot be understood, or logging was started before.
pub fn start(filter: &str, format: LogFormat) -> Result<(), LogError> {
    let targets = Targets::from_str(filter).map_err(LogError::Filter)?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(targets);
    match format {
        LogFormat::Plain => registry.with(lines.with_ansi(false)).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    }
    .map_err(LogError::Started)
}
