//! Settings of the statistics' processes: `stats.…` in the file, `ALPHEUS_STATS__…` in
//! the environment, flags.

use serde::Deserialize;
use std::path::PathBuf;

/// What the statistics' processes can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct StatsSettings {
    /// The public card.
    pub card: Option<PathBuf>,
    /// The folder with this party's keys.
    pub keys: Option<PathBuf>,
    /// The registrar's file of accounts.
    pub accounts: Option<PathBuf>,
    /// Where a smoother's peers reach it.
    pub peers: Option<std::net::SocketAddr>,
    /// For so many days the aggregator keeps an aggregate after its end; its row stays in the log.
    pub kept_days: Option<u64>,
    /// A replay's clock.
    pub clock: Option<PathBuf>,
}
