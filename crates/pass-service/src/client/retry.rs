//! When a failed step is retried: soon after a lost answer, in the next epoch after a
//! refusal, and never at a time that identifies the client.

use crate::client::stock::micros;
use alpheus_anonymous_credential::schedule::{Epoch, Schedule};
use alpheus_node::retry::{Backoff, RetryPolicy};
use alpheus_time::Timestamp;
use rand_core::Rng;
use std::time::Duration;

/// The first and the longest pause before a retry.
const FIRST: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The most retries within a pre-login after a step that came too early.
const MAX_TRIES: u64 = 8;

/// How a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// There was no answer, or the server is temporarily unavailable.
    Lost,
    /// The server's clock says that the epoch is not open yet.
    Early,
    /// It will not be accepted in this epoch.
    Refused,
}

/// The last failure, and when to retry.
pub struct Retry {
    schedule: Schedule,
    not_before: Option<Timestamp>,
    /// The epoch in which an answer was lost. The gateway may have seen the message.
    lost_in: Option<Epoch>,
    lost: Backoff,
}

impl Retry {
    /// No failure.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        let lost = Backoff::new(RetryPolicy::doubling(FIRST, MAX_PAUSE));
        Self { schedule, not_before: None, lost_in: None, lost }
    }

    /// The end of the current pause, if any.
    #[must_use]
    pub fn waits(&self, now: Timestamp) -> Option<Timestamp> {
        // A pause that was set while the clock was ahead is ignored.
        let ahead = |then: &Timestamp| then.0.checked_sub(now.0).is_some_and(|left| left > 0);
        self.not_before.filter(ahead).filter(|then| then.0 - now.0 <= self.longest())
    }

    /// Records a success.
    pub fn done(&mut self) {
        *self = Self::new(self.schedule);
    }

    /// Records a failure. A lost step is retried soon. A refused one is retried in the next
    /// epoch, at a random time, so that clients do not arrive all at once.
    pub fn failed(&mut self, now: Timestamp, kind: FailureKind, rng: &mut impl Rng) {
        let running = self.schedule.epoch_at(now).unwrap_or(Epoch(0));
        let then = match kind {
            FailureKind::Lost => now.0.saturating_add(micros(self.lost.pause())),
            FailureKind::Early => {
                now.0.saturating_add((self.schedule.pre_login.0 / MAX_TRIES).max(micros(FIRST)))
            }
            FailureKind::Refused => {
                self.schedule.starts(running.next()).0.saturating_add(self.drawn(rng))
            }
        };
        // If the schedule has not begun by this clock, its first epoch may be years away.
        let then = then.min(now.0.saturating_add(self.longest()));
        // After a refusal the time is random already.
        self.lost_in = (kind != FailureKind::Refused).then_some(running);
        self.not_before = Some(Timestamp(then));
    }

    /// Called before a new presentation in the current epoch. Returns a time to wait for, if
    /// an answer was lost in an earlier epoch.
    ///
    /// # Privacy
    /// A party that dropped the answers would know the rhythm of the retries, and could link the
    /// next one to the same holder, though its tag differs.
    pub fn apart(&mut self, now: Timestamp, rng: &mut impl Rng) -> Option<Timestamp> {
        let running = self.schedule.epoch_at(now);
        self.lost_in.take_if(|lost| Some(*lost) != running)?;
        self.not_before = Some(Timestamp(now.0.saturating_add(self.drawn(rng))));
        self.waits(now)
    }

    /// No pause is longer than this.
    fn longest(&self) -> u64 {
        self.schedule.epoch.0.saturating_add(self.schedule.pre_login.0).max(micros(MAX_PAUSE))
    }

    /// A random time within a pre-login.
    fn drawn(&self, rng: &mut impl Rng) -> u64 {
        let spread = u128::from(self.schedule.pre_login.0) * u128::from(rng.next_u32());
        u64::try_from(spread >> 32).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_time::Span;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

    const SECOND: u64 = 1_000_000;
    const SCHEDULE: Schedule = Schedule {
        start: Timestamp(0),
        epoch: Span(300 * SECOND),
        pre_login: Span(60 * SECOND),
        border_pre_login: Span(60 * SECOND),
        epochs_per_period: 100,
        ahead: 0,
    };

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds * SECOND)
    }

    fn drawn_from(times: &[u64], from: u64) {
        let spread = |third: u64| {
            let third = from + third * 20 * SECOND..from + (third + 1) * 20 * SECOND;
            times.iter().filter(|time| third.contains(time)).count()
        };
        assert!((0..3).all(|third| spread(third) > 200), "{times:?}");
        assert_eq!((0..3).map(spread).sum::<usize>(), times.len());
    }

    #[test]
    fn a_refused_step_is_retried_in_the_next_epoch_at_a_random_time() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let mut again = || {
            let mut retry = Retry::new(SCHEDULE);
            retry.failed(at(310), FailureKind::Refused, &mut rng);
            let then = retry.waits(at(310)).unwrap();
            assert_eq!(retry.waits(Timestamp(then.0 - 1)), Some(then), "all the time");
            assert_eq!(retry.waits(then), None);
            assert_eq!(retry.apart(then, &mut rng), None, "the time is random already");
            then.0
        };
        let times: Vec<u64> = (0..1_000).map(|_| again()).collect();
        drawn_from(&times, at(600).0);
    }

    #[test]
    fn a_lost_step_is_retried_soon_and_a_new_presentation_at_a_random_time() {
        let mut rng = ChaCha20Rng::from_seed([2; 32]);
        let mut retry = Retry::new(SCHEDULE);
        let mut now = at(590);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            retry.failed(now, FailureKind::Lost, &mut rng);
            let then = retry.waits(now).unwrap();
            pauses.push((then.0 - now.0) / 100_000);
            now = then;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 20, 20]);
        assert_eq!(retry.apart(now, &mut rng), None, "the same epoch: the same bytes again");
        // In the next epoch it waits once, for a random time.
        let mut presented = || {
            let mut retry = Retry::new(SCHEDULE);
            retry.failed(at(599), FailureKind::Lost, &mut rng);
            let then = retry.apart(at(601), &mut rng).map_or(at(601).0, |then| then.0);
            assert_eq!(retry.apart(Timestamp(then), &mut rng), None);
            then
        };
        let times: Vec<u64> = (0..1_000).map(|_| presented()).collect();
        drawn_from(&times, at(601).0);
    }

    #[test]
    fn retries_pause_before_the_schedule_and_with_the_shortest_epochs() {
        let mut rng = ChaCha20Rng::from_seed([4; 32]);
        let late = Schedule { start: at(90_000), ..SCHEDULE };
        let short = Schedule { epoch: Span(SECOND), pre_login: Span(SECOND / 5), ..SCHEDULE };
        for schedule in [late, short] {
            for kind in [FailureKind::Lost, FailureKind::Early, FailureKind::Refused] {
                let mut retry = Retry::new(schedule);
                for _ in 0..6 {
                    retry.failed(at(1), kind, &mut rng);
                    assert!(retry.waits(at(1)).is_some(), "{kind:?}");
                }
            }
        }
    }

    #[test]
    fn a_pause_set_by_a_clock_that_was_ahead_is_ignored() {
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        let mut retry = Retry::new(SCHEDULE);
        retry.failed(at(90_000), FailureKind::Refused, &mut rng);
        assert!(retry.waits(at(90_001)).is_some() && retry.waits(at(310)).is_none());
        retry.failed(at(590), FailureKind::Early, &mut rng);
        assert_eq!(retry.waits(at(590)), Some(Timestamp(597_500_000)));
        retry.done();
        assert_eq!(retry.waits(at(590)), None);
    }
}
