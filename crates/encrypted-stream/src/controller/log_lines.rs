//! Lines of the owners' log: what a restart learns from them, and which are old enough to be deleted.

use alpheus_time::Timestamp;

use super::Controller;
use crate::ledger::{Change, LogEvent, LogLine, Record, Step};
use crate::messages::ControllerMessage;

impl Controller {
    /// What a restart needs to know of a line.
    pub(super) fn take_line(&mut self, line: &LogLine) {
        if let LogEvent::PlanAccepted { plan, .. } = &line.event
            && let Some(joined) = self.plans.get_mut(plan)
        {
            joined.accepted_at = Some(line.at);
            joined.begin_noise();
        }
        if let LogEvent::Released { plan, costs, .. } = &line.event
            && !costs.is_empty()
            && let Some(joined) = self.plans.get_mut(plan)
            && joined.totals.is_some()
        {
            joined.remember_cost_line(&line.streams);
        }
        if let LogEvent::OutOfBounds { plan, window, .. } = &line.event
            && let Some(joined) = self.plans.get_mut(plan)
        {
            joined.recall_out_of_bounds(*window, line.clone());
        }
    }

    /// Deletes lines of the owners' log. Those that a restart needs stay: of plans that run, and
    /// of windows that may still be asked for. Returns how many are deleted.
    pub fn forget_lines(
        &mut self,
        now: Timestamp,
        lines: Vec<LogLine>,
    ) -> (Step<Vec<ControllerMessage>>, u64) {
        let id = self.id();
        let gone = lines.into_iter().filter(|line| !self.needs(line));
        let gone: Vec<Vec<u8>> = gone.map(|line| Record::Log(line).key(id)).collect();
        if gone.is_empty() {
            return (Step::default(), 0);
        }
        let deleted = gone.len() as u64;
        // The ledger's last sequence number may have been in one of them.
        let mut changes = vec![self.put(now, Record::Identity { controller: id })];
        changes.extend(gone.into_iter().map(Change::remove));
        (Step::new(changes, Vec::new()), deleted)
    }

    fn needs(&self, line: &LogLine) -> bool {
        match &line.event {
            LogEvent::PlanAccepted { plan, .. } => {
                self.plans.get(plan).is_some_and(|joined| joined.ended.is_none())
            }
            LogEvent::Released { plan, window, .. } | LogEvent::Ended { plan, window, .. } => {
                self.plans.get(plan).is_some_and(|joined| {
                    joined.totals.is_some() || joined.rounds.contains_key(&window.start)
                })
            }
            _ => false,
        }
    }
}
