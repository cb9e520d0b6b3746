//! Deletes events that were summed and have passed the retention time. Sums are stored
//! apart, so windows no longer need these events.
//!
//! Devices' clocks do not count. From time to time a note records how far the log was
//! summed. Everything before a note is deleted once the note is old enough.

use crate::runtime::plane::noted_positions;
use crate::runtime::service::ServiceError;
use crate::runtime::storage::{JobTopics, Topics};
use alpheus_node::ledger::scan_all;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, Offset, Partition, Store};
use std::collections::VecDeque;
use std::sync::Arc;

const NOTES: &[u8] = b"kept/";
/// Number of notes per retention time.
const NOTES_KEPT: u64 = 24;
/// Minimum time between notes: each is a write to the disk.
const MIN_INTERVAL: Span = Span::seconds(1);

/// How far topics may be deleted, by partition.
type Ends = Vec<Offset>;

/// Deletes old events.
pub struct Retention {
    store: Arc<dyn Store>,
    topics: Topics,
    keep: Span,
    /// Whether a job sums events.
    job: bool,
    notes: VecDeque<(Timestamp, Ends)>,
}

impl Retention {
    /// Restores the notes; keeps events for this long from now on.
    ///
    /// # Errors
    /// The store's error.
    pub fn open(
        store: Arc<dyn Store>,
        topics: Topics,
        keep: Span,
    ) -> Result<Retention, ServiceError> {
        let mut notes = VecDeque::new();
        for (key, value) in scan_all(store.as_ref(), &topics.service, NOTES)? {
            let at = key.get(NOTES.len()..).and_then(|at| at.try_into().ok());
            let ends = value.chunks_exact(8).filter_map(|end| end.try_into().ok());
            // A note that cannot be read is skipped.
            if let Some(at) = at.map(u64::from_be_bytes) {
                notes
                    .push_back((Timestamp(at), ends.map(u64::from_be_bytes).map(Offset).collect()));
            }
        }
        Ok(Retention { store, topics, keep, job: false, notes })
    }

    /// For a service whose events a job sums.
    #[must_use]
    pub fn with_job(self) -> Retention {
        Retention { job: true, ..self }
    }

    /// Makes a note if it is time, and deletes old events.
    ///
    /// # Errors
    /// The store's error.
    pub fn turn(&mut self, now: Timestamp) -> Result<(), ServiceError> {
        let between = (self.keep.0 / NOTES_KEPT).max(MIN_INTERVAL.0);
        if self.notes.back().is_none_or(|(last, _)| last.0.saturating_add(between) <= now.0) {
            self.note(now)?;
        }
        let mut old = None;
        while self.notes.front().is_some_and(|(at, _)| at.0.saturating_add(self.keep.0) <= now.0) {
            old = self.notes.pop_front();
        }
        match old {
            Some((at, ends)) => self.delete_before(at, &ends),
            None => Ok(()),
        }
    }

    fn note(&mut self, now: Timestamp) -> Result<(), ServiceError> {
        let ends = self.ends()?;
        let value: Vec<u8> = ends.iter().flat_map(|end| end.0.to_be_bytes()).collect();
        let mut batch = Batch::new();
        batch.put(&self.topics.service, [NOTES, &now.0.to_be_bytes()].concat(), value)?;
        self.store.commit(batch)?;
        self.notes.push_back((now, ends));
        Ok(())
    }

    /// What is deleted: events and dead letters; with a job also their messages to each
    /// other, except instructions, which a restarted job reads from the beginning.
    fn partitions(&self) -> Result<Vec<Partition>, ServiceError> {
        let events = (0..self.topics.partitions).map(|at| self.topics.events.partition(at));
        let mut all: Vec<Partition> = events.chain([self.topics.refused.partition(0)]).collect();
        let JobTopics { tokens, summaries, sums, dead_letters, .. } = &self.topics.job;
        for topic in [tokens, summaries, sums, dead_letters].into_iter().filter(|_| self.job) {
            let partitions = self.store.partitions(topic)?.unwrap_or(0);
            all.extend((0..partitions).map(|at| topic.partition(at)));
        }
        Ok(all)
    }

    /// How far each of these may be deleted once this note is old. A job's position is
    /// unknown here, so a job must not lag behind by the retention time.
    fn ends(&self) -> Result<Vec<Offset>, ServiceError> {
        let end = |partition| Ok(self.store.bounds(partition)?.end);
        let mut ends: Vec<Offset> =
            self.partitions()?.iter().map(end).collect::<Result<_, ServiceError>>()?;
        if !self.job {
            let noted = noted_positions(self.store.as_ref(), &self.topics)?;
            ends.iter_mut().zip(noted).for_each(|(end, noted)| *end = noted);
        }
        Ok(ends)
    }

    fn delete_before(&self, noted: Timestamp, ends: &[Offset]) -> Result<(), ServiceError> {
        for (partition, end) in self.partitions()?.iter().zip(ends) {
            self.store.truncate_before(partition, *end)?;
        }
        let mut batch = Batch::new();
        for (key, _) in scan_all(self.store.as_ref(), &self.topics.service, NOTES)? {
            if key.get(NOTES.len()..) <= Some(&noted.0.to_be_bytes()[..]) {
                batch.delete(&self.topics.service, key)?;
            }
        }
        self.store.commit(batch)?;
        tracing::debug!(noted = noted.0, "old events were deleted");
        Ok(())
    }
}
