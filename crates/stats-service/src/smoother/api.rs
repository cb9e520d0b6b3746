//! The API of a smoother. Clients use no TLS certificate: an upload is sealed and signed with its own
//! ephemeral key. Peers and the aggregator authenticate with certificates.
//!
//! | request | by | answers |
//! | --- | --- | --- |
//! | `POST /v1/slots` | clients | grants a slot for a credential presentation |
//! | `POST /v1/deposits` | clients | a receipt for a deposit, or the conflicting entry |
//! | `POST /v1/deposits/forwarded` | clients | the same of all smoothers, to which it forwards the deposit |
//! | `POST /v1/certificates` | clients | accepts a quorum's receipts, once they are checked and durable |
//! | `GET /v1/key` | anyone | the certified keys |
//! | `POST /v1/definitions/propose` | definer | this smoother's signature |
//! | `POST /v1/definitions` | anyone | accepts a definition that a quorum has signed |
//! | `GET /v1/definitions/{since}` | anyone | the definitions in use that it has learnt since a time, in microseconds; a page of them |
//! | that and `/{name}` | anyone | those whose names come after this one |
//! | `GET /v1/ends/{aggregate}` | anyone | its outcome here, and the agreed set |
//! | `GET /v1/leaves/{aggregate}` | anyone | what the aggregator publishes of an aggregate that ended here |
//! | `GET /v1/outbox/{boot}/{from}` | smoothers | this smoother's messages |
//! | `POST /v1/deposits` | smoothers | receipts for deposits that clients have sent them |
//! | `GET /v1/certificates/{aggregate}/{from}` | smoothers | its certificates, some slots at a time |
//! | `GET /v1/ready-statements/{aggregate}` | smoothers | the ready statements of others |
//! | `GET /v1/sealed-uploads/{aggregate}/{slot}` | smoothers | the sealed upload of a certified slot |
//! | `GET /v1/release/{aggregate}/{from}` | aggregator | the deposits, from the release on, some slots at a time |
//! | `POST /v1/check/{aggregate}` | aggregator | tuples to check |
//! | `POST /v1/disclosed/{aggregate}` | aggregator | uploads that it rejects, disclosed |
//! | `POST /v1/close` | aggregator | a closing to agree to |
//! | `GET /v1/outcomes` | aggregator | this smoother's outcomes of aggregates |

use super::engine::Call;
use super::forward::Forwarder;
use super::outbox::{Outbox, OutboxPage};
use super::relayed_responses::RelayedResponses;
use crate::membership::Members;
use crate::names::{hex, name_in};
use crate::parties::{MAX_BODY, PartyClient};
use crate::refusal::Refuse;
use alpheus_accountable_statistics::closing::Leaves;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{Deposit, DepositResponse, ForwardedDeposit};
use alpheus_accountable_statistics::role_error::{
    AgreementError, ClosingError, ReleaseError, SlotError, StatementError,
};
use alpheus_crypto::signed_message::Message;
use alpheus_node::engine::Handle;
use alpheus_node::network::answer::{ApiError, decode, encode};
use alpheus_node::network::door::{Door, in_time};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_node::service::metrics::Requests;
use alpheus_time::Timestamp;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};

/// The state that requests share.
#[derive(Clone)]
pub struct Api {
    /// The role.
    pub engine: Handle<Call>,
    /// Messages for peers.
    pub outbox: Outbox,
    /// The aggregator, for what it shows to everybody.
    pub aggregator: PartyClient,
    /// What it has shown.
    pub relayed: RelayedResponses,
    /// Forwards deposits to peers.
    pub forwarder: Forwarder,
    /// This smoother.
    pub id: SmootherId,
    /// How many smoothers a deposit needs.
    pub quorum: usize,
    /// The number of smoothers, which bounds the signatures on a message.
    pub smoothers: usize,
    /// Who may call as a peer.
    pub members: Members,
    /// Counts requests.
    pub requests: Requests,
}

/// Smoothers' answers to a forwarded deposit.
pub type ForwardedAnswers = Vec<(SmootherId, DepositResponse)>;

