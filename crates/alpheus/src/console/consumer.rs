//! The page's requests for a consumer, and for an operator, who sees no results.

use super::failed;
use super::findings::findings;
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::client::HttpClient;
use alpheus_policy::query::{self, parse};
use alpheus_policy::show::Table;
use alpheus_streams::query::StatementResult;
use alpheus_streams::query::opener::{Opener, Rows};
use alpheus_streams::server::api::status::{HostStatus, Status};
use alpheus_streams::wire::QueryView;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time to wait at the service for a row, in seconds.
const MAX_WAIT: u64 = 20;

#[derive(Clone)]
struct Console {
    client: HttpClient,
    opener: Arc<Opener>,
    name: String,
}

/// The routes.
pub(super) fn router(client: HttpClient, opener: Opener, name: String) -> Router {
    let opener = Arc::new(opener);
    Router::new()
        .route("/api/identity", get(who))
        .route("/api/queries", get(queries))
        .route("/api/status", get(status))
        .route("/api/statements", post(statement))
        .route("/api/queries/{name}/results", get(results))
        .with_state(Console { client, opener, name })
}

/// The routes of an operator.
pub(super) fn operators_router(client: HttpClient, name: String) -> Router {
    let identity = identity("operator", &name, &client);
    let who = move || std::future::ready(Json(identity));
    Router::new()
        .route("/api/identity", get(who))
        .route("/api/status", get(|State(client): State<HttpClient>| status_of(client)))
        .route("/api/hosts", get(hosts))
        .route("/api/findings", get(findings))
        .with_state(client)
}

#[derive(Clone, Serialize)]
struct Identity {
    role: &'static str,
    name: String,
    base: String,
}

fn identity(role: &'static str, name: &str, client: &HttpClient) -> Identity {
    Identity { role, name: name.to_owned(), base: client.base().origin() }
}

async fn who(State(learner): State<Console>) -> Json<Identity> {
    Json(identity("consumer", &learner.name, &learner.client))
}

async fn status(State(learner): State<Console>) -> Result<Json<Status>, ApiError> {
    status_of(learner.client).await
}

async fn status_of(client: HttpClient) -> Result<Json<Status>, ApiError> {
    client.get_json("/v1/status", Duration::ZERO).await.map(Json).map_err(failed)
}

async fn hosts(State(client): State<HttpClient>) -> Result<Json<Vec<HostStatus>>, ApiError> {
    client.get_json("/v1/hosts", Duration::ZERO).await.map(Json).map_err(failed)
}

/// A running query of this consumer or of another.
#[derive(Serialize)]
struct ListedQuery {
    /// Whether its results can be read here.
    mine: bool,
    #[serde(flatten)]
    query: QueryView,
}

async fn queries(State(learner): State<Console>) -> Result<Json<Vec<ListedQuery>>, ApiError> {
    let known: Vec<QueryView> =
        learner.client.get_json("/v1/queries", Duration::ZERO).await.map_err(failed)?;
    let own = |query: QueryView| ListedQuery { mine: query.consumer == learner.name, query };
    let known: Vec<ListedQuery> = known.into_iter().map(own).collect();
    // The page says that their rows are checked, and which nobody else can read.
    for ListedQuery { query, .. } in known.iter().filter(|running| running.mine) {
        learner.opener.declare(query);
    }
    Ok(Json(known))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    sql: String,
    /// Whether it must change nothing.
    #[serde(default)]
    explain: bool,
}

/// A statement that says what this one would reveal, and begins and ends no query.
fn explained(sql: &str) -> Result<String, ApiError> {
    match parse(sql) {
        Ok(query::Statement::Drop(_)) => Err(ApiError::malformed(
            "this statement stops a query and reveals nothing: it was not sent",
        )),
        Ok(
            query::Statement::Explain { .. }
            | query::Statement::Show(_)
            | query::Statement::Describe(_),
        ) => Ok(sql.to_owned()),
        // The service may know more of the language than this program.
        Ok(query::Statement::Create(_)) | Err(_) => Ok(format!("EXPLAIN {sql}")),
    }
}

/// The outcome of a statement, as text.
#[derive(Serialize)]
struct StatementReply {
    /// The name of the query that was started.
    running: Option<String>,
    /// The explanation.
    text: Option<String>,
    tables: Vec<Table>,
}

async fn statement(
    State(learner): State<Console>,
    Json(statement): Json<Statement>,
) -> Result<Json<StatementReply>, ApiError> {
    let sql = if statement.explain { explained(&statement.sql)? } else { statement.sql };
    let asked = learner.opener.statement(&sql).map_err(|failure| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "identity-folder", failure.to_string())
    })?;
    let answer = learner.client.post_json("/v1/statements", &asked).await;
    let answered: StatementResult = learner.opener.answered(&sql, answer).map_err(failed)?;
    learner.opener.accepted(&sql, answered.running().as_ref()).map_err(|failure| {
        ApiError::new(StatusCode::BAD_GATEWAY, "check-failed", failure.to_string())
    })?;
    let said = |running, text, tables| StatementReply { running, text, tables };
    Ok(Json(match answered {
        StatementResult::Running(plan) => {
            said(Some(plan.name.clone()), Some(plan.to_string()), vec![])
        }
        StatementResult::Explanation(plan) => said(None, Some(plan.to_string()), vec![]),
        StatementResult::Tables(tables) => said(None, None, tables),
        StatementResult::Dropped(name) => said(None, Some(format!("{name} was stopped")), vec![]),
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct From {
    after: u64,
}

async fn results(
    State(learner): State<Console>,
    Path(name): Path<String>,
    Query(from): Query<From>,
) -> Result<Json<Rows>, ApiError> {
    let rows = learner.opener.rows(&learner.client, &name, from.after, MAX_WAIT).await;
    rows.map(Json).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asking what a query would reveal does not begin it, however it is written.
    #[test]
    fn what_is_explained_does_not_run() {
        let select = "SELECT SUM(x) WINDOW TUMBLING (SIZE 1 HOUR) FROM T";
        for sql in [
            select.to_owned(),
            format!("CREATE STREAM a AS {select}"),
            format!("-- mine\n create stream a as {select}"),
            format!("/* mine */ {select};"),
            format!("EXPLAIN {select}"),
        ] {
            let sent = explained(&sql).unwrap();
            assert!(matches!(parse(&sent), Ok(query::Statement::Explain { .. })), "{sent}");
        }
        assert_eq!(explained("SHOW QUERIES").unwrap(), "SHOW QUERIES");
        assert!(explained("DROP STREAM a").is_err());
        assert!(explained("BEGIN something new").unwrap().starts_with("EXPLAIN "));
    }
}
