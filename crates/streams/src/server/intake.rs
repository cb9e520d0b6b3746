//! Takes frames of devices into the log, each upload once.
//!
//! A device repeats an upload until the service confirms it. The last number taken from
//! each stream's outbox is stored in the same commit as the frames. So an upload whose
//! answer was lost in a crash is not taken twice.

use super::lost_state::LostState;
use super::service_clock::DeviceTimes;
use crate::quota::{Quota, QuotaError};
use crate::wire::{Upload, UploadStatus};
use alpheus_encrypted_stream::frame::FrameView;
use alpheus_encrypted_stream::tick::frame::TickFrame;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_node::clock;
use alpheus_policy::ids::StreamId;
use alpheus_stream_runtime::storage::{Topics, device_partition};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, Error, NewRecord, Store};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinError;

const TAKEN: &[u8] = b"taken/";
/// An outbox and a number.
const LENGTH: usize = 24;

/// Why uploads are not taken.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
    /// One of their streams has sent too much.
    #[error(transparent)]
    Quota(#[from] QuotaError),
}

/// Takes frames into the log.
#[derive(Clone)]
pub struct Intake {
    store: Arc<dyn Store>,
    topics: Topics,
    /// The tick of a schema with one frame a tick.
    tick: Option<Span>,
    /// Bytes of the longest frame that is taken.
    longest: usize,
    quota: Option<Quota>,
    busy: Arc<Mutex<HashMap<StreamId, Arc<AsyncMutex<()>>>>>,
    lost: LostState,
    devices: DeviceTimes,
    /// Streams of which an upload was malformed, so that the next one has no predecessor.
    malformed: Arc<Mutex<HashSet<StreamId>>>,
}

