//! Refused handshakes in the log: with the reason, and not one line for each of many strangers.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many are logged within each [`SPAN`].
const LOGGED: u32 = 10;
const SPAN: Duration = Duration::from_secs(60);

/// How many were refused lately. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Refusals(Arc<Mutex<Recent>>);

#[derive(Default)]
struct Recent {
    since: Option<Instant>,
    logged: u32,
    left_out: u64,
}

/// What to log of one refusal.
#[derive(Debug, PartialEq, Eq)]
enum LogEntry {
    /// It, and that so many before it were not logged.
    Now(u64),
    Nothing,
}

impl Refusals {
    /// Logs why a handshake failed, without saying whose: who connects is for the level `debug`.
    pub(super) fn note(&self, error: &io::Error) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let LogEntry::Now(left_out) = recent.note(Instant::now()) {
            tracing::warn!(%error, left_out, "a TLS handshake was refused");
        }
    }
}

impl Recent {
    fn note(&mut self, now: Instant) -> LogEntry {
        if self.since.is_none_or(|since| now.duration_since(since) >= SPAN) {
            (self.since, self.logged) = (Some(now), 0);
        }
        if self.logged == LOGGED {
            self.left_out += 1;
            return LogEntry::Nothing;
        }
        self.logged += 1;
        LogEntry::Now(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_counted_and_few_are_logged() {
        let (start, mut recent) = (Instant::now(), Recent::default());
        for _ in 0..LOGGED {
            assert_eq!(recent.note(start), LogEntry::Now(0));
        }
        for _ in 0..1_000 {
            assert_eq!(recent.note(start), LogEntry::Nothing);
        }
        assert_eq!(recent.note(start + SPAN), LogEntry::Now(1_000));
        assert_eq!(recent.note(start + SPAN), LogEntry::Now(0));
    }
}
