//! Windows of a plan, as the job has reported them.

use alpheus_encrypted_stream::coordinator::WindowReport;
use alpheus_encrypted_stream::error::ExclusionError;
use alpheus_encrypted_stream::job::{PlanView, Summary};
use alpheus_encrypted_stream::messages::{Segments, SummonedStream};
use alpheus_encrypted_stream::transformer::IncompleteError;
use alpheus_policy::ids::StreamId;
use alpheus_time::{Timestamp, Window};
use alpheus_transport::Offset;
use std::collections::{BTreeMap, BTreeSet};

/// A report that fits no stream and window of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MembershipError;

impl MembershipError {
    /// A short name for dead letters.
    pub(super) const NAME: &'static str = "not-of-the-plan";
}

/// The durable state of a plan's windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Start of the first window that may be unfinished.
    pub(super) from: Timestamp,
    /// Whether the job has acknowledged all streams.
    pub(super) joined: bool,
}

impl Mark {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        [&self.from.0.to_be_bytes()[..], &[self.joined.into()]].concat()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Mark> {
        let (from, joined) = bytes.split_first_chunk()?;
        let joined = match joined {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(Mark { from: Timestamp(u64::from_be_bytes(*from)), joined })
    }
}

/// A plan's unfinished windows.
pub(super) struct Windows {
    view: PlanView,
    /// In the plan's order.
    streams: Vec<StreamId>,
    /// The next window to close.
    next: Timestamp,
    /// Until the job has acknowledged all streams: those acknowledged so far, and the first
    /// acknowledgement.
    joining: Option<JoinedStreams>,
    /// By start; for closed windows, what a restart must read again.
    windows: BTreeMap<Timestamp, WindowState>,
}

/// Streams that the job has acknowledged.
#[derive(Default)]
struct JoinedStreams {
    positions: BTreeSet<u32>,
    first: Option<Offset>,
}

/// The reports on a window.
#[derive(Default)]
struct WindowState {
    /// Offset of the first summary.
    first: Option<Offset>,
    /// By position: the sum of check words, and the segments of sessions or why there are none.
    streams: BTreeMap<u32, (u64, Result<Segments, IncompleteError>)>,
}

impl Windows {
    /// Restores the windows from their mark.
    pub(super) fn new(view: PlanView, streams: Vec<StreamId>, mark: Mark) -> Windows {
        let joining = (!mark.joined).then(JoinedStreams::default);
        Windows { view, streams, next: mark.from, joining, windows: BTreeMap::new() }
    }

    /// The durable state.
    pub(super) fn mark(&self) -> Mark {
        Mark { from: self.first_unfinished(), joined: self.joining.is_none() }
    }

    /// Takes the job's acknowledgement of a stream, at an offset.
    pub(super) fn join(
        &mut self,
        at: Offset,
        stream: StreamId,
        position: u32,
    ) -> Result<(), MembershipError> {
        self.fits(position, &stream)?;
        let Some(joining) = &mut self.joining else { return Ok(()) };
        joining.first.get_or_insert(at);
        joining.positions.insert(position);
        if joining.positions.len() == self.streams.len() {
            self.joining = None;
        }
        Ok(())
    }

    /// Checks that a stream has this position in the plan.
    fn fits(&self, position: u32, stream: &StreamId) -> Result<(), MembershipError> {
        let planned = self.streams.get(position as usize);
        planned.filter(|planned| *planned == stream).map(|_| ()).ok_or(MembershipError)
    }

    /// Streams by their positions.
    pub(super) fn streams_at(&self, positions: &[u32]) -> impl Iterator<Item = StreamId> {
        positions.iter().filter_map(|at| self.streams.get(*at as usize).copied())
    }

    /// Takes a summary at an offset, for a window that starts no later than `latest`. Until
    /// the window closes, a stream's last summary counts, but a complete stream stays
    /// complete. Returns the window's end.
    pub(super) fn take(
        &mut self,
        latest: Timestamp,
        at: Offset,
        summary: Summary<Segments>,
    ) -> Result<Timestamp, MembershipError> {
        let window = self.view.window_at(summary.start).ok_or(MembershipError)?;
        if window.start > latest {
            return Err(MembershipError);
        }
        self.fits(summary.position, &summary.stream)?;
        if window.start < self.next {
            return Ok(window.end);
        }
        let gathered = self.windows.entry(window.start).or_default();
        gathered.first.get_or_insert(at);
        let known = gathered.streams.get(&summary.position);
        if summary.judgement.is_ok() || !known.is_some_and(|(_, judgement)| judgement.is_ok()) {
            gathered.streams.insert(summary.position, (summary.check_sum, summary.judgement));
        }
        Ok(window.end)
    }

