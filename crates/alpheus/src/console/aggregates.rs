//! What the page asks of a statistics deployment: its aggregates and counts, and why some have no
//! result. They are public, so nobody need be anybody to see them.

use crate::network::answer::ApiError;
use crate::stats::card::Opened;
use crate::stats::plan::Plan;
use crate::stats::results::{Row, fetch};
use crate::stats::units::Measured;
use crate::stats::ways::Ways;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use std::sync::Arc;

#[derive(Clone)]
struct Onlooker {
    card: Arc<Opened>,
    plan: Option<Arc<Plan>>,
}

/// The routes.
pub(super) fn router(card: Opened, plan: Option<Plan>) -> Router {
    let (card, plan) = (Arc::new(card), plan.map(Arc::new));
    Router::new()
        .route("/api/who", get(who))
        .route("/api/aggregates", get(aggregates))
        .with_state(Onlooker { card, plan })
}

#[derive(Serialize)]
struct Who {
    base: String,
    /// The place of the plan, if one is shown in its unit.
    place: Option<String>,
}

async fn who(State(Onlooker { card, plan }): State<Onlooker>) -> Json<Who> {
    let place = plan.map(|plan| plan.place.as_str().to_owned());
    Json(Who { base: card.aggregator.origin(), place })
}

/// An aggregate on the page.
#[derive(Serialize)]
struct Shown {
    aggregate: String,
    interval_start: u64,
    interval_end: u64,
    count: Option<u64>,
    mean: Option<f64>,
    deviation: Option<f64>,
    slots: u32,
    dummies: Option<u64>,
    state: String,
}

impl Shown {
    /// In steps, or in the unit of a plan.
    fn new(row: Row, plan: Option<&Plan>) -> Self {
        let (mean, deviation) = match plan.map(|plan| Measured::new(&row, plan)) {
            Some(measured) => (measured.mean, measured.stddev),
            None => (row.mean, row.deviation),
        };
        let Row { aggregate, interval_start, interval_end, count, slots, dummies, state, .. } = row;
        let (start, end) = (interval_start, interval_end);
        Self {
            aggregate,
            interval_start: start,
            interval_end: end,
            count,
            mean,
            deviation,
            slots,
            dummies,
            state,
        }
    }
}

async fn aggregates(
    State(Onlooker { card, plan }): State<Onlooker>,
) -> Result<Json<Vec<Shown>>, ApiError> {
    let failed = |said: String| ApiError::new(StatusCode::BAD_GATEWAY, "unreachable", said);
    let ways = Ways::new(&card).map_err(|error| failed(error.to_string()))?;
    let rows = fetch(&ways).await.map_err(|error| failed(error.to_string()))?;
    let plan = plan.as_deref();
    let ours = |row: &Row| plan.is_none_or(|plan| row.aggregate == plan.place.as_str());
    Ok(Json(rows.into_iter().filter(ours).map(|row| Shown::new(row, plan)).collect()))
}
