//! Requests of owners to their controller. Callers are identified by certificate, and
//! an owner reaches only their own streams.
//!
//! | request | does |
//! | --- | --- |
//! | `GET /v1/controllers` | the certificates and keys to seal secrets for |
//! | `GET /v1/schema` | the schema of the streams here |
//! | `POST /v1/streams` | hands over a stream, with the first choice |
//! | `GET /v1/streams` | the owner's streams |
//! | `POST /v1/choices` | changes a choice |
//! | `POST /v1/moves` | gives a stream away to another controller; answers with what the owner brings there |
//! | `POST /v1/arrivals` | takes over a stream that its owner brings from another controller |
//! | `POST /v1/withdrawals` | withdraws consent permanently; if the key is destroyed too, answers with a signed statement |
//! | `POST /v1/grants` | lets a consumer read days of a stream, or ends that |
//! | `POST /v1/keys` | for that consumer: the keys of the granted days that are over |
//! | `GET /v1/streams/{stream}` | its device, choices, readers and plans, and why nothing of it is released |
//! | `GET /v1/streams/{stream}/log` | who asked, what was released, with which outcome |
//! | `GET /v1/streams/{stream}/budgets` | how much of the owner's budgets is spent |

use super::guard::{Guard, GuardError};
use crate::deployment::to_hex;
use crate::wire::{
    Arrival, Choice, ControllerView, GrantRequest, Handover, KeysRequest, MoveRequest, StreamView,
    WithdrawalRequest,
};
use alpheus_crypto::hybrid::HybridPublic;
use alpheus_encrypted_stream::error::{GrantError, MoveError};
use alpheus_encrypted_stream::ledger::LogLine;
use alpheus_node::clock;
use alpheus_node::network::answer::EmptyAnswer;
use alpheus_node::network::answer::{ApiError, caller, decode, encode};
use alpheus_node::network::door::{Door, without};
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_policy::budget::BudgetStanding;
use alpheus_policy::ids::{IdError, StreamId};
use alpheus_policy::schema::Schema;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use data_encoding::HEXLOWER;
use std::sync::{Arc, Mutex, MutexGuard};

/// Maximum body of a request: one choice.
const MAX_BODY: usize = 1 << 20;

/// The state that requests use.
#[derive(Clone)]
struct Api {
    guard: Arc<Mutex<Guard>>,
    schema: Arc<Schema>,
}

/// The routes, for all but revoked certificates.
pub fn router(guard: Arc<Mutex<Guard>>, schema: Schema, revoked: RevokedCertificates) -> Router {
    let door = Door::default();
    let owner = |route| door.guard(route, &[Role::Owner], MAX_BODY);
    let routes = Router::new()
        .route("/v1/controllers", owner(get(controllers)))
        .route("/v1/schema", owner(get(schema_of)))
        .route("/v1/streams", owner(get(streams).post(hand_over)))
        .route("/v1/choices", owner(post(choose)))
        .route("/v1/moves", owner(post(move_away)))
        .route("/v1/arrivals", owner(post(arrive)))
        .route("/v1/streams/{stream}", owner(get(view)))
        .route("/v1/streams/{stream}/log", owner(get(log)))
        .route("/v1/streams/{stream}/budgets", owner(get(budgets)))
        .route("/v1/withdrawals", owner(post(withdraw)))
        .route("/v1/grants", owner(post(grant)))
        .route("/v1/keys", door.guard(post(keys), &[Role::Consumer], MAX_BODY))
        .with_state(Api { guard, schema: Arc::new(schema) });
    without(routes, Some(revoked))
}

impl Api {
    /// Uses the guard on a thread that may block, since it flushes disks.
    async fn act<T: Send + 'static>(
        self,
        act: impl FnOnce(MutexGuard<'_, Guard>) -> Result<T, GuardError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let act = move || act(self.guard.lock().map_err(|_| GuardError::Panicked)?);
        let acted = tokio::task::spawn_blocking(act).await;
        Ok(acted.map_err(|_| ApiError::failed("the request was cut short"))??)
    }
}

