//! The page's requests for an owner.

use super::failed;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine};
use alpheus_encrypted_stream::withdrawal::Erasure;
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::answer::EmptyAnswer;
use alpheus_node::network::client::HttpClient;
use alpheus_policy::budget::Standing;
use alpheus_policy::ids::{IdError, StreamId};
use alpheus_policy::schema::Schema;
use alpheus_streams::owner::budgets::in_words as in_words_of;
use alpheus_streams::owner::identity::OwnerIdentity;
use alpheus_streams::owner::log::{in_order, in_words, tick_before};
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
struct Owner {
    client: HttpClient,
    identity: Arc<OwnerIdentity>,
}

impl Owner {
    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.client.get_json(path, Duration::ZERO).await.map_err(failed)
    }
}

/// The routes.
pub(super) fn router(client: HttpClient, identity: OwnerIdentity) -> Router {
    Router::new()
        .route("/api/identity", get(who))
        .route("/api/streams/{stream}", get(log))
        .route("/api/streams/{stream}/budgets", get(budgets))
        .route("/api/streams/{stream}/revoke", post(revoke))
        .with_state(Owner { client, identity: Arc::new(identity) })
}

#[derive(Serialize)]
struct Identity {
    name: String,
    base: String,
    streams: Vec<String>,
}

async fn who(State(owner): State<Owner>) -> Result<Json<Identity>, ApiError> {
    let streams = owner.get("/v1/streams").await?;
    Ok(Json(Identity {
        name: owner.identity.certified.name().to_owned(),
        base: owner.client.base().origin(),
        streams,
    }))
}

/// A line of the log.
#[derive(Serialize)]
struct Line {
    /// Unix milliseconds.
    at: u64,
    /// The window that the line is about, in Unix milliseconds.
    window: Option<[u64; 2]>,
    /// The kind of event, for a table.
    kind: &'static str,
    /// The event, as a sentence.
    text: String,
}

async fn log(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Vec<Line>>, ApiError> {
    let path = format!("/v1/streams/{}/log", parsed(&stream)?);
    let mut lines: Vec<LogLine> = owner.get(&path).await?;
    let schema: Schema = owner.get("/v1/schema").await?;
    lines.sort_by_key(in_order);
    Ok(Json(lines.iter().map(|line| shown(line, &schema)).collect()))
}

fn shown(line: &LogLine, schema: &Schema) -> Line {
    let (kind, window) = match &line.event {
        LogEvent::PlanAccepted { .. } => ("asked", None),
        LogEvent::Released { window, .. } => ("released", Some(*window)),
        LogEvent::SmallList { window, .. } => ("asked", Some(*window)),
        LogEvent::Ended { window, .. } => ("ended", Some(*window)),
        LogEvent::PolicyChanged { .. } | LogEvent::Granted { .. } => ("changed", None),
        LogEvent::KeysHanded { .. } => ("released", None),
        LogEvent::Revoked => ("revoked", None),
        LogEvent::Erased => ("erased", None),
        LogEvent::Cloned { border } => ("copied", Some(tick_before(*border, schema))),
    };
    Line {
        at: line.at.0 / 1000,
        window: window.map(|window| [window.start.0 / 1000, window.end.0 / 1000]),
        kind,
        text: in_words(line, schema, |_| "this window".to_owned()),
    }
}

/// A budget as a bar.
#[derive(Serialize)]
struct Bar {
    /// Attribute, budget, what counts, amount used, share.
    words: [String; 5],
    /// The share that is used, up to 1.
    share: f64,
}

async fn budgets(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Vec<Bar>>, ApiError> {
    let path = format!("/v1/streams/{}/budgets", parsed(&stream)?);
    let standings: Vec<Standing> = owner.get(&path).await?;
    let schema: Schema = owner.get("/v1/schema").await?;
    let bar = |one: &Standing| Bar { words: in_words_of(one, &schema), share: one.share() };
    Ok(Json(standings.iter().map(bar).collect()))
}

async fn revoke(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<EmptyAnswer>, ApiError> {
    let asked = owner.identity.withdrawal(parsed(&stream)?, false);
    let answer =
        owner.client.call::<Option<Signed<Erasure>>>("/v1/withdrawals", &asked, Duration::ZERO);
    answer.await.map(|_| Json(EmptyAnswer {})).map_err(failed)
}

fn parsed(stream: &str) -> Result<StreamId, ApiError> {
    stream.parse().map_err(|error: IdError| ApiError::malformed(error.to_string()))
}