/// The maximum size of a client's request; presentations for 64 smoothers and a quota of thousands
/// need less.
const MAX_CLIENT_BODY: usize = 256 << 10;

/// The routes for clients and the public.
pub fn clients(api: Api) -> Router {
    let router = Router::new()
        .route("/v1/slots", post(slot))
        .route("/v1/deposits", post(deposit))
        .route("/v1/deposits/forwarded", post(forward))
        .route("/v1/certificates", post(certify))
        .route("/v1/key", get(key))
        .route("/v1/definitions/propose", post(propose))
        .route("/v1/definitions", post(learn))
        .route("/v1/definitions/{since}", get(definitions))
        .route("/v1/definitions/{since}/{after}", get(definitions_after))
        .route("/v1/ends/{aggregate}", get(end))
        .route("/v1/leaves/{aggregate}", get(leaves))
        .with_state(api);
    in_time(router, MAX_CLIENT_BODY)
}

/// The routes for the other smoothers and the aggregator.
pub fn peers(api: Api) -> Router {
    let door = Door::default();
    let smoothers: &[Role] = &[Role::Smoother];
    let aggregator: &[Role] = &[Role::Aggregator];
    Router::new()
        .route("/v1/outbox/{boot}/{from}", door.guard(get(outbox), smoothers, 0))
        .route("/v1/deposits", door.guard(post(deposits), smoothers, MAX_BODY))
        .route("/v1/certificates/{aggregate}/{from}", door.guard(get(certificates), smoothers, 0))
        .route("/v1/ready-statements/{aggregate}", door.guard(get(readies), smoothers, 0))
        .route(
            "/v1/sealed-uploads/{aggregate}/{slot}",
            door.guard(get(sealed_upload), smoothers, 0),
        )
        .route("/v1/release/{aggregate}/{from}", door.guard(get(release), aggregator, 0))
        .route("/v1/check/{aggregate}", door.guard(post(check), aggregator, MAX_BODY))
        .route("/v1/disclosed/{aggregate}", door.guard(post(disclosed), aggregator, MAX_BODY))
        .route("/v1/close", door.guard(post(close), aggregator, MAX_BODY))
        .route("/v1/outcomes", door.guard(get(outcomes), aggregator, 0))
        .route_layer(middleware::from_fn_with_state(api.clone(), admit_member))
        .route_layer(middleware::from_fn_with_state(api.clone(), count_request))
        .with_state(api)
}

async fn admit_member(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    api.members.admit(&peer, request.headers())?;
    Ok(next.run(request).await)
}

/// Requests that are counted: those of the aggregator. The number of any other moves with the number
/// of samples, or of clients that take part, before the aggregate ends. So do failures: a smoother
/// that answers nobody shows in its health.
const COUNTED: [&str; 5] = ["release", "check", "disclosed", "close", "outcomes"];

async fn count_request(State(api): State<Api>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let name = path.trim_start_matches("/v1/").split('/').next().unwrap_or_default().to_owned();
    let answer = next.run(request).await;
    if COUNTED.contains(&name.as_str()) {
        api.requests.count(name, answer.status().as_u16());
    }
    answer
}

impl Refuse for SlotError {
    fn refusal(self) -> ApiError {
        let why = self;
        let (status, rule) = match why {
            SlotError::Unknown => (StatusCode::NOT_FOUND, "unknown"),
            SlotError::NotNow => (StatusCode::CONFLICT, "not-now"),
            SlotError::SitsOut => (StatusCode::CONFLICT, "sits-out"),
            SlotError::Full | SlotError::Lapsed => (StatusCode::CONFLICT, "full"),
            SlotError::NotGranted => (StatusCode::CONFLICT, "not-granted"),
            SlotError::SlotTaken => (StatusCode::CONFLICT, "slot-taken"),
            SlotError::KeyTaken => (StatusCode::CONFLICT, "key-taken"),
            SlotError::Spent => (StatusCode::FORBIDDEN, "spent"),
            _ => (StatusCode::FORBIDDEN, "presentation"),
        };
        ApiError::new(status, rule, why.to_string())
    }
}

