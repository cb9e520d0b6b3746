//! The anonymous board as processes over real sockets: posted to, read, killed.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod attacks;
mod crashes;
mod day;
mod equal;
mod guide;
mod liar;
mod lies;
mod proxies;
mod replay;
mod stub;
mod town;

/// Equal servers in one process.
#[path = "../../../../anonymous-board/tests/all/coalition/ring.rs"]
#[expect(
    dead_code,
    clippy::cast_possible_truncation,
    reason = "these tests use a part of it; a test's small numbers"
)]
mod ring;
