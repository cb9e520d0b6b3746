//! A worker's time: its machine's, if the brokers' agrees. A worker that is behind takes frames of right devices
//! for ones from the future, and one that is ahead closes windows before their rows have come. So it works
//! only while both times are within the skew that devices are allowed.
//!
//! Brokers stamp each record of the journals with their time. In between it advances by the
//! steady clock, which nobody sets.

use alpheus_time::{Span, Timestamp};
use alpheus_transport::BrokerTime;
use std::time::{Duration, Instant};

/// The brokers are asked again if they have said nothing for so long.
const ASK: Duration = Duration::from_secs(60);
/// Clocks are never nearer than that for sure.
const MIN_SKEW: Span = Span::seconds(1);

/// A worker's clock.
#[derive(Clone, Copy, Debug)]
pub struct WorkerClock {
    skew: Span,
    heard: Option<BrokerTime>,
    /// What it showed last. It never goes back.
    shown: Timestamp,
}

/// Why a worker's clock shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// The machine's clock is the later one.
    #[error(
        "this machine's clock is {seconds} s ahead of the brokers', and --skew allows {skew} s; correct the wrong one. Until then this worker processes nothing"
    )]
    Ahead {
        /// By how much, rounded down.
        seconds: u64,
        /// What is allowed.
        skew: u64,
    },
    /// The brokers' clock is the later one.
    #[error(
        "this machine's clock is {seconds} s behind the brokers', and --skew allows {skew} s; correct the wrong one. Until then this worker processes nothing"
    )]
    Behind {
        /// By how much, rounded down.
        seconds: u64,
        /// What is allowed.
        skew: u64,
    },
    /// The brokers have said nothing.
    #[error("the brokers have not reported the time")]
    Unknown,
}

impl WorkerClock {
    /// A clock that may be off the brokers' by the skew.
    #[must_use]
    pub fn new(skew: Span) -> WorkerClock {
        WorkerClock { skew: skew.max(MIN_SKEW), heard: None, shown: Timestamp(0) }
    }

    /// Takes the time that the brokers said last.
    pub fn hear(&mut self, said: Option<BrokerTime>) {
        self.heard = said.or(self.heard);
    }

    /// Whether the brokers have said nothing for a while.
    #[must_use]
    pub fn is_to_ask(&self, steady: Instant) -> bool {
        self.heard.is_none_or(|said| steady.saturating_duration_since(said.heard) >= ASK)
    }

    /// The time, if the machine's clock shows this at this time of the steady clock.
    ///
    /// # Errors
    /// [`ClockError`]; then nothing may rest on it.
    pub fn read(&mut self, machine: Timestamp, steady: Instant) -> Result<Timestamp, ClockError> {
        let said = self.heard.ok_or(ClockError::Unknown)?;
        // They took the record at some time between sending and hearing.
        let since = |then| span(steady.saturating_duration_since(then));
        let after = |then| said.at.saturating_add(since(then));
        let (least, most) = (after(said.heard), after(said.sent));
        let (behind, ahead) = (least.saturating_sub(machine.0), machine.0.saturating_sub(most));
        let off = behind.max(ahead);
        if off > self.skew.0 {
            let second = Span::seconds(1).0;
            let (seconds, skew) = (off / second, self.skew.0 / second);
            return Err(if ahead > behind {
                ClockError::Ahead { seconds, skew }
            } else {
                ClockError::Behind { seconds, skew }
            });
        }
        self.shown = self.shown.max(machine);
        Ok(self.shown)
    }
}

fn span(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds * 1_000_000)
    }

    /// The brokers said 10,000 s, for a record that took two seconds.
    fn heard() -> (WorkerClock, Instant) {
        let (mut clock, begun) = (WorkerClock::new(Span::seconds(60)), Instant::now());
        assert_eq!(clock.read(at(10_000), begun), Err(ClockError::Unknown));
        assert!(clock.is_to_ask(begun));
        let heard = begun + Duration::from_secs(2);
        clock.hear(Some(BrokerTime { at: at(10_000).0, sent: begun, heard }));
        assert!(!clock.is_to_ask(heard));
        (clock, heard)
    }

    #[test]
    fn a_clock_within_the_skew_is_followed_and_never_back() {
        let (mut clock, heard) = heard();
        assert_eq!(clock.read(at(10_050), heard), Ok(at(10_050)));
        assert_eq!(clock.read(at(9_950), heard), Ok(at(10_050)));
        let later = heard + Duration::from_secs(100);
        assert_eq!(clock.read(at(10_120), later), Ok(at(10_120)));
        assert!(clock.is_to_ask(later));
    }

    #[test]
    fn a_clock_that_is_wrong_or_jumps_shows_nothing() {
        let (mut clock, heard) = heard();
        let ahead = |seconds| Err(ClockError::Ahead { seconds, skew: 60 });
        let behind = |seconds| Err(ClockError::Behind { seconds, skew: 60 });
        assert_eq!(clock.read(at(9_900), heard), behind(100));
        assert_eq!(clock.read(at(10_102), heard), ahead(100));
        // It was right, and somebody sets it. The brokers are not even asked.
        let later = heard + Duration::from_secs(10);
        assert_eq!(clock.read(at(10_010), later), Ok(at(10_010)));
        assert_eq!(clock.read(at(13_612), later), ahead(3_600));
        assert_eq!(clock.read(at(6_410), later), behind(3_600));
        assert_eq!(clock.read(at(10_011), later), Ok(at(10_011)));
    }

    #[test]
    fn an_error_says_what_to_do() {
        let (mut clock, heard) = heard();
        let error = clock.read(at(9_000), heard).unwrap_err().to_string();
        for word in ["1000 s behind", "--skew allows 60 s", "correct the wrong one"] {
            assert!(error.contains(word), "{error}");
        }
    }
}
