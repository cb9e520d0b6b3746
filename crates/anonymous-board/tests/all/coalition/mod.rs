//! Properties of a board with equal servers, while one of them follows the protocol.

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
