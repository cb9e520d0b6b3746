//! The API of a board's server, over TLS. Statements are signed and writes are sealed, so clients
//! do not authenticate.
//!
//! | request | answers |
//! | --- | --- |
//! | `GET /` | the page for readers |
//! | `GET /v1/board/{epoch}` | an epoch's messages as JSON, as this server decodes them |
//! | `GET /v1/board` | the board, and the latest epoch with a table |
//! | `GET /v1/statements/{epoch}/{of}/{from}` | statements of server 0, 1, … in an epoch, as received here |
//! | `POST /v1/statements/{epoch}/{of}` | accepts such a statement from any sender; a conflict proves that its signer equivocated |
//! | `GET /v1/digests/{epoch}` | the digests of all statements, for comparison |
//! | `GET /v1/conflicts/{epoch}` | conflicting statements: proof against their signers |
//! | `POST /v1/submissions` | accepts a write and returns a receipt (databases) |
//! | `POST /v1/knocks/{epoch}` | accepts the ticket of a writer that cannot reach all databases (databases) |
//! | `GET /v1/submissions/{epoch}/{name}` | a write, for another database |
//! | `GET /v1/reveals/{epoch}` | this database's keys of the accepted writes, sealed for the auditor |
//! | `GET /v1/shares/{epoch}`, `/v1/tables/{epoch}` | masked share, table |
//! | `POST /v1/complaints` | judges a complaint (auditor) |

use super::engine::Call;
use super::outbox::Outbox;
use crate::card::VerifiedCard;
use crate::client::{BEGINNING, max_body, max_statement, upheld};
use crate::refusal::Refuse;
use alpheus_anonymous_board::auditor::ComplaintError;
use alpheus_anonymous_board::configuration::{Board, Epoch, Party};
use alpheus_anonymous_board::database::Database;
use alpheus_anonymous_board::error::SubmissionError;
use alpheus_anonymous_board::messages::{Complaint, Statement, Submission, WriteName};
use alpheus_anonymous_board::reader::{Reading, read};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::engine::{EngineError, Handle};
use alpheus_node::ledger::Records;
use alpheus_node::network::answer::{ApiError, decode, encode};
use alpheus_node::network::door::in_time;
use alpheus_node::service::metrics::Requests;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use data_encoding::HEXLOWER;
use futures_util::stream;
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The page for readers.
const PAGE: &str = include_str!("page.html");
/// No content from elsewhere, and no script except the page's own.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The state that requests share.
#[derive(Clone)]
pub struct Api {
    /// The role.
    pub engine: Handle<Call>,
    /// The published items.
    pub outbox: Outbox,
    /// Older tables.
    pub records: Records,
    /// Allows one table at a time to be read and decoded.
    pub reading: Arc<Semaphore>,
    /// The card.
    pub card: VerifiedCard,
    /// The party that this server is.
    pub party: Party,
    /// Counts requests.
    pub requests: Requests,
}

/// A board, for the page.
#[derive(Debug, Serialize)]
struct Summary {
    fingerprint: String,
    server: String,
    rows: u32,
    last: Option<u64>,
}

/// An epoch's messages, for the page. Invalid UTF-8 is replaced.
#[derive(Debug, Serialize)]
struct EpochReport {
    epoch: u64,
    writes: u32,
    illegible: usize,
    flagged: bool,
    messages: Vec<String>,
}

impl EpochReport {
    fn of(reading: &Reading) -> Self {
        let text = |message: &Vec<u8>| String::from_utf8_lossy(message).into_owned();
        Self {
            epoch: reading.epoch.0,
            writes: reading.size,
            illegible: reading.illegible,
            flagged: reading.flagged,
            messages: reading.messages.iter().map(text).collect(),
        }
    }
}

/// The routes.
pub fn router(api: Api) -> Router {
    let max_body = max_body(&api.card.board);
    let router = Router::new()
        .route("/", get(page))
        .route("/page.js", get(script))
        .route("/page.css", get(style))
        .route("/v1/board", get(summary))
        .route("/v1/board/{epoch}", get(shown))
        .route("/v1/statements/{epoch}/{of}/{from}", get(statements))
        .route("/v1/digests/{epoch}", get(digests))
        .route("/v1/conflicts/{epoch}", get(conflicts))
        .route("/v1/submissions", post(submit))
        .route("/v1/knocks/{epoch}", post(knock))
        .route("/v1/submissions/{epoch}/{name}", get(held))
        .route("/v1/reveals/{epoch}", get(reveal))
        .route("/v1/shares/{epoch}", get(share))
        .route("/v1/tables/{epoch}", get(table))
        .route("/v1/complaints", post(complain));
    // A statement lists all writes, so it can be much longer than any of them.
    let statements = Router::new().route("/v1/statements/{epoch}/{of}", post(receive));
    let statements = in_time(statements, max_statement(&api.card.board));
    in_time(router, max_body)
        .merge(statements)
        .route_layer(middleware::from_fn_with_state(api.clone(), count_request))
        .with_state(api)
}

