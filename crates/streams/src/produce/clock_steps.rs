//! What a device makes of a clock that is set while its session runs: it says so, and continues in
//! another session. A time that a session has passed is never used again, and a new session's
//! number is fresh.

use alpheus_node::clock;
use alpheus_node::service::health::Note;
use alpheus_node::service::metrics::Metrics;
use alpheus_time::{Span, Timestamp};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use std::time::Duration;

/// A clock that goes back further was set.
const STEPPED_BACK: Span = Span::seconds(1);
/// After a longer time without a border a new session opens.
const LONG_SLEEP: Span = Span::DAY;
/// The same in ticks, where each has a border.
const MANY_BORDERS: u64 = 10_000;
/// Longest pause between two looks at the clock, which may be set meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// How a clock left the session that runs under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockStep {
    /// It shows so much less than the session's last border.
    Back(Span),
    /// So much has passed since the border that was due next: somebody set the clock forward, or the
    /// machine slept.
    Ahead(Span),
}

impl ClockStep {
    /// What has happened to a clock that shows `now`. A session has reached `border`, and borders
    /// are a tick apart. With `has_borders`, each tick has one.
    pub(super) fn since(
        border: Timestamp,
        now: Timestamp,
        tick: Span,
        has_borders: bool,
    ) -> Option<ClockStep> {
        if now.plus(STEPPED_BACK) < border {
            return Some(ClockStep::Back(Span(border.0 - now.0)));
        }
        let passed = Span(now.0.saturating_sub(border.plus(tick).0));
        let is_many = has_borders && passed.0 / tick.0 > MANY_BORDERS;
        (is_many || passed > LONG_SLEEP).then_some(ClockStep::Ahead(passed))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Direction {
    direction: &'static str,
}

/// What a device says of its clock.
pub(super) struct ClockSteps {
    steps: Family<Direction, Counter>,
    note: Note,
}

impl ClockSteps {
    /// Counts steps as `alpheus_device_clock_steps`, and shows the last one in the health report.
    pub(super) fn new(metrics: &Metrics, note: Note) -> ClockSteps {
        let steps = Family::<Direction, Counter>::default();
        let help = "Sessions that ended because the device's clock was set, or it slept for long";
        metrics.with(|registry| registry.register("device_clock_steps", help, steps.clone()));
        ClockSteps { steps, note }
    }

    /// Says what happened, and that a session ends for it.
    pub(super) fn say(&self, step: ClockStep) {
        let (direction, by) = match step {
            ClockStep::Back(by) => ("back", by),
            ClockStep::Ahead(by) => ("ahead", by),
        };
        let text = match step {
            ClockStep::Back(_) => {
                format!(
                    "this device's clock was set back by {} s: a new session began",
                    seconds(by)
                )
            }
            ClockStep::Ahead(_) => format!(
                "this device's clock is {} s ahead of its session, or it slept: a new session began",
                seconds(by)
            ),
        };
        tracing::warn!("{text}");
        self.note.set(text);
        self.steps.get_or_create(&Direction { direction }).inc();
    }
}

fn seconds(span: Span) -> u64 {
    span.0 / 1_000_000
}

/// Waits until the time `at`, or until somebody sets the clock back.
pub(super) fn wait_for(at: Timestamp) {
    let mut seen = clock::now();
    loop {
        let left = clock::until(at);
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(LOOK));
        let now = clock::now();
        if now.plus(STEPPED_BACK) < seen {
            return;
        }
        seen = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_node::service::health::Health;

    #[test]
    fn a_clock_that_is_set_leaves_the_session_and_small_corrections_do_not() {
        let (tick, border) = (Span::seconds(10), Timestamp(1_700_000_000_000_000));
        let ago = |span: Span| Timestamp(border.0 - span.0);
        let of = |now, has_borders| ClockStep::since(border, now, tick, has_borders);
        for has_borders in [false, true] {
            for now in [border, ago(STEPPED_BACK), border.plus(tick), border.plus(Span::DAY)] {
                assert_eq!(of(now, has_borders), None, "{now:?}");
            }
            let hour = Span::seconds(3600);
            assert_eq!(of(ago(hour), has_borders), Some(ClockStep::Back(hour)));
            let long = border.plus(tick).plus(LONG_SLEEP).plus(Span(1));
            assert_eq!(of(long, has_borders), Some(ClockStep::Ahead(Span(LONG_SLEEP.0 + 1))));
        }
        // With a border for each tick, no more of them than that.
        let short = Span(1000);
        let now = border.plus(Span((MANY_BORDERS + 2) * short.0));
        assert_eq!(ClockStep::since(border, now, short, false), None);
        assert!(ClockStep::since(border, now, short, true).is_some());
        // However long a tick is: the border that is due first was a tick away.
        let now = border.plus(Span(2 * Span::DAY.0));
        assert_eq!(ClockStep::since(border, now, Span::DAY, true), None);
    }

    #[test]
    fn a_step_is_counted_and_shown() {
        let (metrics, health) = (Metrics::new(), Health::new());
        let steps = ClockSteps::new(&metrics, health.note("clock"));
        steps.say(ClockStep::Back(Span::seconds(3600)));
        let text = metrics.text();
        assert!(text.contains("alpheus_device_clock_steps_total{direction=\"back\"} 1"), "{text}");
        let report = health.report();
        assert!(report.ready && report.notes["clock"].contains("back by 3600 s"), "{report:?}");
    }
}
