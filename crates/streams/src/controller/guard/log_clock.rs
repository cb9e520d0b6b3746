//! The time by which lines of the owners' logs are old: the machine's, as long as it is plausible.
//!
//! One wrong reading must not delete what owners may read for a year. So a machine's clock that has gone
//! far ahead of a clock that nobody sets, or of what it showed before the last start, is not believed
//! until it has shown so for a day. Until then time advances from the accepted value. A clock that goes
//! back is followed: it deletes less.

use alpheus_time::{Span, Timestamp};
use std::time::Duration;

/// So far ahead a clock may be: a machine sleeps, or is off for a night.
const PLAUSIBLE: Span = Span::DAY;
/// How long a clock has to show the same to be believed, by the clock that nobody sets.
const CONFIRMED: Duration = Duration::from_secs(86_400);

/// The time that is believed.
#[derive(Debug, Default)]
pub(super) struct LogClock {
    /// A time, and when it was by the steady clock.
    set: Option<(Timestamp, Duration)>,
    doubt: Option<Doubt>,
}

/// The machine's clock is far ahead.
#[derive(Debug)]
struct Doubt {
    /// By so much.
    ahead: Span,
    /// Since then, by the steady clock.
    since: Duration,
}

impl LogClock {
    /// Whether it was read since the start.
    pub(super) fn is_set(&self) -> bool {
        self.set.is_some()
    }

    /// Goes on from the time that was believed before the start.
    pub(super) fn begin(&mut self, before: Timestamp, steady: Duration) {
        self.set = Some((before, steady));
    }

    /// The time that is believed, given what the machine's clock and the steady clock show.
    pub(super) fn read(&mut self, machine: Timestamp, steady: Duration) -> Timestamp {
        let (set, at) = *self.set.get_or_insert((machine, steady));
        let own = set.plus(span(steady.saturating_sub(at)));
        let ahead = Span(machine.0.saturating_sub(own.0));
        if ahead <= PLAUSIBLE {
            self.doubt = None;
            if machine.plus(PLAUSIBLE) < own {
                self.set = Some((machine, steady));
            }
            return machine;
        }
        let same = |doubt: &Doubt| doubt.ahead.0.abs_diff(ahead.0) <= PLAUSIBLE.0;
        let doubt = self.doubt.take().filter(same).unwrap_or(Doubt { ahead, since: steady });
        if steady.saturating_sub(doubt.since) >= CONFIRMED {
            self.set = Some((machine, steady));
            return machine;
        }
        self.doubt = Some(doubt);
        own
    }

    /// By how much the machine's clock is ahead of what is believed.
    pub(super) fn ahead(&self) -> Option<Span> {
        self.doubt.as_ref().map(|doubt| doubt.ahead)
    }
}

fn span(time: Duration) -> Span {
    Span(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_800_000_000_000_000);

    fn hours(hours: u64) -> (Span, Duration) {
        (Span::seconds(3600 * hours), Duration::from_secs(3600 * hours))
    }

    #[test]
    fn a_clock_that_goes_far_ahead_is_believed_after_a_day() {
        let mut clock = LogClock::default();
        let years = hours(24 * 800).0;
        assert_eq!(clock.read(START, Duration::ZERO), START);
        for hour in 1..=25 {
            let (passed, steady) = hours(hour);
            let believed = clock.read(START.plus(passed).plus(years), steady);
            let is_over = hour == 25;
            assert_eq!(believed, START.plus(passed).plus(Span(u64::from(is_over) * years.0)));
            assert_eq!(clock.ahead(), (!is_over).then_some(years));
        }
    }

    #[test]
    fn steps_back_and_short_ones_are_followed_and_add_up() {
        let mut clock = LogClock::default();
        clock.read(START, Duration::ZERO);
        // A night of sleep, once and again: together they are more than a day.
        for night in 1..=3 {
            let now = START.plus(hours(10 * night).0);
            let believed = clock.read(now, Duration::ZERO);
            assert_eq!(believed, if night < 3 { now } else { START }, "night {night}");
        }
        let before = Timestamp(START.0 - hours(1000).0.0);
        assert_eq!(clock.read(before, Duration::ZERO), before);
        assert_eq!(clock.ahead(), None);
        assert_eq!(clock.read(START, Duration::ZERO), before, "it is back, and not believed");
    }

    /// Each step begins a new day.
    #[test]
    fn a_clock_that_goes_on_jumping_is_never_believed() {
        let mut clock = LogClock::default();
        clock.read(START, Duration::ZERO);
        for hour in 1..100 {
            let (passed, steady) = hours(hour);
            let machine = START.plus(Span(passed.0 * 100));
            assert!(clock.read(machine, steady) <= START.plus(passed).plus(PLAUSIBLE));
        }
    }

    #[test]
    fn a_start_goes_on_from_what_was_believed_before_it() {
        let mut clock = LogClock::default();
        clock.begin(START, Duration::ZERO);
        let (month, _) = hours(24 * 30);
        assert_eq!(clock.read(START.plus(month), Duration::ZERO), START);
        assert_eq!(clock.ahead(), Some(month));
    }
}
