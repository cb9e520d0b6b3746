//! How long windows wait for whom, and how long their ciphertext is kept: `windows.…` in the
//! file, `ALPHEUS_WINDOWS__…` in the environment, flags.

use crate::runtime::plane::EngineKind;
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_policy::time::Span;
use serde::Deserialize;

/// Seconds after its end that a window waits for streams that are late.
const IDLE: u32 = 10;
/// The same for a job, which says how far it is: it is given time to come back.
const JOB_IDLE: u32 = 600;
/// Seconds that a window waits for controllers where a job adds up: it brings windows by the
/// dozen after it was away, and who keeps state in the same brokers was away with them.
const JOB_CONTROLLERS_WAIT: u32 = 30;
/// Hours that ciphertext is kept.
const KEEP: u32 = 168;

/// What the service can be told of its windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct WindowSettings {
    /// A window that ended so many seconds ago closes without streams that are late.
    pub idle_seconds: Option<u32>,
    /// So many seconds a window waits for controllers that do not answer, and again for tokens.
    pub controllers_wait_seconds: Option<u32>,
    /// So many seconds a window waits for the job's sums.
    pub sums_wait_seconds: Option<u32>,
    /// For so many hours ciphertext that was summed is kept.
    pub keep_hours: Option<u32>,
}

impl WindowSettings {
    /// How long a window waits for streams that are late.
    #[must_use]
    pub fn idle(&self, engine: EngineKind) -> Span {
        let usual = match engine {
            EngineKind::InProcess => IDLE,
            EngineKind::Job => JOB_IDLE,
        };
        seconds(self.idle_seconds.unwrap_or(usual))
    }

    /// How long a window waits for answers.
    #[must_use]
    pub fn timing(&self, engine: EngineKind) -> Timing {
        let usual = Timing::default();
        let job = (engine == EngineKind::Job).then_some(JOB_CONTROLLERS_WAIT);
        let wait = self.controllers_wait_seconds.or(job).map(seconds);
        Timing {
            presence: wait.unwrap_or(usual.presence),
            tokens: wait.unwrap_or(usual.tokens),
            sums: self.sums_wait_seconds.map_or(usual.sums, seconds),
            ..usual
        }
    }

    /// For how long ciphertext that was summed is kept.
    #[must_use]
    pub fn keep(&self) -> Span {
        Span::seconds(u64::from(self.keep_hours.unwrap_or(KEEP)) * 3600)
    }
}

/// No number of them, nor of hours, is too large for a span.
fn seconds(n: u32) -> Span {
    Span::seconds(n.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_wins_over_what_is_usual() {
        let usual = WindowSettings::default();
        assert_eq!(usual.timing(EngineKind::InProcess), Timing::default());
        assert_eq!(usual.timing(EngineKind::Job).tokens, Span::seconds(30));
        assert_eq!(usual.idle(EngineKind::InProcess), Span::seconds(10));
        assert_eq!(usual.idle(EngineKind::Job), Span::seconds(600));
        let said = WindowSettings {
            idle_seconds: Some(1),
            controllers_wait_seconds: Some(2),
            sums_wait_seconds: Some(3),
            keep_hours: Some(4),
        };
        let timing = said.timing(EngineKind::Job);
        let waits = [timing.presence, timing.tokens, timing.sums, said.idle(EngineKind::Job)];
        assert_eq!(waits, [2, 2, 3, 1].map(Span::seconds));
        assert_eq!(said.keep(), Span::seconds(4 * 3600));
    }
}
