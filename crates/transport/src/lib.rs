//! Topics of bytes: records with offsets, state spaces and consumer positions,
//! changed together by atomic, durable batches.
//!
//! This crate never sees a plaintext type and has no cryptography: to it all
//! is bytes. [`Store`] is the only seam between the services and storage; the
//! promises it makes are written there, and one test suite holds every
//! implementation to them:
//!
//! - `kafka` (a feature): an Apache Kafka cluster;
//! - [`local`]: one directory on this machine's disk, in this process;
//! - [`simulated`]: memory that loses and tears what was not synced, from a seed.

mod batch;
mod catalog;
mod engine;
mod error;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod local;
mod names;
mod partitioner;
mod queue;
mod receipt;
mod record;
pub mod simulated;
mod store;
mod tables;

pub use batch::{Batch, MAX_RECORD_BYTES, MAX_STATE_KEY_BYTES};
pub use bytes::Bytes;
pub use error::{Error, Source};
pub use names::{Bounds, Group, Offset, Partition, Space, Topic};
pub use partitioner::partition_for_key;
pub use receipt::{Appended, Durable, Pending, Sequence, Synced};
pub use record::{NewRecord, Record};
pub use std::ops::Bound;
pub use store::{Fetched, Limits, Stats, Store};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
