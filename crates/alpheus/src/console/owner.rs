//! The page's requests for an owner: what they see. Their decisions are in `decisions`.

use super::choices::{AttributeChoice, OwnChoices, attributes, is_private, unit};
use super::decisions::{self, View, certified_name};
use super::failed;
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine};
use alpheus_encrypted_stream::messages::WindowOutcome;
use alpheus_input::calendar::Day;
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_policy::budget::{BudgetStanding, Epsilon};
use alpheus_policy::columns::{Column, label};
use alpheus_policy::ids::{ConsumerId, IdError, PlanId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::schema::Schema;
use alpheus_streams::owner::identity::OwnerIdentity;
use alpheus_streams::owner::log::{in_order, in_words, readable, tick_before};
use alpheus_streams::wire::{GrantView, PlanView, StreamView};
use alpheus_time::{Timestamp, Window};
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// An owner at their controller.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) client: HttpClient,
    pub(super) identity: Arc<OwnerIdentity>,
    pub(super) folder: Arc<IdentityFolder>,
}

impl Owner {
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.client.get_json(path, Duration::ZERO).await.map_err(failed)
    }

    pub(super) async fn schema(&self) -> Result<Schema, ApiError> {
        self.get("/v1/schema").await
    }

    pub(super) async fn view(&self, stream: &StreamId) -> Result<StreamView, ApiError> {
        self.get(&format!("/v1/streams/{stream}")).await
    }
}

/// The routes.
pub(super) fn router(
    client: HttpClient,
    identity: OwnerIdentity,
    folder: IdentityFolder,
) -> Router {
    let (identity, folder) = (Arc::new(identity), Arc::new(folder));
    let decided = "/api/streams/{stream}";
    Router::new()
        .route("/api/identity", get(who))
        .route("/api/streams", get(streams))
        .route("/api/streams/{stream}", get(one))
        .route("/api/streams/{stream}/log", get(log))
        .route("/api/streams/{stream}/budgets", get(budgets))
        .route("/api/readers", post(decisions::reader))
        .route(&format!("{decided}/pause"), post(decisions::pause))
        .route(&format!("{decided}/resume"), post(decisions::resume))
        .route(&format!("{decided}/choice"), post(decisions::choose))
        .route(&format!("{decided}/grants"), post(decisions::grant))
        .route(&format!("{decided}/grants/end"), post(decisions::end_grant))
        .route(&format!("{decided}/revoke"), post(decisions::revoke))
        .route(&format!("{decided}/erase"), post(decisions::erase))
        .with_state(Owner { client, identity, folder })
}

async fn who(State(owner): State<Owner>) -> Json<Value> {
    let (name, base) = (owner.identity.certified.name(), owner.client.base().origin());
    Json(json!({ "role": "owner", "name": name, "base": base }))
}

async fn streams(State(owner): State<Owner>) -> Result<Json<Vec<String>>, ApiError> {
    owner.get("/v1/streams").await.map(Json)
}

/// A device, as the page shows it.
#[derive(Serialize)]
struct Device {
    stream: StreamId,
    device: String,
    state: &'static str,
    attributes: Vec<AttributeChoice>,
    /// What a resumption would allow, if there is anything to resume.
    resumes: Option<Vec<AttributeChoice>>,
    grants: Vec<Grant>,
    /// What a decision refers to.
    seen: View,
    /// What somebody with access reads.
    readable: String,
}

#[derive(Serialize)]
struct Grant {
    reader: ConsumerId,
    /// As the authority has certified it.
    name: Option<String>,
    days: Option<[String; 2]>,
    handed: Vec<[String; 2]>,
}

