//! Service and privacy controllers, window by window: honest runs, attacks, and seeded runs
//! with faults of every kind.

#![expect(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "tests may panic, and use numbers that they made themselves"
)]

mod adder;
mod attacks;
mod bounded;
mod bounds;
mod budgets;
mod coordinator;
mod copies;
mod cut_off;
mod day_sets;
mod delegation;
mod disk;
mod dropouts;
mod ended_plans;
mod epochs;
mod evil;
mod formats;
mod grant_keys;
mod grants;
mod honest;
mod horizon;
pub mod identities;
mod liar;
mod lost_states;
mod midnight;
mod moves;
mod neighbours;
mod net;
mod noise;
mod old_ledgers;
mod plans;
mod producers;
mod read_owners;
mod revocations;
mod schemas;
mod sealed_results;
mod simulation;
mod sparse_storms;
mod storms;
mod streams;
mod tick_grants;
mod ticks;
mod totals;
mod verified;
mod withdrawals;
mod withholders;
mod world;

use crate::noise::pmf;
