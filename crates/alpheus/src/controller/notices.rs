//! What the service must know of streams: each stream's last notice, for good,
//! and which of them it has not confirmed since it, or this host, was started. A
//! service that was restored from an older copy so hears of everything again.

use super::guard::GuardError;
use super::keystore::KeyStoreError;
use crate::network::wire::Notice;
use crate::runtime::storage::scan_all;
use alpheus_policy::ids::StreamId;
use alpheus_transport::{Batch, Space, Store};
use std::collections::BTreeSet;
use std::sync::Arc;

const NOTICES: &[u8] = b"notice/";

/// All notices.
pub struct Notices {
    store: Arc<dyn Store>,
    space: Space,
    untold: BTreeSet<StreamId>,
    /// What the service does not take, and may later.
    refused: BTreeSet<StreamId>,
}

impl Notices {
    /// The notices as they were left; none of them counts as told.
    ///
    /// # Errors
    /// [`GuardError`] if they cannot be read.
    pub fn open(store: Arc<dyn Store>, space: Space) -> Result<Notices, GuardError> {
        let (untold, refused) = (BTreeSet::new(), BTreeSet::new());
        let mut notices = Notices { store, space, untold, refused };
        notices.tell_all()?;
        Ok(notices)
    }

    /// Adds a stream's notice to a batch; [`Notices::changed`] when that is durable.
    ///
    /// # Errors
    /// [`GuardError`]; none in practice.
    pub fn stage(
        &self,
        stream: &StreamId,
        notice: &Notice,
        batch: &mut Batch,
    ) -> Result<(), GuardError> {
        let value = postcard::to_allocvec(notice).map_err(|_| KeyStoreError::Damaged)?;
        Ok(batch.put(&self.space, key_of(stream), value)?)
    }

    /// A stream's notice is another now.
    pub fn changed(&mut self, stream: &StreamId) {
        self.untold.insert(*stream);
        self.refused.remove(stream);
    }

    /// A stream's notice.
    ///
    /// # Errors
    /// [`GuardError`] if it cannot be read.
    pub fn of(&self, stream: &StreamId) -> Result<Option<Notice>, GuardError> {
        let Some(value) = self.store.get(&self.space, &key_of(stream))? else { return Ok(None) };
        Ok(Some(postcard::from_bytes(&value).map_err(|_| KeyStoreError::Damaged)?))
    }

    /// Some that were not told.
    ///
    /// # Errors
    /// [`GuardError`] if they cannot be read.
    pub fn some(&self, most: usize) -> Result<Vec<(StreamId, Notice)>, GuardError> {
        let streams = self.untold.iter().take(most);
        let read = |stream: &StreamId| Ok(self.of(stream)?.map(|notice| (*stream, notice)));
        streams.map(read).filter_map(Result::transpose).collect()
    }

    /// The service has heard this, and takes it or not. What has changed since
    /// stays untold.
    ///
    /// # Errors
    /// [`GuardError`] if it cannot be read.
    pub fn told(
        &mut self,
        stream: &StreamId,
        notice: &Notice,
        taken: bool,
    ) -> Result<(), GuardError> {
        let told = postcard::to_allocvec(notice).map_err(|_| KeyStoreError::Damaged)?;
        let stored = self.store.get(&self.space, &key_of(stream))?;
        if stored.is_some_and(|stored| stored.as_ref() == told) {
            self.untold.remove(stream);
            if !taken {
                self.refused.insert(*stream);
            }
        }
        Ok(())
    }

    /// Tells again what was refused.
    pub fn again(&mut self) {
        self.untold.append(&mut self.refused);
    }

    /// Tells everything again: the service has begun another life.
    ///
    /// # Errors
    /// [`GuardError`] if they cannot be read.
    pub fn tell_all(&mut self) -> Result<(), GuardError> {
        let id = |key: &[u8]| key.get(NOTICES.len()..)?.try_into().ok().map(StreamId);
        for (key, _) in scan_all(self.store.as_ref(), &self.space, NOTICES)? {
            self.untold.extend(id(&key));
        }
        Ok(())
    }
}

fn key_of(stream: &StreamId) -> Vec<u8> {
    [NOTICES, &stream.0].concat()
}
