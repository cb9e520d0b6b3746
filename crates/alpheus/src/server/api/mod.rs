//! The requests that a server answers. Who asks is known by certificate, and
//! each request says which roles may make it.
//!
//! | request | by | does |
//! | --- | --- | --- |
//! | `POST /v1/events` | producer | takes frames into the log |
//! | `POST /v1/controllers` | controller | introduces a host's controllers |
//! | `POST /v1/mail` | controller | says, and waits for what there is to hear |
//! | `POST /v1/streams` | controller | registers a stream, or its owner's later choice |
//! | `GET /v1/schema` | anybody | the schema, as JSON |
//! | `POST /v1/statements` | consumer | CREATE, EXPLAIN, SHOW, DESCRIBE, DROP |
//! | `GET /v1/queries/{name}/results` | consumer | rows from an offset on, waiting for new ones |
//! | `GET /v1/queries/{name}/plans/{plan}` | consumer | a plan as it was announced, to read sealed rows with |
//! | `POST /v1/frames` | consumer | ciphertext of days that an owner lets it read |
//! | `GET /v1/status` | consumer | how far behind it is, what fails, who is there |
//! | `GET /openapi.json` | anybody | this, for programs |

mod controllers;
mod devices;
mod frames;
mod problem;
mod public;
mod queries;
pub mod status;

use super::engine::Handle;
use super::intake::Intake;
use super::outboxes::Outboxes;
use crate::network::door::Door;
use crate::network::role::Role;
use crate::runtime::storage::Topics;
use alpheus_transport::Store;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use std::sync::Arc;
use tokio::sync::watch;

/// The largest body of a request: what a host of thousands of controllers says at once.
const LARGEST: usize = 64 << 20;
/// The largest body of a device's: some of its uploads.
const LARGEST_UPLOAD: usize = 16 << 20;
/// The largest body of what people write.
const LARGEST_STATEMENT: usize = 1 << 20;

/// What requests need.
#[derive(Clone)]
pub struct Api {
    /// The engine.
    pub engine: Handle,
    /// The way into the log.
    pub intake: Intake,
    /// What waits for controllers.
    pub outboxes: Outboxes,
    /// The service's store, for results.
    pub store: Arc<dyn Store>,
    /// Names in it.
    pub topics: Topics,
    /// Tells of new rows.
    pub rows: watch::Receiver<u64>,
    /// The schema's file, as JSON.
    pub schema: Arc<str>,
}

/// The routes.
pub fn router(api: Api) -> Router {
    let door = Door::default();
    let device = |route| door.guard(route, &[Role::Producer], LARGEST_UPLOAD);
    let host = |route| door.guard(route, &[Role::Controller], LARGEST);
    let consumer = |route| door.guard(route, &[Role::Consumer], LARGEST_STATEMENT);
    let anybody = |route| door.guard(route, &Role::ALL, 0);
    Router::new()
        .route("/v1/events", device(post(devices::events)))
        .route("/v1/controllers", host(post(controllers::introduce)))
        .route("/v1/mail", host(post(controllers::mail)))
        .route("/v1/streams", host(post(controllers::register)))
        .route("/v1/schema", anybody(get(public::schema)))
        .route("/v1/statements", consumer(post(queries::statement)))
        .route("/v1/queries/{name}/results", consumer(get(queries::results)))
        .route("/v1/queries/{name}/plans/{plan}", consumer(get(queries::plan)))
        .route("/v1/frames", consumer(post(frames::frames)))
        .route("/v1/status", consumer(get(status::status)))
        .route("/openapi.json", anybody(get(public::openapi)))
        .fallback(public::unknown)
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(api)
}
