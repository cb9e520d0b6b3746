//! Running queries, and what the columns of their results are.

use super::Api;
use crate::wire::{Charge, QueryView};
use alpheus_node::network::answer::{ApiError, caller};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_policy::budget::Cost;
use alpheus_policy::catalog::{Catalog, RunningQuery};
use alpheus_policy::columns::{columns, label};
use alpheus_policy::decimal::format_scaled;
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Plan;
use alpheus_policy::schema::Schema;
use axum::extract::State;
use axum::{Extension, Json};

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
    api.engine.ask(move |engine| views(&engine.manager.catalog)).await
}

/// The attributes of a plan that events may lack, as people read them.
fn lacking(plan: &Plan, schema: &Schema) -> Vec<String> {
    let optional = plan.attributes.iter().filter(|at| schema.is_optional(**at));
    let found = optional.filter_map(|at| schema.attributes.get(usize::from(*at)));
    found.map(|attribute| label(&attribute.name)).collect()
}

/// What a window of a plan costs.
fn charges(plan: &Plan, schema: &Schema, layout: &Layout) -> Vec<Charge> {
    let needed = plan.calibration(schema, layout).ok().flatten();
    let charge = |(at, cost): (u16, Cost)| {
        let attribute = schema.attributes.get(usize::from(at))?.name.clone();
        let (epsilon, rho) = match cost {
            Cost::Pure(epsilon) => (Some(exact(epsilon.0, EPSILON_PLACES)), None),
            Cost::Concentrated(rho) => (None, Some(exact(rho.0, RHO_PLACES))),
        };
        Some(Charge { attribute, epsilon, rho })
    };
    needed.map_or_else(Vec::new, |own| own.charges.into_iter().filter_map(charge).collect())
}

/// Decimal places of ε, and of ρ.
const EPSILON_PLACES: u8 = 18;
const RHO_PLACES: u8 = 24;

/// A number of so many decimal places, without zeros at its end.
fn exact(scaled: u128, places: u8) -> String {
    let text = format_scaled(i128::try_from(scaled).unwrap_or(i128::MAX), places);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
        charges: charges(first, &known.schema, &known.layout),
        charged_once: first.horizon().is_some(),
    })
}
