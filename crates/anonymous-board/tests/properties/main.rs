//! What must hold of a board, whatever the numbers, the order, and who lies.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test's way to fail, and its small numbers"
)]

mod complaints;
mod crashes;
mod doors;
mod epochs;
mod hearers;
mod keys;
mod malice;
mod returns;
mod rows;
mod schedules;
mod town;
