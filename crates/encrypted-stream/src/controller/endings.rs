//! The end of windows and plans: the service announces it, the owners' log records it, and
//! settled windows are deleted.

use alpheus_crypto::signed_message::Verified;
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_time::Timestamp;

use super::Controller;
use super::plan_state::WindowState;
use crate::error::WindowRefusalError;
use crate::ledger::{Change, LogEvent, LogLine, Record, Step, window_keys};
use crate::messages::{Closing, ControllerMessage, Retirement};

impl Controller {
    /// Notes that a window has ended. Later requests about it are not answered.
    ///
    /// # Errors
    /// [`WindowRefusalError`] unless it concerns a window of a running plan.
    pub fn handle_closing(
        &mut self,
        closing: &Verified<Closing>,
        now: Timestamp,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let by_service = closing.signer() == self.deployment.service();
        self.window_of(now, &closing.plan, closing.window, by_service)?;
        let mut changes = self.settle_budget(now, &closing.plan, closing.window);
        changes.extend(self.put_unasked(&closing.plan, closing.window.end, now));
        let joined = self.plans.get_mut(&closing.plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let digests = joined.digests(closing.plan, closing.window);
        let spent = joined.rounds.entry(closing.window.start).or_default().close();
        self.wipe_settled_keys(now);
        let joined = self.plans.get(&closing.plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let streams: Vec<_> = spent
            .into_iter()
            .flat_map(|spent| spent.accepted)
            .filter_map(|position| Some(joined.own(position)?.stream))
            .collect();
        changes.extend(self.keep_digests(now, digests));
        changes.extend(self.forget(now, &closing.plan));
        if !streams.is_empty() {
            let (plan, window, outcome) = (closing.plan, closing.window, closing.outcome.clone());
            let event = LogEvent::Ended { plan, window, outcome };
            changes.push(self.put(now, Record::Log(LogLine { at: now, streams, event })));
        }
        Ok(Step::new(changes, Vec::new()))
    }

    /// Moves the low-water mark over old windows.
    pub(super) fn forget(&mut self, now: Timestamp, plan: &PlanId) -> Vec<Change> {
        let id = self.id();
        let Some(joined) = self.plans.get_mut(plan) else { return Vec::new() };
        let forgettable = joined.forgettable();
        if forgettable.is_empty() {
            return Vec::new();
        }
        let windows: Vec<_> =
            forgettable.iter().map(|start| joined.plan().window_at(*start)).collect();
        let mut changes: Vec<Change> =
            windows.into_iter().flat_map(|window| self.settle_budget(now, plan, window)).collect();
        let Some(joined) = self.plans.get_mut(plan) else { return changes };
        for start in forgettable {
            let Some(round) = joined.rounds.remove(&start) else { continue };
            let end = start.plus(joined.plan().window);
            joined.settled = joined.settled.max(end);
            changes.extend(removals(id, plan, start, &round));
        }
        let (settled, ended) = (joined.settled, joined.ended);
        // The mark comes first in the same commit, because it replaces what is deleted.
        changes.insert(0, self.put(now, Record::Mark { plan: *plan, settled, ended }));
        changes.extend(self.sum_up_budgets(now, plan));
        changes
    }

    /// Notes that a plan has ended. Requests about its windows are no longer answered, and
    /// its attributes are free for another plan.
    ///
    /// # Errors
    /// [`WindowRefusalError`] if the message is not from the service, or the plan is unknown here.
    pub fn handle_retirement(
        &mut self,
        retirement: &Verified<Retirement>,
        now: Timestamp,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        if retirement.signer() != self.deployment.service() {
            return Err(WindowRefusalError::NotTheService);
        }
        let plan = retirement.plan;
        let windows = self.plans.get(&plan).into_iter().flat_map(|joined| {
            joined.rounds.keys().map(|start| joined.plan().window_at(*start)).collect::<Vec<_>>()
        });
        let windows: Vec<_> = windows.collect();
        let settled: Vec<Change> =
            windows.into_iter().flat_map(|window| self.settle_budget(now, &plan, window)).collect();
        let running = self.plans.get(&plan).filter(|own| own.ended.is_none());
        let asked = running.and_then(|own| own.asked_until(now));
        let unasked = asked.map_or_else(Vec::new, |until| self.put_unasked(&plan, until, now));
        let joined = self.plans.get_mut(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let first = joined.ended.is_none();
        let end = joined.ended.unwrap_or_else(|| joined.released_until());
        let is_listed = joined.plan().epoch.is_some();
        joined.ended = Some(end);
        joined.settled = joined.settled.max(end);
        // Secret, and no longer needed.
        (joined.masks, joined.totals) = (None, None);
        let rounds = std::mem::take(&mut joined.rounds);
        let id = self.identity.id();
        let gone = rounds.iter().flat_map(|(start, round)| removals(id, &plan, *start, round));
        let gone: Vec<Change> = gone.collect();
        // All epochs of a query have the same keys, and another one may be under way.
        if !is_listed {
            self.generations.end(&plan);
        }
        self.wipe_settled_keys(now);
        if first {
            self.release_locks(&plan);
        }
        let until = self.plans.get(&plan).map_or(end, |joined| joined.settled);
        let mut changes =
            vec![self.put(now, Record::Mark { plan, settled: until, ended: Some(end) })];
        changes.extend(settled);
        changes.extend(unasked);
        changes.extend(self.settle_totals(now, plan));
        changes.extend(gone);
        changes.extend(self.drop_ended_plans(now));
        Ok(Step::new(changes, Vec::new()))
    }
}

/// Removes the records of a window from the ledger.
pub(super) fn removals(
    id: ControllerId,
    plan: &PlanId,
    start: Timestamp,
    round: &WindowState,
) -> impl Iterator<Item = Change> + use<> {
    let keys = round.membership().map(|membership| window_keys(id, plan, start, &membership));
    keys.into_iter().flatten().map(Change::remove)
}
