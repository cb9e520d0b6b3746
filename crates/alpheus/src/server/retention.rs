//! Lets go of events that were summed and are older than they are to be kept: sums
//! are stored apart, and who learns from the log nothing but sums needs it no longer.
//!
//! Devices' clocks count for nothing here. Now and then it is noted how far the log
//! was summed; what was summed when a note of that age was made may go.

use crate::runtime::plane::noted_positions;
use crate::runtime::service::ServiceError;
use crate::runtime::storage::{Topics, scan_all};
use alpheus_policy::time::{Span, Timestamp};
use alpheus_transport::{Batch, Offset, Store};
use std::collections::VecDeque;
use std::sync::Arc;

const NOTES: &[u8] = b"kept/";
/// Notes for the time that events are kept.
const OFTEN: u64 = 24;
/// But no more often: each is a write to the disk.
const SHORTEST: Span = Span::seconds(1);

/// How far the log was summed: by partition, dead letters last.
type Ends = Vec<Offset>;

/// What is kept, and since when.
pub struct Retention {
    store: Arc<dyn Store>,
    topics: Topics,
    keep: Span,
    notes: VecDeque<(Timestamp, Ends)>,
}

impl Retention {
    /// As it was left; keeps for so long from now on.
    ///
    /// # Errors
    /// What the store says.
    pub fn open(
        store: Arc<dyn Store>,
        topics: Topics,
        keep: Span,
    ) -> Result<Retention, ServiceError> {
        let mut notes = VecDeque::new();
        for (key, value) in scan_all(store.as_ref(), &topics.service, NOTES)? {
            let at = key.get(NOTES.len()..).and_then(|at| at.try_into().ok());
            let ends = value.chunks_exact(8).filter_map(|end| end.try_into().ok());
            // A note that cannot be read is one that was not made.
            if let Some(at) = at.map(u64::from_be_bytes) {
                notes
                    .push_back((Timestamp(at), ends.map(u64::from_be_bytes).map(Offset).collect()));
            }
        }
        Ok(Retention { store, topics, keep, notes })
    }

    /// Notes, if it is time, and lets go.
    ///
    /// # Errors
    /// What the store says.
    pub fn turn(&mut self, now: Timestamp) -> Result<(), ServiceError> {
        let between = (self.keep.0 / OFTEN).max(SHORTEST.0);
        if self.notes.back().is_none_or(|(last, _)| last.0.saturating_add(between) <= now.0) {
            self.note(now)?;
        }
        let mut old = None;
        while self.notes.front().is_some_and(|(at, _)| at.0.saturating_add(self.keep.0) <= now.0) {
            old = self.notes.pop_front();
        }
        match old {
            Some((at, ends)) => self.let_go(at, &ends),
            None => Ok(()),
        }
    }

    fn note(&mut self, now: Timestamp) -> Result<(), ServiceError> {
        let mut ends = noted_positions(self.store.as_ref(), &self.topics)?;
        ends.push(self.store.bounds(&self.topics.refused.partition(0))?.end);
        let value: Vec<u8> = ends.iter().flat_map(|end| end.0.to_be_bytes()).collect();
        let mut batch = Batch::new();
        batch.put(&self.topics.service, [NOTES, &now.0.to_be_bytes()].concat(), value)?;
        self.store.commit(batch)?;
        self.notes.push_back((now, ends));
        Ok(())
    }

    fn let_go(&self, noted: Timestamp, ends: &[Offset]) -> Result<(), ServiceError> {
        let events = (0..self.topics.partitions).map(|at| self.topics.events.partition(at));
        let partitions = events.chain([self.topics.refused.partition(0)]);
        // Of what another engine sums nothing is noted: it is not ours to let go.
        for (partition, end) in partitions.zip(ends).filter(|(_, end)| **end > Offset(0)) {
            self.store.truncate_before(&partition, *end)?;
        }
        let mut batch = Batch::new();
        for (key, _) in scan_all(self.store.as_ref(), &self.topics.service, NOTES)? {
            if key.get(NOTES.len()..) <= Some(&noted.0.to_be_bytes()[..]) {
                batch.delete(&self.topics.service, key)?;
            }
        }
        self.store.commit(batch)?;
        tracing::debug!(noted = noted.0, "older events are let go");
        Ok(())
    }
}