async fn one(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Device>, ApiError> {
    let stream = parsed(&stream)?;
    let (view, schema) = (owner.view(&stream).await?, owner.schema().await?);
    let own = OwnChoices::of(&view, (owner.identity.certified.key(), &stream), &schema);
    let nothing = ResolvedPolicy::private(&schema);
    let current = own.current().map_or(&nothing, |current| &current.policy);
    let last = own.last_sharing(&schema);
    let state = state_of(&view, is_private(current), last.is_some());
    let resumes = matches!(state, "paused" | "copied" | "unconfirmed").then_some(last).flatten();
    Ok(Json(Device {
        stream,
        device: view.device,
        state,
        attributes: attributes(&schema, current),
        resumes: resumes.map(|last| attributes(&schema, &last.policy)),
        grants: view.grants.into_iter().map(|view| grant(&owner, view)).collect(),
        seen: View::of(&own, &schema),
        readable: readable(&schema),
    }))
}

fn state_of(view: &StreamView, private: bool, has_shared: bool) -> &'static str {
    match view {
        StreamView { erased: true, .. } => "erased",
        StreamView { revoked: true, .. } => "revoked",
        StreamView { copied: true, .. } => "copied",
        StreamView { unconfirmed: true, .. } => "unconfirmed",
        _ if private && has_shared => "paused",
        _ if private => "private",
        _ => "sharing",
    }
}

/// The controller's word for a name does not count.
fn grant(owner: &Owner, view: GrantView) -> Grant {
    let GrantView { reader, certificate, days, handed, .. } = view;
    let name = certified_name(owner, &reader, &certificate);
    let handed = handed.into_iter().map(in_days).collect();
    Grant { reader, name, days: days.map(in_days), handed }
}

fn in_days(days: alpheus_encrypted_stream::grant::Days) -> [String; 2] {
    [Day(days.first).to_string(), Day(days.last).to_string()]
}

