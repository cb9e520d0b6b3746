//! What is particular about verified plans: windows that nobody asked about, and what stays of
//! those that are closed.

use alpheus_crypto::hash::Digest;
use alpheus_policy::ids::PlanId;
use alpheus_time::{Timestamp, Window};

use super::Controller;
use super::plan_state::PlanState;
use crate::ledger::{Change, LogEvent, LogLine, Record, opened_key};
use crate::messages::{Closing, WindowOutcome};

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
        (windows.start < windows.end).then(|| joined.not_summoned(windows, at))
    }

    /// What stays of a closed window: digests of what was said of it. Repeated, it changes
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
    /// Before a window of a verified plan is closed: a line for the owners' log if it opened
    /// without a summons to this controller, and the digests of what this controller said.
    pub(super) fn ended_verified(
        &mut self,
        closing: &Closing,
        at: Timestamp,
    ) -> (Option<Record>, Option<Record>) {
        if !self.is_verified() {
            return (None, None);
        }
        let window = closing.window;
        let round = self.rounds.get(&window.start);
        let known = round.is_some_and(|round| round.summoned.is_some() || round.spent.is_some());
        let opened = matches!(closing.outcome, WindowOutcome::Opened { .. });
        let line = (opened && !known).then(|| self.not_summoned(window, at));
        let digests = round.and_then(|round| {
            let (spent, _) = round.spent.as_ref()?;
            let (plan, membership) = (closing.plan, spent.membership);
            let opening = round.opened.as_ref().map(|(_, answer)| answer.digest());
            let token = spent.answer.digest();
            Some(Record::Closed { plan, window, membership, token, opening })
        });
        self.summoned_until = self.summoned_until.max(Some(window.end));
        (line, digests)
    }

    fn not_summoned(&self, windows: Window, at: Timestamp) -> Record {
        let streams = self.own_streams().map(|(_, planned)| planned.stream).collect();
        let (plan, name) = (self.id(), self.plan().name.clone());
        Record::Log(LogLine { at, streams, event: LogEvent::NotSummoned { plan, name, windows } })
    }
}
