//! Rows of verified queries, checked against the receipts of their windows.

use super::sealed::PlanAnswer;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_encrypted_stream::receipt::{Receipt, ReceiptError, ReceiptFormatError};
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_policy::ids::PlanId;
use alpheus_stream_runtime::receipts::{ReadReceipt, ReceiptPart, ReceiptParts};
use alpheus_stream_runtime::results::{Sealed, columns};
use alpheus_time::{Timestamp, Window};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Why a row of a verified query is not shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedRowError {
    /// It does not say that it is verified.
    #[error("the service says that the row is not verified")]
    Plain,
    /// It has no time, plan or population that can be read.
    #[error("the row cannot be read")]
    Malformed,
    /// Nothing shows what the controllers have signed.
    #[error("the service has no receipt of this window, or does not keep it any more")]
    NoReceipt,
    /// The receipt cannot be read.
    #[error(transparent)]
    Format(#[from] ReceiptFormatError),
    /// The plan cannot be read, or breaks a rule.
    #[error("the plan of the row does not check out: {0}")]
    Plan(String),
    /// It is another one than the row names.
    #[error("the service announced another plan than the row's")]
    OtherPlan,
    /// The receipt does not hold.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
}

/// A page of parts of receipts.
#[derive(Serialize, Deserialize)]
pub struct ReceiptPage {
    /// The parts, each in hexadecimal digits.
    pub parts: Vec<String>,
    /// Pass this as `after` to continue.
    pub next: u64,
}

/// A plan whose certificates were checked, as it was announced.
///
/// # Errors
/// [`RefusedRowError::Plan`].
pub fn open_plan(
    announcement: &str,
    deployment: &Deployment,
) -> Result<Arc<AnnouncedPlan>, RefusedRowError> {
    let bytes = HEXLOWER.decode(announcement.as_bytes()).ok();
    let signed: Option<Signed<Announcement>> =
        bytes.and_then(|bytes| postcard::from_bytes(&bytes).ok());
    let signed = signed.ok_or_else(|| RefusedRowError::Plan("it cannot be read".to_owned()))?;
    let announced = AnnouncedPlan::open(&signed, deployment);
    announced.map(Arc::new).map_err(|refused| RefusedRowError::Plan(refused.to_string()))
}

/// Plan and start of the window, in milliseconds, that a row states.
#[must_use]
pub fn stated(row: &Map<String, Value>) -> Option<(PlanId, u64)> {
    let plan = row.get("plan")?.as_str()?.parse().ok()?;
    Some((plan, row.get("window_start")?.as_u64()?))
}

/// Checks a row against a receipt of its plan, and returns in words what that shows.
///
/// # Errors
/// [`RefusedRowError`] if the row says anything else than what the controllers have signed.
pub fn check(
    row: &Map<String, Value>,
    query: &str,
    announced: &AnnouncedPlan,
    (window, receipt): (Window, &Receipt),
) -> Result<String, RefusedRowError> {
    let plan = announced.plan();
    let (id, start) = stated(row).ok_or(RefusedRowError::Malformed)?;
    if id != announced.id() || plan.name != query {
        return Err(RefusedRowError::Plan("it is of another query".to_owned()));
    }
    let number = |name: &str| row.get(name).and_then(Value::as_u64);
    let times = (Some(window.start.0 / 1000), Some(window.end.0 / 1000));
    if window != plan.window_at(window.start) || times != (Some(start), number("window_end")) {
        return Err(ReceiptError::OtherWindow(window).into());
    }
    let verified = receipt.verify(announced, window)?;
    if number("population") != Some(u64::from(verified.population())) {
        return Err(ReceiptError::OtherRow.into());
    }
    let in_group = |(name, value): &(String, String)| {
        row.get(name).and_then(Value::as_str) == Some(value.as_str())
    };
    verified.check_excluded(number("excluded").ok_or(RefusedRowError::Malformed)?)?;
    let same = plan.group.iter().all(in_group)
        && match row.get("sealed") {
            Some(sealed) => is_sealed_sum(sealed, &verified.sealed()),
            None => plan.sealed_to.is_none() && has_columns(row, announced, verified.words()),
        };
    if same { Ok(verified.to_string()) } else { Err(ReceiptError::OtherRow.into()) }
}

fn is_sealed_sum(sealed: &Value, expected: &alpheus_encrypted_stream::consumer::SealedSum) -> bool {
    let sealed = serde_json::from_value::<Sealed>(sealed.clone()).ok();
    sealed.and_then(|sealed| sealed.sum()).is_some_and(|sum| sum.as_ref() == Ok(expected))
}

/// Whether a row has the columns that follow from these words. A window without data has none.
fn has_columns(row: &Map<String, Value>, announced: &AnnouncedPlan, words: &[u64]) -> bool {
    let plan = announced.plan();
    let own = |alias: &str| row.get(alias).cloned().unwrap_or_default();
    let mut items = plan.select.items.iter().map(|item| own(&item.alias));
    if row.get("population").and_then(Value::as_u64) == Some(0) {
        return items.all(|value| value.is_null());
    }
    let Ok(expected) = columns(plan, words) else { return false };
    // Numbers are compared as the row's text is read.
    let read = |value: Value| serde_json::from_str::<Value>(&value.to_string()).ok();
    expected.len() == plan.select.items.len() && expected.into_iter().map(read).eq(items.map(Some))
}

/// The receipts of one query at a service, read in pages as rows need them. Both come in the same
/// order.
#[derive(Default)]
pub struct QueryReceipts {
    next: u64,
    parts: ReceiptParts,
    known: HashMap<(PlanId, u64), (Window, Result<Receipt, ReceiptFormatError>)>,
    /// The earliest window of which the service has a receipt, once all were read.
    oldest: Option<u64>,
    earliest: Option<u64>,
}

/// Receipts that are held until their rows come. Beyond it they are read again.
const HELD: usize = 16_384;

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
    ) -> Result<Result<(Window, Receipt), RefusedRowError>, RequestError> {
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
                *self = Self { oldest: self.oldest, ..Self::default() };
                from_start = true;
                continue;
            };
            self.next = page.next;
            page.parts.iter().for_each(|part| self.note(part));
        }
    }

    fn note(&mut self, part: &str) {
        let Some((plan, window, receipt)) = read_part(part).and_then(|part| self.parts.take(part))
        else {
            return;
        };
        let start = window.start.0 / 1000;
        self.earliest = Some(self.earliest.map_or(start, |earliest| earliest.min(start)));
        if self.known.len() >= HELD {
            self.known.clear();
        }
        self.known.insert((plan, start), (window, receipt));
    }
}

