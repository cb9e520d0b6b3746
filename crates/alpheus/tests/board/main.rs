//! The anonymous board as processes over real sockets: posted to, read, killed.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

#[path = "../common/mod.rs"]
mod common;

mod crashes;
mod equal;
mod guide;
mod replay;
mod town;
