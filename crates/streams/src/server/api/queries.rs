//! Requests of consumers.

use super::Api;
use super::obstacles::plan_beside;
use super::problem::{runtime_failed, store_failed};
use crate::deployment::from_hex;
use crate::query::receipts::ReceiptPage;
use crate::server::engine::Engine;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::error::CertificateError;
use alpheus_node::errors::ErrorId;
use alpheus_node::network::answer::{ApiError, caller, encode};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_policy::catalog::Catalog;
use alpheus_policy::explain::{Explanation, explain};
use alpheus_policy::ids::{ConsumerId, PlanId};
use alpheus_policy::planner::PlannedQuery;
use alpheus_policy::query::{Create, Statement, parse};
use alpheus_policy::show::{Table, describe, show};
use alpheus_stream_runtime::manager::QueryError;
use alpheus_stream_runtime::query_planner::QueryContext;
use alpheus_stream_runtime::receipts::page;
use alpheus_stream_runtime::refusal_ids::of_refusal;
use alpheus_stream_runtime::results::Row;
use alpheus_transport::{Limits, Offset};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Assumed share of controllers that fail in a window, for the probability of loss.
const FAILURE_RATE: f64 = 0.01;
/// Maximum time that a consumer may ask to wait, in seconds.
const MAX_WAIT: u64 = 30;
/// Maximum number of rows per answer.
const MAX_ROWS: usize = 10_000;

/// The body of `POST /v1/statements`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatementBody {
    /// One statement.
    sql: String,
    /// The caller's protocol certificate in hexadecimal digits; `RELEASE TO` seals
    /// results to it.
    #[serde(default)]
    certificate: Option<String>,
}

/// The outcome of a statement.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The query is running; this is what it reveals.
    Running(Box<Explanation>),
    /// The query would be allowed, perhaps once others have ended; this is what it would reveal.
    Explanation(Box<Explanation>),
    /// The tables to show.
    Tables(Vec<Table>),
    /// The query was stopped.
    Dropped(String),
}

/// Executes a statement.
pub(super) async fn statement(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Json(body): Json<StatementBody>,
) -> Result<Json<Answer>, ApiError> {
    let consumer = caller(&peer, &[Role::Consumer])?.name;
    let parsed = parse(&body.sql);
    let statement = parsed.map_err(|error| {
        ApiError::malformed(error.render(&body.sql)).with_id(ErrorId::QuerySyntax)
    })?;
    let act = move |engine: &mut Engine| {
        let reader = body.certificate.as_deref();
        let reader = reader.map(|digits| engine.register_reader(digits, &consumer)).transpose()?;
        engine.act(&statement, &consumer, reader, &body.sql)
    };
    Ok(Json(api.engine.ask(act).await??))
}

impl Engine {
    /// Registers the certificate that a caller sent.
    fn register_reader(&mut self, digits: &str, caller: &str) -> Result<ConsumerId, ApiError> {
        let help = "send the content of `consumer.txt` in the identity folder; `alpheus ca issue \
                    --role consumer` creates one";
        let certificate: Signed<Certificate> = from_hex(digits).ok_or_else(|| {
            ApiError::malformed("the consumer's certificate is not valid").with_help(help)
        })?;
        let known = match self.registry.has_revoked(&certificate.digest()) {
            true => Err(CertificateError::Revoked),
            false => self.manager.register_consumer(caller, &certificate),
        };
        known.map_err(|bad| {
            ApiError::new(StatusCode::FORBIDDEN, "certificate", bad.to_string()).with_help(help)
        })
    }

