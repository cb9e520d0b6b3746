//! Deletes events that were summed and have passed the retention time. Sums are stored
//! apart, so windows no longer need these events. Deletes old results, and results beyond a
//! number.
//!
//! Devices' clocks do not count. From time to time a note records how far the log was
//! summed, and how many results there were. Everything before a note is deleted once the note
//! is old enough.

use alpheus_node::ledger::scan_all;
use alpheus_stream_runtime::plane::noted_positions;
use alpheus_stream_runtime::results::KeptResults;
use alpheus_stream_runtime::service::ServiceError;
use alpheus_stream_runtime::storage::{JobTopics, Topics};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, Offset, Partition, Store};
use std::collections::VecDeque;
use std::sync::Arc;

const NOTES: &[u8] = b"kept/";
const RESULT_NOTES: &[u8] = b"kept-results/";
const RECEIPT_NOTES: &[u8] = b"kept-receipts/";
/// Number of notes per retention time.
const NOTES_KEPT: u64 = 24;
/// Minimum time between notes: each is a write to the disk.
const MIN_INTERVAL: Span = Span::seconds(1);

/// Time between two looks at how many results there are.
const LOOK: Span = Span::seconds(60);
/// Results are deleted for their number once there are more by this part of it.
const SLACK: u64 = 100;

/// How far topics may be deleted, by partition.
type Ends = Vec<Offset>;

/// Notes of how far topics had come at a time.
struct Notes {
    prefix: &'static [u8],
    keep: Span,
    all: VecDeque<(Timestamp, Ends)>,
}

impl Notes {
    fn load(
        store: &dyn Store,
        topics: &Topics,
        prefix: &'static [u8],
        keep: Span,
    ) -> Result<Notes, ServiceError> {
        let mut all = VecDeque::new();
        for (key, value) in scan_all(store, &topics.service, prefix)? {
            let at = key.get(prefix.len()..).and_then(|at| at.try_into().ok());
            let ends = value.chunks_exact(8).filter_map(|end| end.try_into().ok());
            // A note that cannot be read is skipped.
            if let Some(at) = at.map(u64::from_be_bytes) {
                let ends = ends.map(u64::from_be_bytes).map(Offset).collect();
                all.push_back((Timestamp(at), ends));
            }
        }
        Ok(Notes { prefix, keep, all })
    }

    /// Time between two of them.
    fn between(&self) -> Span {
        Span(self.keep.0 / NOTES_KEPT).max(MIN_INTERVAL)
    }

    fn is_due(&self, now: Timestamp) -> bool {
        self.all.back().is_none_or(|(last, _)| last.plus(self.between()) <= now)
    }

    fn add(
        &mut self,
        store: &dyn Store,
        topics: &Topics,
        now: Timestamp,
        ends: Ends,
    ) -> Result<(), ServiceError> {
        let value: Vec<u8> = ends.iter().flat_map(|end| end.0.to_be_bytes()).collect();
        let mut batch = Batch::new();
        batch.put(&topics.service, [self.prefix, &now.0.to_be_bytes()].concat(), value)?;
        store.commit(batch)?;
        self.all.push_back((now, ends));
        Ok(())
    }

    /// The last note that is old enough. It and older ones are dropped.
    fn take_old(&mut self, now: Timestamp) -> Option<(Timestamp, Ends)> {
        let mut old = None;
        while self.all.front().is_some_and(|(at, _)| at.0.saturating_add(self.keep.0) <= now.0) {
            old = self.all.pop_front();
        }
        old
    }

    /// Deletes the stored notes up to this one.
    fn forget(
        &self,
        store: &dyn Store,
        topics: &Topics,
        noted: Timestamp,
    ) -> Result<(), ServiceError> {
        let mut batch = Batch::new();
        for (key, _) in scan_all(store, &topics.service, self.prefix)? {
            if key.get(self.prefix.len()..) <= Some(&noted.0.to_be_bytes()[..]) {
                batch.delete(&topics.service, key)?;
            }
        }
        store.commit(batch)?;
        Ok(())
    }
}

