//! Properties of a board that hold for all sizes and orders, and for any liar.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test's way to fail, and its small numbers"
)]

mod complaints;
mod crashes;
mod crowds;
mod doorkeeper;
mod epochs;
mod equivocation;
mod keys;
mod keys_held;
mod malice;
mod restores;
mod rows;
mod schedules;
mod shares;
mod town;
