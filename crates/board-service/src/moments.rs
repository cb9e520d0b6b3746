//! When a writer's machine contacts servers: at drawn moments, so that what arrives together says
//! nothing of what was typed when, and servers cannot match their visitors by the time.

use alpheus_anonymous_board::configuration::{Board, Epoch, Schedule};
use alpheus_node::failure::Failure;
use alpheus_node::{clock, entropy};
use alpheus_time::{Span, Timestamp};
use rand_core::Rng;
use std::time::Duration;

/// After this much of an epoch, in percent, nothing new is begun in it.
pub(crate) const LAST: u64 = 95;
/// A database is contacted at most this much of an epoch late, in percent.
const SPREAD: u64 = 4;
/// How often the clock is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// This many percent into an epoch.
pub(crate) fn part(board: &Board, epoch: Epoch, percent: u64) -> Timestamp {
    part_of(&board.schedule, epoch, percent)
}

fn part_of(schedule: &Schedule, epoch: Epoch, percent: u64) -> Timestamp {
    schedule.start_of(epoch).plus(Span((schedule.length.0 / 100).saturating_mul(percent)))
}

/// The span from which the moments of one write's databases are drawn. Empty where an epoch nears
/// its end.
#[must_use]
pub fn spread(board: &Board, epoch: Epoch) -> Span {
    at_most(board, epoch, Span((board.schedule.length.0 / 100).saturating_mul(SPREAD)))
}

/// This span, or what is left of the epoch for writes.
#[must_use]
pub fn at_most(board: &Board, epoch: Epoch, span: Span) -> Span {
    cut(&board.schedule, epoch, span, clock::now())
}

fn cut(schedule: &Schedule, epoch: Epoch, span: Span, now: Timestamp) -> Span {
    span.min(Span(part_of(schedule, epoch, LAST).0.saturating_sub(now.0)))
}

/// A moment within a span from now on.
pub(crate) fn within(span: Span) -> Result<Timestamp, Failure> {
    between(clock::now(), clock::now().plus(span))
}

/// A random moment.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> Result<Timestamp, Failure> {
    let span = to.0.saturating_sub(from.0);
    let drawn = if span == 0 { 0 } else { entropy::rng()?.next_u64() % span };
    Ok(from.plus(Span(drawn)))
}

pub(crate) async fn wait_until(then: Timestamp) {
    loop {
        let left = clock::until(then);
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A write that is made late is not sent after the epoch.
    #[test]
    fn moments_are_drawn_from_a_part_of_the_epoch_that_is_left() {
        let (start, length) = (Timestamp(0), Span(1_000_000));
        let schedule = Schedule { start, length, complaints: Span(1), patience: Span(1) };
        let span = Span(40_000);
        let at = |now: u64| cut(&schedule, Epoch(2), span, Timestamp(2_000_000 + now)).0;
        let moments = [0, 910_000, 930_000, 950_000, 999_999];
        assert_eq!(moments.map(at), [40_000, 40_000, 20_000, 0, 0]);
        let (from, to) = (Timestamp(100), Timestamp(200));
        let drawn: Vec<u64> = (0..200).map(|_| between(from, to).unwrap().0).collect();
        assert!(drawn.iter().all(|at| (100..200).contains(at)));
        assert!(drawn.iter().any(|at| *at < 125) && drawn.iter().any(|at| *at >= 175), "{drawn:?}");
        assert_eq!(between(to, to).unwrap(), to);
    }
}
