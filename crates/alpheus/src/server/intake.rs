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
use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

const TAKEN: &[u8] = b"taken/";
/// An outbox and a number.
const LENGTH: usize = 24;

/// Takes frames into the log.
#[derive(Clone)]
pub struct Intake {
    store: Arc<dyn Store>,
    topics: Topics,
    busy: Arc<Busy>,
}

/// Streams of which an upload is being taken.
#[derive(Default)]
struct Busy {
    streams: Mutex<HashSet<StreamId>>,
    left: Condvar,
}

impl Intake {
    /// Into this store's log.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, topics: Topics) -> Intake {
        Intake { store, topics, busy: Arc::default() }
    }

    /// Takes uploads of streams that the device may send, in one commit. Blocks
    /// until it is durable.
    ///
    /// # Errors
    /// What the store says; nothing was taken then.
    pub fn take(&self, uploads: &[Upload]) -> Result<Vec<Received>, Error> {
        let streams: HashSet<StreamId> = uploads.iter().map(|upload| upload.stream).collect();
        self.busy.enter(&streams);
        let taken = self.take_alone(uploads);
        self.busy.leave(&streams);
        taken
    }

    fn take_alone(&self, uploads: &[Upload]) -> Result<Vec<Received>, Error> {
        let (mut batch, mut received) = (Batch::new(), Vec::with_capacity(uploads.len()));
        let mut last = std::collections::HashMap::new();
        for upload in uploads {
            let before = match last.get(&upload.stream) {
                Some(known) => *known,
                None => self.taken(&upload.stream)?,
            };
            let became = wanted(before, upload);
            if became == Some(Received::Taken) {
                received.push(Received::Taken);
                continue;
            }
            if let Some(refused) = became {
                received.push(refused);
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
fn wanted(before: Option<([u8; 16], u64)>, upload: &Upload) -> Option<Received> {
    let next = match before {
        Some((outbox, number)) if outbox == upload.outbox => number.saturating_add(1),
        // A new outbox begins anew: its device was set up again.
        _ => 1,
    };
    match upload.number.cmp(&next) {
        std::cmp::Ordering::Less => Some(Received::Taken),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(Received::Missing { next }),
    }
}

fn key_of(stream: &StreamId) -> Vec<u8> {
    [TAKEN, &stream.0].concat()
}

impl Busy {
    fn enter(&self, wanted: &HashSet<StreamId>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        while !streams.is_disjoint(wanted) {
            streams = self.left.wait(streams).unwrap_or_else(PoisonError::into_inner);
        }
        streams.extend(wanted);
    }

    fn leave(&self, taken: &HashSet<StreamId>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| !taken.contains(stream));
        self.left.notify_all();
    }
}
