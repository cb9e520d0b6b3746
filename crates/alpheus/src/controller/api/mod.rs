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
//! | `GET /v1/streams/{stream}/log` | who asked, what came out, how it ended |
//! | `POST /v1/streams/{stream}/revoke` | withdraws consent, for good |

use super::guard::{Guard, GuardError};
use crate::network::answer::{ApiError, caller, decode, encode};
use crate::network::door::Door;
use crate::network::identity::to_hex;
use crate::network::role::Role;
use crate::network::wire::{Choice, Done, Handover};
use crate::runtime::embedded::wall_clock;
use crate::service::http::Peer;
use alpheus_encrypted_stream::ledger::LogLine;
use alpheus_policy::ids::StreamId;
use alpheus_policy::schema::Schema;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use data_encoding::HEXLOWER_PERMISSIVE;
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
        .route("/v1/streams/{stream}/revoke", owner(post(revoke)))
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
            GuardError::Annotation(_)
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
    let stream = stream_of(&stream)?;
    let log = api.act(move |guard| guard.log(&owner, &stream)).await?;
    let read = tokio::task::spawn_blocking(move || log.read().map_err(GuardError::from)).await;
    Ok(Json(read.map_err(|_| ApiError::failed("reading was cut short"))??))
}

async fn revoke(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Path(stream): Path<String>,
) -> Result<Json<Done>, ApiError> {
    let owner = caller(&peer, &[Role::Owner])?.name;
    let stream = stream_of(&stream)?;
    api.act(move |mut guard| guard.revoke(wall_clock(), &owner, &stream)).await?;
    Ok(Json(Done {}))
}

fn stream_of(text: &str) -> Result<StreamId, ApiError> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
    let id: Option<[u8; 16]> = bytes.and_then(|bytes| bytes.try_into().ok());
    let wrong = || ApiError::malformed("a stream's id has 32 hexadecimal digits");
    id.map(StreamId).ok_or_else(wrong)
}