    /// The next window, if all streams were reported, the job has passed it, or it and its
    /// grace period ended before `idle`: a silent job is not waited for any longer.
    pub(super) fn due(&self, reached: Timestamp, idle: Timestamp) -> Option<Window> {
        let window = self.view.window_at(self.next)?;
        let reported = self.windows.get(&self.next).map_or(0, |gathered| gathered.streams.len());
        let over = self.is_beyond(reached, window) || self.ends(window) <= idle;
        (over || reported == self.streams.len()).then_some(window)
    }

    fn ends(&self, window: Window) -> Timestamp {
        window.end.plus(self.view.grace)
    }

    /// Whether a job with this progress has reported every online stream of a window.
    fn is_beyond(&self, reached: Timestamp, window: Window) -> bool {
        self.joining.is_none() && self.ends(window) <= reached
    }

    /// Closes the next window. Later reports on it change nothing.
    pub(super) fn close(&mut self, reached: Timestamp, window: Window) -> WindowReport {
        self.next = self.next.max(window.end);
        // If so, streams without a report were offline.
        let is_beyond = self.is_beyond(reached, window);
        let gathered = self.windows.entry(window.start).or_default();
        let silent = self.streams.len().saturating_sub(gathered.streams.len());
        let unreported = if is_beyond { 0 } else { silent };
        let unreported = u32::try_from(unreported).unwrap_or(u32::MAX);
        let (mut complete, mut excluded) = (Vec::new(), Vec::new());
        for (position, (check_sum, judgement)) in std::mem::take(&mut gathered.streams) {
            match judgement {
                Ok(segments) => {
                    complete.push(SummonedStream { position, segments, check_sum });
                }
                Err(why) => excluded.push((position, ExclusionError::from(why))),
            }
        }
        WindowReport { window, complete, excluded, unreported }
    }

    /// Forgets a finished window.
    pub(super) fn finish(&mut self, window: Window) {
        if window.start < self.next {
            self.windows.remove(&window.start);
        }
    }

    /// The first window that is closed but unfinished, or is to be closed next.
    fn first_unfinished(&self) -> Timestamp {
        self.windows.keys().next().map_or(self.next, |first| self.next.min(*first))
    }

