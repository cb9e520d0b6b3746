//! Windows of a plan as far as the job has told of them.

use alpheus_encrypted_stream::coordinator::WindowReport;
use alpheus_encrypted_stream::error::Exclusion;
use alpheus_encrypted_stream::job::{PlanView, Summary};
use alpheus_encrypted_stream::messages::{Segment, SummonedStream};
use alpheus_encrypted_stream::transformer::Incomplete;
use alpheus_policy::ids::StreamId;
use alpheus_policy::time::{Timestamp, Window};
use alpheus_transport::Offset;
use std::collections::BTreeMap;

/// What a summary says that fits no stream and window of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Misfit;

impl Misfit {
    /// A short name for dead letters.
    pub(super) const NAME: &'static str = "not-of-the-plan";
}

/// A plan's windows that are not over.
pub(super) struct Windows {
    view: PlanView,
    /// In the plan's order.
    streams: Vec<StreamId>,
    /// The next window to close.
    next: Timestamp,
    /// By start: of those that are closed, what must be read again for them.
    windows: BTreeMap<Timestamp, Gathered>,
}

/// What there is of a window.
#[derive(Default)]
struct Gathered {
    /// By partition, where the first summary stands.
    first: Vec<Option<Offset>>,
    /// By position: the sum of check words, and the stretches of sessions or why there are none.
    streams: BTreeMap<u32, (u64, Result<Vec<Segment>, Incomplete>)>,
}

impl Windows {
    /// Windows from one on that may not be over.
    pub(super) fn new(view: PlanView, streams: Vec<StreamId>, from: Timestamp) -> Windows {
        Windows { view, streams, next: from, windows: BTreeMap::new() }
    }

    /// Streams by their positions.
    pub(super) fn streams_at(&self, positions: &[u32]) -> impl Iterator<Item = StreamId> {
        positions.iter().filter_map(|at| self.streams.get(*at as usize).copied())
    }

    /// Takes a summary that stands there, of a window that starts no later than `latest`; the
    /// last of a stream holds, but what is complete stays so, until its window is closed. The
    /// end of its window.
    pub(super) fn take(
        &mut self,
        latest: Timestamp,
        (partition, offset): (u32, Offset),
        summary: Summary,
    ) -> Result<Timestamp, Misfit> {
        let window = self.view.window_at(summary.start).ok_or(Misfit)?;
        if window.start > latest {
            return Err(Misfit);
        }
        if self.streams.get(summary.position as usize) != Some(&summary.stream) {
            return Err(Misfit);
        }
        if window.start < self.next {
            return Ok(window.end);
        }
        let gathered = self.windows.entry(window.start).or_default();
        let partition = partition as usize;
        if gathered.first.len() <= partition {
            gathered.first.resize(partition + 1, None);
        }
        if let Some(first) = gathered.first.get_mut(partition) {
            first.get_or_insert(offset);
        }
        let known = gathered.streams.get(&summary.position);
        if summary.judgement.is_ok() || !known.is_some_and(|(_, judgement)| judgement.is_ok()) {
            gathered.streams.insert(summary.position, (summary.check_sum, summary.judgement));
        }
        Ok(window.end)
    }

    /// The next window, if all streams have been told of, or it ended with its grace before
    /// `idle`: streams that are offline are not told of.
    pub(super) fn due(&self, idle: Timestamp) -> Option<Window> {
        let window = self.view.window_at(self.next)?;
        let told = self.windows.get(&self.next).map_or(0, |gathered| gathered.streams.len());
        let over = window.end.plus(self.view.grace) <= idle;
        (over || told == self.streams.len()).then_some(window)
    }

    /// Closes the next window. What comes for it from now on changes nothing.
    pub(super) fn close(&mut self, window: Window) -> WindowReport {
        self.next = self.next.max(window.end);
        let gathered = self.windows.entry(window.start).or_default();
        let untold = self.streams.len().saturating_sub(gathered.streams.len());
        let untold = u32::try_from(untold).unwrap_or(u32::MAX);
        let (mut complete, mut excluded) = (Vec::new(), Vec::new());
        for (position, (check_sum, judgement)) in std::mem::take(&mut gathered.streams) {
            match judgement {
                Ok(segments) => complete.push(SummonedStream { position, segments, check_sum }),
                Err(why) => excluded.push((position, Exclusion::from(why))),
            }
        }
        WindowReport { window, complete, excluded, untold }
    }

