//! An attribute of a stream is in at most one running plan (Zeph §4.3).
//!
//! The results of two plans over the same data could be subtracted from each other.
//! The service keeps these locks so that it never plans what controllers would
//! refuse. Controllers keep their own.

use crate::ids::{PlanId, StreamId};
use crate::plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which plan holds which attribute of which stream. Serialisable, so that it can
/// be stored with the plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locks {
    held: BTreeMap<(StreamId, u16), PlanId>,
}

/// Another plan holds the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "attribute {attribute} of stream {stream} is in the running plan {holder}; drop that query first"
)]
pub struct LockError {
    /// The stream.
    pub stream: StreamId,
    /// The attribute.
    pub attribute: u16,
    /// The plan.
    pub holder: PlanId,
}

impl Locks {
    /// The first of these attributes of the stream that a plan holds.
    #[must_use]
    pub fn holder(&self, stream: StreamId, attributes: &[u16]) -> Option<LockError> {
        attributes.iter().find_map(|attribute| {
            let holder = *self.held.get(&(stream, *attribute))?;
            Some(LockError { stream, attribute: *attribute, holder })
        })
    }

    /// Locks everything that a plan releases, or nothing. Locking the same plan again is
    /// allowed.
    ///
    /// # Errors
    /// If another plan holds an attribute: the first one.
    pub fn take(&mut self, plan: &Plan) -> Result<(), LockError> {
        let id = plan.id();
        for stream in &plan.streams {
            if let Some(locked) =
                self.holder(stream.stream, &plan.attributes).filter(|held| held.holder != id)
            {
                return Err(locked);
            }
        }
        let pairs = plan
            .streams
            .iter()
            .flat_map(|stream| plan.attributes.iter().map(|a| (stream.stream, *a)));
        self.held.extend(pairs.map(|pair| (pair, id)));
        Ok(())
    }

    /// Frees everything that a plan holds, once it will release nothing more.
    pub fn free(&mut self, plan: &PlanId) {
        self.held.retain(|_, holder| holder != plan);
    }

    /// The number of attributes held, over all streams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}
