//! Reads a topic of other writers from the last position on.

use crate::service_error::ServiceError;
use crate::storage::{Topics, note_positions, read_on, stored_positions};
use alpheus_transport::{Batch, Offset, Record, Store, Topic};

/// How far a topic was read.
pub(super) struct Tail {
    topic: Topic,
    /// The name under which positions are stored, if they are.
    name: &'static [u8],
    /// By partition.
    positions: Vec<Offset>,
}

impl Tail {
    /// Starts at the stored positions, or at the beginning of the topic.
    pub(super) fn resume(
        store: &dyn Store,
        topics: &Topics,
        topic: &Topic,
        name: &'static [u8],
        partitions: u32,
    ) -> Result<Tail, ServiceError> {
        let noted = stored_positions(store, topics, name, partitions)?;
        let mut positions = Vec::with_capacity(noted.len());
        for (partition, noted) in (0u32..).zip(noted) {
            let held = store.bounds(&topic.partition(partition))?;
            positions.push(noted.map_or(held.start, |noted| noted.max(held.start)));
        }
        Ok(Tail { topic: topic.clone(), name, positions })
    }

    /// Starts at the end of a topic of one partition.
    pub(super) fn from_end(store: &dyn Store, topic: &Topic) -> Result<Tail, ServiceError> {
        let end = store.bounds(&topic.partition(0))?.end;
        Ok(Tail { topic: topic.clone(), name: &[], positions: vec![end] })
    }

    /// Reads all partitions to their ends.
    pub(super) fn read(
        &mut self,
        store: &dyn Store,
        mut each: impl FnMut(Record) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        for (partition, position) in (0u32..).zip(&mut self.positions) {
            let topic = self.topic.partition(partition);
            read_on(store, &topic, position, |fetched| {
                fetched.into_iter().try_for_each(&mut each)
            })?;
        }
        Ok(())
    }

    /// The next position to read, by partition.
    pub(super) fn positions(&self) -> &[Offset] {
        &self.positions
    }

    /// The same for a topic of one partition, but no further than the first needed record.
    pub(super) fn least(&self, needed: Option<Offset>) -> Vec<Offset> {
        self.positions
            .iter()
            .copied()
            .map(|at| needed.map_or(at, |needed| needed.min(at)))
            .collect()
    }

    /// Records positions of its partitions.
    pub(super) fn note(
        &self,
        batch: &mut Batch,
        topics: &Topics,
        positions: &[Offset],
    ) -> Result<(), ServiceError> {
        note_positions(batch, topics, self.name, positions)
    }
}
