//! Commits of the service: records, result rows and messages to the engine, together.

use super::proof_queue::ProofQueue;
use super::{Service, ServiceError, ServiceOutput};
use crate::receipts::NewReceipt;
use crate::results::Row;
use alpheus_crypto::ledger::{Ledger, LedgerError, Step};
use alpheus_encrypted_stream::coordinator::{AdderMessage, Outcome, Output};
use alpheus_node::ledger::store::LedgerWithBatch;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Plan;
use alpheus_transport::NewRecord;

impl Service {
    pub(super) fn finish_round(
        &mut self,
        steps: Vec<(PlanId, Step<Vec<Output>>)>,
    ) -> Result<ServiceOutput, ServiceError> {
        self.finish_with(steps, &[])
    }

    /// Commits records, result rows and messages to the engine together, then returns
    /// messages to controllers. The ended plans are no longer summed.
    pub(super) fn finish_with(
        &mut self,
        steps: Vec<(PlanId, Step<Vec<Output>>)>,
        ended: &[PlanId],
    ) -> Result<ServiceOutput, ServiceError> {
        self.check_not_failed()?;
        let committed = self.commit(steps, ended);
        self.failed |= committed.is_err();
        self.start_checks();
        committed
    }

    /// Fails once a commit has failed: memory and store then differ, and no further message
    /// may depend on either.
    pub(super) fn check_not_failed(&self) -> Result<(), ServiceError> {
        if self.failed { Err(LedgerError.into()) } else { Ok(()) }
    }

    fn commit(
        &mut self,
        steps: Vec<(PlanId, Step<Vec<Output>>)>,
        ended: &[PlanId],
    ) -> Result<ServiceOutput, ServiceError> {
        let (mut rows, mut receipts) = (Vec::new(), Vec::new());
        let (mut merged, mut over) = (Step::default(), Vec::new());
        for (id, step) in steps {
            let Some(query) = self.queries.get(&id) else { continue };
            let plan = query.coordinator.plan();
            AdderMessage::in_step(&step).try_for_each(|given| self.plane.give(&id, plan, given))?;
            for outcome in Outcome::in_step(&step) {
                let asked = self.asked.get(&plan.name);
                rows.extend(self.counters.row(plan, &query.whole(outcome), asked));
                receipts.extend(receipt_of(id, plan, outcome));
                self.plane.finish(&id, outcome.window);
                if query.epoch.is_some() && !ended.contains(&id) {
                    over.push((id, outcome.clone()));
                }
            }
            merged.merge(step.map(|outputs| addressed(id, outputs)));
        }
        for (id, outcome) in &over {
            merged.merge(self.end_epoch(id, outcome).map(|outputs| addressed(*id, outputs)));
        }
        let gone = ended.iter().chain(over.iter().map(|(id, _)| id));
        gone.for_each(|id| self.plane.unregister(id));
        let outputs = self.write_with(&rows, &receipts, merged)?;
        let messages = self.address(outputs);
        over.iter().for_each(|(id, _)| drop(self.queries.remove(id)));
        Ok(ServiceOutput { messages, rows })
    }

    /// Makes rows and what a step needs durable, and returns what it releases.
    pub(super) fn write_down<T>(
        &mut self,
        rows: &[Row],
        step: Step<Vec<T>>,
    ) -> Result<Vec<T>, ServiceError> {
        self.write_with(rows, &[], step)
    }

    /// The same, with the receipts of these rows.
    fn write_with<T>(
        &mut self,
        rows: &[Row],
        receipts: &[NewReceipt],
        step: Step<Vec<T>>,
    ) -> Result<Vec<T>, ServiceError> {
        let mut batch = self.plane.staged()?;
        receipts.iter().try_for_each(|receipt| receipt.add_to(&mut batch, &self.topics))?;
        for row in rows {
            let value = serde_json::to_vec(row)?;
            let record =
                NewRecord { value: &value, timestamp: row.window_end, ..Default::default() };
            batch.append(&self.topics.results.partition(0), &record)?;
        }
        // With no window in progress, the end of a window is a good time to record how far
        // the log was read: it shares the row's flush.
        let noted = !rows.is_empty() && self.in_progress() == 0 && self.plane.is_worth_noting();
        if noted {
            self.plane.note(&mut batch)?;
        }
        self.counters.in_progress = self.in_progress();
        self.counters.asked_last = self.asked_last();
        self.counters.watermark = Some(self.watermark());
        self.counters.proofs = self.proofs.as_ref().map(ProofQueue::counts).unwrap_or_default();
        self.watch.show(&self.counters);
        let mut beside = LedgerWithBatch { ledger: &mut self.ledger, batch };
        let outputs = step.commit(&mut beside)?;
        if !beside.batch.is_empty() {
            // The step changed no record.
            beside.commit(&[])?;
        }
        if noted {
            self.plane.noted();
        }
        Ok(outputs)
    }
}

/// The receipt of a window that opened, in a verified or a bounded plan.
fn receipt_of(id: PlanId, plan: &Plan, outcome: &Outcome) -> Option<NewReceipt> {
    let receipt = outcome.result.as_ref().ok()?.window_receipt()?;
    let (query, window) = (plan.name.clone(), outcome.window);
    Some(NewReceipt { query, plan: id, window, bytes: receipt.to_bytes() })
}

fn addressed(id: PlanId, outputs: Vec<Output>) -> Vec<(PlanId, Output)> {
    outputs.into_iter().map(|output| (id, output)).collect()
}
