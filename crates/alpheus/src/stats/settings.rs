//! Settings of the statistics' processes: `stats.…` in the file, `ALPHEUS_STATS__…` in
//! the environment, flags.

use crate::service::{ServiceError, Settings};
use alpheus_accountable_statistics::keymaking::Patience;
use serde::Deserialize;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

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
    /// The file that shows an older copy of the state.
    pub fence: Option<PathBuf>,
    /// For so long a smoother waits for what another says at once while they make a key.
    pub word_seconds: Option<NonZeroU64>,
    /// For so long the first attempt at a key goes on; each later one has twice as long, up to 64
    /// times.
    pub attempt_seconds: Option<NonZeroU64>,
    /// For so long whoever defines or registers waits for parties that do not answer.
    pub patience_seconds: Option<NonZeroU64>,
    /// A replay's clock.
    pub clock: Option<PathBuf>,
}

/// How long a key's makers wait, unless it is said otherwise: smoothers may be started by hand
/// one after the other.
const WORD: u64 = 20;
const ATTEMPT: u64 = 120;
/// How long somebody who does not answer is waited for.
const PATIENCE: u64 = 300;

impl StatsSettings {
    /// How long a key's makers wait.
    #[must_use]
    pub fn key_patience(&self) -> Patience {
        let micros = |seconds: Option<NonZeroU64>, usual: u64| {
            seconds.map_or(usual, NonZeroU64::get).saturating_mul(1_000_000)
        };
        let (word, attempt) = (self.word_seconds, self.attempt_seconds);
        Patience { word: micros(word, WORD), attempt: micros(attempt, ATTEMPT) }
    }

    /// How long somebody who does not answer is waited for.
    #[must_use]
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.patience_seconds.map_or(PATIENCE, NonZeroU64::get))
    }

    /// Where the fence of a state is.
    ///
    /// # Errors
    /// If it is not said where the state is.
    pub fn fence(&self, state: &Option<PathBuf>) -> Result<PathBuf, ServiceError> {
        match &self.fence {
            Some(fence) => Ok(fence.clone()),
            None => Ok(Settings::needed(state, "state")?.join("fence")),
        }
    }
}
