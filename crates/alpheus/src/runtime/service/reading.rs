//! Taking frames out of the log, and noting how far.

use super::{Service, ServiceError};
use crate::runtime::storage::Topics;
use alpheus_encrypted_stream::transformer::{Refusal, Shape, Transformer};
use alpheus_policy::ids::StreamId;
use alpheus_policy::time::Timestamp;
use alpheus_transport::{Batch, Error, Fetched, Limits, NewRecord, Offset, Record, Store};

const SNAPSHOT: &[u8] = b"transformer/v1";
const POSITION: &[u8] = b"position/";
/// Records that are handed on together: few enough to stay near the processor.
const AT_A_TIME: usize = 64;

/// Bytes of dead letters that are kept in one commit, or so.
const MOST_DEAD: usize = 8 << 20;
/// What is kept of a frame that is too long to be a dead letter.
const BEGINNING: usize = 64 << 10;

/// How far the log was read.
pub(super) struct Reading {
    positions: Vec<Offset>,
    /// Bytes that were read since that was last noted: what a restart reads again.
    since: u64,
    /// Dead letters were written since then: a restart would write them again.
    dead: bool,
}

impl Reading {
    /// Where the store says that the service was, and the sums that it had.
    pub(super) fn resume(
        store: &dyn Store,
        topics: &Topics,
        shape: Shape,
    ) -> Result<(Transformer, Reading), ServiceError> {
        let transformer = match store.get(&topics.service, SNAPSHOT)? {
            Some(bytes) => Transformer::restore(&bytes)
                .map_err(|_| ServiceError::Damaged { what: "transformer" })?,
            None => Transformer::new(shape, topics.partitions),
        };
        let positions = noted_positions(store, topics)?;
        Ok((transformer, Reading { positions, since: 0, dead: false }))
    }

    /// What was noted is durable.
    pub(super) fn noted(&mut self) {
        (self.since, self.dead) = (0, false);
    }
}

impl Service {
    /// Reads everything new from the log.
    ///
    /// # Errors
    /// [`ServiceError`] if the log cannot be read.
    pub fn ingest(&mut self, now: Timestamp) -> Result<(), ServiceError> {
        let mut dead = Batch::new();
        for partition in 0..self.topics.partitions {
            self.ingest_partition(now, partition, &mut dead)?;
        }
        self.keep_dead(dead)
    }

    /// Makes dead letters durable.
    fn keep_dead(&mut self, dead: Batch) -> Result<(), ServiceError> {
        if !dead.is_empty() {
            self.store.commit(dead)?;
            self.reading.dead = true;
        }
        Ok(())
    }

    fn ingest_partition(
        &mut self,
        now: Timestamp,
        partition: u32,
        dead: &mut Batch,
    ) -> Result<(), ServiceError> {
        let topic = self.topics.events.partition(partition);
        loop {
            let position = self.reading.positions[partition as usize];
            let fetched = self.store.read(&topic, position, Limits::default())?;
            let next = fetched.next_offset();
            if next == position {
                self.sums.watermarks().caught_up(partition);
                return Ok(());
            }
            self.take_frames(now, partition, fetched, dead)?;
            self.reading.positions[partition as usize] = next;
        }
    }

    fn take_frames(
        &mut self,
        now: Timestamp,
        partition: u32,
        mut fetched: Fetched,
        dead: &mut Batch,
    ) -> Result<(), ServiceError> {
        let (mut records, mut refused) = (Vec::with_capacity(AT_A_TIME), Vec::new());
        loop {
            records.clear();
            records.extend(fetched.by_ref().take(AT_A_TIME));
            if records.is_empty() {
                return Ok(());
            }
            let frames = records.iter().map(|record| (stream_of(record), record.value.as_ref()));
            self.sums.ingest_all(now, partition, frames, |place, taken| {
                refused.extend(taken.err().map(|refusal| (place, refusal)));
            });
            let bytes = records.iter().map(|record| record.value.len() as u64).sum::<u64>();
            self.counters.frames += records.len() as u64;
            self.counters.bytes += bytes;
            self.reading.since += bytes;
            for (place, refusal) in refused.drain(..) {
                if let Some(record) = records.get(place) {
                    self.bury(record, &refusal, dead)?;
                }
                if dead.bytes() >= MOST_DEAD {
                    self.keep_dead(std::mem::take(dead))?;
                }
            }
        }
    }

