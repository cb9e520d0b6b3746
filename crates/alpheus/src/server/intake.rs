//! Frames of devices on their way into the log, each upload once.
//!
//! A device sends an upload again until it hears that it is durable. What was
//! taken last of each stream's outbox stands in the store, in the same commit as
//! the frames; so an upload that was taken before a crash, and whose answer was
//! lost, is not taken twice.

use crate::network::wire::{Received, Upload};
use crate::runtime::storage::{Topics, device_partition};
use alpheus_encrypted_stream::frame::FrameView;
use alpheus_policy::ids::StreamId;
use alpheus_transport::{Batch, Error, NewRecord, Store};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinError;

const TAKEN: &[u8] = b"taken/";
/// An outbox and a number.
const LENGTH: usize = 24;

/// Takes frames into the log.
#[derive(Clone)]
pub struct Intake {
    store: Arc<dyn Store>,
    topics: Topics,
    busy: Arc<Mutex<HashMap<StreamId, Arc<AsyncMutex<()>>>>>,
}

impl Intake {
    /// Into this store's log.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, topics: Topics) -> Intake {
        Intake { store, topics, busy: Arc::default() }
    }

    /// Takes uploads of streams that the device may send, in one commit, once
    /// nobody else's upload of these streams is being taken. Waiting for that
    /// holds no thread.
    ///
    /// # Errors
    /// What the store says; nothing was taken then. The outer error: a panic.
    pub async fn take(
        &self,
        uploads: Vec<Upload>,
    ) -> Result<Result<Vec<Received>, Error>, JoinError> {
        // In one order, so that no two wait for each other.
        let streams: BTreeSet<StreamId> = uploads.iter().map(|upload| upload.stream).collect();
        let mut alone = Vec::with_capacity(streams.len());
        for stream in &streams {
            alone.push(self.lock_of(stream).lock_owned().await);
        }
        let intake = self.clone();
        // The locks go with the work, which goes on should whoever asked go away.
        let taken = tokio::task::spawn_blocking(move || {
            let taken = intake.take_alone(&uploads);
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

    fn take_alone(&self, uploads: &[Upload]) -> Result<Vec<Received>, Error> {
        let (mut batch, mut received) = (Batch::new(), Vec::with_capacity(uploads.len()));
        let mut last = HashMap::new();
        let mut repeats = BTreeSet::new();
        for upload in uploads {
            let before = match last.get(&upload.stream) {
                Some(known) => *known,
                None => self.taken(&upload.stream)?,
            };
            // Whoever repeats itself may be an older copy, which then names anew all
            // that it has: nothing of the same request is taken under the old name.
            let repeated = repeats.contains(&upload.stream);
            if let Some(not_wanted) = not_wanted(before, repeated, upload) {
                if matches!(not_wanted, Received::Before { .. }) {
                    repeats.insert(upload.stream);
                }
                received.push(not_wanted);
                continue;
            }
            received.push(self.stage(upload, &mut batch)?);
            if received.last() == Some(&Received::Taken) {
                last.insert(upload.stream, Some((upload.outbox, upload.number)));
            }
        }
        self.store.commit(batch)?;
        Ok(received)
    }

    fn stage(&self, upload: &Upload, batch: &mut Batch) -> Result<Received, Error> {
        let times: Option<Vec<u64>> =
            upload.frames.iter().map(|frame| Some(FrameView::parse(frame).ok()?.t().0)).collect();
        let Some(times) = times else { return Ok(Received::Malformed) };
        let partition = device_partition(&self.topics, &upload.stream.0);
        for (frame, timestamp) in upload.frames.iter().zip(times) {
            let record =
                NewRecord { key: &upload.stream.0, value: frame, timestamp, ..Default::default() };
            batch.append(&partition, &record)?;
        }
        let value = [&upload.outbox[..], &upload.number.to_be_bytes()].concat();
        batch.put(&self.topics.service, key_of(&upload.stream), value)?;
        Ok(Received::Taken)
    }

    /// The last upload that was taken of a stream.
    fn taken(&self, stream: &StreamId) -> Result<Option<([u8; 16], u64)>, Error> {
        let stored = self.store.get(&self.topics.service, &key_of(stream))?;
        Ok(stored.and_then(|bytes| {
            let bytes: &[u8; LENGTH] = bytes.as_ref().try_into().ok()?;
            let (outbox, number) = bytes.split_at(16);
            Some((outbox.try_into().ok()?, u64::from_be_bytes(number.try_into().ok()?)))
        }))
    }
}

/// What becomes of an upload without looking at its frames; none if they are wanted.
pub(crate) fn not_wanted(
    before: Option<([u8; 16], u64)>,
    repeated: bool,
    upload: &Upload,
) -> Option<Received> {
    let last = match before {
        Some((outbox, number)) if outbox == upload.outbox => number,
        // A new outbox begins anew: its device was set up again.
        _ => 0,
    };
    let next = last.saturating_add(1);
    match upload.number.cmp(&next) {
        std::cmp::Ordering::Less => Some(Received::Before { last }),
        std::cmp::Ordering::Equal if !repeated => None,
        _ => Some(Received::Missing { next }),
    }
}

fn key_of(stream: &StreamId) -> Vec<u8> {
    [TAKEN, &stream.0].concat()
}
