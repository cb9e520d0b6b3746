//! The requests that a server answers. Callers are identified by certificate, and
//! each request names the roles that may make it.
//!
//! | request | by | does |
//! | --- | --- | --- |
//! | `POST /v1/events` | producer | takes frames into the log |
//! | `POST /v1/device` | producer | introduces a device by its certificate |
//! | `POST /v1/controllers` | controller | introduces a host's controllers |
//! | `POST /v1/mail` | controller | exchanges messages with a host's controllers |
//! | `POST /v1/streams` | controller | registers streams, later choices and withdrawals |
//! | `GET /v1/schema` | anybody | the schema, as JSON |
//! | `POST /v1/statements` | consumer | CREATE, EXPLAIN, SHOW, DESCRIBE, DROP |
//! | `GET /v1/queries` | consumer, operator | running queries, and what their columns are |
//! | `GET /v1/queries/{name}/results` | consumer | rows from an offset on, waiting for new ones |
//! | `GET /v1/queries/{name}/receipts` | consumer | what controllers signed for verified rows, in parts from an offset on |
//! | `GET /v1/queries/{name}/plans/{plan}` | consumer | a plan as it was announced, to read sealed and verified rows with |
//! | `GET /v1/evidence` | consumer | what the service states for an impact assessment, signed |
//! | `POST /v1/frames` | consumer | ciphertext of days that an owner lets it read |
//! | `GET /v1/status` | consumer, operator | lag, failures, active hosts |
//! | `GET /v1/hosts` | operator | hosts of controllers: when they were heard from, what waits for them |
//! | `GET /v1/diagnosis` | operator | what is wrong, and what fixes it |
//! | `GET /openapi.json` | anybody | this list, for programs |

mod controllers;
mod devices;
pub mod diagnosis;
mod engine_caller;
mod evidence;
mod frames;
mod obstacles;
mod problem;
mod public_requests;
mod queries;
pub mod running_queries;
pub mod status;

pub use engine_caller::EngineCaller;
pub use evidence::StatementSlots;

use super::intake::Intake;
use super::lost_state::LostState;
use super::outboxes::Outboxes;
use super::signs::Signs;
use alpheus_node::network::door::{Door, without};
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_node::network::role::Role;
use alpheus_node::service::health::Health;
use alpheus_stream_runtime::refused_frames::RefusedFrames;
use alpheus_stream_runtime::storage::Topics;
use alpheus_time::Span;
use alpheus_transport::Store;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use std::sync::Arc;
use tokio::sync::watch;

/// Maximum body of a request: the messages of a host with thousands of controllers.
const MAX_BODY: usize = 64 << 20;
/// Maximum body of a device's request: some of its uploads.
const MAX_UPLOAD: usize = 16 << 20;
/// Bodies of one device that may be under way: it sends one after the other.
const UPLOADS: usize = 2 * MAX_UPLOAD;
/// Maximum body of a consumer's request.
const MAX_STATEMENT: usize = 1 << 20;

/// The state that requests use.
#[derive(Clone)]
pub struct Api {
    /// The engine.
    pub engine: EngineCaller,
    /// The way into the log.
    pub intake: Intake,
    /// Messages that wait for controllers.
    pub outboxes: Outboxes,
    /// The service's store, for results.
    pub store: Arc<dyn Store>,
    /// Names in it.
    pub topics: Topics,
    /// Signals new rows.
    pub rows: watch::Receiver<u64>,
    /// The schema's file, as JSON.
    pub schema: Arc<str>,
    /// The tick of a schema with one frame a tick. Its devices learn of refused frames at once.
    pub tick: Option<Span>,
    /// Frames that count for nothing, for their devices to know.
    pub refused: RefusedFrames,
    /// Signs that the state is older than what others have seen.
    pub lost: LostState,
    /// Signs of faults lately.
    pub signs: Signs,
    /// How long windows wait for controllers' answers.
    pub windows_wait: Span,
    /// What operators should know.
    pub health: Health,
    /// Places of statements of evidence that are written at once.
    pub evidence: StatementSlots,
}

/// The routes, for all but revoked certificates.
pub fn router(api: Api, revoked: RevokedCertificates) -> Router {
    let door = Door::default().with_fewer(Role::Producer, UPLOADS);
    let device = |route| door.guard(route, &[Role::Producer], MAX_UPLOAD);
    let host = |route| door.guard(route, &[Role::Controller], MAX_BODY);
    let consumer = |route| door.guard(route, &[Role::Consumer], MAX_STATEMENT);
    let watcher = |route| door.guard(route, &[Role::Consumer, Role::Operator], 0);
    let operator = |route| door.guard(route, &[Role::Operator], 0);
    let anybody = |route| door.guard(route, &Role::ALL, 0);
    let routes = Router::new()
        .route("/v1/events", device(post(devices::events)))
        .route("/v1/device", device(post(devices::introduce)))
        .route("/v1/controllers", host(post(controllers::introduce)))
        .route("/v1/mail", host(post(controllers::mail)))
        .route("/v1/streams", host(post(controllers::register)))
        .route("/v1/schema", anybody(get(public_requests::schema)))
        .route("/v1/statements", consumer(post(queries::statement)))
        .route("/v1/queries/{name}/results", consumer(get(queries::results)))
        .route("/v1/queries/{name}/receipts", consumer(get(queries::receipts)))
        .route("/v1/queries/{name}/plans/{plan}", consumer(get(queries::plan)))
        .route("/v1/evidence", consumer(get(evidence::evidence)))
        .route("/v1/frames", consumer(post(frames::frames)))
        .route("/v1/queries", watcher(get(running_queries::list)))
        .route("/v1/status", watcher(get(status::status)))
        .route("/v1/hosts", operator(get(status::hosts)))
        .route("/v1/diagnosis", operator(get(diagnosis::diagnosis)))
        .route("/openapi.json", anybody(get(public_requests::openapi)))
        .fallback(public_requests::unknown)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(api);
    without(routes, Some(revoked))
}