/// The parts of receipts after a place; none at the end.
async fn next_page(
    client: &HttpClient,
    query: &str,
    after: u64,
) -> Result<Option<ReceiptPage>, RequestError> {
    let path = format!("/v1/queries/{query}/receipts?after={after}");
    let page: ReceiptPage = client.get_json(&path, Duration::ZERO).await?;
    Ok(Some(page).filter(|page| !page.parts.is_empty() && page.next > after))
}

fn read_part(digits: &str) -> Option<ReceiptPart> {
    let bytes = HEXLOWER.decode(digits.as_bytes()).ok()?;
    postcard::from_bytes(&bytes).ok()
}

/// All receipts of a query at a service, and the plans that they are of.
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
    for (plan, ..) in &receipts {
        if !plans.contains_key(plan) {
            let path = format!("/v1/queries/{query}/plans/{plan}");
            let answer: PlanAnswer = client.get_json(&path, Duration::ZERO).await?;
            plans.insert(*plan, answer.announcement);
        }
    }
    Ok((receipts, plans))
}

/// The window of a plan that starts in a millisecond, if there is one.
#[must_use]
pub fn window_of(announced: &AnnouncedPlan, start: u64) -> Option<Window> {
    let plan = announced.plan();
    let first = start.checked_mul(1000)?.div_ceil(plan.window.0).checked_mul(plan.window.0)?;
    (first / 1000 == start).then(|| plan.window_at(Timestamp(first)))
}
