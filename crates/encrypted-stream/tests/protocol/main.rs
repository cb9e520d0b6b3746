//! Service and privacy controllers, window by window: honest runs, attacks, and
//! seeded runs in which everything goes wrong.

#![expect(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test's way to fail, and numbers it made itself"
)]

mod adder;
mod attacks;
mod bounds;
mod budgets;
mod coordinator;
mod cut_off;
mod delegating;
mod disk;
mod dropouts;
mod evil;
mod formats;
mod grants;
mod honest;
mod horizon;
mod liar;
mod midnight;
mod neighbours;
mod net;
mod noise;
mod old_ledgers;
mod plans;
#[expect(dead_code, reason = "other noise is tried by itself")]
#[path = "../noise/pmf.rs"]
mod pmf;
mod sealed;
mod simulation;
mod sparse_storms;
mod storms;
mod streams;
mod totals;
mod withdrawals;
mod world;
