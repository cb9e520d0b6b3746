//! Receipts as the service gives them: in pages of parts.

use super::buffer::ReceiptBuffer;
use super::{RefusedRowError, announcement};
use crate::query::lists::RowHistory;
use crate::query::paths::path_of;
use alpheus_encrypted_stream::receipt::{ReceiptFormatError, WindowReceipt};
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_policy::ids::PlanId;
use alpheus_stream_runtime::receipts::{ReadReceipt, ReceiptPart, ReceiptParts};
use alpheus_time::Window;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Duration;

/// A page of parts of receipts.
#[derive(Serialize, Deserialize)]
pub struct ReceiptPage {
    /// The parts, each in hexadecimal digits.
    pub parts: Vec<String>,
    /// Pass this as `after` to continue.
    pub next: u64,
}

/// The receipts of one query at a service, read in pages as rows need them. Both come in the same
/// order.
#[derive(Default)]
pub struct QueryReceipts {
    next: u64,
    parts: ReceiptParts,
    /// Bytes of the receipt that is under way.
    under_way: usize,
    known: ReceiptBuffer<(Window, Result<WindowReceipt, ReceiptFormatError>)>,
    /// The earliest window of which the service has a receipt, once all were read.
    oldest: Option<u64>,
    earliest: Option<u64>,
    /// Whose rows were shown.
    pub(in crate::query) lists: RowHistory,
}

impl QueryReceipts {
    /// Takes the receipt of a row. Reads on until it is there, and once more from the beginning if
    /// the row was read before.
    ///
    /// # Errors
    /// [`RequestError`] if the service does not answer.
    pub async fn take(
        &mut self,
        client: &HttpClient,
        query: &str,
        row: (PlanId, u64),
    ) -> Result<Result<(Window, WindowReceipt), RefusedRowError>, RequestError> {
        let mut from_start = self.next == 0;
        if self.oldest.is_some_and(|oldest| row.1 < oldest) {
            return Ok(Err(RefusedRowError::NoReceipt));
        }
        loop {
            if let Some((window, receipt)) = self.known.remove(&row) {
                return Ok(receipt.map(|receipt| (window, receipt)).map_err(RefusedRowError::from));
            }
            let Some(page) = next_page(client, query, self.next).await? else {
                self.oldest = self.earliest;
                if from_start {
                    return Ok(Err(RefusedRowError::NoReceipt));
                }
                let lists = std::mem::take(&mut self.lists);
                *self = Self { oldest: self.oldest, lists, ..Self::default() };
                from_start = true;
                continue;
            };
            self.next = page.next;
            page.parts.iter().filter_map(|part| read_part(part)).for_each(|part| self.note(part));
        }
    }

    fn note(&mut self, part: ReceiptPart) {
        let before = if part.part == 0 { 0 } else { self.under_way };
        self.under_way = before + part.bytes.len();
        let Some((plan, window, receipt)) = self.parts.take(part) else { return };
        let start = window.start.0 / 1000;
        self.earliest = Some(self.earliest.map_or(start, |earliest| earliest.min(start)));
        self.known.insert((plan, start), (window, receipt), std::mem::take(&mut self.under_way));
    }
}

/// The parts of receipts after a place; none at the end.
async fn next_page(
    client: &HttpClient,
    query: &str,
    after: u64,
) -> Result<Option<ReceiptPage>, RequestError> {
    let path = path_of(query, &format!("receipts?after={after}"));
    let page: ReceiptPage = client.get_json(&path, Duration::ZERO).await?;
    Ok(Some(page).filter(|page| !page.parts.is_empty() && page.next > after))
}

fn read_part(digits: &str) -> Option<ReceiptPart> {
    let bytes = HEXLOWER.decode(digits.as_bytes()).ok()?;
    postcard::from_bytes(&bytes).ok()
}

/// All receipts of a query at a service, and the plans that they are of. Those by epochs have their
/// plans in them.
///
/// # Errors
/// [`RequestError`] if the service does not answer.
pub async fn all_receipts(
    client: &HttpClient,
    query: &str,
) -> Result<(Vec<ReadReceipt>, HashMap<PlanId, String>), RequestError> {
    let (mut receipts, mut plans) = (Vec::new(), HashMap::new());
    let (mut parts, mut next) = (ReceiptParts::default(), 0);
    while let Some(page) = next_page(client, query, next).await? {
        let read = page.parts.iter().filter_map(|part| read_part(part));
        receipts.extend(read.filter_map(|part| parts.take(part)));
        next = page.next;
    }
    for (plan, _, receipt) in &receipts {
        let is_listed = receipt.as_ref().is_ok_and(|receipt| receipt.listing().is_some());
        if !is_listed
            && !plans.contains_key(plan)
            && let Some(announced) = announcement(client, query, *plan).await?
        {
            plans.insert(*plan, announced);
        }
    }
    Ok((receipts, plans))
}