impl Intake {
    /// Into this store's log.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, topics: Topics) -> Intake {
        Intake {
            store,
            topics,
            tick: None,
            longest: usize::MAX,
            quota: None,
            busy: Arc::default(),
            lost: LostState::default(),
            devices: DeviceTimes::default(),
            malformed: Arc::default(),
        }
    }

    /// The same for streams of this shape: a frame that is longer than theirs can be is malformed.
    #[must_use]
    pub fn for_shape(self, shape: &Shape) -> Intake {
        let tick = (!shape.frames.is_events()).then_some(shape.tick);
        Intake { tick, longest: shape.longest_frame(), ..self }
    }

    /// The same, which takes so much of a stream in a day.
    #[must_use]
    pub fn with_quota(self, quota: Quota) -> Intake {
        Intake { quota: Some(quota), ..self }
    }

    /// The same, which notes signs of a lost state and devices' times here.
    #[must_use]
    pub fn with_signs(self, lost: LostState, devices: DeviceTimes) -> Intake {
        Intake { lost, devices, ..self }
    }

    /// Takes uploads of streams that the device of this name may send, in one commit. It first waits
    /// for other uploads of these streams, without blocking a thread.
    ///
    /// # Errors
    /// [`IntakeError`]; nothing was taken then. The outer error is a panic.
    pub async fn take(
        &self,
        device: &str,
        uploads: Vec<Upload>,
    ) -> Result<Result<Vec<UploadStatus>, IntakeError>, JoinError> {
        // Always in the same order, so that there is no deadlock.
        let streams: BTreeSet<StreamId> = uploads.iter().map(|upload| upload.stream).collect();
        let mut alone = Vec::with_capacity(streams.len());
        for stream in &streams {
            alone.push(self.lock_of(stream).lock_owned().await);
        }
        let (intake, device) = (self.clone(), device.to_owned());
        // The locks move with the work, which continues even if the caller goes away.
        let taken = tokio::task::spawn_blocking(move || {
            let taken = intake.take_alone(&device, &uploads);
            drop(alone);
            intake.forget(&streams);
            taken
        });
        taken.await
    }

    fn busy(&self) -> MutexGuard<'_, HashMap<StreamId, Arc<AsyncMutex<()>>>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_of(&self, stream: &StreamId) -> Arc<AsyncMutex<()>> {
        Arc::clone(self.busy().entry(*stream).or_default())
    }

    /// Drops the locks that nobody holds or waits for.
    fn forget(&self, streams: &BTreeSet<StreamId>) {
        let mut busy = self.busy();
        for stream in streams {
            if busy.get(stream).is_some_and(|lock| Arc::strong_count(lock) == 1) {
                busy.remove(stream);
            }
        }
    }

    fn take_alone(
        &self,
        device: &str,
        uploads: &[Upload],
    ) -> Result<Vec<UploadStatus>, IntakeError> {
        let (mut batch, mut received) = (Batch::new(), Vec::with_capacity(uploads.len()));
        let (mut last, mut sizes) = (HashMap::new(), HashMap::new());
        let (mut seen, mut repeats) = (BTreeSet::new(), BTreeSet::new());
        for upload in uploads {
            // What comes after an upload that was not taken in the same request continues it, and says
            // nothing of what this state has.
            let first = seen.insert(upload.stream);
            let before = match last.get(&upload.stream) {
                Some(known) => *known,
                None => self.taken(&upload.stream)?,
            };
            // A device that repeats uploads may be an older copy, which then renames its
            // outbox: nothing more of this request is taken under the old name.
            let repeated = repeats.contains(&upload.stream);
            if let Some(not_wanted) = not_wanted(before, repeated, upload) {
                match not_wanted {
                    UploadStatus::Before { .. } => {
                        repeats.insert(upload.stream);
                    }
                    UploadStatus::Missing { next } if first && next < upload.number => {
                        self.note_lost(&upload.stream);
                    }
                    _ => {}
                }
                received.push(not_wanted);
                continue;
            }
            received.push(self.stage(device, upload, &mut batch)?);
            match received.last() {
                Some(UploadStatus::Taken) => {
                    last.insert(upload.stream, Some((upload.outbox, upload.number)));
                    *sizes.entry(upload.stream).or_default() += Quota::size_of(&upload.frames);
                }
                Some(UploadStatus::Malformed) => {
                    self.malformed().insert(upload.stream);
                }
                _ => {}
            }
        }
        self.within_quota(&sizes)?;
        self.store.commit(batch)?;
        self.note_sizes(&sizes);
        Ok(received)
    }

    /// Whether so many bytes of streams may be taken. Nothing else of them is, meanwhile.
    fn within_quota(&self, sizes: &HashMap<StreamId, u64>) -> Result<(), QuotaError> {
        let Some(quota) = &self.quota else { return Ok(()) };
        sizes.iter().try_for_each(|(stream, bytes)| quota.check(stream, *bytes, clock::steady()))
    }

    fn note_sizes(&self, sizes: &HashMap<StreamId, u64>) {
        let Some(quota) = &self.quota else { return };
        sizes.iter().for_each(|(stream, bytes)| quota.note(stream, *bytes, clock::steady()));
    }

    fn malformed(&self) -> MutexGuard<'_, HashSet<StreamId>> {
        self.malformed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A device continues beyond what is known here of its outbox.
    fn note_lost(&self, stream: &StreamId) {
        if !self.malformed().contains(stream) {
            self.lost.note_stream(*stream);
        }
    }

    fn stage(
        &self,
        device: &str,
        upload: &Upload,
        batch: &mut Batch,
    ) -> Result<UploadStatus, Error> {
        let times: Option<Vec<u64>> =
            upload.frames.iter().map(|frame| Some(self.time_of(frame)?.0)).collect();
        let Some(times) = times else { return Ok(UploadStatus::Malformed) };
        if let Some(latest) = times.iter().max() {
            self.devices.note(device, Timestamp(*latest), clock::steady());
        }
        let partition = device_partition(&self.topics, &upload.stream.0);
        for (frame, timestamp) in upload.frames.iter().zip(times) {
            let record =
                NewRecord { key: &upload.stream.0, value: frame, timestamp, ..Default::default() };
            batch.append(&partition, &record)?;
        }
        let value = [&upload.outbox[..], &upload.number.to_be_bytes()].concat();
        batch.put(&self.topics.service, key_of(&upload.stream), value)?;
        Ok(UploadStatus::Taken)
    }

    /// The time of a frame; none if it is malformed. Whether it is its device's is checked where
    /// it is summed.
    fn time_of(&self, frame: &[u8]) -> Option<Timestamp> {
        if frame.len() > self.longest {
            return None;
        }
        match self.tick {
            None => FrameView::parse(frame).ok().map(|frame| frame.t()),
            Some(tick) => match TickFrame::parse(frame, tick).ok()? {
                TickFrame::Opening(opening) => Some(opening.head.at),
                TickFrame::Tick(claim, _) | TickFrame::Gap(claim) => Some(claim.to),
            },
        }
    }

    /// The last upload taken of a stream.
    fn taken(&self, stream: &StreamId) -> Result<Option<([u8; 16], u64)>, Error> {
        let stored = self.store.get(&self.topics.service, &key_of(stream))?;
        Ok(stored.and_then(|bytes| {
            let bytes: &[u8; LENGTH] = bytes.as_ref().try_into().ok()?;
            let (outbox, number) = bytes.split_at(16);
            Some((outbox.try_into().ok()?, u64::from_be_bytes(number.try_into().ok()?)))
        }))
    }
}

/// The outcome of an upload by its number alone; none if its frames are needed.
pub(crate) fn not_wanted(
    before: Option<([u8; 16], u64)>,
    repeated: bool,
    upload: &Upload,
) -> Option<UploadStatus> {
    let last = match before {
        Some((outbox, number)) if outbox == upload.outbox => number,
        // A new outbox starts at 1: its device was set up again.
        _ => 0,
    };
    let next = last.saturating_add(1);
    match upload.number.cmp(&next) {
        std::cmp::Ordering::Less => Some(UploadStatus::Before { last }),
        std::cmp::Ordering::Equal if !repeated => None,
        _ => Some(UploadStatus::Missing { next }),
    }
}

fn key_of(stream: &StreamId) -> Vec<u8> {
    [TAKEN, &stream.0].concat()
}

#[cfg(test)]
mod tests;
