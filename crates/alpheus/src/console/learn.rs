//! What the page asks for a consumer.

use super::ask;
use crate::network::answer::ApiError;
use crate::network::client::Client;
use crate::query::Answered;
use crate::query::sealed::{self, Opener, Rows};
use crate::server::api::status::Status;
use alpheus_policy::show::Table;
use axum::extract::{Path, Query, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How long the service may keep the page waiting for a row.
const LONGEST: u64 = 20;

#[derive(Clone)]
struct Learner {
    client: Client,
    opener: Arc<Opener>,
    name: String,
}

/// The routes.
pub(super) fn router(client: Client, opener: Opener, name: String) -> Router {
    let opener = Arc::new(opener);
    Router::new()
        .route("/api/who", get(who))
        .route("/api/status", get(status))
        .route("/api/statements", post(statement))
        .route("/api/queries/{name}/results", get(results))
        .with_state(Learner { client, opener, name })
}

#[derive(Serialize)]
struct Who {
    name: String,
    base: String,
}

async fn who(State(learner): State<Learner>) -> Json<Who> {
    Json(Who { name: learner.name, base: learner.client.base().to_owned() })
}

async fn status(State(learner): State<Learner>) -> Result<Json<Status>, ApiError> {
    Ok(Json(ask(&learner.client, |client| client.get("/v1/status", Duration::ZERO)).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    sql: String,
}

/// What comes of a statement, in words.
#[derive(Serialize)]
struct Said {
    /// The name of the query that runs from now on.
    running: Option<String>,
    /// The explanation.
    text: Option<String>,
    tables: Vec<Table>,
}

async fn statement(
    State(learner): State<Learner>,
    Json(statement): Json<Statement>,
) -> Result<Json<Said>, ApiError> {
    let opener = learner.opener;
    let asked = ask(&learner.client, move |client| {
        let certificate = opener.certificate();
        client.post("/v1/statements", &sealed::Statement { sql: &statement.sql, certificate })
    });
    let said = |running, text, tables| Said { running, text, tables };
    Ok(Json(match asked.await? {
        Answered::Running(plan) => said(Some(plan.name.clone()), Some(plan.to_string()), vec![]),
        Answered::Explanation(plan) => said(None, Some(plan.to_string()), vec![]),
        Answered::Tables(tables) => said(None, None, tables),
        Answered::Dropped(name) => {
            said(None, Some(format!("{name} does not run any more")), vec![])
        }
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct From {
    after: u64,
}

async fn results(
    State(learner): State<Learner>,
    Path(name): Path<String>,
    Query(from): Query<From>,
) -> Result<Json<Rows>, ApiError> {
    if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter)) {
        return Err(ApiError::malformed("a query's name has letters, digits, - and _"));
    }
    let opener = learner.opener;
    let rows = ask(&learner.client, move |client| opener.rows(client, &name, from.after, LONGEST));
    Ok(Json(rows.await?))
}
