//! How much of a stream's frames is taken in a day.
//!
//! Accepted frames stay in the log for as long as it is kept, whether or not they count:
//! a frame's MAC is checked where it is summed. Without a quota one device could fill the disk.
//! The room grows with time, so a stream that was away can send what waits at once, as far as its
//! quota goes. It is in memory: after a restart all of it is there again.

use alpheus_encrypted_stream::transformer::Shape;
use alpheus_policy::ids::StreamId;
use alpheus_time::Span;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A stream may send what this many days have, in each.
const DAYS: u64 = 8;
/// What every stream may send in a day, unless set: recordings of ticks that are rare come at once.
const MIN_BYTES: u64 = 64 << 20;
/// The same where each event is a frame, and no schema says how many there are.
const OF_EVENTS: u64 = 1 << 30;
/// Bytes that the log needs for a frame, beside the frame; and the store for the number of an upload.
const RECORD: u64 = 64;

/// A stream has sent as much as it may in a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stream may send {} MB in a day, and this one has already sent that much", .most >> 20)]
pub struct QuotaError {
    /// Bytes that it may send in a day.
    most: u64,
}

/// How much each stream has sent. Clones share it.
#[derive(Clone, Debug)]
pub struct Quota {
    most: u64,
    used: Arc<Mutex<HashMap<StreamId, (u64, Duration)>>>,
}

impl Quota {
    /// This many bytes of a stream in a day.
    #[must_use]
    pub fn of_bytes(most: u64) -> Quota {
        Quota { most: most.max(1), used: Arc::default() }
    }

    /// What is enough for streams of this shape, and for eight days of ticks in one.
    #[must_use]
    pub fn usual(shape: &Shape) -> Quota {
        if shape.frames.is_events() {
            return Quota::of_bytes(OF_EVENTS);
        }
        let ticks = Span::DAY.0 / shape.tick.0.max(1);
        let tick = shape.longest_frame() as u64 + RECORD;
        Quota::of_bytes(ticks.saturating_mul(tick).saturating_mul(DAYS).max(MIN_BYTES))
    }

    /// Bytes that an upload of these frames takes on the disk.
    #[must_use]
    pub fn size_of(frames: &[Vec<u8>]) -> u64 {
        frames.iter().fold(RECORD, |sum, frame| sum + frame.len() as u64 + RECORD)
    }

    fn used(&self) -> MutexGuard<'_, HashMap<StreamId, (u64, Duration)>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What of a stream's bytes still counts.
    fn level(&self, (bytes, at): (u64, Duration), now: Duration) -> u64 {
        let since = now.saturating_sub(at).as_micros();
        let freed = u128::from(self.most).saturating_mul(since) / u128::from(Span::DAY.0);
        bytes.saturating_sub(u64::try_from(freed).unwrap_or(u64::MAX))
    }

    /// Whether so many bytes of a stream may be taken. A stream of which nothing counts any more may
    /// send them whatever their number, so that no upload waits forever.
    ///
    /// # Errors
    /// [`QuotaError`].
    pub fn check(&self, stream: &StreamId, bytes: u64, now: Duration) -> Result<(), QuotaError> {
        let level = self.used().get(stream).map_or(0, |used| self.level(*used, now));
        if level == 0 || level.saturating_add(bytes) <= self.most {
            return Ok(());
        }
        Err(QuotaError { most: self.most })
    }

    /// So many bytes of a stream were taken.
    pub fn note(&self, stream: &StreamId, bytes: u64, now: Duration) {
        let mut used = self.used();
        let level = used.get(stream).map_or(0, |used| self.level(*used, now));
        used.insert(*stream, (level.saturating_add(bytes), now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_its_quota_at_once_and_then_as_time_passes() {
        let quota = Quota::of_bytes(1000);
        let [one, other] = [1, 2].map(|number| StreamId([number; 16]));
        let hours = |hours: u64| Duration::from_secs(3600 * hours);
        let refused = Err(QuotaError { most: 1000 });
        assert_eq!(quota.check(&one, 1000, hours(5)), Ok(()));
        quota.note(&one, 1000, hours(5));
        assert_eq!(quota.check(&one, 1, hours(5)), refused);
        assert_eq!(quota.check(&other, 1000, hours(5)), Ok(()), "each has its own");
        assert_eq!(quota.check(&one, 500, hours(17)), Ok(()));
        assert_eq!(quota.check(&one, 501, hours(17)), refused);
        quota.note(&one, 500, hours(17));
        assert_eq!(quota.check(&one, 1, hours(17)), refused);
        // An upload that is larger than the quota waits for a day, and not for ever.
        assert_eq!(quota.check(&one, 5000, hours(40)), refused);
        assert_eq!(quota.check(&one, 5000, hours(41)), Ok(()));
        quota.note(&one, 5000, hours(41));
        assert_eq!(quota.check(&one, 1, hours(41 + 4 * 24)), refused);
        assert_eq!(quota.check(&one, 1, hours(41 + 5 * 24)), Ok(()));
    }
}
