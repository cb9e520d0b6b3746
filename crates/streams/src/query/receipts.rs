//! Rows of verified and bounded queries, checked against the receipts of their windows.

mod buffer;
mod pages;

pub use pages::{QueryReceipts, ReceiptPage, all_receipts};

use super::lists::{ReadAt, RowHistory};
use super::opener::PlanAnswer;
use super::paths::path_of;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_encrypted_stream::receipt::{
    ReceiptError, ReceiptFormatError, SignedRow, WindowReceipt,
};
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Plan;
use alpheus_policy::planner::OtherMeaningError;
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::results::{SealedResult, columns, has_opened};
use alpheus_time::{Timestamp, Window};
use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Why a row of a verified query is not shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedRowError {
    /// Its plan asks for no proofs, though the service says that the query is bounded.
    #[error("the service says that the query is bounded, but the row's plan is not")]
    NotBounded,
    /// It does not say that it is verified.
    #[error("the service says that the row is not verified")]
    Plain,
    /// It has no time, plan or population that can be read.
    #[error("the row cannot be read")]
    Malformed,
    /// Nothing shows what the controllers have signed.
    #[error("the service has no receipt of this window, or no longer keeps it")]
    NoReceipt,
    /// The receipt cannot be read.
    #[error(transparent)]
    Format(#[from] ReceiptFormatError),
    /// The plan cannot be read, or breaks a rule.
    #[error("the plan of the row does not check out: {0}")]
    Plan(String),
    /// The service does not keep it.
    #[error("the service does not keep the plan of the row")]
    NoPlan,
    /// It is another one than the row names.
    #[error("the service announced a different plan from the row's")]
    OtherPlan,
    /// It is not what the consumer's own statement asks for.
    #[error("the plan of the row is not what you asked for: {0} differ")]
    OtherMeaning(#[from] OtherMeaningError),
    /// It is not one of those that the service began for the consumer's own statement.
    #[error(
        "the service did not name the plan of the row when it began your query; if an answer to that was lost, drop the query and ask again"
    )]
    OtherBegun,
    /// The consumer's own statement cannot be compared with the plan.
    #[error(
        "the statement in `verified.known` cannot be read, so the plan cannot be compared with it"
    )]
    Statement,
    /// It is not sealed, and must be.
    #[error("the service says that the row is not sealed, but only you may read this query's rows")]
    NotSealed,
    /// The sealed sum is not the row's.
    #[error("the sealed result is for a different window, group or query from the row's")]
    OtherSealed,
    /// A file has nothing to compare the plan with.
    #[error(
        "the file has no schema, so the plan cannot be compared with what you asked for: write it again with `--save`"
    )]
    NoSchema,
    /// Its check broke off.
    #[error("the check of the row crashed, which is a bug of this program")]
    Broken,
    /// Nobody can compute what its members must have proven.
    #[error(
        "the row is bounded, but the schema of its plan is not known, so its proofs cannot be checked"
    )]
    NoBounds,
    /// Its window has another row.
    #[error("the service has published another row of this window")]
    SecondRow,
    /// It has a name that its plan does not give to anything.
    #[error("the row has `{0}`, which its plan does not know")]
    UnknownName(String),
    /// The receipt does not hold.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The authority has revoked the certificate of a controller that signed it.
    #[error("the certificate of controller {0}, which signed the row, is revoked")]
    RevokedSigner(u32),
    /// Another plan's or list's members have signed another row of the same window.
    #[error("the service had this window signed twice, by two sets of controllers")]
    SecondList,
    /// Its window is older than those that are remembered.
    #[error(
        "the window is older than those that this program remembers, so it cannot tell whether it has shown another row of it: start it again to read from the beginning"
    )]
    Forgotten,
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

/// By epochs: the plan of a receipt's list, whose certificates were checked.
#[must_use]
pub fn listed_plan(
    receipt: &WindowReceipt,
    deployment: &Deployment,
) -> Option<Result<Arc<AnnouncedPlan>, RefusedRowError>> {
    let listed = receipt.listed_plan(deployment)?.map(Arc::new);
    Some(listed.map_err(|refused| RefusedRowError::Plan(refused.to_string())))
}

/// Plan and start of the window, in milliseconds, that a row states.
#[must_use]
pub fn stated(row: &Map<String, Value>) -> Option<(PlanId, u64)> {
    let plan = row.get("plan")?.as_str()?.parse().ok()?;
    Some((plan, row.get("window_start")?.as_u64()?))
}

/// A plan of a query, and the schema that its bounds follow from, if it is known.
#[derive(Clone, Copy)]
pub struct PlanOfRows<'a> {
    /// The plan.
    pub announced: &'a AnnouncedPlan,
    /// The schema. Only rows of bounded plans need it.
    pub schema: Option<&'a Schema>,
}

