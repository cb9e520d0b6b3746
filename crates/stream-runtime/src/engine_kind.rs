//! Which engine sums ciphertexts: the service itself, or a job beside it.

use clap::ValueEnum;
use serde::Deserialize;
use std::fmt;

/// The engine that sums ciphertexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// The service itself
    #[default]
    InProcess,
    /// A job that reads and writes topics of the same store
    Job,
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}
