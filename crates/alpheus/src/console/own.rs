//! What the page asks for an owner.

use super::ask;
use crate::network::answer::ApiError;
use crate::network::client::Client;
use crate::network::wire::{Done, Withdraw};
use crate::owner::budgets::in_words as in_words_of;
use crate::owner::log::{in_order, in_words};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine};
use alpheus_encrypted_stream::withdrawal::Erasure;
use alpheus_policy::budget::Standing;
use alpheus_policy::ids::StreamId;
use alpheus_policy::schema::Schema;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
struct Owner {
    client: Client,
    name: String,
    key: Arc<SigningKey>,
}

/// The routes.
pub(super) fn router(client: Client, name: String, key: SigningKey) -> Router {
    Router::new()
        .route("/api/who", get(who))
        .route("/api/streams/{stream}", get(log))
        .route("/api/streams/{stream}/budgets", get(budgets))
        .route("/api/streams/{stream}/revoke", post(revoke))
        .with_state(Owner { client, name, key: Arc::new(key) })
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
    let path = format!("/v1/streams/{}/log", stream.parse::<StreamId>()?);
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
        LogEvent::PolicyChanged { .. } | LogEvent::Granted { .. } => ("changed", None),
        LogEvent::KeysHanded { .. } => ("released", None),
        LogEvent::Revoked => ("revoked", None),
        LogEvent::Erased => ("erased", None),
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
    /// Attribute, budget, what counts, what is used, which part that is.
    words: [String; 5],
    /// The part that is used up, up to 1.
    share: f64,
}

async fn budgets(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Vec<Bar>>, ApiError> {
    let path = format!("/v1/streams/{}/budgets", stream.parse::<StreamId>()?);
    let both = ask(&owner.client, move |client| {
        let standings: Vec<Standing> = client.get(&path, Duration::ZERO)?;
        Ok((standings, client.get::<Schema>("/v1/schema", Duration::ZERO)?))
    });
    let (standings, schema) = both.await?;
    let bar = |one: &Standing| Bar { words: in_words_of(one, &schema), share: one.share() };
    Ok(Json(standings.iter().map(bar).collect()))
}

async fn revoke(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Done>, ApiError> {
    let asked = Withdraw::new(&owner.key, stream.parse()?, false);
    let said = ask(&owner.client, move |client| {
        client.exchange::<Option<Signed<Erasure>>>("/v1/withdrawals", &asked, Duration::ZERO)
    });
    said.await.map(|_| Json(Done {}))
}