impl PlanOfRows<'_> {
    /// What a receipt shows of its window. Of a bounded plan only proofs count, and only if they hold.
    fn signed(
        &self,
        (window, receipt): (Window, &WindowReceipt),
    ) -> Result<SignedRow, RefusedRowError> {
        let checker = match self.announced.plan().integrity.is_bounded() {
            true => {
                let known = self.schema.and_then(|schema| self.announced.checker(schema));
                Some(known.ok_or(RefusedRowError::NoBounds)?)
            }
            false => None,
        };
        Ok(receipt.verify(self.announced, checker.as_deref(), window)?)
    }

    /// Whether a receipt holds, so that its window has opened, and the row says something other than what is
    /// read of the signed numbers. They may have no result, and then the row says why.
    ///
    /// # Errors
    /// [`RefusedRowError::NoBounds`] if nobody can say.
    pub fn hides_result(
        self,
        row: &Map<String, Value>,
        (window, receipt): (Window, &WindowReceipt),
    ) -> Result<bool, RefusedRowError> {
        let signed = match self.signed((window, receipt)) {
            Ok(signed) => signed,
            Err(RefusedRowError::NoBounds) => return Err(RefusedRowError::NoBounds),
            Err(_) => return Ok(false),
        };
        let plan = self.announced.plan();
        // What a consumer finds in a sealed row is not in the service's.
        let why = match plan.sealed_to {
            None if signed.population() > 0 => columns(plan, signed.words()).err(),
            _ => None,
        };
        let stated = row.get("status").and_then(Value::as_str);
        Ok(why.is_none() || why.as_deref() != stated)
    }
}

/// Checks a row against a receipt of its plan, and returns in words what that shows.
///
/// # Errors
/// [`RefusedRowError`] if the row says anything other than what the controllers have signed.
pub fn check(
    row: &Map<String, Value>,
    query: &str,
    of: PlanOfRows<'_>,
    (window, receipt): (Window, &WindowReceipt),
) -> Result<String, RefusedRowError> {
    let announced = of.announced;
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
    let signed = of.signed((window, receipt))?;
    if number("population") != Some(u64::from(signed.population())) {
        return Err(ReceiptError::OtherRow.into());
    }
    check_left_out(row, &signed)?;
    signed.check_excluded(number("excluded").ok_or(RefusedRowError::Malformed)?)?;
    check_names(row, plan)?;
    let same = is_in_group(row, plan)
        && match (plan.sealed_to, row.get("sealed")) {
            (None, None) => has_columns(row, announced, signed.words()),
            // What is in the columns of a sealed row is nobody's word. A window without data has no sum.
            (Some(_), Some(sealed)) => {
                let is_without_data = signed.population() == 0 && has_no_sum(sealed);
                let is_own = || signed.sealed().is_some_and(|own| is_sealed_sum(sealed, &own));
                (is_without_data || is_own()) && is_empty(row, plan)
            }
            _ => false,
        };
    if same { Ok(signed.to_string()) } else { Err(ReceiptError::OtherRow.into()) }
}

/// Checks what a bounded row says of members that are not in it. The signers show how many they are; the service
/// alone says how many of them were refused.
fn check_left_out(row: &Map<String, Value>, signed: &SignedRow) -> Result<(), RefusedRowError> {
    let Some(left_out) = signed.left_out().map(u64::from) else { return Ok(()) };
    let number = |name: &str| row.get(name).and_then(Value::as_u64);
    let refused = number("members_refused").ok_or(RefusedRowError::Malformed)?;
    let same = number("members_left_out") == Some(left_out) && refused <= left_out;
    if same { Ok(()) } else { Err(ReceiptError::OtherRow.into()) }
}

/// Whether a row has the values of its plan's group.
#[must_use]
pub fn is_in_group(row: &Map<String, Value>, plan: &Plan) -> bool {
    let same = |(name, value): &(String, String)| {
        row.get(name).and_then(Value::as_str) == Some(value.as_str())
    };
    plan.group.iter().all(same)
}

/// A reader as it comes to a row.
pub struct ReadContext<'a> {
    /// Certificates that the authority has revoked.
    pub revoked: Option<&'a RevokedCertificates>,
    /// The rows that it has seen.
    pub seen: &'a mut RowHistory,
    /// Where it has read this one.
    pub at: ReadAt,
}

/// All that a reader checks of a row with a result: as [`check`] and [`check_signed_once`].
///
/// # Errors
/// [`RefusedRowError`].
pub fn check_all(
    row: &Map<String, Value>,
    query: &str,
    of: PlanOfRows<'_>,
    receipt: (Window, &WindowReceipt),
    known: ReadContext<'_>,
) -> Result<String, RefusedRowError> {
    let holds = check(row, query, of, receipt)?;
    check_signed_once(of.announced, receipt, known).map(|()| holds)
}

