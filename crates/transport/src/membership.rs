//! Which partitions of some topics are a process's own, when many processes share them.

use crate::error::Error;
use crate::names::{Partition, Topic};
use crate::store::Store;
use std::sync::Arc;
use std::time::Instant;

/// A change of which partitions are a process's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// These are its own from now on.
    Gained(Vec<Partition>),
    /// These are its own until the call ends: it can still commit what it did with them.
    Leaving(Vec<Partition>),
    /// These are another's already. No commit about them counts.
    Lost(Vec<Partition>),
}

/// The brokers' time, as they said it when they took a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerTime {
    /// In microseconds.
    pub at: u64,
    /// The record was not sent before.
    pub sent: Instant,
    /// They had taken it by then.
    pub heard: Instant,
}

/// A store whose positions are a group's, and a process's part in the group.
pub type GroupStore = (Arc<dyn Store>, Box<dyn Membership>);

/// A process's part in a group that shares the partitions of some topics. Each partition is one process's
/// own at a time.
///
/// A commit with the group's positions counts only while the process is in the group. So a process that
/// hangs, and comes back when its partitions are another's, changes nothing.
pub trait Membership: Send {
    /// Takes part in sharing these topics, which exist.
    ///
    /// # Errors
    /// The error of the cluster.
    fn subscribe(&self, topics: &[Topic]) -> Result<(), Error>;

    /// Tells what has changed since the last call. A process that does not call this for minutes loses
    /// its partitions.
    ///
    /// # Errors
    /// The error of the cluster.
    fn changes(&self, each: &mut dyn FnMut(Ownership)) -> Result<(), Error>;

    /// The time that the brokers gave the last record of a topic that
    /// [`Store::ensure_stamped_topic`] has made. None before the first.
    fn time(&self) -> Option<BrokerTime>;
}
