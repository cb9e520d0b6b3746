//! Receipts of verified and bounded windows in the log: in parts, each small enough for a record, in the commit
//! of their rows.

use super::service_error::ServiceError;
use super::storage::Topics;
use alpheus_encrypted_stream::receipt::{MAX_BYTES, ReceiptFormatError, WindowReceipt};
use alpheus_policy::ids::PlanId;
use alpheus_time::Window;
use alpheus_transport::{Batch, Error, Limits, NewRecord, Offset, Store};
use serde::{Deserialize, Serialize};

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
        self.add_parts(batch, topics, PART_BYTES)
    }

    /// The same in parts of so many bytes.
    fn add_parts(
        &self,
        batch: &mut Batch,
        topics: &Topics,
        part_bytes: usize,
    ) -> Result<(), ServiceError> {
        let chunks: Vec<&[u8]> = self.bytes.chunks(part_bytes).collect();
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

/// Receipts that are put together from their parts, which come in order, one receipt after the other.
#[derive(Default)]
pub struct ReceiptParts {
    under_way: Option<PartOfReceipt>,
}

/// The first parts of a receipt. Memory is taken as bytes come, whatever they say will follow.
struct PartOfReceipt {
    plan: PlanId,
    window: Window,
    parts: u32,
    next: u32,
    bytes: Vec<u8>,
}

/// The receipt of a plan's window, or why it cannot be read.
pub type ReadReceipt = (PlanId, Window, Result<WindowReceipt, ReceiptFormatError>);

impl ReceiptParts {
    /// Takes a part; returns the receipt once all of its parts have come. One whose first parts were
    /// deleted for their age, or never came, is none.
    pub fn take(&mut self, part: ReceiptPart) -> Option<ReadReceipt> {
        let (plan, window) = (part.plan, part.window);
        let whole = self.add(part)?;
        let receipt = whole.and_then(|bytes| WindowReceipt::from_bytes(&bytes));
        Some((plan, window, receipt))
    }

    /// The bytes of a receipt, once all have come.
    fn add(&mut self, part: ReceiptPart) -> Option<Result<Vec<u8>, ReceiptFormatError>> {
        let ReceiptPart { plan, window, part, parts, bytes, .. } = part;
        if part >= parts {
            self.under_way = None;
            return Some(Err(ReceiptFormatError::Malformed));
        }
        if part == 0 {
            self.under_way =
                Some(PartOfReceipt { plan, window, parts, next: 0, bytes: Vec::new() });
        }
        let mut own = self.under_way.take()?;
        if (own.plan, own.window, own.parts, own.next) != (plan, window, parts, part) {
            return None;
        }
        own.bytes.extend(bytes);
        own.next += 1;
        let length = own.bytes.len();
        if length as u64 > MAX_BYTES {
            return Some(Err(ReceiptFormatError::TooLong(length)));
        }
        if own.next == parts {
            return Some(Ok(own.bytes));
        }
        self.under_way = Some(own);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_time::Timestamp;
    use alpheus_transport::local;

    const WINDOW: Window = Window { start: Timestamp(0), end: Timestamp(1_000_000) };
    const PLAN: PlanId = PlanId([3; 32]);

    fn part(part: u32, parts: u32, bytes: &[u8]) -> ReceiptPart {
        let (query, bytes) = ("Loads".to_owned(), bytes.to_vec());
        ReceiptPart { query, plan: PLAN, window: WINDOW, part, parts, bytes }
    }

    /// Receipts once had 512 parts at most when they were read, and any number when they were written: larger
    /// ones were lost. This one has 2,500, over three pages, and another query's lie between its own.
    #[test]
    fn a_receipt_of_thousands_of_parts_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = local::open(folder.path(), &local::Options::default()).unwrap();
        let topics = Topics::new(1).unwrap();
        store.ensure_topic(&topics.receipts, 1).unwrap();
        let bytes: Vec<u8> = (0..40_000_u32).map(|at| (at % 251) as u8).collect();
        let new = |query: &str, bytes: &[u8]| {
            let (query, bytes) = (query.to_owned(), bytes.to_vec());
            NewReceipt { query, plan: PLAN, window: WINDOW, bytes }
        };
        let mut batch = Batch::new();
        for (query, bytes) in [("Other", &bytes[..90]), ("Loads", &bytes), ("Loads", &bytes[..7])] {
            new(query, bytes).add_parts(&mut batch, &topics, 16).unwrap();
        }
        store.commit(batch).unwrap();
        let (mut parts, mut after, mut found, mut pages) = (ReceiptParts::default(), 0, vec![], 0);
        loop {
            let (read, next) = page(store.as_ref(), &topics, "Loads", after).unwrap();
            if read.is_empty() {
                break;
            }
            found.extend(read.into_iter().filter_map(|part| parts.add(part)));
            (after, pages) = (next, pages + 1);
        }
        assert_eq!((found, pages), (vec![Ok(bytes.clone()), Ok(bytes[..7].to_vec())], 3));
    }

    /// A receipt without its first part, or with one missing, is none, and the next one is whole.
    #[test]
    fn parts_that_are_missing_lose_their_receipt_alone() {
        let mut parts = ReceiptParts::default();
        assert_eq!(parts.add(part(1, 2, b"b")), None);
        assert_eq!(parts.add(part(0, 3, b"a")), None);
        assert_eq!(parts.add(part(2, 3, b"c")), None);
        assert_eq!(parts.add(part(0, 2, b"a")), None);
        assert_eq!(parts.add(part(1, 2, b"b")), Some(Ok(b"ab".to_vec())));
        assert_eq!(parts.add(part(1, 2, b"b")), None);
        let malformed = Some(Err(ReceiptFormatError::Malformed));
        assert_eq!(parts.add(part(0, 0, b"")), malformed);
        assert_eq!(parts.add(part(2, 2, b"")), malformed);
        // What a first part promises takes no memory.
        assert_eq!(parts.add(part(0, u32::MAX, b"a")), None);
    }
}
