//! Settings of the streams' processes: `schema`, `engine` and the table `windows`.

use crate::quota::Quota;
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_input::files::read_schema;
use alpheus_node::failure::{Category, Failure};
use alpheus_node::settings::{Part, Settings, SettingsError};
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::engine_kind::EngineKind;
use alpheus_stream_runtime::manager::QUERIES_PER_CONSUMER;
use alpheus_time::Span;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// The keys of the settings file that this crate reads.
pub const KEYS: [&str; 7] = [SCHEMA, ENGINE, WINDOWS, OWNERS_LOG, POLL, QUERIES, QUOTA];

const SCHEMA: &str = "schema";
const ENGINE: &str = "engine";
const WINDOWS: &str = "windows";
const OWNERS_LOG: &str = "owners-log";
pub(crate) const POLL: &str = "poll-seconds";
pub(crate) const QUERIES: &str = "queries-per-consumer";
pub(crate) const QUOTA: &str = "stream-megabytes";

/// Reads the schema that the settings name.
///
/// # Errors
/// None is named, or the file cannot be read or understood.
pub fn schema(settings: &Settings) -> Result<Schema, Failure> {
    let path: Option<PathBuf> = settings.value(SCHEMA)?;
    read_schema(&Settings::needed(&path, SCHEMA)?)
}

/// Reads the keys of streams, for their types alone.
///
/// # Errors
/// One has a value of another type.
pub fn check(settings: &Settings) -> Result<(), SettingsError> {
    settings.value::<Option<PathBuf>>(SCHEMA)?;
    settings.value::<EngineKind>(ENGINE)?;
    [POLL, QUERIES, QUOTA].into_iter().try_for_each(|key| settings.value::<u32>(key).map(drop))
}

/// How many queries of one consumer may run at a time.
///
/// # Errors
/// The setting is wrong.
pub fn queries(settings: &Settings) -> Result<u32, Failure> {
    Ok(settings.value(QUERIES)?.unwrap_or(QUERIES_PER_CONSUMER))
}

/// How much of a stream of this shape is taken in a day.
///
/// # Errors
/// The setting is wrong.
pub fn quota(settings: &Settings, shape: &Shape) -> Result<Quota, Failure> {
    let megabytes: Option<u32> = settings.value(QUOTA)?;
    let of_bytes = |megabytes| Quota::of_bytes(u64::from(megabytes) << 20);
    Ok(megabytes.map_or_else(|| Quota::usual(shape), of_bytes))
}

/// After how long a device with nothing to send asks the service.
///
/// # Errors
/// The setting is wrong.
pub fn poll(settings: &Settings) -> Result<Duration, Failure> {
    let seconds: Option<u32> = settings.value(POLL)?;
    Ok(seconds.map_or(POLL_USUALLY, |seconds| Duration::from_secs(u64::from(seconds.max(1)))))
}

/// The job is another process and cannot read a log in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine `job` needs topics that the job can read; set kafka.brokers and kafka.prefix")]
pub struct EngineNeedsKafkaError;

/// The engine that sums ciphertexts.
///
/// # Errors
/// The setting is wrong, or the job is chosen without Kafka.
pub fn engine(settings: &Settings) -> Result<EngineKind, Failure> {
    let engine: EngineKind = settings.value(ENGINE)?.unwrap_or_default();
    if engine == EngineKind::Job && settings.kafka.is_none() {
        return Err(Failure::new(Category::Usage, EngineNeedsKafkaError));
    }
    Ok(engine)
}

/// How long a device that has nothing to send waits before it asks the service.
const POLL_USUALLY: Duration = Duration::from_secs(10);
/// How long after its end a window waits for late streams.
const IDLE_SECONDS: u32 = 10;
/// The same with a job, which reports its progress: it gets time to come back.
const JOB_IDLE_SECONDS: u32 = 600;
/// How long a window waits for controllers with a job. After an outage the job delivers windows
/// by the dozen, and controllers whose state is in the same brokers were away as well.
const JOB_CONTROLLER_SECONDS: u32 = 30;
/// How long the service waits for controllers and devices after it was away.
const RECOVERY_SECONDS: u32 = 120;
const RETENTION_HOURS: u32 = 168;
/// How long results and lines of owners' logs are kept: a year, and some weeks to read it.
const KEPT_DAYS: u32 = 400;
/// How long receipts of verified windows are kept.
const RECEIPT_DAYS: u32 = 30;
/// How many results are kept.
const RESULT_ROWS: u64 = 10_000_000;
/// How many megabytes of owners' logs a host keeps.
const LOG_MEGABYTES: u32 = 1024;

/// How long windows wait, and how long ciphertext is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct WindowSettings {
    /// How long after its end a window waits for late streams.
    pub idle_timeout_seconds: Option<u32>,
    /// How long a window waits for controllers to answer, and again for their tokens.
    pub controller_timeout_seconds: Option<u32>,
    /// How long a window waits for the job's sums.
    pub sums_timeout_seconds: Option<u32>,
    /// How long the service waits, after it was away, for those who were there before.
    pub recovery_timeout_seconds: Option<u32>,
    /// How long ciphertext is kept after it has been summed.
    pub retention_hours: Option<u32>,
    /// How long results are kept.
    pub results_days: Option<u32>,
    /// How many results are kept.
    pub results_rows: Option<u64>,
    /// How long receipts of verified windows are kept.
    pub receipts_days: Option<u32>,
}