    /// The first record that a restart must read again.
    pub(super) fn needed(&self) -> Option<Offset> {
        let joining = self.joining.iter().filter_map(|joining| joining.first);
        self.windows.values().filter_map(|gathered| gathered.first).chain(joining).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_policy::ids::PlanId;
    use alpheus_time::Span;

    const WINDOW: u64 = 10_000_000;
    /// No window of these tests starts later.
    const LATE: Timestamp = Timestamp(5 * WINDOW);
    const NEVER: Timestamp = Timestamp(0);

    fn windows_from(mark: Mark) -> Windows {
        let view = PlanView {
            plan: PlanId([1; 32]),
            window: Span(WINDOW),
            grace: Span(5),
            from: Timestamp(WINDOW),
            gaps: 0,
            rows: vec![vec![0]],
        };
        Windows::new(view, vec![StreamId([0; 16]), StreamId([1; 16])], mark)
    }

    fn windows() -> Windows {
        windows_from(Mark { from: Timestamp(WINDOW), joined: false })
    }

    fn summary(position: u8, start: u64, complete: bool) -> Summary<Segments> {
        Summary {
            stream: StreamId([position; 16]),
            plan: PlanId([1; 32]),
            start: Timestamp(start * WINDOW),
            position: position.into(),
            check_sum: 7,
            judgement: if complete {
                Ok(Segments::OfEvents(Vec::new()))
            } else {
                Err(IncompleteError::Gap)
            },
        }
    }

    fn ended(window: u64) -> Timestamp {
        Timestamp((window + 1) * WINDOW + 5)
    }

    #[test]
    fn a_window_closes_once_when_all_are_reported_or_its_time_is_up() {
        let mut windows = windows();
        windows.take(LATE, Offset(3), summary(0, 1, false)).unwrap();
        assert_eq!(windows.due(NEVER, Timestamp(ended(1).0 - 1)), None);
        let window = windows.due(NEVER, ended(1)).unwrap();
        windows.take(LATE, Offset(4), summary(1, 1, true)).unwrap();
        windows.take(LATE, Offset(5), summary(0, 1, true)).unwrap();
        windows.take(LATE, Offset(6), summary(0, 1, false)).unwrap();
        assert_eq!(windows.due(NEVER, NEVER), Some(window));
        let report = windows.close(NEVER, window);
        let counts = (report.complete.len(), report.excluded.len(), report.unreported);
        assert_eq!(counts, (2, 0, 0), "what is complete stays so");
        windows.take(LATE, Offset(12), summary(0, 1, false)).unwrap();
        assert_eq!(windows.needed(), Some(Offset(3)));
        assert_eq!(windows.mark(), Mark { from: window.start, joined: false });
        windows.finish(window);
        assert_eq!(windows.needed(), None);
        assert_eq!(windows.mark().from, window.end);
        let silent = windows.due(NEVER, ended(2)).unwrap();
        assert_eq!(windows.close(NEVER, silent).unreported, 2);
    }

    #[test]
    fn a_window_that_the_job_has_passed_closes_if_all_streams_were_acknowledged() {
        let mut windows = windows();
        windows.take(LATE, Offset(3), summary(0, 1, true)).unwrap();
        windows.join(Offset(4), StreamId([0; 16]), 0).unwrap();
        assert_eq!(windows.due(ended(4), NEVER), None, "stream 1 may be online");
        windows.join(Offset(4), StreamId([1; 16]), 1).unwrap();
        assert_eq!(windows.due(Timestamp(ended(1).0 - 1), NEVER), None);
        let window = windows.due(ended(1), NEVER).unwrap();
        let report = windows.close(ended(1), window);
        assert_eq!((report.complete.len(), report.unreported), (1, 0), "stream 1 was offline");
        assert_eq!(windows.due(ended(1), NEVER), None);
        let empty = windows.due(ended(2), NEVER).unwrap();
        assert_eq!(windows.close(ended(2), empty).unreported, 0);
        let lagging = windows.due(ended(2), ended(3)).unwrap();
        assert_eq!(windows.close(ended(2), lagging).unreported, 2, "nobody knows");
    }

    #[test]
    fn acknowledgements_are_read_again_until_all_streams_have_one() {
        let mut windows = windows();
        windows.join(Offset(8), StreamId([1; 16]), 1).unwrap();
        assert_eq!(windows.needed(), Some(Offset(8)));
        assert!(!windows.mark().joined);
        windows.join(Offset(9), StreamId([0; 16]), 0).unwrap();
        assert_eq!(windows.needed(), None);
        let mark = Mark::from_bytes(&windows.mark().to_bytes()).unwrap();
        assert_eq!(mark, Mark { from: Timestamp(WINDOW), joined: true });
        assert!(windows_from(mark).due(ended(1), NEVER).is_some());
        for bad in [&[][..], &[0; 8], &[2; 9], &[0; 10]] {
            assert_eq!(Mark::from_bytes(bad), None);
        }
    }

    #[test]
    fn reports_that_do_not_fit_the_plan_are_refused() {
        let mut windows = windows();
        let mut other = summary(0, 1, true);
        other.position = 1;
        let between = Summary { start: Timestamp(WINDOW + 1), ..summary(0, 1, true) };
        for bad in [other, between, summary(0, 0, true), summary(2, 1, true), summary(0, 6, true)] {
            assert_eq!(windows.take(LATE, Offset(0), bad), Err(MembershipError));
        }
        assert_eq!(windows.join(Offset(0), StreamId([1; 16]), 0), Err(MembershipError));
        assert_eq!(windows.join(Offset(0), StreamId([2; 16]), 2), Err(MembershipError));
        assert_eq!(windows.needed(), None);
    }
}