/// The same with the proofs checked on a thread that may be busy: they take seconds where there are many
/// owners, and other work continues.
pub(super) async fn check_apart(
    row: &Map<String, Value>,
    query: &str,
    (announced, schema): (&Arc<AnnouncedPlan>, Option<Arc<Schema>>),
    (window, receipt): (Window, Arc<WindowReceipt>),
) -> Result<String, RefusedRowError> {
    let (row, query, announced) = (row.clone(), query.to_owned(), Arc::clone(announced));
    let check = move || {
        let of = PlanOfRows { announced: &announced, schema: schema.as_deref() };
        check(&row, &query, of, (window, &receipt))
    };
    apart(check).await.unwrap_or(Err(RefusedRowError::Broken))
}

/// What a long computation comes to, unless it breaks off. The threads of the runtime are free meanwhile.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// Checks of a row that holds that nobody who signed it is revoked, and that its window has no other
/// row.
///
/// # Errors
/// [`RefusedRowError`].
pub(super) fn check_signed_once(
    announced: &AnnouncedPlan,
    (window, receipt): (Window, &WindowReceipt),
    known: ReadContext<'_>,
) -> Result<(), RefusedRowError> {
    check_signers(announced, receipt, known.revoked)?;
    known.seen.take(announced, window, known.at)
}

/// Checks that nobody who signed a row that holds has a certificate that is revoked by now: anyone
/// who has its key could sign for any time. The position of the first is in the error.
fn check_signers(
    announced: &AnnouncedPlan,
    receipt: &WindowReceipt,
    revoked: Option<&RevokedCertificates>,
) -> Result<(), RefusedRowError> {
    // A controller alone has no S.
    let service = announced.service();
    let signers = match receipt.opening_set() {
        Some(signed) => signed.open(service).map(|opened| opened.set.clone()),
        None => receipt.membership().open(service).map(|own| own.members.clone()),
    };
    let signers = signers.map_err(|_| ReceiptError::OpeningSet)?;
    let roster = &announced.plan().roster;
    let is_out = |position: &u32| {
        let id = roster.get(*position as usize).map(|id| Digest(id.0));
        id.is_none_or(|id| revoked.is_some_and(|revoked| revoked.has(&id)))
    };
    signers.iter().find(is_out).map_or(Ok(()), |at| Err(RefusedRowError::RevokedSigner(at)))
}

/// Checks a row without a result: that nothing in it reads like one, and that it has no name that its
/// plan does not know. Of a window that never opened there may be no receipt, and so no plan. Texts of
/// groups and of columns look alike then: only numbers beside its times and counts are refused.
///
/// # Errors
/// [`RefusedRowError`].
pub fn check_without_result(
    row: &Map<String, Value>,
    announced: Option<&AnnouncedPlan>,
) -> Result<(), RefusedRowError> {
    let is_empty = match announced {
        Some(announced) => is_empty(row, announced.plan()),
        None => row.iter().all(|(name, value)| !value.is_number() || is_in_every_row(name)),
    };
    if !is_closed(row) || !is_empty {
        return Err(RefusedRowError::Malformed);
    }
    announced.map_or(Ok(()), |announced| check_names(row, announced.plan()))
}

/// What the service says of every row, in the order in which rows show it: before the columns, and
/// after them.
const BEFORE: [&str; 2] = ["window_start", "window_end"];
const AFTER: [&str; 4] = ["population", "silent", "excluded", "status"];

/// Whether the service says this of every row.
pub(super) fn is_in_every_row(name: &str) -> bool {
    BEFORE.contains(&name) || AFTER.contains(&name)
}

/// Whether a row says that its window opened.
#[must_use]
pub fn has_result(row: &Map<String, Value>) -> bool {
    row.get("status").and_then(Value::as_str).is_some_and(has_opened)
}

/// Whether a row's status is a reason why it has no result. One that begins as those of results do, and
/// is none of them, is no reason.
pub(super) fn is_closed(row: &Map<String, Value>) -> bool {
    let status = row.get("status").and_then(Value::as_str);
    status.is_some_and(|status| !status.starts_with("ok"))
}

/// Names of a row of this plan beside those of its group and its columns.
fn stated_names(plan: &Plan) -> impl Iterator<Item = &'static str> {
    let noise = plan.privacy.iter().flat_map(|_| ["noise", "mostly_noise"]);
    let totals = plan.horizon().map(|_| "windows");
    let sealed = plan.sealed_to.map(|_| "sealed");
    // With a job. Those that are verified have none.
    let unreported = (!plan.integrity.is_verified()).then_some("streams_without_report");
    let bounded = plan.integrity.is_bounded();
    let without = bounded.then_some(["members_left_out", "members_refused"]).into_iter().flatten();
    let always = AFTER.into_iter().chain(["integrity", "plan"]);
    let beside = totals.into_iter().chain(noise).chain(sealed).chain(unreported).chain(without);
    BEFORE.into_iter().chain(always).chain(beside)
}

