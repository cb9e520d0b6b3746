//! Requests of devices.

use super::Api;
use super::problem::store_failed;
use crate::wire::{Upload, UploadStatus};
use alpheus_node::network::answer::{ApiError, caller, decode, encode};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;

/// Takes frames into the log; once they are durable, answers with each upload's outcome.
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
    let became = became.map_err(|_| ApiError::failed("the upload was cut short"))?;
    let mut became = became.map_err(store_failed)?.into_iter();
    // The engine sums the new frames in its next turn.
    let answer: Vec<UploadStatus> = own
        .into_iter()
        .map(|own| if own { became.next() } else { None }.unwrap_or(UploadStatus::NotYours))
        .collect();
    encode(&answer)
}
