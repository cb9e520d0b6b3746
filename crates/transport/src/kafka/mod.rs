//! A store over an Apache Kafka cluster, through librdkafka.
//!
//! ```text
//! PREFIXname             a topic: native records that any Kafka client can write and read
//! PREFIXstate.NAME       a state space: compacted, one partition, held in memory here
//! PREFIXstore.positions  positions of groups: compacted, one partition, `group/topic/partition`
//! PREFIXstore            the transactional id: opening the store fences the previous writer
//! ```
//! A group of batches is one transaction. Positions are keys in a topic, not the offsets of
//! consumer groups: brokers delete those a week after the last commit of a group without
//! members. Also, state and positions are then read in the same way.
//!
//! Many processes can share the partitions of some topics: each [joins](join) a consumer group. Such a
//! process has no state spaces. Its positions are the group's offsets, in the transaction of its records.
//!
//! A record's time is in the header `alpheus.time`, which readers do not see. Kafka's own
//! timestamp is the time of sending.

mod client;
mod group;
mod options;
mod reader;
mod store;
mod topics;
mod transaction;

pub use crate::error::cluster::ClusterError;
pub use group::join;
pub use options::Options;

use crate::error::Error;
use crate::store::Store;
use std::sync::Arc;

/// Opens the store: fences the previous writer, ends its transaction, and reads all state
/// spaces into memory.
///
/// # Errors
/// [`Error::Kafka`] with the cause and the fix.
pub fn open(options: &Options) -> Result<Arc<dyn Store>, Error> {
    store::open(options)
}
