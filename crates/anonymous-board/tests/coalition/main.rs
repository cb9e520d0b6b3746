//! What must hold of a board whose servers are equal, while one of them keeps to the
//! protocol.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test's way to fail, and its small numbers"
)]

mod audits;
mod crashes;
mod crowds;
mod engines;
mod epochs;
mod keys;
mod malice;
mod ring;
mod views;
mod warnings;
