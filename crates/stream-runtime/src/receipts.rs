//! Receipts of verified and bounded windows in the log: in parts, each small enough for a record, in the commit
//! of their rows.

use super::service_error::ServiceError;
use super::storage::Topics;
use alpheus_encrypted_stream::receipt::{ReceiptFormatError, WindowReceipt};
use alpheus_policy::ids::PlanId;
use alpheus_time::Window;
use alpheus_transport::{Batch, Error, Limits, NewRecord, Offset, Store};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Bytes of a part, at most.
const PART_BYTES: usize = 1 << 20;
/// Bytes of receipts in a page after which no further part is added.
const PAGE_BYTES: usize = 8 << 20;

/// Parts in a page, at most.
const PAGE_PARTS: usize = 1024;

/// A part of a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptPart {
    /// The query.
    pub query: String,
    /// Its plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// Its place among the receipt's parts, from 0.
    pub part: u32,
    /// How many there are.
    pub parts: u32,
    /// Bytes of the receipt.
    pub bytes: Vec<u8>,
}

/// A receipt that goes into the commit of its row.
pub(super) struct NewReceipt {
    pub(super) query: String,
    pub(super) plan: PlanId,
    pub(super) window: Window,
    pub(super) bytes: Vec<u8>,
}

impl NewReceipt {
    /// Adds it to a batch.
    pub(super) fn add_to(&self, batch: &mut Batch, topics: &Topics) -> Result<(), ServiceError> {
        let chunks: Vec<&[u8]> = self.bytes.chunks(PART_BYTES).collect();
        let parts = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
        for (part, bytes) in (0_u32..).zip(chunks) {
            let (query, bytes) = (self.query.clone(), bytes.to_vec());
            let (plan, window) = (self.plan, self.window);
            let stored = ReceiptPart { query, plan, window, part, parts, bytes };
            let value = postcard::to_allocvec(&stored)
                .map_err(|_| ServiceError::Damaged { what: "receipt" })?;
            let timestamp = window.end.0 / 1000;
            let record = NewRecord { value: &value, timestamp, ..Default::default() };
            batch.append(&topics.receipts.partition(0), &record)?;
        }
        Ok(())
    }
}

/// Parts of a query's receipts from an offset on, and where to continue.
///
/// # Errors
/// The store's error. Parts that cannot be read are skipped: their receipts are lost, and rows
/// without one are refused.
pub fn page(
    store: &dyn Store,
    topics: &Topics,
    query: &str,
    after: u64,
) -> Result<(Vec<ReceiptPart>, u64), Error> {
    let (partition, mut parts, mut bytes) = (topics.receipts.partition(0), Vec::new(), 0);
    // Older ones are deleted.
    let mut position = Offset(after).max(store.bounds(&partition)?.start);
    loop {
        let fetched = store.read(&partition, position, Limits::default())?;
        let end = fetched.next_offset();
        if end == position {
            return Ok((parts, position.0));
        }
        for record in fetched {
            if bytes >= PAGE_BYTES || parts.len() >= PAGE_PARTS {
                return Ok((parts, position.0));
            }
            position = Offset(record.offset.0.saturating_add(1));
            let part = postcard::from_bytes::<ReceiptPart>(&record.value).ok();
            if let Some(part) = part.filter(|part| part.query == query) {
                bytes += part.bytes.len();
                parts.push(part);
            }
        }
        position = end;
    }
}

/// Receipts that are put together from their parts.
#[derive(Default)]
pub struct ReceiptParts {
    under_way: HashMap<(PlanId, Window), Vec<Option<Vec<u8>>>>,
}

/// Most parts of a receipt that are put together.
const MAX_PARTS: u32 = 512;

/// The receipt of a plan's window, or why it cannot be read.
pub type ReadReceipt = (PlanId, Window, Result<WindowReceipt, ReceiptFormatError>);

impl ReceiptParts {
    /// Takes a part; returns the receipt once all of its parts have come.
    pub fn take(&mut self, part: ReceiptPart) -> Option<ReadReceipt> {
        let ReceiptPart { plan, window, part, parts, bytes, .. } = part;
        if parts == 0 || parts > MAX_PARTS || part >= parts {
            return Some((plan, window, Err(ReceiptFormatError::Malformed)));
        }
        let places = self.under_way.entry((plan, window)).or_default();
        if places.len() != parts as usize {
            *places = vec![None; parts as usize];
        }
        let place = places.get_mut(part as usize)?;
        *place = Some(bytes);
        if places.iter().any(Option::is_none) {
            return None;
        }
        let whole = self.under_way.remove(&(plan, window))?;
        let bytes: Vec<u8> = whole.into_iter().flatten().flatten().collect();
        Some((plan, window, WindowReceipt::from_bytes(&bytes)))
    }
}
