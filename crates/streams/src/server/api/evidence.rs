//! `GET /v1/evidence`: what the service states to a consumer for an impact assessment.

use super::{Api, running};
use crate::server::engine::Engine;
use crate::server::evidence::{EvidenceAnswer, EvidenceError};
use alpheus_encrypted_stream::evidence::EvidenceSeal;
use alpheus_node::network::answer::{ApiError, caller, encode};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_time::{Timestamp, Window};
use axum::extract::{Query, State};
use axum::{Extension, Json};
use data_encoding::HEXLOWER;
use serde::Deserialize;

/// Windows that start in this time, Unix milliseconds; `until` is exclusive.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TimeQuery {
    from: u64,
    until: u64,
}

/// The signed statement.
pub(super) async fn evidence(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Query(TimeQuery { from, until }): Query<TimeQuery>,
) -> Result<Json<EvidenceAnswer>, ApiError> {
    let consumer = caller(&peer, &[Role::Consumer])?.name;
    let time = |ms: u64| Timestamp(ms.saturating_mul(1000)).min(Timestamp::LIMIT);
    let span = Window { start: time(from), end: time(until) };
    let place = api.evidence.take(&consumer).map_err(EvidenceError::from)?;
    let queries = running::views(&api).await?.into_iter().map(serde_json::to_value);
    let queries = queries.filter_map(Result::ok).collect();
    let begin = move |engine: &mut Engine| engine.evidence(&consumer, span, queries);
    let draft = api.engine.ask(begin).await?;
    let (store, topics) = (api.store.clone(), api.topics.clone());
    let complete = move || {
        // Its place is taken until it is written, even if nobody waits for it any more.
        let _place = place;
        let statement = draft.complete(store.as_ref(), &topics)?;
        Ok::<_, EvidenceError>((EvidenceSeal::of(statement.text()), statement.into_text()))
    };
    let written = tokio::task::spawn_blocking(complete).await;
    let (seal, text) = written.map_err(|_| ApiError::failed("writing was cut short"))??;
    let signed = api.engine.ask(move |engine| engine.manager.sign(&seal)).await?;
    let signed = HEXLOWER.encode(&encode(&signed)?);
    Ok(Json(EvidenceAnswer { text, signed }))
}
