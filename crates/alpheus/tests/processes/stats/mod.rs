//! Accountable statistics as processes over real sockets: replayed, and compared with
//! the plaintext.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod absent;
mod absent_aggregator;
mod backups;
mod beginnings;
mod clients;
mod counts;
mod crashes;
mod guide;
mod hidden_counts;
mod real;
mod replay;
