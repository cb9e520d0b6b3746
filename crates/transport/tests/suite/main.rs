//! The promises of `Store`, held against every implementation.
//!
//! `contract` runs on each of them; `crashes` on simulated machines that lose
//! power, from seeds; `kills` on processes that are killed, and on journals
//! that are torn.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

#[cfg(feature = "kafka")]
mod broker;
mod contract;
mod crashes;
#[cfg(feature = "kafka")]
mod kafka;
mod kills;
mod torn;
mod world;
