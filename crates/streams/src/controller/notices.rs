//! Notices about streams for the service: the last notice of each stream, and which ones
//! the service has not confirmed since it, or this host, started. So a service that was
//! restored from an older copy receives all of them again.

use super::guard::GuardError;
use super::keystore::KeyStoreError;
use crate::wire::Notice;
use alpheus_node::ledger::scan_all;
use alpheus_policy::ids::StreamId;
use alpheus_transport::{Batch, Space, Store};
use std::collections::BTreeSet;
use std::sync::Arc;

const NOTICES: &[u8] = b"notice/";

/// All notices.
pub struct Notices {
    store: Arc<dyn Store>,
    space: Space,
    pending: BTreeSet<StreamId>,
    /// Notices that the service refused, and may accept later.
    refused: BTreeSet<StreamId>,
}

impl Notices {
    /// Opens the stored notices; all of them are pending.
    ///
    /// # Errors
    /// [`GuardError`] if they cannot be read.
    pub fn open(store: Arc<dyn Store>, space: Space) -> Result<Notices, GuardError> {
        let (pending, refused) = (BTreeSet::new(), BTreeSet::new());
        let mut notices = Notices { store, space, pending, refused };
        notices.resend_all()?;
        Ok(notices)
    }

    /// Adds a stream's notice to a batch; call [`Notices::changed`] once that is durable.
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

    /// Removes a stream's notice in a batch; call [`Notices::gone`] once that is durable.
    ///
    /// # Errors
    /// [`GuardError`]; none in practice.
    pub fn unstage(&self, stream: &StreamId, batch: &mut Batch) -> Result<(), GuardError> {
        Ok(batch.delete(&self.space, key_of(stream))?)
    }

    /// A stream has no notice any more.
    pub fn gone(&mut self, stream: &StreamId) {
        self.pending.remove(stream);
        self.refused.remove(stream);
    }

    /// A stream has a new notice.
    pub fn changed(&mut self, stream: &StreamId) {
        self.pending.insert(*stream);
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

    /// Some of the pending notices.
    ///
    /// # Errors
    /// [`GuardError`] if they cannot be read.
    pub fn some(&self, most: usize) -> Result<Vec<(StreamId, Notice)>, GuardError> {
        let streams = self.pending.iter().take(most);
        let read = |stream: &StreamId| Ok(self.of(stream)?.map(|notice| (*stream, notice)));
        streams.map(read).filter_map(Result::transpose).collect()
    }

    /// The service has received this notice and accepted or refused it. A notice that has
    /// changed since stays pending.
    ///
    /// # Errors
    /// [`GuardError`] if it cannot be read.
    pub fn delivered(
        &mut self,
        stream: &StreamId,
        notice: &Notice,
        accepted: bool,
    ) -> Result<(), GuardError> {
        let sent = postcard::to_allocvec(notice).map_err(|_| KeyStoreError::Damaged)?;
        let stored = self.store.get(&self.space, &key_of(stream))?;
        if stored.is_some_and(|stored| stored.as_ref() == sent) {
            self.pending.remove(stream);
            if !accepted {
                self.refused.insert(*stream);
            }
        }
        Ok(())
    }

    /// Makes refused notices pending again.
    pub fn retry_refused(&mut self) {
        self.pending.append(&mut self.refused);
    }

    /// Makes all notices pending, because the service has restarted.
    ///
    /// # Errors
    /// [`GuardError`] if they cannot be read.
    pub fn resend_all(&mut self) -> Result<(), GuardError> {
        let id = |key: &[u8]| key.get(NOTICES.len()..)?.try_into().ok().map(StreamId);
        for (key, _) in scan_all(self.store.as_ref(), &self.space, NOTICES)? {
            self.pending.extend(id(&key));
        }
        Ok(())
    }
}

fn key_of(stream: &StreamId) -> Vec<u8> {
    [NOTICES, &stream.0].concat()
}
