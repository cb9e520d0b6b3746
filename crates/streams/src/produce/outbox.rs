//! Durable frames that the service has not confirmed, in the order in which they were
//! made. They are ciphertext.
//!
//! | key | value |
//! | --- | --- |
//! | `upload/<number>` | frames, in the order of numbers, which never restart |
//! | `outbox` | the outbox's name at the service, and the number before its first |
//! | `next` | the number of the next upload |
//! | `sent` | the highest number that may have been sent |
//! | `reached` | the session of the last frames and its last border, if the next session names them |

use crate::wire::Upload;
use alpheus_policy::ids::StreamId;
use alpheus_time::Timestamp;
use alpheus_transport::{Batch, Error, Space, Store};
use rand_core::{CryptoRng, Rng};
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const UPLOADS: &[u8] = b"upload/";
const NAME: &[u8] = b"outbox";
const NEXT: &[u8] = b"next";
const SENT: &[u8] = b"sent";
const REACHED: &[u8] = b"reached";
/// Maximum number of waiting uploads; then adding more blocks.
const MAX_UPLOADS: u64 = 10_000;
/// Maximum bytes of frames in one upload, unless a single frame is larger.
const UPLOAD: usize = 1 << 20;
/// Numbers that are deleted in one commit.
const AT_ONCE: u64 = 1_000;

/// A record of the store that an event came from: its space and its key.
pub type Record = (Space, Vec<u8>);

/// Why frames cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
    /// The sender has ended.
    #[error("the outbox is closed because frames are no longer sent")]
    Closed,
}

/// A stream's outbox. Clones share it.
#[derive(Clone)]
pub struct Outbox(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    space: Space,
    stream: StreamId,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    name: [u8; 16],
    /// The service counts from the number after this one.
    base: u64,
    /// The next upload's number.
    next: u64,
    /// The oldest waiting upload.
    oldest: u64,
    /// The highest that may have been sent.
    sent: u64,
    closed: bool,
}

impl Outbox {
    /// Opens the outbox as it was left; also says whether it is new.
    ///
    /// # Errors
    /// The store's error.
    pub fn open(
        store: Arc<dyn Store>,
        stream: StreamId,
        rng: &mut impl CryptoRng,
    ) -> Result<(Outbox, bool), Error> {
        let space = Space::new("outbox")?;
        store.ensure_space(&space)?;
        let known = store.get(&space, NAME)?.and_then(|bytes| read_name(&bytes));
        let is_new = known.is_none();
        let (name, base) = match known {
            Some(known) => known,
            None => (named(store.as_ref(), &space, rng, 0)?, 0),
        };
        let number = |key| -> Result<Option<u64>, Error> {
            let stored = store.get(&space, key)?;
            Ok(stored.and_then(|bytes| bytes.as_ref().try_into().ok()).map(u64::from_be_bytes))
        };
        let (next, sent) = (number(NEXT)?.unwrap_or(1), number(SENT)?.unwrap_or(0));
        let first = store.scan(&space, UPLOADS, Bound::Unbounded, 1)?;
        let oldest = first.first().and_then(|(key, _)| number_of(key)).unwrap_or(next);
        let state = Mutex::new(State { name, base, next, oldest, sent, closed: false });
        let inner = Inner { store, space, stream, state, changed: Condvar::new() };
        Ok((Outbox(Arc::new(inner)), is_new))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds frames durably, in uploads of bounded size, with the session and the border that they
    /// have reached; blocks while too many wait. Records that are `done` go in the same commit.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn put(
        &self,
        frames: Vec<Vec<u8>>,
        reached: Option<(u64, Timestamp)>,
        done: &[Record],
    ) -> Result<(), OutboxError> {
        let uploads = in_uploads(frames);
        if done.is_empty() {
            return uploads
                .chunks(1)
                .try_for_each(|upload| self.put_together(upload, reached, done));
        }
        // A border in one upload ends records of events in another.
        self.put_together(&uploads, reached, done)
    }

    /// The session and border that the stored frames have reached.
    ///
    /// # Errors
    /// The store's error.
    pub fn reached(&self) -> Result<Option<(u64, Timestamp)>, Error> {
        let stored = self.0.store.get(&self.0.space, REACHED)?;
        Ok(stored.and_then(|bytes| {
            let (session, border) = bytes.split_first_chunk()?;
            let border = u64::from_be_bytes(border.try_into().ok()?);
            Some((u64::from_be_bytes(*session), Timestamp(border)))
        }))
    }

