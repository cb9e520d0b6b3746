//! The page's requests about a statistics deployment: its aggregates and counts, and why some
//! have no result. They are public, so no identity is needed. Rows that smoothers have not signed are not
//! shown.

use alpheus_node::network::answer::ApiError;
use alpheus_stats_service::card::VerifiedCard;
use alpheus_stats_service::parties::Parties;
use alpheus_stats_service::plan::Plan;
use alpheus_stats_service::results_reader::{HeldResults, ResultsReader, UnsignedResultsError};
use alpheus_stats_service::row::Row;
use alpheus_stats_service::units::ResultInUnits;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::Mutex;

#[derive(Clone)]
struct Viewer {
    card: Arc<VerifiedCard>,
    plan: Option<Arc<Plan>>,
    /// Checks each result once.
    reader: Arc<Mutex<ResultsReader>>,
}

/// The routes.
pub(super) fn router(card: VerifiedCard, plan: Option<Plan>) -> Router {
    let reader = Arc::new(Mutex::new(ResultsReader::new(&card.pinned)));
    let (card, plan) = (Arc::new(card), plan.map(Arc::new));
    Router::new()
        .route("/api/identity", get(who))
        .route("/api/aggregates", get(aggregates))
        .with_state(Viewer { card, plan, reader })
}

#[derive(Serialize)]
struct Identity {
    role: &'static str,
    name: &'static str,
    base: String,
    /// The plan's place, if results are shown in its unit.
    place: Option<String>,
    /// How many smoothers there are, and how many must sign a result.
    smoothers: usize,
    threshold: u16,
}

async fn who(State(Viewer { card, plan, .. }): State<Viewer>) -> Json<Identity> {
    Json(Identity {
        role: "statistics",
        name: "Statistics",
        base: card.aggregator.origin(),
        place: plan.map(|plan| plan.place.as_str().to_owned()),
        smoothers: card.pinned.smoothers.len(),
        threshold: card.pinned.threshold,
    })
}

/// An aggregate on the page.
#[derive(Serialize)]
struct AggregateRow {
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

impl AggregateRow {
    /// Values are in steps, or in the unit of a plan.
    fn new(row: Row, plan: Option<&Plan>) -> Self {
        let (mean, deviation) = match plan.map(|plan| ResultInUnits::new(&row, plan)) {
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
    State(Viewer { card, plan, reader }): State<Viewer>,
) -> Result<Json<Vec<AggregateRow>>, ApiError> {
    let failed = |said: String| ApiError::new(StatusCode::BAD_GATEWAY, "unreachable", said);
    let parties = Parties::new(&card).map_err(|error| failed(error.to_string()))?;
    let held = reader.lock().await.fetch(&parties).await;
    let HeldResults { rows, unsigned } = held.map_err(|error| failed(error.to_string()))?;
    if unsigned > 0 {
        let why = UnsignedResultsError(unsigned).to_string();
        return Err(ApiError::new(StatusCode::BAD_GATEWAY, "unsigned", why));
    }
    let plan = plan.as_deref();
    let ours = |row: &Row| plan.is_none_or(|plan| row.aggregate == plan.place.as_str());
    Ok(Json(rows.into_iter().filter(ours).map(|row| AggregateRow::new(row, plan)).collect()))
}
