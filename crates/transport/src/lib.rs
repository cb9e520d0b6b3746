//! Topics of bytes: records with offsets, state spaces and consumer positions, changed
//! together by atomic, durable batches.
//!
//! This crate handles only bytes. It never sees a plaintext type and has no cryptography.
//! [`Store`] is the only interface between the services and storage. It documents the
//! guarantees, and one test suite checks them for every implementation:
//!
//! - `kafka` (a feature): an Apache Kafka cluster;
//! - [`local`]: a directory on this machine's disk, in this process;
//! - [`simulation`]: memory that loses and tears unsynced data, from a seed.

mod batch;
mod catalog;
mod engine;
mod error;
#[cfg(feature = "kafka")]
pub mod kafka;
mod large_value;
pub mod local;
mod membership;
mod names;
mod partitioner;
mod queue;
mod receipt;
mod record;
pub mod simulation;
mod store;
mod tables;

pub use batch::{Batch, MAX_RECORD_BYTES, MAX_STATE_KEY_BYTES};
pub use bytes::Bytes;
pub use error::{Error, Source};
pub use large_value::{LargeValue, LargeValueError, PartsWriter};
pub use membership::{BrokerTime, GroupStore, Membership, Ownership};
pub use names::{Bounds, Group, NameError, Offset, Partition, Space, Topic};
pub use partitioner::partition_for_key;
pub use receipt::{CommitReceipt, OffsetRange, PendingCommit, Sequence, SyncPoint};
pub use record::{NewRecord, Record};
pub use std::ops::Bound;
pub use store::{ExportEntry, FetchedRecords, Limits, Stats, Store};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
