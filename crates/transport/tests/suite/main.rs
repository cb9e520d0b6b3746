//! Tests of the guarantees of `Store`, for every implementation.
//!
//! `contract` runs on all stores. `crashes` simulates machines that lose power,
//! from seeds. `exports` copies live stores. `kills` kills processes, `large_values` are larger than a
//! batch may be, and `torn` damages journals. `kafka` tests what only a Kafka cluster does, and `group`
//! processes that share its partitions.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

#[cfg(feature = "kafka")]
mod broker;
mod contract;
mod crashes;
mod exports;
#[cfg(feature = "kafka")]
mod group;
#[cfg(feature = "kafka")]
mod kafka;
mod kills;
mod large_values;
mod torn_journals;
mod world;