impl Refuse for StatementError {
    fn refusal(self) -> ApiError {
        let why = self;
        let (status, rule) = match why {
            StatementError::Unknown => (StatusCode::NOT_FOUND, "unknown"),
            StatementError::NotCertified => (StatusCode::FORBIDDEN, "not-certified"),
            StatementError::Over => (StatusCode::CONFLICT, "over"),
            _ => (StatusCode::CONFLICT, "not-taken"),
        };
        ApiError::new(status, rule, why.to_string())
    }
}

impl Refuse for AgreementError {
    fn refusal(self) -> ApiError {
        let why = self;
        let rule = match why {
            AgreementError::Bad(_) => "definition",
            AgreementError::NotProposed => "definer",
            AgreementError::Time => "time",
            AgreementError::OtherKey => "key",
            AgreementError::Overlaps => "overlaps",
            AgreementError::TooMany => "too-many",
            AgreementError::SitsOut => "sits-out",
        };
        ApiError::new(StatusCode::CONFLICT, rule, why.to_string())
    }
}

impl Refuse for ReleaseError {
    fn refusal(self) -> ApiError {
        let why = self;
        ApiError::new(StatusCode::CONFLICT, "not-released", why.to_string())
    }
}

impl Refuse for ClosingError {
    fn refusal(self) -> ApiError {
        let why = self;
        let rule = match why {
            ClosingError::Time => "time",
            ClosingError::SitsOut => "sits-out",
            ClosingError::Unknown => "unknown",
            _ => "not-closed",
        };
        ApiError::new(StatusCode::CONFLICT, rule, why.to_string())
    }
}

async fn slot(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let request = Box::new(decode(&body)?);
    encode(&api.engine.ask(|reply| Call::Request(request, reply)).await?.map_err(Refuse::refusal)?)
}

async fn deposit(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let deposit = Box::new(decode(&body)?);
    encode(&api.engine.ask(|reply| Call::Deposit(deposit, reply)).await?.map_err(Refuse::refusal)?)
}

/// Stores a deposit here first: only one that a client has paid for is forwarded.
async fn forward(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let deposit: ForwardedDeposit = decode(&body)?;
    let own = Box::new(deposit.own.clone());
    let own = api.engine.ask(|reply| Call::Deposit(own, reply)).await?.map_err(Refuse::refusal)?;
    let mut answers = vec![(api.id, own)];
    if matches!(answers.first(), Some((_, DepositResponse::Stored(_)))) {
        answers.extend(api.forwarder.forward(&deposit, api.quorum.saturating_sub(1)).await);
    }
    encode(&answers)
}

/// Deposits that a peer forwards, in one batch. A refusal has no answer: the client asks itself.
async fn deposits(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let deposits: Vec<Box<Deposit>> = decode(&body)?;
    let asked = deposits.into_iter().map(|deposit| {
        let engine = api.engine.clone();
        tokio::spawn(async move { engine.ask(|reply| Call::Deposit(deposit, reply)).await })
    });
    let asked: Vec<_> = asked.collect();
    let mut answers: Vec<Option<DepositResponse>> = Vec::with_capacity(asked.len());
    for asked in asked {
        let answer = asked.await.ok().and_then(Result::ok);
        answers.push(answer.and_then(Result::ok));
    }
    encode(&answers)
}

/// Decodes a message with several smoothers' signatures; rejects more signatures than smoothers.
fn decode_endorsed<T: Message>(api: &Api, body: &[u8]) -> Result<Box<Endorsed<T>>, ApiError> {
    let endorsed: Endorsed<T> = decode(body)?;
    if endorsed.signatures().count() > api.smoothers {
        return Err(ApiError::malformed("the body has more signatures than there are smoothers"));
    }
    Ok(Box::new(endorsed))
}

async fn certify(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let certificate = decode_endorsed(&api, &body)?;
    api.engine.ask(|reply| Call::Certify(certificate, reply)).await?.map_err(Refuse::refusal)?;
    encode(&())
}