    fn act(
        &mut self,
        statement: &Statement,
        consumer: &str,
        reader: Option<ConsumerId>,
        sql: &str,
    ) -> Result<Answer, ApiError> {
        // Results can be sealed only to the caller.
        let readers = |name: &str| reader.filter(|_| name == consumer);
        let asking = QueryContext { now: self.now(), from: None, consumer, readers: &readers };
        match statement {
            Statement::Create(create) => {
                let asked = self.manager.ask(create, asking, &mut self.rng);
                let (planned, round) = asked.map_err(|error| refused(error, sql))?;
                self.deliver(round);
                let explanation = explained(create, &planned, false, &self.manager.catalog)?;
                Ok(Answer::Running(Box::new(explanation)))
            }
            Statement::Explain { privacy, create } => {
                let catalog = &mut self.manager.catalog;
                let planned = plan_beside(catalog, create, asking, &mut self.rng);
                let (planned, not_now) = planned.map_err(|refusal| refused(refusal.into(), sql))?;
                let explanation = explained(create, &planned, *privacy, catalog)?;
                Ok(Answer::Explanation(Box::new(Explanation { not_now, ..explanation })))
            }
            Statement::Show(what) => Ok(Answer::Tables(vec![show(&self.manager.catalog, *what)])),
            Statement::Describe(name) => {
                describe(&self.manager.catalog, &name.text).map(Answer::Tables).map_err(|unknown| {
                    ApiError::missing(unknown.to_string()).with_id(ErrorId::QueryUnknownName)
                })
            }
            Statement::Drop(name) => {
                let name = name.text.clone();
                if self.manager.owner_of(&name) != Some(consumer) {
                    return Err(ApiError::missing(format!("you have no query named `{name}`")));
                }
                let now = self.now();
                let dropped = self.manager.drop_query(now, &name).map_err(runtime_failed)?;
                let missing = || ApiError::missing(format!("no query named `{name}` is running"));
                self.deliver(dropped.ok_or_else(missing)?);
                Ok(Answer::Dropped(name))
            }
        }
    }
}

fn refused(error: QueryError, sql: &str) -> ApiError {
    match error {
        QueryError::Refused(refusal) => {
            let error = ApiError::policy(refusal.explained(sql)).with_id(of_refusal(&refusal));
            refusal.query().into_iter().fold(error, ApiError::with_query)
        }
        QueryError::Runtime(error) => runtime_failed(error),
        QueryError::Conflict(taken) => {
            ApiError::new(StatusCode::CONFLICT, "taken", taken.to_string())
                .with_id(ErrorId::PolicyReleasedOnce)
        }
        refused @ QueryError::UnsupportedPlanError(_) => ApiError::policy(refused.to_string()),
        QueryError::TooMany(refused) => {
            ApiError::new(StatusCode::FORBIDDEN, "quota", refused.to_string())
                .with_id(ErrorId::QueryTooMany)
        }
    }
}

fn explained(
    create: &Create,
    planned: &PlannedQuery,
    privacy: bool,
    catalog: &Catalog,
) -> Result<Explanation, ApiError> {
    let schema = catalog.schema(&create.from.text);
    let schema = schema.ok_or_else(|| ApiError::missing("there is no such schema"))?;
    let mut explanation = explain(planned, schema, FAILURE_RATE, privacy);
    // With epochs, rows are of plans that follow from these.
    for (group, plan) in explanation.groups.iter_mut().zip(planned.to_run()) {
        group.plan = plan.id();
    }
    Ok(explanation)
}

/// A plan as the service announced it.
#[derive(Debug, Serialize)]
pub(super) struct Plan {
    /// The signed announcement, in hexadecimal digits.
    announcement: String,
}

/// A plan of the caller's own query, which it needs to read rows that are sealed to it.
pub(super) async fn plan(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Path((name, plan)): Path<(String, String)>,
) -> Result<Json<Plan>, ApiError> {
    let consumer = caller(&peer, &[Role::Consumer])?.name;
    let id: PlanId = plan.parse().map_err(|_| ApiError::malformed("not a valid plan id"))?;
    let find = move |engine: &mut Engine| {
        let Engine { manager, deployment, .. } = engine;
        if manager.owner_of(&name) != Some(&*consumer) {
            return Err(ApiError::missing(format!("you have no query named `{name}`")));
        }
        let missing = || ApiError::missing(format!("`{name}` has no plan {id}"));
        let signed = manager.announcement(&id).map_err(runtime_failed)?.ok_or_else(missing)?;
        let opened = signed.open(deployment.service()).map_err(|_| missing())?;
        if opened.plan.name != name {
            return Err(missing());
        }
        let bytes = encode(&signed)?;
        Ok(Json(Plan { announcement: HEXLOWER.encode(&bytes) }))
    };
    api.engine.ask(find).await?
}