impl From<GuardError> for ApiError {
    fn from(error: GuardError) -> ApiError {
        match error {
            GuardError::NotYours | GuardError::OtherController => {
                ApiError::missing(error.to_string())
            }
            GuardError::Grant(GrantError::NotHeld) => ApiError::missing(error.to_string()),
            GuardError::Grant(
                GrantError::NotGranted | GrantError::Withdrawn | GrantError::NotOver,
            ) => ApiError::policy(error.to_string()),
            GuardError::Move(MoveError::NotHeld) => ApiError::missing(error.to_string()),
            GuardError::Moved(_) => ApiError::policy(error.to_string()),
            GuardError::Annotation(_)
            | GuardError::Grant(_)
            | GuardError::Move(_)
            | GuardError::SameHost
            | GuardError::NotSealed(_)
            | GuardError::WrongSchema
            | GuardError::Here => ApiError::malformed(error.to_string()),
            other => {
                tracing::error!(error = %other, "a request failed");
                ApiError::failed("the controller failed to process the request; see its log")
            }
        }
    }
}

async fn controllers(State(api): State<Api>) -> Result<Json<Vec<ControllerView>>, ApiError> {
    let view = |(certificate, key): &(_, HybridPublic)| ControllerView {
        certificate: to_hex(certificate),
        key: HEXLOWER.encode(key.as_bytes()),
    };
    Ok(Json(api.act(move |guard| Ok(guard.recipients().iter().map(view).collect())).await?))
}

async fn schema_of(State(api): State<Api>) -> Json<Schema> {
    Json(Schema::clone(&api.schema))
}

async fn hand_over(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let handover: Handover = decode(&body)?;
    api.act(move |mut guard| guard.take(clock::now(), &owner, &handover)).await?;
    encode(&EmptyAnswer {})
}

async fn choose(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let choice: Choice = decode(&body)?;
    api.act(move |mut guard| guard.choose(clock::now(), &owner, &choice)).await?;
    encode(&EmptyAnswer {})
}

async fn move_away(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let asked: MoveRequest = decode(&body)?;
    encode(&api.act(move |mut guard| guard.move_away(clock::now(), &owner, &asked)).await?)
}

async fn arrive(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let asked: Arrival = decode(&body)?;
    api.act(move |mut guard| guard.arrive(clock::now(), &owner, &asked)).await?;
    encode(&EmptyAnswer {})
}

async fn streams(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
) -> Result<Json<Vec<String>>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let streams = api.act(move |guard| Ok(guard.streams_of(&owner))).await?;
    Ok(Json(streams.iter().map(ToString::to_string).collect()))
}

async fn view(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Path(stream): Path<String>,
) -> Result<Json<StreamView>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let stream = stream_in(&stream)?;
    Ok(Json(api.act(move |guard| guard.view(&owner, &stream)).await?))
}

async fn log(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Path(stream): Path<String>,
) -> Result<Json<Vec<LogLine>>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let stream = stream_in(&stream)?;
    let log = api.act(move |guard| guard.log(&owner, &stream)).await?;
    let read = tokio::task::spawn_blocking(move || log.read().map_err(GuardError::from)).await;
    Ok(Json(read.map_err(|_| ApiError::failed("reading was cut short"))??))
}

async fn budgets(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Path(stream): Path<String>,
) -> Result<Json<Vec<BudgetStanding>>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let stream = stream_in(&stream)?;
    Ok(Json(api.act(move |guard| guard.standings(clock::now(), &owner, &stream)).await?))
}

async fn withdraw(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let asked: WithdrawalRequest = decode(&body)?;
    encode(&api.act(move |mut guard| guard.withdraw(clock::now(), &owner, &asked)).await?)
}

async fn grant(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let asked: GrantRequest = decode(&body)?;
    api.act(move |mut guard| guard.grant(clock::now(), &owner, &asked)).await?;
    encode(&EmptyAnswer {})
}

async fn keys(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let reader = caller(&peer, &[Role::Consumer])?.name;
    let asked: KeysRequest = decode(&body)?;
    encode(&api.act(move |mut guard| guard.hand_out(clock::now(), &reader, &asked)).await?)
}

fn stream_in(path: &str) -> Result<StreamId, ApiError> {
    path.parse().map_err(|error: IdError| ApiError::malformed(error.to_string()))
}