    fn put_together(
        &self,
        uploads: &[Vec<Vec<u8>>],
        reached: Option<(u64, Timestamp)>,
        done: &[Record],
    ) -> Result<(), OutboxError> {
        let mut state = self.state();
        if state.next - state.oldest >= MAX_UPLOADS && !state.closed {
            tracing::warn!(
                waiting = MAX_UPLOADS,
                "the outbox is full; no frames are accepted until the service accepts some"
            );
        }
        while state.next - state.oldest >= MAX_UPLOADS && !state.closed {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return Err(OutboxError::Closed);
        }
        let (mut batch, mut next) = (Batch::new(), state.next);
        for frames in uploads {
            let bytes = postcard::to_allocvec(frames).unwrap_or_default();
            batch.put(&self.0.space, key_of(next), bytes)?;
            next += 1;
        }
        batch.put(&self.0.space, NEXT, next.to_be_bytes().to_vec())?;
        if let Some((session, border)) = reached {
            let value = [session.to_be_bytes(), border.0.to_be_bytes()].concat();
            batch.put(&self.0.space, REACHED, value)?;
        }
        for (space, key) in done {
            batch.delete(space, key.clone())?;
        }
        self.0.store.commit(batch)?;
        state.next = next;
        drop(state);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Closes the outbox: callers that wait to add frames get an error.
    pub fn close(&self) {
        self.state().closed = true;
        self.0.changed.notify_all();
    }

    /// Whether frames are no longer sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// The oldest uploads, up to so many bytes but at least one; waits a while for one.
    /// They durably count as sent from now on.
    ///
    /// # Errors
    /// The store's error.
    pub fn oldest(&self, most: usize, wait: Duration) -> Result<OutgoingUploads, Error> {
        let mut state = self.state();
        if state.next == state.oldest {
            let waited = self.0.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let before = state.sent;
        let (mut uploads, mut bytes) = (Vec::new(), 0);
        while let Some((number, value)) = self.after(uploads.last().map(|(last, _)| *last))? {
            bytes += value.len();
            if !uploads.is_empty() && bytes > most {
                break;
            }
            let frames: Vec<Vec<u8>> = postcard::from_bytes(&value).unwrap_or_default();
            let (stream, outbox) = (self.0.stream, state.name);
            let upload = Upload { stream, outbox, number: number - state.base, frames };
            uploads.push((number, upload));
        }
        if let Some((last, _)) = uploads.last().filter(|(last, _)| *last > state.sent) {
            let mut batch = Batch::new();
            batch.put(&self.0.space, SENT, last.to_be_bytes().to_vec())?;
            self.0.store.commit(batch)?;
            state.sent = *last;
        }
        let uploads = uploads.into_iter().map(|(_, upload)| upload).collect();
        Ok(OutgoingUploads { uploads, sent_before: before.saturating_sub(state.base) })
    }

    /// The oldest upload that waits after a number.
    fn after(&self, number: Option<u64>) -> Result<Option<(u64, bytes::Bytes)>, Error> {
        let key = number.map(key_of);
        let from = key.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let found = self.0.store.scan(&self.0.space, UPLOADS, from, 1)?;
        Ok(found.into_iter().next().and_then(|(key, value)| Some((number_of(&key)?, value))))
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let state = self.state();
        state.next == state.oldest
    }

    /// Removes everything up to this number of the outbox, which has arrived.
    ///
    /// # Errors
    /// The store's error.
    pub fn arrived(&self, number: u64) -> Result<(), Error> {
        let mut state = self.state();
        let last = (number + state.base).min(state.next - 1);
        while state.oldest <= last {
            let until = last.min(state.oldest + AT_ONCE - 1);
            let mut batch = Batch::new();
            for gone in state.oldest..=until {
                batch.delete(&self.0.space, key_of(gone))?;
            }
            self.0.store.commit(batch)?;
            state.oldest = until + 1;
        }
        drop(state);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Renames the outbox because the service's state, or ours, is an older copy: the
    /// service wants a number that is not here, or has one that was never sent from here.
    ///
    /// # Errors
    /// The store's error.
    pub fn rename(&self, rng: &mut impl CryptoRng) -> Result<(), Error> {
        let mut state = self.state();
        let base = state.oldest - 1;
        state.name = named(self.0.store.as_ref(), &self.0.space, rng, base)?;
        (state.base, state.sent) = (base, base);
        Ok(())
    }
}

/// Uploads to send.
pub struct OutgoingUploads {
    /// Oldest first.
    pub uploads: Vec<Upload>,
    /// The highest number that may have been sent before.
    pub sent_before: u64,
}

/// Frames in uploads of bounded size.
fn in_uploads(frames: Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
    let (mut uploads, mut upload, mut bytes) = (Vec::new(), Vec::new(), 0);
    for frame in frames {
        if bytes + frame.len() > UPLOAD && !upload.is_empty() {
            uploads.push(std::mem::take(&mut upload));
            bytes = 0;
        }
        bytes += frame.len();
        upload.push(frame);
    }
    if !upload.is_empty() {
        uploads.push(upload);
    }
    uploads
}

/// Draws a name and stores it; nothing was sent under it yet.
fn named(
    store: &dyn Store,
    space: &Space,
    rng: &mut impl Rng,
    base: u64,
) -> Result<[u8; 16], Error> {
    let mut name = [0; 16];
    rng.fill_bytes(&mut name);
    let mut batch = Batch::new();
    batch.put(space, NAME, [&name[..], &base.to_be_bytes()].concat())?;
    batch.put(space, SENT, base.to_be_bytes().to_vec())?;
    store.commit(batch)?;
    Ok(name)
}

fn read_name(bytes: &[u8]) -> Option<([u8; 16], u64)> {
    let (name, base) = bytes.split_at_checked(16)?;
    Some((name.try_into().ok()?, u64::from_be_bytes(base.try_into().ok()?)))
}

fn key_of(number: u64) -> Vec<u8> {
    [UPLOADS, &number.to_be_bytes()].concat()
}

fn number_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(UPLOADS.len()..)?.try_into().ok()?))
}
