//! What an owner gets is exactly what plain sums are, whatever rows, ranges, restarts
//! and corrections there were; and no label is ever used twice.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

#[allow(dead_code, reason = "each test uses a part of it")]
#[path = "../../examples/support/mod.rs"]
mod support;

mod exact;
mod lasting;
mod merged;

use alpheus_verifiable_table::ledger::Step;

fn commit<T>(step: Step<T>, store: &mut support::Store) -> T {
    step.commit(store).unwrap()
}
