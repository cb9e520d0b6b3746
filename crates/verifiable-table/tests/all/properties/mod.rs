//! Sums equal plain sums exactly, through any rows, ranges, restarts and corrections, and no
//! label is used twice.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod durable;
mod exact;
mod merge;
mod saved_state;

use crate::support;
use alpheus_verifiable_table::ledger::PendingStep;

fn commit<T>(step: PendingStep<T>, store: &mut support::Store) -> T {
    step.commit(store).unwrap()
}
