//! Structured logs on standard error, as text or as one JSON object per line.
//!
//! # Privacy
//! A log names files, addresses, plans, windows, counts and reasons. It never contains a
//! secret, a plaintext value or a person's identifier, and our error types cannot either.

use crate::settings::LogFormat;
use std::str::FromStr;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// The default filter.
pub const DEFAULT_FILTER: &str = "warn";

/// Libraries that log warnings and errors only, unless the filter names them.
const QUIET: [&str; 5] = ["fjall", "lsm_tree", "rustls", "hyper", "hyper_util"];

/// Why logs cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is not a list of levels.
    #[error(
        "a log filter is a level (off, error, warn, info, debug, trace), or a level per module as in `warn,alpheus=info`"
    )]
    Filter,
    /// Logging was started before.
    #[error("logging has already started")]
    Started(#[source] TryInitError),
}

/// Starts logging for the whole process.
///
/// # Errors
/// The filter is not valid, or logging was started before.
pub fn start(filter: &str, format: LogFormat) -> Result<(), LogError> {
    let targets = parse(filter).ok_or(LogError::Filter)?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(targets);
    match format {
        LogFormat::Plain => registry.with(lines.with_ansi(false)).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    }
    .map_err(LogError::Started)
}

/// `Targets` takes a bare word for a module, so a misspelled level would switch everything
/// off.
fn parse(filter: &str) -> Option<Targets> {
    let is_level = |part: &str| !part.is_empty() && LevelFilter::from_str(part).is_ok();
    let is_said = |part: &str| part.contains('=') || is_level(part);
    let targets = filter.split(',').all(is_said).then(|| Targets::from_str(filter).ok())??;
    // A bare level is for our own code, not for the internals of database, TLS and HTTP, whose
    // lines count requests.
    let quieter = targets.default_level().map(|level| level.min(LevelFilter::WARN));
    let named = |module: &str| filter.contains(&format!("{module}="));
    let quiet = QUIET.into_iter().filter(|module| !named(module));
    Some(match quieter {
        Some(level) => targets.with_targets(quiet.map(|module| (module, level))),
        None => targets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_level_does_not_apply_to_libraries() {
        let enabled =
            |filter, target| parse(filter).unwrap().would_enable(target, &tracing::Level::INFO);
        assert!(enabled("info", "alpheus::replay") && !enabled("info", "fjall::db"));
        assert!(!enabled("info", "rustls::client") && !enabled("info", "hyper_util::client"));
        assert!(enabled("info,fjall=info", "fjall::db") && !enabled("off", "alpheus"));
    }

    #[test]
    fn a_misspelled_level_is_refused() {
        for good in ["off", "warn", "INFO", "warn,alpheus=debug", "alpheus::service=trace"] {
            assert!(parse(good).is_some(), "{good}");
        }
        for bad in ["", "warm", "warn,", "alpheus", "alpheus=loud"] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