pub(super) fn check_names(row: &Map<String, Value>, plan: &Plan) -> Result<(), RefusedRowError> {
    let known = |name: &&String| {
        stated_names(plan).any(|stated| stated == *name)
            || plan.group.iter().any(|(group, _)| group == *name)
            || plan.select.items.iter().any(|item| item.alias == **name)
    };
    match row.keys().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => Err(RefusedRowError::UnknownName(name.escape_debug().to_string())),
    }
}

/// The row with its names in the plan's order, whichever order the service chose. A name that the
/// plan does not know is left out.
#[must_use]
pub fn in_order(mut row: Map<String, Value>, announced: &AnnouncedPlan) -> Map<String, Value> {
    let plan = announced.plan();
    let group = plan.group.iter().map(|(name, _)| name.as_str());
    let items = plan.select.items.iter().map(|item| item.alias.as_str());
    let without = ["members_left_out", "members_refused"];
    let rest =
        ["windows", "noise", "mostly_noise", "integrity", "sealed"].into_iter().chain(without);
    let names = BEFORE.into_iter().chain(group).chain(items).chain(AFTER).chain(rest);
    names.filter_map(|name| row.remove_entry(name)).collect()
}

/// Whether none of the plan's columns has anything.
fn is_empty(row: &Map<String, Value>, plan: &Plan) -> bool {
    plan.select.items.iter().all(|item| row.get(&item.alias).is_none_or(Value::is_null))
}

fn has_no_sum(sealed: &Value) -> bool {
    sealed.get("sum").is_some_and(Value::is_null)
}

fn is_sealed_sum(sealed: &Value, expected: &alpheus_encrypted_stream::consumer::SealedSum) -> bool {
    let sealed = serde_json::from_value::<SealedResult>(sealed.clone()).ok();
    sealed.and_then(|sealed| sealed.sum()).is_some_and(|sum| sum.as_ref() == Ok(expected))
}

/// Whether a row has the columns that follow from these words. A window without data has none.
fn has_columns(row: &Map<String, Value>, announced: &AnnouncedPlan, words: &[u64]) -> bool {
    let plan = announced.plan();
    let own = |alias: &str| row.get(alias).cloned().unwrap_or_default();
    let items = plan.select.items.iter().map(|item| own(&item.alias));
    if row.get("population").and_then(Value::as_u64) == Some(0) {
        return is_empty(row, plan);
    }
    let Ok(expected) = columns(plan, words) else { return false };
    // Numbers are compared as the row's text is read.
    let read = |value: Value| serde_json::from_str::<Value>(&value.to_string()).ok();
    expected.len() == plan.select.items.len() && expected.into_iter().map(read).eq(items.map(Some))
}

/// A plan of a query as the service announced it, in hexadecimal digits; none if it does not keep it.
///
/// # Errors
/// [`RequestError`] if the service does not answer.
pub async fn announcement(
    client: &HttpClient,
    query: &str,
    plan: PlanId,
) -> Result<Option<String>, RequestError> {
    let path = path_of(query, &format!("plans/{plan}"));
    match client.get_json::<PlanAnswer>(&path, Duration::ZERO).await {
        Ok(answer) => Ok(Some(answer.announcement)),
        Err(RequestError::Refused(problem)) if problem.status == 404 => Ok(None),
        Err(failed) => Err(failed),
    }
}

/// The window of a plan that starts in a millisecond, if there is one.
#[must_use]
pub fn window_of(announced: &AnnouncedPlan, start: u64) -> Option<Window> {
    let plan = announced.plan();
    let first = start.checked_mul(1000)?.div_ceil(plan.window.0).checked_mul(plan.window.0)?;
    (first / 1000 == start).then(|| plan.window_at(Timestamp(first)))
}

#[cfg(test)]
mod tests {
    use super::apart;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// A check that waits for other work of the same thread would wait forever if it kept that thread.
    #[tokio::test(flavor = "current_thread")]
    async fn other_work_goes_on_during_a_check() {
        let (end, ended) = channel();
        let check = apart(move || ended.recv_timeout(Duration::from_secs(60)).is_ok());
        let (checked, ()) = tokio::join!(check, async move {
            assert!(end.send(()).is_ok(), "the check has given up");
        });
        assert_eq!(checked, Some(true));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_check_that_breaks_off_is_no_result() {
        assert_eq!(apart(|| assert!(std::hint::black_box(false))).await, None);
    }
}
