//! The progress of event time, partition by partition.

use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};

/// A watermark for each input partition, and the minimum of them.
///
/// A single watermark over several partitions loses data silently: the partition that is
/// read first runs ahead, so the events of the others are late. So a partition that has not
/// been read yet holds the watermark at zero, and one with open sessions holds it at its
/// latest event. A partition whose sessions have all closed in order does not hold it back.
/// Sessions that died without closing do, until the wall clock decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watermarks {
    partitions: Vec<Partition>,
    reached: Timestamp,
    sealed: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Partition {
    latest: Option<Timestamp>,
    open: u32,
    read: bool,
}

impl Watermarks {
    /// Watermarks of partitions that have not been read yet.
    #[must_use]
    pub fn new(partitions: u32) -> Watermarks {
        let partitions = (0..partitions).map(|_| Partition::default()).collect();
        Watermarks { partitions, reached: Timestamp(0), sealed: None }
    }

    /// An event of this time was accepted from the partition.
    pub fn observe(&mut self, partition: u32, t: Timestamp) {
        let partition = self.partition(partition);
        partition.latest = partition.latest.max(Some(t));
        partition.read = true;
        self.advance();
    }

    /// The partition was read to its end once. If it is empty, it no longer holds the
    /// watermark back.
    pub fn caught_up(&mut self, partition: u32) {
        self.partition(partition).read = true;
        self.advance();
    }

    /// There is no more input, and `end` is the end of what there was. Streams that have
    /// not gone offline by then are no longer waited for.
    pub fn seal(&mut self, end: Timestamp) {
        self.sealed = Some(end);
    }

    /// The time that all partitions have reached. It never decreases.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.sealed.map_or(self.reached, |end| end.max(self.reached))
    }

    /// The latest time that was accepted from any partition.
    pub(super) fn latest(&self) -> Option<Timestamp> {
        self.partitions.iter().filter_map(|partition| partition.latest).max()
    }

    pub(super) fn session_opened(&mut self, partition: u32) {
        let partition = self.partition(partition);
        partition.open = partition.open.saturating_add(1);
    }

    pub(super) fn session_ended(&mut self, partition: u32) {
        let partition = self.partition(partition);
        partition.open = partition.open.saturating_sub(1);
    }

    fn partition(&mut self, number: u32) -> &mut Partition {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        if number >= self.partitions.len() {
            self.partitions.resize(number.saturating_add(1), Partition::default());
        }
        &mut self.partitions[number]
    }

    fn advance(&mut self) {
        if self.partitions.iter().any(|partition| !partition.read) {
            return;
        }
        let holding = self.partitions.iter().filter(|partition| partition.open > 0);
        let least = holding.filter_map(|partition| partition.latest).min();
        let greatest = || self.partitions.iter().filter_map(|partition| partition.latest).max();
        self.reached = self.reached.max(least.or_else(greatest).unwrap_or(Timestamp(0)));
    }
}
