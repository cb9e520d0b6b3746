//! What the page asks for an owner.

use super::ask;
use crate::network::answer::ApiError;
use crate::network::client::Client;
use crate::network::wire::Done;
use crate::owner::log::{in_order, in_words};
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine};
use alpheus_policy::schema::Schema;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use std::time::Duration;

#[derive(Clone)]
struct Owner {
    client: Client,
    name: String,
}

/// The routes.
pub(super) fn router(client: Client, name: String) -> Router {
    Router::new()
        .route("/api/who", get(who))
        .route("/api/streams/{stream}", get(log))
        .route("/api/streams/{stream}/revoke", post(revoke))
        .with_state(Owner { client, name })
}

#[derive(Serialize)]
struct Who {
    name: String,
    base: String,
    streams: Vec<String>,
}

async fn who(State(owner): State<Owner>) -> Result<Json<Who>, ApiError> {
    let listed = ask(&owner.client, |client| client.get("/v1/streams", Duration::ZERO));
    let streams = listed.await?;
    Ok(Json(Who { name: owner.name, base: owner.client.base().to_owned(), streams }))
}

/// A line of the log.
#[derive(Serialize)]
struct Line {
    /// Unix milliseconds.
    at: u64,
    /// The window that it is about, in Unix milliseconds.
    window: Option<[u64; 2]>,
    /// What happened, for a table.
    kind: &'static str,
    /// What happened, in a sentence.
    text: String,
}

async fn log(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Vec<Line>>, ApiError> {
    let path = format!("/v1/streams/{}/log", stream_of(&stream)?);
    let both = ask(&owner.client, move |client| {
        let lines: Vec<LogLine> = client.get(&path, Duration::ZERO)?;
        Ok((lines, client.get::<Schema>("/v1/schema", Duration::ZERO)?))
    });
    let (mut lines, schema) = both.await?;
    lines.sort_by_key(in_order);
    Ok(Json(lines.iter().map(|line| shown(line, &schema)).collect()))
}

fn shown(line: &LogLine, schema: &Schema) -> Line {
    let (kind, window) = match &line.event {
        LogEvent::PlanAccepted { .. } => ("asked", None),
        LogEvent::Released { window, .. } => ("released", Some(*window)),
        LogEvent::Ended { window, .. } => ("ended", Some(*window)),
        LogEvent::PolicyChanged { .. } => ("changed", None),
        LogEvent::Revoked => ("revoked", None),
    };
    Line {
        at: line.at.0 / 1000,
        window: window.map(|window| [window.start.0 / 1000, window.end.0 / 1000]),
        kind,
        text: in_words(line, schema, |_| "this window".to_owned()),
    }
}

async fn revoke(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Done>, ApiError> {
    let path = format!("/v1/streams/{}/revoke", stream_of(&stream)?);
    Ok(Json(ask(&owner.client, move |client| client.post(&path, &Done {})).await?))
}

fn stream_of(text: &str) -> Result<&str, ApiError> {
    let fits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wrong = || ApiError::malformed("a stream's id has 32 hexadecimal digits");
    fits.then_some(text).ok_or_else(wrong)
}
