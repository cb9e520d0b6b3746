//! Lets go of events that were summed and are older than they are to be kept: sums
//! are stored apart, and who learns from the log nothing but sums needs it no longer.
//!
//! Devices' clocks count for nothing here. Now and then it is noted how far the log
//! was summed; what was summed when a note of that age was made may go.

use crate::runtime::plane::noted_positions;
use crate::runtime::service::ServiceError;
use crate::runtime::storage::{JobTopics, Topics, scan_all};
use alpheus_policy::time::{Span, Timestamp};
use alpheus_transport::{Batch, Offset, Partition, Store};
use std::collections::VecDeque;
use std::sync::Arc;

const NOTES: &[u8] = b"kept/";
/// Notes for the time that events are kept.
const OFTEN: u64 = 24;
/// But no more often: each is a write to the disk.
const SHORTEST: Span = Span::seconds(1);

/// How far topics may go, by partition.
type Ends = Vec<Offset>;

/// What is kept, and since when.
pub struct Retention {
    store: Arc<dyn Store>,
    topics: Topics,
    keep: Span,
    /// Whether a job sums events.
    job: bool,
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
        Ok(Retention { store, topics, keep, job: false, notes })
    }

    /// Where a job sums events.
    #[must_use]
    pub fn beside_a_job(self) -> Retention {
        Retention { job: true, ..self }
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
        let ends = self.ends()?;
        let value: Vec<u8> = ends.iter().flat_map(|end| end.0.to_be_bytes()).collect();
        let mut batch = Batch::new();
        batch.put(&self.topics.service, [NOTES, &now.0.to_be_bytes()].concat(), value)?;
        self.store.commit(batch)?;
        self.notes.push_back((now, ends));
        Ok(())
    }

    /// What is let go: events and dead letters; with a job also what the two say to each
    /// other, but for instructions, which a job that starts anew reads from their beginning.
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

    /// How far each of these may go once what stands there now is old. How far a job has
    /// read is not known here: it must not lag behind for as long as events are kept.
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

    fn let_go(&self, noted: Timestamp, ends: &[Offset]) -> Result<(), ServiceError> {
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
        tracing::debug!(noted = noted.0, "older events are let go");
        Ok(())
    }
}
