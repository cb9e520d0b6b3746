//! When what failed is tried again: soon if it was lost, in the next epoch if it was
//! refused, and at no moment that tells who comes back.

use alpheus_anonymous_credential::schedule::{Epoch, Schedule, Time};
use rand_core::Rng;

/// The first pause before trying again, and the longest, in microseconds.
const PAUSES: (u64, u64) = (200_000, 2_000_000);
/// What came too early is tried so many times in a pre-login at most.
const TRIES: u64 = 8;

/// How something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// No answer, or that of a server that cannot now.
    Lost,
    /// The server's clock says that the epoch is not open yet.
    Early,
    /// It will not be taken in this epoch.
    Refused,
}

/// What failed last, and when to try again.
pub struct Retry {
    schedule: Schedule,
    not_before: Option<Time>,
    /// The epoch in which something was lost, and may have been seen.
    lost_in: Option<Epoch>,
    pause: u64,
}

impl Retry {
    /// Nothing has failed.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        Self { schedule, not_before: None, lost_in: None, pause: PAUSES.0 }
    }

    /// Until when nothing is tried, if not now.
    #[must_use]
    pub fn waits(&self, now: Time) -> Option<Time> {
        // What was set while the clock was ahead is not waited for.
        let ahead = |then: &Time| then.0.checked_sub(now.0).is_some_and(|left| left > 0);
        self.not_before.filter(ahead).filter(|then| then.0 - now.0 <= self.longest())
    }

    /// It went through.
    pub fn done(&mut self) {
        *self = Self::new(self.schedule);
    }

    /// It failed: what was lost is tried again soon; what would not be taken now, in
    /// the next epoch, and not at the moment at which all others come.
    pub fn failed(&mut self, now: Time, how: Failed, rng: &mut impl Rng) {
        let running = self.schedule.epoch_at(now).unwrap_or(Epoch(0));
        let then = match how {
            Failed::Lost => {
                let pause = self.pause;
                self.pause = (pause * 2).min(PAUSES.1);
                now.0.saturating_add(pause)
            }
            Failed::Early => now.0.saturating_add((self.schedule.pre_login / TRIES).max(PAUSES.0)),
            Failed::Refused => {
                self.schedule.starts(running.next()).0.saturating_add(self.drawn(rng))
            }
        };
        // Where the schedule has not begun by this clock, its first epoch may be years away.
        let then = then.min(now.0.saturating_add(self.longest()));
        // After a refusal the moment is a drawn one already.
        self.lost_in = (how != Failed::Refused).then_some(running);
        self.not_before = Some(Time(then));
    }

    /// Asked before a pass is shown anew, for the running epoch: until when to wait
    /// first, if something was lost in an earlier epoch.
    ///
    /// # Privacy
    /// Who lost the answers would know the pace of the tries: the next of them, with
    /// another tag, would be of the same holder.
    pub fn apart(&mut self, now: Time, rng: &mut impl Rng) -> Option<Time> {
        let running = self.schedule.epoch_at(now);
        self.lost_in.take_if(|lost| Some(*lost) != running)?;
        self.not_before = Some(Time(now.0.saturating_add(self.drawn(rng))));
        self.waits(now)
    }

    /// More is never waited for, and no pause is longer.
    fn longest(&self) -> u64 {
        self.schedule.epoch.saturating_add(self.schedule.pre_login).max(PAUSES.1)
    }

    /// A moment within a pre-login.
    fn drawn(&self, rng: &mut impl Rng) -> u64 {
        let spread = u128::from(self.schedule.pre_login) * u128::from(rng.next_u32());
        u64::try_from(spread >> 32).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

    const SECOND: u64 = 1_000_000;
    const SCHEDULE: Schedule = Schedule {
        start: Time(0),
        epoch: 300 * SECOND,
        pre_login: 60 * SECOND,
        border_pre_login: 60 * SECOND,
        epochs_per_period: 100,
        ahead: 0,
    };

    fn at(seconds: u64) -> Time {
        Time(seconds * SECOND)
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
    fn what_is_refused_is_not_tried_before_the_next_epoch_nor_with_all_others() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let mut again = || {
            let mut retry = Retry::new(SCHEDULE);
            retry.failed(at(310), Failed::Refused, &mut rng);
            let then = retry.waits(at(310)).unwrap();
            assert_eq!(retry.waits(Time(then.0 - 1)), Some(then), "all the time");
            assert_eq!(retry.waits(then), None);
            assert_eq!(retry.apart(then, &mut rng), None, "it was drawn already");
            then.0
        };
        let times: Vec<u64> = (0..1_000).map(|_| again()).collect();
        drawn_from(&times, at(600).0);
    }

    #[test]
    fn what_is_lost_is_tried_soon_and_shown_anew_at_another_pace() {
        let mut rng = ChaCha20Rng::from_seed([2; 32]);
        let mut retry = Retry::new(SCHEDULE);
        let mut now = at(590);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            retry.failed(now, Failed::Lost, &mut rng);
            let then = retry.waits(now).unwrap();
            pauses.push((then.0 - now.0) / 100_000);
            now = then;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 20, 20]);
        assert_eq!(retry.apart(now, &mut rng), None, "the same epoch: the same bytes again");
        // In the next epoch it waits once, for as long as is drawn.
        let mut anew = || {
            let mut retry = Retry::new(SCHEDULE);
            retry.failed(at(599), Failed::Lost, &mut rng);
            let then = retry.apart(at(601), &mut rng).map_or(at(601).0, |then| then.0);
            assert_eq!(retry.apart(Time(then), &mut rng), None);
            then
        };
        let times: Vec<u64> = (0..1_000).map(|_| anew()).collect();
        drawn_from(&times, at(601).0);
    }

    #[test]
    fn a_clock_from_before_the_schedule_and_the_shortest_epochs_wait_too() {
        let mut rng = ChaCha20Rng::from_seed([4; 32]);
        let late = Schedule { start: at(90_000), ..SCHEDULE };
        let short = Schedule { epoch: SECOND, pre_login: SECOND / 5, ..SCHEDULE };
        for schedule in [late, short] {
            for how in [Failed::Lost, Failed::Early, Failed::Refused] {
                let mut retry = Retry::new(schedule);
                for _ in 0..6 {
                    retry.failed(at(1), how, &mut rng);
                    assert!(retry.waits(at(1)).is_some(), "{how:?}");
                }
            }
        }
    }

    #[test]
    fn a_clock_that_was_ahead_is_not_waited_for() {
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        let mut retry = Retry::new(SCHEDULE);
        retry.failed(at(90_000), Failed::Refused, &mut rng);
        assert!(retry.waits(at(90_001)).is_some() && retry.waits(at(310)).is_none());
        retry.failed(at(590), Failed::Early, &mut rng);
        assert_eq!(retry.waits(at(590)), Some(Time(597_500_000)));
        retry.done();
        assert_eq!(retry.waits(at(590)), None);
    }
}
