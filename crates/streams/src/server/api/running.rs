//! Running queries, and what the columns of their results are.

use super::Api;
use alpheus_node::network::answer::{ApiError, caller};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_policy::catalog::{Catalog, RunningQuery};
use alpheus_policy::columns::{Column, columns, label};
use alpheus_policy::plan::Plan;
use alpheus_policy::schema::Schema;
use axum::extract::State;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};

/// A running query.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryView {
    /// Its name.
    pub name: String,
    /// The consumer who asked.
    pub consumer: String,
    /// The query as SQL.
    pub sql: String,
    /// The size of its windows, in milliseconds.
    pub window_ms: u64,
    /// The minimum and the maximum number of owners with data in a window.
    pub population: [u32; 2],
    /// The names of the columns that groups differ in.
    pub group: Vec<String>,
    /// The number of groups.
    pub groups: usize,
    /// The number of streams.
    pub streams: usize,
    /// Whether only the consumer reads results, and not the service.
    pub sealed: bool,
    /// Whether controllers sign results, which clients check.
    pub verified: bool,
    /// Whether they also prove that each owner is in bounds.
    #[serde(default)]
    pub bounded: bool,
    /// Whether results have noise.
    pub noise: bool,
    /// The columns, without those of the group.
    pub columns: Vec<Column>,
    /// What events may lack of that which the results are of, so that fewer owners than the
    /// population may be in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<String>,
}

/// All running queries, by name.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
) -> Result<Json<Vec<QueryView>>, ApiError> {
    caller(&peer, &[Role::Consumer, Role::Operator])?;
    Ok(Json(views(&api).await?))
}

/// The same, without asking who asks.
pub(super) async fn views(api: &Api) -> Result<Vec<QueryView>, ApiError> {
    let views = |catalog: &Catalog| -> Vec<QueryView> {
        catalog.queries().filter_map(|query| view(query, catalog)).collect()
    };
    Ok(api.engine.ask(move |engine| views(&engine.manager.catalog)).await?)
}

/// The attributes of a plan that events may lack, as people read them.
fn lacking(plan: &Plan, schema: &Schema) -> Vec<String> {
    let optional = plan.attributes.iter().filter(|at| schema.is_optional(**at));
    let found = optional.filter_map(|at| schema.attributes.get(usize::from(*at)));
    found.map(|attribute| label(&attribute.name)).collect()
}

fn view(query: &RunningQuery, catalog: &Catalog) -> Option<QueryView> {
    let first = query.plans.first()?;
    let known = catalog.schemas().find(|known| known.id == first.schema)?;
    Some(QueryView {
        name: query.name.clone(),
        consumer: first.consumer.clone(),
        sql: query.sql.clone(),
        window_ms: first.window.0 / 1000,
        population: [first.population.min, first.population.max],
        group: first.group.iter().map(|(name, _)| name.clone()).collect(),
        groups: query.plans.len(),
        streams: query.plans.iter().map(|plan| plan.streams.len()).sum(),
        sealed: first.sealed_to.is_some(),
        verified: first.integrity.is_verified(),
        bounded: first.integrity.is_bounded(),
        noise: first.privacy.is_some(),
        columns: columns(first, &known.schema, &known.layout),
        lacking: lacking(first, &known.schema),
    })
}