async fn log(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Vec<Value>>, ApiError> {
    let stream = parsed(&stream)?;
    let mut lines: Vec<LogLine> = owner.get(&format!("/v1/streams/{stream}/log")).await?;
    let (view, schema) = (owner.view(&stream).await?, owner.schema().await?);
    lines.sort_by_key(in_order);
    let plans = view.plans.into_iter().map(|plan| (plan.plan, plan)).collect();
    let log = Log { schema, plans };
    Ok(Json(lines.iter().map(|line| log.line(line)).collect()))
}

/// What lines of a log are shown with.
struct Log {
    schema: Schema,
    plans: HashMap<PlanId, PlanView>,
}

impl Log {
    /// A line: its kind, its parts for a sentence, and the whole of it in words.
    fn line(&self, line: &LogLine) -> Value {
        let mut shown = self.event(&line.event);
        shown["at"] = json!(milliseconds(line.at));
        shown["text"] = json!(in_words(line, &self.schema, |_| "this window".to_owned()));
        shown
    }

    fn event(&self, event: &LogEvent) -> Value {
        match event {
            LogEvent::PlanAccepted { plan, name, consumer, sealed, verified } => json!({
                "kind": "asked", "who": consumer, "query": name, "sealed": sealed, "plan": plan,
                "verified": verified,
                "what": self.reveals(plan),
                "every": self.plans.get(plan).map(|plan| plan.window.0 / 1000),
            }),
            LogEvent::Released {
                plan,
                name,
                consumer,
                sealed,
                window,
                attributes,
                population,
                counted,
                costs,
                ..
            } => json!({
                "kind": "released", "who": consumer, "query": name, "sealed": sealed, "plan": plan,
                "what": self.reveals(plan), "window": edges(*window),
                "attributes": attributes.iter().map(|at| self.label(*at)).collect::<Vec<_>>(),
                "population": population, "counted": counted,
                "upTo": attributes.iter().any(|at| self.schema.is_optional(*at)),
                "costs": costs.iter().map(|(at, cost)| (self.label(*at), cost.to_string())).collect::<Vec<_>>(),
            }),
            LogEvent::Ended { plan, window, outcome } => json!({
                "kind": "ended", "plan": plan, "window": edges(*window),
                "failed": match outcome {
                    WindowOutcome::Opened { .. } => None,
                    WindowOutcome::Failed(failure) => Some(failure.to_string()),
                },
            }),
            LogEvent::NotSummoned { plan, name, windows } => unasked(plan, name, *windows),
            LogEvent::SmallList { plan, window, .. } => small(plan, *window),
            LogEvent::OutOfBounds { plan, name, window } => out_of_bounds(plan, name, *window),
            LogEvent::PolicyChanged { version } => json!({ "kind": "changed", "version": version }),
            LogEvent::Granted { reader, days } => self.access("granted", reader, days.map(in_days)),
            LogEvent::KeysHanded { reader, days } => {
                self.access("handed", reader, Some(in_days(*days)))
            }
            LogEvent::Revoked => json!({ "kind": "revoked" }),
            LogEvent::Erased => json!({ "kind": "erased" }),
            LogEvent::Cloned { border } => copied(tick_before(*border, &self.schema)),
            LogEvent::MovedAway { at } => moved("moved-away", *at, false),
            LogEvent::MovedHere { at, lost } => moved("moved-here", *at, *lost),
        }
    }

    /// What a reader may read, or can.
    fn access(&self, kind: &str, reader: &str, days: Option<[String; 2]>) -> Value {
        json!({ "kind": kind, "who": reader, "what": readable(&self.schema), "days": days })
    }

    /// What a plan's windows reveal, with units, if the controller still has the plan.
    fn reveals(&self, plan: &PlanId) -> Option<Vec<String>> {
        let says = |column: &Column| match column.unit.as_str() {
            "" => column.what.clone(),
            unit => format!("{} in {unit}", column.what),
        };
        Some(self.plans.get(plan)?.columns.iter().map(says).collect())
    }

    fn label(&self, position: u16) -> String {
        let attribute = self.schema.attributes.get(usize::from(position));
        attribute.map_or_else(|| "?".to_owned(), |attribute| label(&attribute.name))
    }
}

fn milliseconds(at: Timestamp) -> u64 {
    at.0 / 1000
}

fn edges(window: Window) -> [u64; 2] {
    [milliseconds(window.start), milliseconds(window.end)]
}

async fn budgets(
    State(owner): State<Owner>,
    Path(stream): Path<String>,
) -> Result<Json<Vec<Value>>, ApiError> {
    let path = format!("/v1/streams/{}/budgets", parsed(&stream)?);
    let standings: Vec<BudgetStanding> = owner.get(&path).await?;
    let schema = owner.schema().await?;
    Ok(Json(standings.iter().map(|one| gauge(one, &schema)).collect()))
}

/// A list that is much shorter than others were.
fn small(plan: &PlanId, window: Window) -> Value {
    json!({ "kind": "small", "plan": plan, "window": edges(window) })
}

/// A window that the owner's own values keep it out of.
fn out_of_bounds(plan: &PlanId, name: &str, window: Window) -> Value {
    json!({ "kind": "out-of-bounds", "plan": plan, "query": name, "window": edges(window) })
}

/// The device has a copy.
fn copied(tick: Window) -> Value {
    json!({ "kind": "copied", "window": edges(tick) })
}

/// A stream that its owner has moved between controllers.
fn moved(kind: &str, border: Timestamp, lost: bool) -> Value {
    json!({ "kind": kind, "border": milliseconds(border), "lost": lost })
}

/// Windows that the service did not ask the controller about.
fn unasked(plan: &PlanId, name: &str, windows: Window) -> Value {
    json!({ "kind": "unasked", "plan": plan, "query": name, "window": edges(windows) })
}

/// A budget as a gauge.
fn gauge(one: &BudgetStanding, schema: &Schema) -> Value {
    let attribute = schema.attributes.get(usize::from(one.attribute));
    let amount = |epsilon: Option<Epsilon>| epsilon.map(|epsilon| epsilon.to_string());
    json!({
        "attribute": attribute.map(|attribute| attribute.name.as_str()),
        "total": Epsilon::from_micro(one.budget.total_micro_epsilon).to_string(),
        "delta": (one.budget.atto_delta > 0).then(|| format!("{:.0e}", one.budget.atto_delta as f64 * 1e-18)),
        "unit": unit(one.budget.unit),
        "period": one.period.map(edges),
        "spent": amount(one.spent),
        "year": amount(one.year),
        "share": one.share(),
    })
}

pub(super) fn parsed(stream: &str) -> Result<StreamId, ApiError> {
    stream.parse().map_err(|error: IdError| ApiError::malformed(error.to_string()))
}
