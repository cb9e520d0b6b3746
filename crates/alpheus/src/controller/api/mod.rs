//! What owners ask their controller. Who asks is known by certificate; an owner
//! reaches their own streams and no others.
//!
//! | request | does |
//! | --- | --- |
//! | `GET /v1/controllers` | the certificates to seal secrets for |
//! | `GET /v1/schema` | what streams here are streams of |
//! | `POST /v1/streams` | hands a stream over, with the first choice |
//! | `GET /v1/streams` | the owner's streams |
//! | `POST /v1/choices` | chooses anew |
//! | `POST /v1/withdrawals` | takes consent back, for good; where the key is destroyed too, says so, signed |
//! | `POST /v1/grants` | lets a consumer read days of a stream, or no more of them |
//! | `POST /v1/keys` | by that consumer: hands it the keys of those days that are over |
//! | `GET /v1/streams/{stream}/log` | who asked, what came out, how it ended |
//! | `GET /v1/streams/{stream}/budgets` | what noise has cost of the owner's budgets |

use super::guard::{Guard, GuardError};
use crate::network::answer::{ApiError, caller, decode, encode};
use crate::network::door::Door;
use crate::network::identity::to_hex;
use crate::network::role::Role;
use crate::network::wire::{Choice, Done, GrantAsked, Handover, KeysAsked, Withdraw};
use crate::runtime::embedded::wall_clock;
use crate::service::http::Peer;
use alpheus_encrypted_stream::error::GrantRefused;
use alpheus_encrypted_stream::ledger::LogLine;
use alpheus_policy::budget::Standing;
use alpheus_policy::ids::StreamId;
use alpheus_policy::schema::Schema;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use std::sync::{Arc, Mutex, MutexGuard};

/// The largest body: one choice.
const LARGEST: usize = 1 << 20;

/// What requests need.
#[derive(Clone)]
struct Api {
    guard: Arc<Mutex<Guard>>,
    schema: Arc<Schema>,
}

/// The routes.
pub fn router(guard: Arc<Mutex<Guard>>, schema: Schema) -> Router {
    let door = Door::default();
    let owner = |route| door.guard(route, &[Role::Owner], LARGEST);
    Router::new()
        .route("/v1/controllers", owner(get(controllers)))
        .route("/v1/schema", owner(get(schema_of)))
        .route("/v1/streams", owner(get(streams).post(hand_over)))
        .route("/v1/choices", owner(post(choose)))
        .route("/v1/streams/{stream}/log", owner(get(log)))
        .route("/v1/streams/{stream}/budgets", owner(get(budgets)))
        .route("/v1/withdrawals", owner(post(withdraw)))
        .route("/v1/grants", owner(post(grant)))
        .route("/v1/keys", door.guard(post(keys), &[Role::Consumer], LARGEST))
        .with_state(Api { guard, schema: Arc::new(schema) })
}

impl Api {
    /// Does something with the guard where blocking is allowed: it flushes disks.
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
            GuardError::Grant(GrantRefused::NotHeld) => ApiError::missing(error.to_string()),
            GuardError::Grant(
                GrantRefused::NotGranted | GrantRefused::Withdrawn | GrantRefused::NotOver,
            ) => ApiError::policy(error.to_string()),
            GuardError::Annotation(_)
            | GuardError::Grant(_)
            | GuardError::NotSealed(_)
            | GuardError::WrongSchema
            | GuardError::Here => ApiError::malformed(error.to_string()),
            other => {
                tracing::error!(error = %other, "a request failed");
                ApiError::failed("the controller could not do it; its log says why")
            }
        }
    }
}

async fn controllers(State(api): State<Api>) -> Result<Json<Vec<String>>, ApiError> {
    Ok(Json(api.act(|guard| Ok(guard.certificates().iter().map(to_hex).collect())).await?))
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
    api.act(move |mut guard| guard.take(wall_clock(), &owner, &handover)).await?;
    encode(&Done {})
}

async fn choose(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let choice: Choice = decode(&body)?;
    api.act(move |mut guard| guard.choose(wall_clock(), &owner, &choice)).await?;
    encode(&Done {})
}

async fn streams(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
) -> Result<Json<Vec<String>>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let streams = api.act(move |guard| Ok(guard.streams_of(&owner))).await?;
    Ok(Json(streams.iter().map(ToString::to_string).collect()))
}

async fn log(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Path(stream): Path<String>,
) -> Result<Json<Vec<LogLine>>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let stream: StreamId = stream.parse()?;
    let log = api.act(move |guard| guard.log(&owner, &stream)).await?;
    let read = tokio::task::spawn_blocking(move || log.read().map_err(GuardError::from)).await;
    Ok(Json(read.map_err(|_| ApiError::failed("reading was cut short"))??))
}

async fn budgets(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Path(stream): Path<String>,
) -> Result<Json<Vec<Standing>>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let stream: StreamId = stream.parse()?;
    Ok(Json(api.act(move |guard| guard.standings(wall_clock(), &owner, &stream)).await?))
}

async fn withdraw(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let asked: Withdraw = decode(&body)?;
    encode(&api.act(move |mut guard| guard.withdraw(wall_clock(), &owner, &asked)).await?)
}

async fn grant(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let asked: GrantAsked = decode(&body)?;
    api.act(move |mut guard| guard.grant(wall_clock(), &owner, &asked)).await?;
    encode(&Done {})
}

async fn keys(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let reader = caller(&peer, &[Role::Consumer])?.name;
    let asked: KeysAsked = decode(&body)?;
    encode(&api.act(move |mut guard| guard.hand_out(wall_clock(), &reader, &asked)).await?)
}
