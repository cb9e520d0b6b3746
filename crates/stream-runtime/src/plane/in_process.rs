//! Window sums in this process, from frames of the log.

use super::Plane;
use crate::counters::Counters;
use crate::refused_frames::RefusedFrames;
use crate::service_error::ServiceError;
use crate::storage::{Topics, bury, note_positions, read_on, stored_positions};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_encrypted_stream::coordinator::{Sums, WindowReport};
use alpheus_encrypted_stream::tick::ingest::{AuthenticityError, Ingest};
use alpheus_encrypted_stream::tick::sums::Blocks;
use alpheus_encrypted_stream::transformer::{IngestError, PlanMismatchError, Shape, Transformer};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_time::{Timestamp, Window};
use alpheus_transport::{
    Batch, FetchedRecords, LargeValue, LargeValueError, Offset, Record, Store,
};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

const SNAPSHOT: &[u8] = b"transformer/v1";
const POSITION: &[u8] = b"position/";
const DAMAGED: ServiceError = ServiceError::Damaged { what: "transformer" };
/// Records that are processed together: few enough to stay in the processor's cache.
const AT_A_TIME: usize = 64;

/// Approximate maximum bytes of dead letters in one commit.
const MAX_DEAD_BYTES: usize = 8 << 20;

/// The transformer, in this process.
pub(super) struct InProcess {
    store: Arc<dyn Store>,
    topics: Topics,
    transformer: Transformer,
    /// How far the log was read, by partition.
    positions: Vec<Offset>,
    /// What checks frames, if each tick has one.
    ingest: Option<Ingest>,
    /// The device of each stream: its certificate's digest, and its key.
    devices: HashMap<StreamId, (Digest, VerifyingKey)>,
    refused: RefusedFrames,
    /// Bytes read since the last note, which a restart reads again.
    since: u64,
    /// Whether dead letters were written since then, which a restart would write again.
    dead: bool,
}

impl InProcess {
    /// Restores positions and sums from the store.
    pub(super) fn resume(
        store: &Arc<dyn Store>,
        topics: &Topics,
        shape: Shape,
    ) -> Result<InProcess, ServiceError> {
        let transformer = match LargeValue::new(store.as_ref(), &topics.service, SNAPSHOT).read() {
            Ok(Some(bytes)) => Transformer::restore(&bytes).map_err(|_| DAMAGED)?,
            Ok(None) => Transformer::new(shape, topics.partitions),
            Err(LargeValueError::Store(error)) => return Err(error.into()),
            Err(LargeValueError::Incomplete) => return Err(DAMAGED),
        };
        let positions = noted_positions(store.as_ref(), topics)?;
        let (store, topics) = (store.clone(), topics.clone());
        Ok(InProcess {
            store,
            topics,
            transformer,
            positions,
            ingest: None,
            devices: HashMap::new(),
            refused: RefusedFrames::default(),
            since: 0,
            dead: false,
        })
    }

    /// Makes dead letters durable.
    fn keep_dead(&mut self, dead: Batch) -> Result<(), ServiceError> {
        if !dead.is_empty() {
            self.store.commit(dead)?;
            self.dead = true;
        }
        Ok(())
    }

    fn ingest_partition(
        &mut self,
        now: Timestamp,
        partition: u32,
        counters: &mut Counters,
        dead: &mut Batch,
    ) -> Result<(), ServiceError> {
        let (store, topic) = (self.store.clone(), self.topics.events.partition(partition));
        let mut position = self.positions[partition as usize];
        read_on(store.as_ref(), &topic, &mut position, |fetched| {
            self.take_frames(now, partition, fetched, counters, dead)
        })?;
        self.positions[partition as usize] = position;
        self.transformer.watermarks().caught_up(partition);
        Ok(())
    }