async fn count_request(State(api): State<Api>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let name = path.trim_start_matches("/v1/").split('/').next().unwrap_or_default().to_owned();
    let answer = next.run(request).await;
    let status = answer.status().as_u16();
    api.requests.count(name, status);
    answer
}

impl Refuse for SubmissionError {
    fn refusal(self) -> ApiError {
        let refused = self;
        let (status, rule) = match refused {
            SubmissionError::Epoch => (StatusCode::CONFLICT, "epoch"),
            SubmissionError::Beginning => (StatusCode::CONFLICT, BEGINNING),
            SubmissionError::Late => (StatusCode::CONFLICT, "late"),
            SubmissionError::Full => (StatusCode::CONFLICT, "full"),
            SubmissionError::Burnt => (StatusCode::CONFLICT, "burnt"),
            SubmissionError::Admission(_) => (StatusCode::FORBIDDEN, "admission"),
            SubmissionError::Spent => (StatusCode::CONFLICT, "spent"),
            SubmissionError::Replayed => (StatusCode::CONFLICT, "replayed"),
            SubmissionError::Envelope(_) => (StatusCode::BAD_REQUEST, "envelope"),
            SubmissionError::NotListed => (StatusCode::CONFLICT, "not-listed"),
        };
        ApiError::new(status, rule, refused.to_string())
    }
}

impl Refuse for ComplaintError {
    fn refusal(self) -> ApiError {
        let error = self;
        let rule = match error {
            ComplaintError::Epoch => "epoch",
            ComplaintError::TooEarly => "early",
            ComplaintError::TooLate => "late",
        };
        ApiError::new(StatusCode::CONFLICT, rule, error.to_string())
    }
}

async fn page() -> impl IntoResponse {
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(PAGE))
}

async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript")], include_str!("page.js"))
}

async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css")], include_str!("page.css"))
}

async fn summary(State(api): State<Api>) -> Json<Summary> {
    let board = &api.card.board;
    Json(Summary {
        fingerprint: board.fingerprint().to_string(),
        server: api.party.to_string(),
        rows: board.rows,
        last: api.outbox.last().map(|epoch| epoch.0),
    })
}

async fn shown(
    State(api): State<Api>,
    Path(epoch): Path<u64>,
) -> Result<impl IntoResponse, ApiError> {
    let messages = messages(&api, Epoch(epoch)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], messages))
}

/// An epoch's messages as JSON; the first request decodes the table.
async fn messages(api: &Api, epoch: Epoch) -> Result<Bytes, ApiError> {
    let known = || api.outbox.page(epoch).and_then(|page| page.messages);
    if let Some(messages) = known() {
        return Ok(messages);
    }
    let _one = api.reading.acquire().await.map_err(|_| EngineError::Stopped)?;
    if let Some(messages) = known() {
        return Ok(messages);
    }
    let table = table_of(api, epoch).await?;
    let transcript = api.engine.ask(|reply| Call::Transcript(epoch, reply)).await?;
    let transcript = transcript.ok_or_else(no_table)?;
    let board = api.card.board.clone();
    let reading = tokio::task::spawn_blocking(move || read(&board, &transcript, table.as_ref()));
    let reading = reading.await.map_err(|_| EngineError::Stopped)?;
    let reading = reading
        .map_err(|error| ApiError::new(StatusCode::CONFLICT, "not-read", error.to_string()))?;
    let report = serde_json::to_vec(&EpochReport::of(&reading));
    let report = Bytes::from(report.map_err(|_| ApiError::failed("messages that are not JSON"))?);
    api.outbox.keep(epoch, report.clone());
    Ok(report)
}

fn no_table() -> ApiError {
    ApiError::missing("this server has no table of that epoch")
}

