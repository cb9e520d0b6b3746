//! What is wrong with the service, as `alpheus doctor` finds it from what an operator may see. No
//! file is needed for it.

use super::failed;
use alpheus_doctor::facts::{Answer, Endpoint, Facts, Reach, ServiceFacts};
use alpheus_doctor::{Finding, diagnose};
use alpheus_node::BUILD;
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::client::HttpClient;
use alpheus_streams::server::api::diagnosis::{Diagnosis, counts_of, query_of, silent_of};
use alpheus_streams::server::api::status::{HostStatus, Status};
use alpheus_streams::wire::QueryView;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// For how many seconds back the service's counts matter, as for `alpheus doctor`.
const WITHIN: u32 = 600;

/// A fault, in general and here, and what fixes it.
#[derive(Serialize)]
pub(super) struct ShownFinding {
    what: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

pub(super) async fn findings(
    State(client): State<HttpClient>,
) -> Result<Json<Vec<ShownFinding>>, ApiError> {
    let status: Status = asked(&client, &format!("/v1/status?within={WITHIN}")).await?;
    let queries: Vec<QueryView> = asked(&client, "/v1/queries").await?;
    let hosts: Vec<HostStatus> = asked(&client, "/v1/hosts").await?;
    let own: Diagnosis = asked(&client, &format!("/v1/diagnosis?within={WITHIN}")).await?;
    // It has answered, so nothing is wrong with the way to it.
    let reach = Reach::Answered(Answer::default());
    let service = ServiceFacts {
        endpoint: Endpoint { address: client.base().origin(), reach },
        schema: None,
        counts: Some(counts_of(&status)),
        silent_hosts: silent_of(hosts),
        queries: queries.iter().map(query_of).collect(),
        found: own.findings,
    };
    let facts = Facts { build: BUILD.into(), service: Some(service), ..Facts::default() };
    let found = diagnose(&facts).into_iter();
    Ok(Json(found.map(|finding| ShownFinding { what: finding.fault.what(), finding }).collect()))
}

async fn asked<T: DeserializeOwned>(client: &HttpClient, path: &str) -> Result<T, ApiError> {
    client.get_json(path, Duration::ZERO).await.map_err(failed)
}
