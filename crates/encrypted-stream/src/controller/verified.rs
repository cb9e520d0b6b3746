//! What is particular about verified plans: windows that nobody asked about, and what stays of
//! those that are closed.

use std::collections::BTreeSet;

use alpheus_crypto::hash::Digest;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::{Span, Timestamp, Window};

use super::Controller;
use super::plan_state::PlanState;
use crate::ledger::{Change, LogEvent, LogLine, Record, opened_key};
use crate::messages::{Closing, WindowOutcome};

/// What the ledger keeps of a verified window that is closed.
#[derive(Default)]
pub(super) struct Ended {
    /// A line for the owners' log, if it opened without a summons to this controller, or without some of
    /// its streams.
    pub(super) line: Option<Record>,
    /// The line that this one takes the place of.
    pub(super) gone: Option<Record>,
    /// Digests of what this controller said.
    pub(super) digests: Option<Record>,
}

impl Controller {
    /// Sums of no stream; none at all unless the plan is verified.
    pub(super) fn no_sums(&self, plan: &PlanId) -> Vec<u64> {
        let joined = self.plans.get(plan).filter(|joined| joined.is_verified());
        joined.map_or_else(Vec::new, |joined| vec![0; joined.plan().release.outputs()])
    }

    /// Notes a summons, and returns a line for the owners' log if windows before it were left out.
    pub(super) fn note_summons(
        &mut self,
        plan: &PlanId,
        window: Window,
        at: Timestamp,
    ) -> Option<Record> {
        let joined = self.plans.get_mut(plan).filter(|joined| joined.is_verified())?;
        let before = joined.summoned_until;
        joined.summoned_until = before.max(Some(window.end));
        let windows = Window { start: before?, end: window.start };
        let all = || joined.own_streams().map(|(_, planned)| planned.stream).collect();
        let line = || Record::Log(joined.not_summoned(windows, all(), at));
        (windows.start < windows.end).then(line)
    }

    /// What remains of a closed window: digests of the answers. Repeated, it changes
    /// nothing more.
    pub(super) fn keep_digests(&mut self, now: Timestamp, digests: Option<Record>) -> Vec<Change> {
        let Some(Record::Closed { plan, window, .. }) = &digests else { return Vec::new() };
        let opened = Change::remove(opened_key(self.id(), plan, window.start));
        digests.map(|record| self.put(now, record)).into_iter().chain([opened]).collect()
    }

    /// Takes what stays of a closed window from the ledger.
    pub(super) fn take_closed(&mut self, plan: &PlanId, window: Window, membership: Digest) {
        let Some(joined) = self.plans.get_mut(plan) else { return };
        let round = joined.rounds.entry(window.start).or_default();
        (round.closed, round.left) = (true, Some(membership));
    }
}

impl PlanState {
    /// Before a window of a verified plan is closed: what the ledger keeps of it. Lines are about streams
    /// whose owners share their data.
    pub(super) fn ended_verified(
        &mut self,
        closing: &Closing,
        at: Timestamp,
        shares: impl Fn(&StreamId) -> bool,
    ) -> Ended {
        if !self.is_verified() {
            return Ended::default();
        }
        let window = closing.window;
        let opened = matches!(closing.outcome, WindowOutcome::Opened { .. });
        let mut missed = if opened { self.not_asked(window) } else { Vec::new() };
        missed.retain(shares);
        let (line, gone) = match missed.is_empty() {
            true => (None, None),
            false => self.note_not_asked(window, missed, at),
        };
        let digests = self.rounds.get(&window.start).and_then(|round| {
            let (spent, _) = round.spent.as_ref()?;
            let (plan, membership) = (closing.plan, spent.membership);
            let opening = round.opened.as_ref().map(|(_, answer)| answer.digest());
            let token = spent.answer.digest();
            Some(Record::Closed { plan, window, membership, token, opening })
        });
        self.summoned_until = self.summoned_until.max(Some(window.end));
        Ended { line, gone, digests }
    }

    /// The line about streams in a window, and the one that it takes the place of: a device that is
    /// off costs a line a day, and not one for each window.
    fn note_not_asked(
        &mut self,
        window: Window,
        streams: Vec<StreamId>,
        at: Timestamp,
    ) -> (Option<Record>, Option<Record>) {
        let before = self.unasked.take().filter(|(windows, line)| {
            let is_next = windows.end == window.start && line.streams == streams;
            is_next && window.end <= windows.start.plus(Span::DAY)
        });
        let start = before.as_ref().map_or(window.start, |(windows, _)| windows.start);
        let windows = Window { start, end: window.end };
        let line = self.not_summoned(windows, streams, at);
        self.unasked = Some((windows, line.clone()));
        (Some(Record::Log(line)), before.map(|(_, line)| Record::Log(line)))
    }

    /// Own streams that the service has not asked about in a window. After a restart nobody knows what
    /// a summons from before it has named, so all count as asked about.
    fn not_asked(&self, window: Window) -> Vec<StreamId> {
        let round = self.rounds.get(&window.start);
        let summoned = round.and_then(|round| round.summoned.as_ref());
        if summoned.is_none() && round.is_some_and(|round| round.spent.is_some()) {
            return Vec::new();
        }
        let named: BTreeSet<u32> = summoned
            .map(|own| &own.presence)
            .into_iter()
            .flat_map(|own| own.accepted.iter().chain(own.excluded.iter().map(|(at, _)| at)))
            .copied()
            .collect();
        let own = self.own_streams().filter(|(at, _)| !named.contains(at));
        own.map(|(_, planned)| planned.stream).collect()
    }

    fn not_summoned(&self, windows: Window, streams: Vec<StreamId>, at: Timestamp) -> LogLine {
        let (plan, name) = (self.family(), self.plan().name.clone());
        LogLine { at, streams, event: LogEvent::NotSummoned { plan, name, windows } }
    }
}