    /// Forgets a window that has ended.
    pub(super) fn finish(&mut self, window: Window) {
        if window.start < self.next {
            self.windows.remove(&window.start);
        }
    }

    /// The first window that is closed and has not ended, or is to be closed next.
    pub(super) fn first_unfinished(&self) -> Timestamp {
        self.windows.keys().next().map_or(self.next, |first| self.next.min(*first))
    }

    /// By partition, the first summary that a restart must read again.
    pub(super) fn needed(&self) -> Vec<Option<Offset>> {
        let mut needed: Vec<Option<Offset>> = Vec::new();
        for gathered in self.windows.values() {
            needed.resize(needed.len().max(gathered.first.len()), None);
            for (needed, first) in needed.iter_mut().zip(&gathered.first) {
                *needed = needed.iter().chain(first).min().copied();
            }
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_policy::ids::PlanId;
    use alpheus_policy::time::Span;

    const WINDOW: u64 = 10_000_000;
    /// No window of these tests starts later.
    const LATE: Timestamp = Timestamp(5 * WINDOW);

    fn windows() -> Windows {
        let view = PlanView {
            plan: PlanId([1; 32]),
            window: Span(WINDOW),
            grace: Span(5),
            from: Timestamp(WINDOW),
            gaps: 0,
            rows: vec![vec![0]],
        };
        Windows::new(view, vec![StreamId([0; 16]), StreamId([1; 16])], Timestamp(WINDOW))
    }

    fn summary(position: u8, start: u64, complete: bool) -> Summary {
        Summary {
            stream: StreamId([position; 16]),
            plan: PlanId([1; 32]),
            start: Timestamp(start * WINDOW),
            position: position.into(),
            check_sum: 7,
            judgement: if complete { Ok(Vec::new()) } else { Err(Incomplete::Gap) },
        }
    }

    #[test]
    fn a_window_closes_once_all_are_told_of_or_its_time_is_up_and_not_again() {
        let mut windows = windows();
        windows.take(LATE, (0, Offset(3)), summary(0, 1, false)).unwrap();
        assert_eq!(windows.due(Timestamp(0)), None);
        assert_eq!(windows.due(Timestamp(2 * WINDOW + 4)), None);
        let window = windows.due(Timestamp(2 * WINDOW + 5)).unwrap();
        windows.take(LATE, (2, Offset(9)), summary(1, 1, true)).unwrap();
        windows.take(LATE, (1, Offset(4)), summary(0, 1, true)).unwrap();
        windows.take(LATE, (1, Offset(5)), summary(0, 1, false)).unwrap();
        assert_eq!(windows.due(Timestamp(0)), Some(window));
        let report = windows.close(window);
        let told = (report.complete.len(), report.excluded.len(), report.untold);
        assert_eq!(told, (2, 0, 0), "the last one holds");
        windows.take(LATE, (0, Offset(12)), summary(0, 1, false)).unwrap();
        assert_eq!(windows.needed(), [Some(Offset(3)), Some(Offset(4)), Some(Offset(9))]);
        assert_eq!(windows.first_unfinished(), window.start);
        windows.finish(window);
        assert!(windows.needed().is_empty());
        assert_eq!(windows.first_unfinished(), window.end);
        let silent = windows.due(Timestamp(9 * WINDOW)).unwrap();
        assert_eq!(windows.close(silent).untold, 2);
    }

    #[test]
    fn what_is_not_of_the_plan_is_refused() {
        let mut windows = windows();
        let mut other = summary(0, 1, true);
        other.position = 1;
        let between = Summary { start: Timestamp(WINDOW + 1), ..summary(0, 1, true) };
        for bad in [other, between, summary(0, 0, true), summary(2, 1, true), summary(0, 6, true)] {
            assert_eq!(windows.take(LATE, (0, Offset(0)), bad), Err(Misfit));
        }
        assert!(windows.needed().is_empty());
    }
}
