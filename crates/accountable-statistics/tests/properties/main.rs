//! The rules of the roles, each with a test that tries to break it, and what must hold for
//! any order of events.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod closings;
mod copies;
mod definitions;
mod errors;
mod folk;
mod hidden;
mod memory;
mod openings;
mod quotas;
mod restarts;
mod shards;
mod simulation;
mod slots;
#[path = "../../examples/support/mod.rs"]
mod support;
mod tallies;
mod uploads;
mod verdicts;
mod waste;
mod words;
