//! `GET /v1/evidence`: what the service states to a consumer for an impact assessment.

use super::{Api, running_queries};
use crate::server::engine::Engine;
use crate::server::evidence::{EvidenceAnswer, EvidenceError};
use crate::wire::QueryView;
use alpheus_encrypted_stream::evidence::EvidenceSeal;
use alpheus_node::network::answer::{ApiError, caller, encode};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_standards::evidence::{BusyError, MAX_AT_ONCE, StatementPlace, StatementPlaces};
use alpheus_time::{Timestamp, Window};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a request waits for a place, and seconds after which one that got none may try again.
const WAIT: (Duration, &str) = (Duration::from_secs(10), "10");

/// Places of statements that are written at once.
#[derive(Clone)]
pub struct StatementSlots(StatementPlaces, Arc<Semaphore>);

impl StatementSlots {
    /// All are free.
    pub(crate) fn new() -> StatementSlots {
        StatementSlots(StatementPlaces::default(), Arc::new(Semaphore::new(MAX_AT_ONCE)))
    }

    /// A place for a consumer's statement. Consumers get theirs in the order in which they ask.
    async fn take(
        &self,
        consumer: &str,
        wait: Duration,
    ) -> Result<(StatementPlace, OwnedSemaphorePermit), BusyError> {
        let own = self.0.take(consumer)?;
        let free = timeout(wait, Arc::clone(&self.1).acquire_owned()).await;
        Ok((own, free.map_err(|_| BusyError::All)?.map_err(|_| BusyError::All)?))
    }
}

/// Says when to ask again.
fn later(busy: BusyError) -> Response {
    let refused = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", busy.to_string());
    ([(RETRY_AFTER, WAIT.1)], refused).into_response()
}

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
) -> Result<Response, ApiError> {
    let consumer = caller(&peer, &[Role::Consumer])?.name;
    let time = |ms: u64| Timestamp(ms.saturating_mul(1000)).min(Timestamp::LIMIT);
    let span = Window { start: time(from), end: time(until) };
    let place = match api.evidence.take(&consumer, WAIT.0).await {
        Ok(place) => place,
        Err(busy) => return Ok(later(busy)),
    };
    // What they cost is in the lines of their plans.
    let queries = running_queries::views(&api).await?.into_iter().map(QueryView::without_charges);
    let queries = queries.map(serde_json::to_value);
    let queries = queries.filter_map(Result::ok).collect();
    let begin = move |engine: &mut Engine| engine.evidence(&consumer, span, queries);
    let draft = api.engine.ask(begin).await??;
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
    Ok(Json(EvidenceAnswer { text, signed }).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    #[tokio::test]
    async fn consumers_wait_for_a_place_in_the_order_in_which_they_ask() {
        let places = StatementSlots::new();
        let ann = places.take("ann", LONG).await.unwrap();
        let bob = places.take("bob", LONG).await.unwrap();
        assert_eq!(places.take("eve", Duration::ZERO).await.unwrap_err(), BusyError::All);
        let mut eve = Box::pin(places.take("eve", LONG));
        assert!(ready(&mut eve).await.is_none());
        // One that waits is her own as well.
        assert_eq!(places.take("eve", LONG).await.unwrap_err(), BusyError::Own);
        let mut dan = Box::pin(places.take("dan", LONG));
        assert!(ready(&mut dan).await.is_none());
        drop(ann);
        // One that asks again is behind those who wait.
        assert_eq!(places.take("ann", Duration::ZERO).await.unwrap_err(), BusyError::All);
        assert!(ready(&mut dan).await.is_none());
        let eve = ready(&mut eve).await.unwrap().unwrap();
        drop((bob, eve));
        drop(dan.await.unwrap());
        drop(places.take("ann", Duration::ZERO).await.unwrap());
    }

    /// What is there already.
    async fn ready<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        timeout(Duration::ZERO, future).await.ok()
    }

    #[test]
    fn a_service_that_writes_enough_statements_says_when_to_ask_again() {
        for busy in [BusyError::Own, BusyError::All] {
            let refused = later(busy);
            assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(refused.headers()[RETRY_AFTER], "10");
        }
    }
}
