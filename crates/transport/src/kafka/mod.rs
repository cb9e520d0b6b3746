//! A store over an Apache Kafka cluster, through librdkafka.
//!
//! ```text
//! PREFIXname             a topic: native records that any Kafka client writes and reads
//! PREFIXstate.NAME       a state space: compacted, one partition, held in memory here
//! PREFIXstore.positions  positions of groups: compacted, one partition, `group/topic/partition`
//! PREFIXstore            the transactional id: who opens the store fences whoever had it
//! ```
//! A group of batches is one transaction. Positions are keys of ours rather than a
//! consumer group's offsets, which brokers forget a week after the last commit of a
//! group without members; and a state and its position are then read in one way.
//!
//! A record's time goes along in the header `alpheus.time`, which is not shown:
//! Kafka's own timestamp is when it was sent.

mod client;
mod options;
mod reader;
mod refused;
mod store;
mod topics;
mod transaction;

pub use options::Options;
pub use refused::Refused;

use crate::error::Error;
use crate::store::Store;
use std::sync::Arc;

/// Opens the store: fences who had it open, ends what that had begun, and reads
/// all state spaces into memory.
///
/// # Errors
/// [`Error::Kafka`], which says what is refused and what would mend it.
pub fn open(options: &Options) -> Result<Arc<dyn Store>, Error> {
    store::open(options)
}
