//! What devices send.

use super::Api;
use crate::network::answer::{ApiError, caller, decode, encode};
use crate::network::role::Role;
use crate::network::wire::{Received, Upload};
use crate::service::http::Peer;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;

/// Takes frames; the answer, once they are durable, says what became of each upload.
pub(super) async fn events(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let producer = caller(&peer, &[Role::Producer])?.name;
    let uploads: Vec<Upload> = decode(&body)?;
    let streams: Vec<_> = uploads.iter().map(|upload| upload.stream).collect();
    let own = move |engine: &mut crate::server::engine::Engine| {
        let own = |stream| engine.registry.sends(&producer, stream);
        streams.iter().map(own).collect::<Vec<bool>>()
    };
    let own = api.engine.ask(own).await?;
    let taken = uploads.into_iter().zip(&own).filter(|(_, own)| **own).map(|(upload, _)| upload);
    let became = api.intake.take(taken.collect()).await;
    let mut became = became.map_err(|_| ApiError::failed("the upload was cut short"))??.into_iter();
    // The engine sums what has come when it looks next.
    let answer: Vec<Received> = own
        .into_iter()
        .map(|own| if own { became.next() } else { None }.unwrap_or(Received::NotYours))
        .collect();
    encode(&answer)
}