/// A table, from memory or the ledger.
async fn table_of(api: &Api, epoch: Epoch) -> Result<SharedBytes, ApiError> {
    let page = api.outbox.page(epoch).filter(|page| page.published).ok_or_else(no_table)?;
    if let Some(table) = page.table {
        return Ok(SharedBytes(table));
    }
    let records = api.records.clone();
    let key = Database::table_key(epoch);
    let table = tokio::task::spawn_blocking(move || records.get(&key));
    let table = table.await.map_err(|_| EngineError::Stopped)?;
    let failed = |error: alpheus_transport::Error| {
        tracing::error!(%error, "cannot read a table from the ledger");
        EngineError::Busy
    };
    table.map_err(failed)?.map(|table| SharedBytes(Arc::new(table))).ok_or_else(no_table)
}

/// Bytes that several responses share.
struct SharedBytes(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A list of statements, whose encodings all requests share.
async fn statements(
    State(api): State<Api>,
    Path((epoch, of, from)): Path<(u64, usize, usize)>,
) -> Result<Body, ApiError> {
    let page = api.outbox.page(Epoch(epoch)).unwrap_or_default();
    let of = api.card.board.parties().get(of).ok_or_else(|| ApiError::missing("no such server"))?;
    let said: Vec<Bytes> = page
        .said
        .get(of)
        .into_iter()
        .flatten()
        .skip(from)
        .map(|said| said.encoded.clone())
        .collect();
    Ok(Body::from_stream(stream::iter(list(said)?.map(Ok::<_, Infallible>))))
}

/// The parts of a list in postcard, which is its length and its items.
fn list(items: Vec<Bytes>) -> Result<impl Iterator<Item = Bytes>, ApiError> {
    Ok(std::iter::once(Bytes::from(encode(&items.len())?)).chain(items))
}

async fn receive(
    State(api): State<Api>,
    Path((epoch, of)): Path<(u64, usize)>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let of =
        *api.card.board.parties().get(of).ok_or_else(|| ApiError::missing("no such server"))?;
    let (said, epoch): (Signed<Statement>, _) = (decode(&body)?, Epoch(epoch));
    check_statement(&api.card.board, of, epoch, &said)?;
    let page = api.outbox.page(epoch).unwrap_or_default();
    if !page.has(of, said.digest()) {
        api.engine.tell(Call::Hear(of, epoch, vec![said])).await;
    }
    encode(&())
}

/// Whether a server has signed a statement about an epoch. This is checked before it waits for the
/// engine: strangers could fill the queue with others.
fn check_statement(
    board: &Board,
    of: Party,
    epoch: Epoch,
    said: &Signed<Statement>,
) -> Result<(), ApiError> {
    let opened = board.key(of).and_then(|key| said.open(key).ok());
    let fits = opened.is_some_and(|statement| {
        statement.board == board.fingerprint() && statement.epoch == epoch && statement.by == of
    });
    let refused = || {
        let detail = format!("the {of} of this board has signed no such statement about the epoch");
        ApiError::new(StatusCode::BAD_REQUEST, "statement", detail)
    };
    fits.then_some(()).ok_or_else(refused)
}

async fn digests(State(api): State<Api>, Path(epoch): Path<u64>) -> Result<Vec<u8>, ApiError> {
    let page = api.outbox.page(Epoch(epoch)).unwrap_or_default();
    let heard = |of| page.said.get(of).into_iter().flatten().map(|said| said.digest).collect();
    let digests: Vec<Vec<Digest>> = api.card.board.parties().iter().map(heard).collect();
    encode(&digests)
}

async fn conflicts(State(api): State<Api>, Path(epoch): Path<u64>) -> Result<Vec<u8>, ApiError> {
    let page = api.outbox.page(Epoch(epoch)).unwrap_or_default();
    let conflicts: Vec<(Party, &Signed<Statement>)> =
        page.conflicts.iter().map(|(by, said)| (*by, said.as_ref())).collect();
    encode(&conflicts)
}

async fn submit(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    if api.party == Party::Auditor {
        return Err(ApiError::missing("this is the auditor; send writes to the databases"));
    }
    let submission: Submission = decode(&body)?;
    let submission = Box::new(submission);
    encode(
        &api.engine.ask(|reply| Call::Submit(submission, reply)).await?.map_err(Refuse::refusal)?,
    )
}

async fn knock(
    State(api): State<Api>,
    Path(epoch): Path<u64>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    if api.party == Party::Auditor {
        return Err(ApiError::missing("this is the auditor; knock at the databases"));
    }
    let ticket: Vec<u8> = decode(&body)?;
    let taken = api.engine.ask(|reply| Call::Knock(Epoch(epoch), ticket, reply)).await?;
    encode(&taken.map_err(Refuse::refusal)?)
}

async fn reveal(State(api): State<Api>, Path(epoch): Path<u64>) -> Result<Bytes, ApiError> {
    let reveal = api.outbox.page(Epoch(epoch)).and_then(|page| page.reveal);
    let missing = || ApiError::missing("there is a reveal once the auditor has chosen this share");
    reveal.map(|reveal| Bytes::from_owner(SharedBytes(reveal))).ok_or_else(missing)
}

async fn held(
    State(api): State<Api>,
    Path((epoch, name)): Path<(u64, String)>,
) -> Result<Vec<u8>, ApiError> {
    let name = HEXLOWER.decode(name.as_bytes()).ok().and_then(|name| name.try_into().ok());
    let name =
        name.ok_or_else(|| ApiError::malformed("a write's name is 64 hexadecimal digits"))?;
    let name = WriteName(Digest(name));
    let held = api.engine.ask(|reply| Call::Stored(Epoch(epoch), name, reply)).await?;
    encode(&held.ok_or_else(|| ApiError::missing("this server has no such write"))?)
}

async fn share(State(api): State<Api>, Path(epoch): Path<u64>) -> Result<Bytes, ApiError> {
    let share = api.outbox.page(Epoch(epoch)).and_then(|page| page.share);
    let missing =
        || ApiError::missing("the share is available once all databases are bound to their shares");
    share.map(|share| Bytes::from_owner(SharedBytes(share))).ok_or_else(missing)
}

async fn table(State(api): State<Api>, Path(epoch): Path<u64>) -> Result<Bytes, ApiError> {
    // Recent tables are in memory; older ones are read one at a time.
    let page = api.outbox.page(Epoch(epoch));
    let in_memory = page.is_some_and(|page| page.table.is_some());
    let turn = async { api.reading.acquire().await.map_err(|_| EngineError::Stopped) };
    let _one = if in_memory { None } else { Some(turn.await?) };
    table_of(&api, Epoch(epoch)).await.map(Bytes::from_owner)
}

async fn complain(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    if api.party != Party::Auditor {
        return Err(ApiError::missing("this is not the auditor; send complaints to the auditor"));
    }
    let complaint: Complaint = decode(&body)?;
    let complaint = Box::new(complaint);
    let verdict =
        api.engine.ask(|reply| Call::Judge(complaint, reply)).await?.map_err(Refuse::refusal)?;
    encode(&upheld(verdict))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_board::{board, key};
    use alpheus_anonymous_board::dpf::Side;
    use alpheus_anonymous_board::messages::{Body, BurnReason};

    const BY: Party = Party::Database(Side::First);

    fn statement(board: &Board, epoch: u64, signer: u8) -> Signed<Statement> {
        let body = Body::Abort { reason: BurnReason::Late };
        let (board, epoch) = (board.fingerprint(), Epoch(epoch));
        Signed::new(&Statement { board, epoch, by: BY, sequence: 0, body }, &key(signer))
    }

    /// Strangers can sign what they like, and repeat what a server has signed about another epoch. None
    /// of that waits for the engine, beside writes.
    #[test]
    fn only_what_a_server_has_signed_about_the_epoch_comes_to_the_engine() {
        let ours = board(3);
        let check = |said: &Signed<Statement>| check_statement(&ours, BY, Epoch(7), said);
        assert!(check(&statement(&ours, 7, 1)).is_ok());
        for said in [statement(&ours, 7, 9), statement(&ours, 8, 1), statement(&board(4), 7, 1)] {
            assert!(check(&said).is_err());
        }
        let other = Party::Database(Side::Second);
        assert!(check_statement(&ours, other, Epoch(7), &statement(&ours, 7, 1)).is_err());
    }

    #[test]
    fn parts_of_a_list_are_a_list() {
        for length in [0, 1, 2, 130] {
            let all: Vec<_> = (0..length).map(|epoch| statement(&board(3), epoch, 1)).collect();
            let items = all.iter().map(|said| encode(said).unwrap().into()).collect();
            let parts: Vec<u8> = list(items).unwrap().flatten().collect();
            assert_eq!(parts, encode(&all).unwrap());
        }
    }
}
