//! Settings of the statistics' processes: `stats.…` in the settings file, `ALPHEUS_STATS__…` in
//! the environment, or flags.

use alpheus_accountable_statistics::keymaking::Timeouts;
use alpheus_node::failure::Failure;
use alpheus_node::fence;
use alpheus_node::files::check_private_folder;
use alpheus_node::service::ServiceError;
use alpheus_node::settings::Part;
use alpheus_node::settings::Settings;
use alpheus_time::Span;
use serde::Deserialize;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of the statistics' processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct StatsSettings {
    /// The public card.
    pub card: Option<PathBuf>,
    /// The folder with this party's keys.
    pub keys: Option<PathBuf>,
    /// The registrar's file of accounts.
    pub accounts: Option<PathBuf>,
    /// The address on which a smoother listens for its peers.
    pub peers: Option<std::net::SocketAddr>,
    /// Days for which the aggregator keeps an aggregate after its end. Its row stays in the log.
    pub retention_days: Option<u64>,
    /// The fence: the file that reveals an older copy of the state.
    pub fence: Option<PathBuf>,
    /// How long a smoother waits for each message of the others while they create a key.
    pub message_timeout_seconds: Option<NonZeroU64>,
    /// The duration of the first attempt to create a key. Each later attempt may take twice as
    /// long, up to 64 times.
    pub attempt_timeout_seconds: Option<NonZeroU64>,
    /// How long a definer or a client waits for parties that do not answer.
    pub timeout_seconds: Option<NonZeroU64>,
}

impl Part for StatsSettings {
    const KEY: &'static str = "stats";
}

/// Default timeouts for the creation of a key, in seconds: smoothers may be started by hand one
/// after the other.
const WORD: u64 = 20;
const ATTEMPT: u64 = 120;
/// The default timeout for parties that do not answer, in seconds.
const PATIENCE: u64 = 300;

impl StatsSettings {
    /// The timeouts for the creation of a key.
    #[must_use]
    pub fn key_patience(&self) -> Timeouts {
        let micros = |seconds: Option<NonZeroU64>, usual: u64| {
            Span(seconds.map_or(usual, NonZeroU64::get).saturating_mul(1_000_000))
        };
        let (word, attempt) = (self.message_timeout_seconds, self.attempt_timeout_seconds);
        Timeouts { message: micros(word, WORD), attempt: micros(attempt, ATTEMPT) }
    }

    /// The timeout for parties that do not answer.
    #[must_use]
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds.map_or(PATIENCE, NonZeroU64::get))
    }

    /// The path of the fence.
    ///
    /// # Errors
    /// If neither the fence nor the state folder is set.
    pub fn fence(&self, state: &Option<PathBuf>) -> Result<PathBuf, ServiceError> {
        match &self.fence {
            Some(fence) => Ok(fence.clone()),
            None => Ok(fence::move_out_of(&Settings::needed(state, "state")?)),
        }
    }

    /// The path of a smoother's fence. Each commit touches it, so it is in a folder where nobody else looks.
    ///
    /// # Errors
    /// Neither the fence nor the state folder is set, its folder cannot be created, or others can look
    /// into it.
    pub fn hidden_fence(&self, state: &Option<PathBuf>) -> Result<PathBuf, Failure> {
        let fence = match &self.fence {
            Some(fence) => fence.clone(),
            None => fence::move_to_private_folder(&Settings::needed(state, "state")?)?,
        };
        check_private_folder(fence.parent().filter(|at| *at != "").unwrap_or(".".as_ref()))?;
        Ok(fence)
    }
}