    /// Counts a frame that was refused and lays it with the dead letters.
    fn bury(
        &mut self,
        record: &Record,
        refusal: &Refusal,
        dead: &mut Batch,
    ) -> Result<(), ServiceError> {
        let reason = refusal.to_string();
        let headers: [(&str, &[u8]); 1] = [("reason", reason.as_bytes())];
        let timestamp = record.timestamp;
        let topic = self.topics.refused.partition(0);
        let whole =
            NewRecord { key: &record.key, value: &record.value, timestamp, headers: &headers };
        match dead.append(&topic, &whole) {
            // No room for the reason beside it: its beginning tells whose it was.
            Err(Error::RecordTooLarge { .. }) => {
                let (key, value) = (beginning(&record.key), beginning(&record.value));
                let cut = NewRecord { key, value, timestamp, headers: &headers };
                dead.append(&topic, &cut)?;
            }
            appended => appended?,
        }
        *self.counters.refused_frames.entry(refusal.name().to_owned()).or_default() += 1;
        Ok(())
    }

    /// Makes durable how far the log was read and what was summed of it.
    ///
    /// # Errors
    /// [`ServiceError`] if it cannot be written.
    pub fn checkpoint(&mut self) -> Result<(), ServiceError> {
        let mut batch = Batch::new();
        self.note(&mut batch)?;
        self.store.commit(batch)?;
        self.reading.noted();
        Ok(())
    }

    /// [`Service::checkpoint`], if a restart would otherwise read more than it
    /// saves, or bury frames twice. Result rows bring their own.
    ///
    /// # Errors
    /// As there.
    pub fn checkpoint_if_worth(&mut self) -> Result<(), ServiceError> {
        if self.is_worth_noting() { self.checkpoint() } else { Ok(()) }
    }

    /// Whether at least as much was read since the last checkpoint as one takes
    /// up: so all of them together write no more than the log holds.
    pub(super) fn is_worth_noting(&self) -> bool {
        let Reading { since, dead, .. } = self.reading;
        dead || (since > 0 && since >= self.sums.footprint() as u64)
    }

    pub(super) fn note(&self, batch: &mut Batch) -> Result<(), ServiceError> {
        let snapshot = self.sums.snapshot();
        let snapshot = snapshot.map_err(|_| ServiceError::Damaged { what: "transformer" })?;
        batch.put(&self.topics.service, SNAPSHOT, snapshot)?;
        for (partition, position) in (0u32..).zip(&self.reading.positions) {
            let key = [POSITION, &partition.to_be_bytes()].concat();
            batch.put(&self.topics.service, key, position.0.to_be_bytes().to_vec())?;
        }
        Ok(())
    }
}

fn beginning(bytes: &[u8]) -> &[u8] {
    bytes.get(..BEGINNING).unwrap_or(bytes)
}

/// Whose frame it is. A key that is no stream's belongs to none.
fn stream_of(record: &Record) -> StreamId {
    record.key.as_ref().try_into().map(StreamId).unwrap_or(StreamId([0; 16]))
}

/// How far the log was summed when that was last noted, by partition: a restart reads
/// on from there.
///
/// # Errors
/// [`ServiceError`] if it cannot be read.
pub fn noted_positions(store: &dyn Store, topics: &Topics) -> Result<Vec<Offset>, ServiceError> {
    (0..topics.partitions).map(|at| stored_position(store, topics, at)).collect()
}

fn stored_position(
    store: &dyn Store,
    topics: &Topics,
    partition: u32,
) -> Result<Offset, ServiceError> {
    let key = [POSITION, &partition.to_be_bytes()].concat();
    let Some(bytes) = store.get(&topics.service, &key)? else { return Ok(Offset(0)) };
    let bytes =
        bytes.as_ref().try_into().map_err(|_| ServiceError::Damaged { what: "position" })?;
    Ok(Offset(u64::from_be_bytes(bytes)))
}
