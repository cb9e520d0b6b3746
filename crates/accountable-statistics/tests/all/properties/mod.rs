//! The rules of the roles, each with a test that tries to break it, and properties that hold for
//! any order of events.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod closings;
mod copies;
mod deadlines;
mod definitions;
mod errors;
mod forwarded_deposit;
mod helpers;
mod hidden_counts;
mod memory;
mod messages;
mod openings;
mod quotas;
mod rejections;
mod restarts;
mod shards;
mod simulation;
mod slots;
mod tallies;
mod uploads;
mod verdicts;
mod waste;