/// Deletes old events.
pub struct Retention {
    store: Arc<dyn Store>,
    topics: Topics,
    /// Whether a job sums events.
    job: bool,
    notes: Notes,
    /// Notes of results, and how many are kept at most.
    results: Option<(Notes, u64)>,
    /// Notes of receipts.
    receipts: Option<Notes>,
    /// Whether results or receipts may have been deleted since somebody asked.
    deleted: bool,
    /// When to look at results again.
    look: Timestamp,
    kept: KeptResults,
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
        let notes = Notes::load(store.as_ref(), &topics, NOTES, keep)?;
        let (job, results, receipts, kept) = Default::default();
        // The last run may have stopped right after it.
        let (deleted, look) = (true, Timestamp(0));
        Ok(Retention { store, topics, job, notes, results, receipts, deleted, look, kept })
    }

    /// For a service whose events a job sums.
    #[must_use]
    pub fn with_job(self) -> Retention {
        Retention { job: true, ..self }
    }

    /// Deletes results that are older, and the oldest beyond this number.
    ///
    /// # Errors
    /// The store's error.
    pub fn with_results(self, (keep, most): (Span, u64)) -> Result<Retention, ServiceError> {
        let notes = Notes::load(self.store.as_ref(), &self.topics, RESULT_NOTES, keep)?;
        Ok(Retention { results: Some((notes, most)), ..self })
    }

    /// Deletes receipts that are older.
    ///
    /// # Errors
    /// The store's error.
    pub fn with_receipts(self, keep: Span) -> Result<Retention, ServiceError> {
        let notes = Notes::load(self.store.as_ref(), &self.topics, RECEIPT_NOTES, keep)?;
        Ok(Retention { receipts: Some(notes), ..self })
    }

    /// Whether results or receipts were deleted since the last call, or may have been before the
    /// start. Plans that only they needed can go then.
    pub fn has_deleted(&mut self) -> bool {
        std::mem::take(&mut self.deleted)
    }

    /// Results in the log after the last turn.
    #[must_use]
    pub fn kept_results(&self) -> KeptResults {
        self.kept
    }

    /// Makes notes if it is time, and deletes old events and results.
    ///
    /// # Errors
    /// The store's error.
    pub fn turn(&mut self, now: Timestamp) -> Result<(), ServiceError> {
        if self.notes.is_due(now) {
            let ends = self.ends()?;
            self.notes.add(self.store.as_ref(), &self.topics, now, ends)?;
        }
        if let Some((at, ends)) = self.notes.take_old(now) {
            self.delete_before(at, &ends)?;
        }
        self.delete_receipts(now)?;
        self.delete_results(now)
    }

    fn delete_receipts(&mut self, now: Timestamp) -> Result<(), ServiceError> {
        let Some(notes) = &mut self.receipts else { return Ok(()) };
        let (store, partition) = (self.store.as_ref(), self.topics.receipts.partition(0));
        if notes.is_due(now) {
            notes.add(store, &self.topics, now, vec![store.bounds(&partition)?.end])?;
        }
        let Some((at, ends)) = notes.take_old(now) else { return Ok(()) };
        if let Some(end) = ends.first() {
            store.truncate_before(&partition, *end)?;
            store.sync()?;
            self.deleted = true;
        }
        notes.forget(store, &self.topics, at)
    }

    fn delete_results(&mut self, now: Timestamp) -> Result<(), ServiceError> {
        let Some((notes, most)) = self.results.as_mut().filter(|_| self.look <= now) else {
            return Ok(());
        };
        self.look = now.plus(LOOK.min(notes.between()));
        let (store, partition) = (self.store.as_ref(), self.topics.results.partition(0));
        let bounds = store.bounds(&partition)?;
        if notes.is_due(now) {
            notes.add(store, &self.topics, now, vec![bounds.end])?;
        }
        let old = notes.take_old(now);
        let aged = old.as_ref().and_then(|(_, ends)| ends.first()).map_or(0, |end| end.0);
        let few = bounds.end.0.saturating_sub(*most);
        let many = few.saturating_sub(bounds.start.0) > *most / SLACK;
        let before = aged.max(if many { few } else { 0 }).min(bounds.end.0);
        let deleted = before.saturating_sub(bounds.start.0);
        if deleted > 0 {
            store.truncate_before(&partition, Offset(before))?;
            store.sync()?;
            self.deleted = true;
            tracing::debug!(deleted, "old results were deleted");
        }
        if let Some((at, _)) = old {
            notes.forget(store, &self.topics, at)?;
        }
        self.kept.deleted += deleted;
        self.kept.kept = bounds.end.0.saturating_sub(bounds.start.0 + deleted);
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
        self.notes.forget(self.store.as_ref(), &self.topics, noted)?;
        tracing::debug!(noted = noted.0, "old events were deleted");
        Ok(())
    }
}
