//! Frames that are not known to have arrived, durable, in the order in which
//! they were made. They are ciphertext.

use crate::network::wire::Upload;
use alpheus_policy::ids::StreamId;
use alpheus_transport::{Batch, Error, Space, Store};
use rand_core::{CryptoRng, Rng};
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const WAITING: &[u8] = b"upload/";
const NAME: &[u8] = b"outbox";
const NEXT: &[u8] = b"next";
/// Uploads that may wait; then whoever makes more waits.
const MOST: u64 = 10_000;

/// A stream's outbox. Clones are one.
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
    /// The next upload's number.
    next: u64,
    /// The oldest that waits.
    oldest: u64,
}

impl Outbox {
    /// The outbox as it was left; whether it is new.
    ///
    /// # Errors
    /// What the store says.
    pub fn open(
        store: Arc<dyn Store>,
        stream: StreamId,
        rng: &mut impl CryptoRng,
    ) -> Result<(Outbox, bool), Error> {
        let space = Space::new("outbox")?;
        store.ensure_space(&space)?;
        let name = store.get(&space, NAME)?.and_then(|bytes| bytes.as_ref().try_into().ok());
        let is_new = name.is_none();
        let name = match name {
            Some(name) => name,
            None => named(store.as_ref(), &space, rng)?,
        };
        let next = store.get(&space, NEXT)?.and_then(|bytes| bytes.as_ref().try_into().ok());
        let next = next.map_or(1, u64::from_be_bytes);
        let first = store.scan(&space, WAITING, Bound::Unbounded, 1)?;
        let oldest = first.first().and_then(|(key, _)| number_of(key)).unwrap_or(next);
        let state = Mutex::new(State { name, next, oldest });
        let inner = Inner { store, space, stream, state, changed: Condvar::new() };
        Ok((Outbox(Arc::new(inner)), is_new))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts frames in as one upload, durably; waits while too many are there.
    ///
    /// # Errors
    /// What the store says.
    pub fn put(&self, frames: Vec<Vec<u8>>) -> Result<(), Error> {
        let mut state = self.state();
        while state.next - state.oldest >= MOST {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let upload =
            Upload { stream: self.0.stream, outbox: state.name, number: state.next, frames };
        let mut batch = Batch::new();
        let bytes = postcard::to_allocvec(&upload).unwrap_or_default();
        batch.put(&self.0.space, key_of(state.next), bytes)?;
        batch.put(&self.0.space, NEXT, (state.next + 1).to_be_bytes().to_vec())?;
        self.0.store.commit(batch)?;
        state.next += 1;
        drop(state);
        self.0.changed.notify_all();
        Ok(())
    }

    /// The oldest uploads, up to `most`; waits a while for one.
    ///
    /// # Errors
    /// What the store says.
    pub fn oldest(&self, most: usize, wait: Duration) -> Result<Vec<Upload>, Error> {
        let state = self.state();
        if state.next == state.oldest {
            let waited = self.0.changed.wait_timeout(state, wait);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        } else {
            drop(state);
        }
        let entries = self.0.store.scan(&self.0.space, WAITING, Bound::Unbounded, most)?;
        Ok(entries.iter().filter_map(|(_, value)| postcard::from_bytes(value).ok()).collect())
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let state = self.state();
        state.next == state.oldest
    }

    /// Everything up to this number has arrived.
    ///
    /// # Errors
    /// What the store says.
    pub fn arrived(&self, number: u64) -> Result<(), Error> {
        let mut state = self.state();
        let mut batch = Batch::new();
        for gone in state.oldest..=number {
            batch.delete(&self.0.space, key_of(gone))?;
        }
        self.0.store.commit(batch)?;
        state.oldest = state.oldest.max(number + 1);
        drop(state);
        self.0.changed.notify_all();
        Ok(())
    }

    /// The service counts from a number that is not here: its state, or ours, is
    /// an older copy. What waits goes into a new outbox.
    ///
    /// # Errors
    /// What the store says.
    pub fn begin_anew(&self, rng: &mut impl CryptoRng) -> Result<(), Error> {
        let mut state = self.state();
        let waiting = self.0.store.scan(&self.0.space, WAITING, Bound::Unbounded, usize::MAX)?;
        let mut batch = Batch::new();
        let mut name = [0; 16];
        rng.fill_bytes(&mut name);
        for (key, _) in &waiting {
            batch.delete(&self.0.space, key.to_vec())?;
        }
        let mut next = 1;
        for (_, value) in &waiting {
            let Ok(mut upload) = postcard::from_bytes::<Upload>(value) else { continue };
            (upload.outbox, upload.number) = (name, next);
            let bytes = postcard::to_allocvec(&upload).unwrap_or_default();
            batch.put(&self.0.space, key_of(next), bytes)?;
            next += 1;
        }
        batch.put(&self.0.space, NAME, name.to_vec())?;
        batch.put(&self.0.space, NEXT, next.to_be_bytes().to_vec())?;
        self.0.store.commit(batch)?;
        *state = State { name, next, oldest: 1 };
        Ok(())
    }
}

fn named(store: &dyn Store, space: &Space, rng: &mut impl Rng) -> Result<[u8; 16], Error> {
    let mut name = [0; 16];
    rng.fill_bytes(&mut name);
    let mut batch = Batch::new();
    batch.put(space, NAME, name.to_vec())?;
    store.commit(batch)?;
    Ok(name)
}

fn key_of(number: u64) -> Vec<u8> {
    [WAITING, &number.to_be_bytes()].concat()
}

fn number_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(WAITING.len()..)?.try_into().ok()?))
}