impl Part for WindowSettings {
    const KEY: &'static str = WINDOWS;
}

impl WindowSettings {
    /// How long after its end a window waits for late streams.
    #[must_use]
    pub fn idle(&self, engine: EngineKind) -> Span {
        let usual = match engine {
            EngineKind::InProcess => IDLE_SECONDS,
            EngineKind::Job => JOB_IDLE_SECONDS,
        };
        seconds(self.idle_timeout_seconds.unwrap_or(usual))
    }

    /// How long a window waits in each of its steps.
    #[must_use]
    pub fn timing(&self, engine: EngineKind) -> Timing {
        let usual = Timing::default();
        let job = (engine == EngineKind::Job).then_some(JOB_CONTROLLER_SECONDS);
        let wait = self.controller_timeout_seconds.or(job).map(seconds);
        Timing {
            presence: wait.unwrap_or(usual.presence),
            tokens: wait.unwrap_or(usual.tokens),
            sums: self.sums_timeout_seconds.map_or(usual.sums, seconds),
            ..usual
        }
    }

    /// How long the service waits, after it was away, for those who were there before.
    #[must_use]
    pub fn recovery(&self) -> Span {
        seconds(self.recovery_timeout_seconds.unwrap_or(RECOVERY_SECONDS))
    }

    /// How long results are kept, and how many at most.
    #[must_use]
    pub fn results(&self) -> (Span, u64) {
        let rows = self.results_rows.unwrap_or(RESULT_ROWS);
        (days(self.results_days.unwrap_or(KEPT_DAYS)), rows)
    }

    /// How long receipts of verified windows are kept.
    #[must_use]
    pub fn receipts(&self) -> Span {
        days(self.receipts_days.unwrap_or(RECEIPT_DAYS))
    }

    /// How long ciphertext is kept after it has been summed.
    #[must_use]
    pub fn retention(&self) -> Span {
        Span::seconds(u64::from(self.retention_hours.unwrap_or(RETENTION_HOURS)) * 3600)
    }
}

/// How much of its owners' logs a host of controllers keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogSettings {
    /// How long lines are kept.
    pub retention_days: Option<u32>,
    /// How many megabytes are kept.
    pub max_megabytes: Option<u32>,
}

impl Part for LogSettings {
    const KEY: &'static str = OWNERS_LOG;
}

impl LogSettings {
    /// How long lines are kept, and how many bytes at most.
    #[must_use]
    pub fn limits(&self) -> (Span, u64) {
        let megabytes = self.max_megabytes.unwrap_or(LOG_MEGABYTES);
        (days(self.retention_days.unwrap_or(KEPT_DAYS)), u64::from(megabytes) << 20)
    }
}

fn days(n: u32) -> Span {
    Span(u64::from(n).saturating_mul(Span::DAY.0))
}

/// Any `u32` of seconds, or of hours, fits into a span.
fn seconds(n: u32) -> Span {
    Span::seconds(n.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_override_the_defaults() {
        let usual = WindowSettings::default();
        assert_eq!(usual.timing(EngineKind::InProcess), Timing::default());
        assert_eq!(usual.timing(EngineKind::Job).tokens, Span::seconds(30));
        assert_eq!(usual.idle(EngineKind::InProcess), Span::seconds(10));
        assert_eq!(usual.idle(EngineKind::Job), Span::seconds(600));
        let set = WindowSettings {
            idle_timeout_seconds: Some(1),
            controller_timeout_seconds: Some(2),
            sums_timeout_seconds: Some(3),
            recovery_timeout_seconds: Some(5),
            retention_hours: Some(4),
            results_days: Some(6),
            results_rows: Some(7),
            receipts_days: Some(8),
        };
        let timing = set.timing(EngineKind::Job);
        let waits = [timing.presence, timing.tokens, timing.sums, set.idle(EngineKind::Job)];
        assert_eq!(waits, [2, 2, 3, 1].map(Span::seconds));
        assert_eq!(usual.recovery(), Span::seconds(120));
        assert_eq!(set.recovery(), Span::seconds(5));
        assert_eq!(set.retention(), Span::seconds(4 * 3600));
        assert_eq!((usual.results(), set.results().1), ((days(400), 10_000_000), 7));
        assert_eq!(set.results().0, days(6));
        assert_eq!((usual.receipts(), set.receipts()), (days(30), days(8)));
        assert_eq!(LogSettings::default().limits(), (days(400), 1 << 30));
        let log = LogSettings { retention_days: Some(8), max_megabytes: Some(9) };
        assert_eq!(log.limits(), (days(8), 9 << 20));
    }

    #[test]
    fn a_missing_schema_is_reported_by_its_setting() {
        let failure = schema(&Settings::default()).unwrap_err().to_string();
        assert!(failure.contains("the setting schema is missing"), "{failure}");
    }
}
