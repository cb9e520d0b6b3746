//! The wall clock as the pass sees it.

use alpheus_anonymous_credential::schedule::Time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
#[must_use]
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// How long it is until then; nothing if it is past.
#[must_use]
pub fn until(then: Time) -> Duration {
    Duration::from_micros(then.0.saturating_sub(now().0))
}