async fn certificates(
    State(api): State<Api>,
    Path((name, from)): Path<(String, u32)>,
) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    encode(&api.engine.ask(|reply| Call::Certificates(name, from, reply)).await?)
}

async fn readies(State(api): State<Api>, Path(name): Path<String>) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    encode(&api.engine.ask(|reply| Call::Readies(name, reply)).await?)
}

async fn sealed_upload(
    State(api): State<Api>,
    Path((name, slot)): Path<(String, u32)>,
) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    encode(&api.engine.ask(|reply| Call::SealedUpload(name, slot, reply)).await?)
}

async fn key(State(api): State<Api>) -> Result<Vec<u8>, ApiError> {
    encode(&api.outbox.keys())
}

async fn propose(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let definition = Box::new(decode(&body)?);
    encode(
        &api.engine.ask(|reply| Call::Define(definition, reply)).await?.map_err(Refuse::refusal)?,
    )
}

async fn learn(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let signed = decode_endorsed(&api, &body)?;
    api.engine.ask(|reply| Call::Learn(signed, reply)).await?.map_err(Refuse::refusal)?;
    encode(&())
}

async fn definitions(State(api): State<Api>, Path(since): Path<u64>) -> Result<Vec<u8>, ApiError> {
    encode(&api.outbox.definitions_since(Timestamp(since), None))
}

async fn definitions_after(
    State(api): State<Api>,
    Path((since, after)): Path<(u64, String)>,
) -> Result<Vec<u8>, ApiError> {
    encode(&api.outbox.definitions_since(Timestamp(since), Some(&name_in(&after)?)))
}

async fn end(State(api): State<Api>, Path(name): Path<String>) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    encode(&api.engine.ask(|reply| Call::End(name, reply)).await?)
}

/// Relays what the aggregator shows, so that it does not learn who asks: only those check who have
/// contributed. The client checks all of it.
async fn leaves(State(api): State<Api>, Path(name): Path<String>) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    if api.engine.ask(|reply| Call::End(name, reply)).await?.is_none() {
        return Err(ApiError::missing("no aggregate of this name has ended here"));
    }
    let fetch = async || {
        let leaves = api.aggregator.get::<Leaves>(&format!("/v1/leaves/{}", hex(&name))).await;
        encode(&leaves.map_err(|error| {
            ApiError::new(StatusCode::BAD_GATEWAY, "unreachable", error.to_string())
        })?)
    };
    Ok(api.relayed.get(name, fetch).await?.to_vec())
}

async fn outbox(
    State(api): State<Api>,
    Path((boot, from)): Path<(u64, usize)>,
) -> Result<Vec<u8>, ApiError> {
    api.outbox.wait(boot, from).await;
    let page: OutboxPage = api.outbox.page(boot, from);
    encode(&page)
}

async fn release(
    State(api): State<Api>,
    Path((name, from)): Path<(String, u32)>,
) -> Result<Vec<u8>, ApiError> {
    let name = name_in(&name)?;
    encode(
        &api.engine
            .ask(|reply| Call::Release(name, from, reply))
            .await?
            .map_err(Refuse::refusal)?,
    )
}

async fn check(
    State(api): State<Api>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (name, shown) = (name_in(&name)?, decode(&body)?);
    tracing::debug!(aggregate = hex(&name), "tuples to check");
    api.engine.ask(|reply| Call::Check(name, shown, reply)).await?.map_err(Refuse::refusal)?;
    encode(&())
}

async fn disclosed(
    State(api): State<Api>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (name, shown) = (name_in(&name)?, decode(&body)?);
    api.engine.ask(|reply| Call::Disclosed(name, shown, reply)).await?.map_err(Refuse::refusal)?;
    encode(&())
}

async fn close(State(api): State<Api>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let closing = Box::new(decode(&body)?);
    api.engine.ask(|reply| Call::Close(closing, reply)).await?.map_err(Refuse::refusal)?;
    encode(&())
}

async fn outcomes(State(api): State<Api>) -> Result<Vec<u8>, ApiError> {
    encode(&api.outbox.outcomes())
}

#[cfg(test)]
mod tests;