    fn take_frames(
        &mut self,
        now: Timestamp,
        partition: u32,
        mut fetched: FetchedRecords,
        counters: &mut Counters,
        dead: &mut Batch,
    ) -> Result<(), ServiceError> {
        let (mut records, mut refused) = (Vec::with_capacity(AT_A_TIME), Vec::new());
        loop {
            records.clear();
            records.extend(fetched.by_ref().take(AT_A_TIME));
            if records.is_empty() {
                return Ok(());
            }
            if self.transformer.shape().frames.is_events() {
                let frames =
                    records.iter().map(|record| (stream_of(record), record.value.as_ref()));
                self.transformer.handle_all(partition, frames, now, |place, taken| {
                    refused.extend(taken.err().map(|refusal| (place, refusal)));
                });
            } else {
                for (place, record) in records.iter().enumerate() {
                    let (stream, frame) = (stream_of(record), record.value.as_ref());
                    if let Err(refusal) = self.take_tick(now, partition, stream, frame) {
                        refused.push((place, refusal));
                    }
                }
            }
            let bytes = records.iter().map(|record| record.value.len() as u64).sum::<u64>();
            counters.frames += records.len() as u64;
            counters.bytes += bytes;
            self.since += bytes;
            for (place, refusal) in refused.drain(..) {
                if let Some(record) = records.get(place) {
                    self.refused.note(stream_of(record), &record.value, refusal.name());
                    self.refuse(record, &refusal, counters, dead)?;
                }
                if dead.bytes() >= MAX_DEAD_BYTES {
                    self.keep_dead(std::mem::take(dead))?;
                }
            }
        }
    }

    /// Checks a frame, and sums it.
    fn take_tick(
        &mut self,
        now: Timestamp,
        partition: u32,
        stream: StreamId,
        frame: &[u8],
    ) -> Result<(), IngestError> {
        let ingest = self.ingest.as_mut().ok_or(AuthenticityError::UnknownIngestKey)?;
        let known = self.devices.get(&stream).ok_or(AuthenticityError::UnknownDevice)?;
        let device = |digest: &Digest| (known.0 == *digest).then_some(known.1);
        let opening = |session| self.transformer.opening(&stream, session);
        let frame = ingest.check(stream, frame, device, opening)?;
        self.transformer.handle_tick(partition, &frame, now)?;
        ingest.keep(frame);
        Ok(())
    }

    /// Counts a refused frame and adds it to the dead letters.
    fn refuse(
        &self,
        record: &Record,
        refusal: &IngestError,
        counters: &mut Counters,
        dead: &mut Batch,
    ) -> Result<(), ServiceError> {
        bury(dead, &self.topics.refused, "reason", record, &refusal.to_string())?;
        *counters.refused_frames.entry(refusal.name().to_owned()).or_default() += 1;
        Ok(())
    }
}

impl Sums for InProcess {
    fn sum(&self, plan: &PlanId, window: Window, streams: &[u32]) -> Option<Vec<u64>> {
        self.transformer.sum(plan, window, streams).ok()
    }
}

impl Plane for InProcess {
    fn prove_with(&mut self, blocks: Blocks) {
        self.transformer.prove_with(blocks);
    }

    fn register(&mut self, plan: &Plan) -> Result<(), ServiceError> {
        match self.transformer.register(plan) {
            // A restored transformer runs it already.
            Ok(_) | Err(PlanMismatchError::Running) => Ok(()),
            Err(mismatch) => Err(mismatch.into()),
        }
    }

    fn unregister(&mut self, plan: &PlanId) {
        self.transformer.unregister(plan);
    }

    fn keep_only(&mut self, plans: &BTreeSet<PlanId>) {
        self.transformer.keep_only(plans);
    }

    fn epochs(&self) -> Option<&Transformer> {
        Some(&self.transformer)
    }

    fn epochs_mut(&mut self) -> Option<&mut Transformer> {
        Some(&mut self.transformer)
    }

    fn admit(&mut self, stream: StreamId) {
        self.transformer.admit(stream);
    }

    fn check_with(&mut self, ingest: Ingest) {
        self.ingest = Some(ingest);
    }

