//! What is wrong, and what fixes it, as the service sees it.

use super::status::{HostStatus, Status, Within};
use super::{Api, running_queries, status};
use crate::wire::QueryView;
use alpheus_doctor::facts::{Answer, CountFacts, Endpoint, QueryFacts, Reach, ServiceFacts};
use alpheus_doctor::{Facts, Finding, diagnose};
use alpheus_node::BUILD;
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::role::Role;
use alpheus_node::service::health::{Report, State as Condition};
use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the service finds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The program that runs.
    pub build: String,
    /// Each fault with its cause and what fixes it. Empty if all is well.
    pub findings: Vec<Finding>,
}

/// What the service counts, as facts.
#[must_use]
pub fn counts_of(status: &Status) -> CountFacts {
    let (recent, silent_hosts) = (status.recent.clone(), status.silent_hosts);
    CountFacts { recent, is_state_lost: status.lost_state.is_some(), silent_hosts }
}

/// A running query, as facts.
#[must_use]
pub fn query_of(view: &QueryView) -> QueryFacts {
    QueryFacts { name: view.name.clone(), least: view.population[0], streams: view.streams }
}

/// The names of hosts that were not heard from.
#[must_use]
pub fn silent_of(hosts: Vec<HostStatus>) -> Vec<String> {
    hosts.into_iter().filter(|host| host.silent).map(|host| host.name).collect()
}

fn answer_of(report: Report) -> Answer {
    let word = |state| match state {
        Condition::Starting => "starting",
        Condition::Ready => "ready",
        Condition::Failed => "failed",
        Condition::Stopping => "stopping",
    };
    let parts = report.parts.into_iter().map(|(part, state)| (part.into(), word(state).into()));
    let notes: BTreeMap<String, String> =
        report.notes.into_iter().map(|(about, text)| (about.into(), text)).collect();
    let (name, build) = ("the service".to_owned(), Some(BUILD.to_owned()));
    Answer { name, build, ahead_seconds: None, parts: parts.collect(), notes }
}

/// The faults that the service sees.
pub(super) async fn diagnosis(
    State(api): State<Api>,
    within: Query<Within>,
) -> Result<Json<Diagnosis>, ApiError> {
    let reach = Reach::Answered(answer_of(api.health.report()));
    let Query(within) = within;
    let status = status::read(&api, within, Role::Operator).await?;
    let Json(hosts) = status::hosts(State(api.clone())).await?;
    let queries = running_queries::views(&api).await?;
    let service = ServiceFacts {
        endpoint: Endpoint { address: "this service".into(), reach },
        schema: None,
        counts: Some(counts_of(&status)),
        silent_hosts: silent_of(hosts),
        queries: queries.iter().map(query_of).collect(),
        found: Vec::new(),
    };
    let facts = Facts { build: BUILD.into(), service: Some(service), ..Facts::default() };
    Ok(Json(Diagnosis { build: BUILD.into(), findings: diagnose(&facts) }))
}
