//! `GET /v1/evidence`: what the service states to a consumer for an impact assessment.

use super::problem::store_failed;
use super::{Api, running};
use crate::server::engine::Engine;
use crate::server::evidence::{EvidenceAnswer, add_rows};
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
    let queries = running::views(&api).await?.into_iter().map(serde_json::to_value);
    let queries = queries.filter_map(Result::ok).collect();
    let begin = move |engine: &mut Engine| engine.evidence(&consumer, span, queries);
    let (mut statement, names) = api.engine.ask(begin).await??;
    let (store, topics) = (api.store.clone(), api.topics.clone());
    let complete = move || {
        let added = add_rows(&mut statement, &names, (store.as_ref(), &topics));
        added.map(|added| added.map(|()| statement))
    };
    let read = tokio::task::spawn_blocking(complete).await;
    let read = read.map_err(|_| ApiError::failed("reading was cut short"))?;
    let statement = read.map_err(store_failed)?;
    let statement = statement.map_err(|much| ApiError::malformed(much.to_string()))?;
    let seal = EvidenceSeal::of(statement.text());
    let signed = api.engine.ask(move |engine| engine.manager.sign(&seal)).await?;
    let (text, signed) = (statement.text().to_owned(), HEXLOWER.encode(&encode(&signed)?));
    Ok(Json(EvidenceAnswer { text, signed }))
}