/// Parts of the receipts of the caller's own query, from an offset on.
pub(super) async fn receipts(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Path(name): Path<String>,
    Query(from): Query<From>,
) -> Result<Json<ReceiptPage>, ApiError> {
    let consumer = caller(&peer, &[Role::Consumer])?.name;
    let asked = name.clone();
    let theirs = move |engine: &mut Engine| engine.manager.owner_of(&asked) == Some(&*consumer);
    if !api.engine.ask(theirs).await? {
        return Err(ApiError::missing(format!("you have no query named `{name}`")));
    }
    let (store, topics) = (api.store.clone(), api.topics.clone());
    let read = move || page(store.as_ref(), &topics, &name, from.after);
    let read = tokio::task::spawn_blocking(read).await;
    let read = read.map_err(|_| ApiError::failed("reading was cut short"))?;
    let (parts, next) = read.map_err(store_failed)?;
    let parts = parts.iter().map(|part| Ok(HEXLOWER.encode(&encode(part)?)));
    Ok(Json(ReceiptPage { parts: parts.collect::<Result<_, ApiError>>()?, next }))
}

/// Where to start, and how long to wait for new rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    #[serde(default)]
    after: u64,
    #[serde(default)]
    wait: u64,
}

/// Rows of a query's results.
#[derive(Debug, Serialize)]
pub(super) struct Rows {
    /// One object for each window and group.
    rows: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Pass this as `after` to continue.
    next: u64,
}

/// Rows of a query's results after an offset; waits for one if there is none yet.
pub(super) async fn results(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Path(name): Path<String>,
    Query(from): Query<From>,
) -> Result<Json<Rows>, ApiError> {
    let consumer = caller(&peer, &[Role::Consumer])?.name;
    let asked = name.clone();
    let begin = move |engine: &mut Engine| {
        let is_theirs = engine.manager.owner_of(&asked) == Some(&*consumer);
        is_theirs.then(|| engine.manager.rows_of(&asked).0)
    };
    let missing = || ApiError::missing(format!("you have no query named `{name}`"));
    let first = api.engine.ask(begin).await?.ok_or_else(missing)?;
    let deadline = Instant::now() + Duration::from_secs(from.wait.min(MAX_WAIT));
    let (mut news, mut after) = (api.rows.clone(), from.after.max(first));
    loop {
        news.mark_unchanged();
        let (store, topics, name) = (api.store.clone(), api.topics.clone(), name.clone());
        let read = move || read_rows(store.as_ref(), &topics, &name, after);
        let read = tokio::task::spawn_blocking(read).await;
        let (rows, next) = read.map_err(|_| ApiError::failed("reading was cut short"))??;
        after = next;
        if !rows.is_empty() || !matches!(timeout_at(deadline, news.changed()).await, Ok(Ok(()))) {
            return Ok(Json(Rows { rows, next }));
        }
    }
}

fn read_rows(
    store: &dyn alpheus_transport::Store,
    topics: &alpheus_stream_runtime::storage::Topics,
    name: &str,
    after: u64,
) -> Result<(Vec<serde_json::Map<String, serde_json::Value>>, u64), ApiError> {
    let (partition, mut rows) = (topics.results.partition(0), Vec::new());
    // Older ones are deleted.
    let first = store.bounds(&partition).map_err(store_failed)?.start;
    let mut position = Offset(after).max(first);
    loop {
        let fetched = store.read(&partition, position, Limits::default()).map_err(store_failed)?;
        let next = fetched.next_offset();
        if next == position || rows.len() >= MAX_ROWS {
            return Ok((rows, position.0));
        }
        for record in fetched {
            let row: Row = serde_json::from_slice(&record.value)
                .map_err(|_| ApiError::failed("a stored row cannot be read"))?;
            if row.query == name {
                rows.push(row.to_json());
            }
        }
        position = next;
    }
}