    fn admit_device(
        &mut self,
        stream: StreamId,
        certificate: Digest,
        key: VerifyingKey,
    ) -> Result<(), ServiceError> {
        self.devices.insert(stream, (certificate, key));
        Ok(())
    }

    /// Without a device none of its frames counts, nor those of a running session.
    fn dismiss_device(&mut self, stream: &StreamId) -> Result<(), ServiceError> {
        self.devices.remove(stream);
        if let Some(ingest) = &mut self.ingest {
            ingest.forget(stream);
        }
        Ok(())
    }

    fn revoke_ingest(&mut self, revoked: &BTreeSet<Digest>) {
        if let Some(ingest) = &mut self.ingest {
            ingest.revoke(|digest| revoked.contains(digest));
        }
    }

    fn refused(&self) -> RefusedFrames {
        self.refused.clone()
    }

    fn seal(&mut self, end: Timestamp) {
        self.transformer.watermarks().seal(end);
    }

    fn watermark(&self) -> Timestamp {
        self.transformer.watermark()
    }

    fn last_entry(&self) -> Option<Timestamp> {
        self.transformer.last_entry()
    }

    fn wait_for_streams(&mut self, since: Timestamp, until: Timestamp) -> usize {
        self.transformer.wait_for_streams(since, until)
    }

    fn absent_streams(&mut self) -> usize {
        self.transformer.absent_streams()
    }

    fn stop_waiting(&mut self) {
        self.transformer.stop_waiting();
    }

    fn ingest(&mut self, now: Timestamp, counters: &mut Counters) -> Result<(), ServiceError> {
        let mut dead = Batch::new();
        for partition in 0..self.topics.partitions {
            self.ingest_partition(now, partition, counters, &mut dead)?;
        }
        self.keep_dead(dead)
    }

    fn due(&self, plan: &PlanId, idle: Timestamp) -> Option<Window> {
        self.transformer
            .closable_window(plan)
            .or_else(|| self.transformer.closable_window_by(plan, idle))
    }

    fn close(&mut self, plan: &PlanId, window: Window) -> Option<WindowReport> {
        // The report comes once: `due` named the next window of a plan that runs.
        // Controllers know how many missing ticks each owner tolerates.
        self.transformer.close(plan, window, u64::MAX).ok().map(WindowReport::from)
    }

    fn unfinished(&self, plan: &PlanId) -> Vec<WindowReport> {
        let reports = self.transformer.unfinished(plan).into_iter();
        reports.map(WindowReport::from).collect()
    }

    fn finish(&mut self, plan: &PlanId, window: Window) {
        self.transformer.finish(plan, window);
    }

    /// Notes together write no more than the log holds.
    fn is_worth_noting(&self) -> bool {
        self.dead || (self.since > 0 && self.since >= self.transformer.footprint() as u64)
    }

    fn note(&self, batch: &mut Batch) -> Result<(), ServiceError> {
        // As large as streams are many, and so larger than a batch may be.
        let snapshot = LargeValue::new(self.store.as_ref(), &self.topics.service, SNAPSHOT);
        snapshot.write(batch, |parts| self.transformer.snapshot(parts).map_err(|_| DAMAGED))?;
        note_positions(batch, &self.topics, POSITION, &self.positions)
    }

    fn noted(&mut self) {
        (self.since, self.dead) = (0, false);
    }
}

/// The stream of a frame. An invalid key maps to a stream that does not exist.
fn stream_of(record: &Record) -> StreamId {
    record.key.as_ref().try_into().map(StreamId).unwrap_or(StreamId([0; 16]))
}

/// How far the log was summed at the last note, by partition: a restart continues there.
///
/// # Errors
/// [`ServiceError`] if it cannot be read.
pub fn noted_positions(store: &dyn Store, topics: &Topics) -> Result<Vec<Offset>, ServiceError> {
    let noted = stored_positions(store, topics, POSITION, topics.partitions)?;
    Ok(noted.into_iter().map(|noted| noted.unwrap_or(Offset(0))).collect())
}
