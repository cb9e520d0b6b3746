//! Counts: the number of accounts at a location, each counted once. Smoothers are not involved.
//!
//! - [`tally_server`]: the aggregator's side,
//! - [`tally_client`]: the client's side.

pub mod tally_client;
pub mod tally_server;
