//! Requests of devices.

use super::Api;
use super::problem::not_taken;
use crate::server::engine::Engine;
use crate::wire::{Receipt, Upload, UploadStatus};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_node::network::answer::{ApiError, caller, decode, encode};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_policy::ids::StreamId;
use alpheus_stream_runtime::refused_frames::RefusedFrame;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use std::collections::BTreeSet;

/// Takes frames into the log; once they are durable, answers with each upload's outcome.
pub(super) async fn events(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let producer = caller(&peer, &[Role::Producer])?.name;
    let uploads: Vec<Upload> = decode(&body)?;
    let streams: Vec<_> = uploads.iter().map(|upload| upload.stream).collect();
    let named = streams.clone();
    let device = producer.clone();
    let refusals = move |engine: &mut Engine| {
        let refusal = |stream| {
            let registry = &engine.registry;
            match (registry.sends(&producer, stream), registry.is_withdrawn(stream)) {
                (true, _) => None,
                (false, true) => Some(UploadStatus::Withdrawn),
                (false, false) => Some(UploadStatus::NotYours),
            }
        };
        named.iter().map(refusal).collect::<Vec<Option<UploadStatus>>>()
    };
    let refusals = api.engine.ask(refusals).await?;
    let own = uploads.into_iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none());
    let became = api.intake.take(&device, own.map(|(upload, _)| upload).collect()).await;
    let became = became.map_err(|_| ApiError::failed("the upload was cut short"))?;
    let mut became = became.map_err(not_taken)?.into_iter();
    let mut outcome = |refusal: &Option<UploadStatus>| {
        refusal.or_else(|| became.next()).unwrap_or(UploadStatus::NotYours)
    };
    let uploads: Vec<UploadStatus> = refusals.iter().map(&mut outcome).collect();
    let own = streams.into_iter().zip(refusals).filter(|(_, refusal)| refusal.is_none());
    let refused = sum_and_list_refused(&api, own.map(|(stream, _)| stream).collect()).await?;
    encode(&Receipt { uploads, refused })
}

/// Notes the certificate of a device.
pub(super) async fn introduce(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let producer = caller(&peer, &[Role::Producer])?.name;
    let certificate: Signed<Certificate> = decode(&body)?;
    let introduce = move |engine: &mut Engine| {
        let Engine { registry, manager, deployment, .. } = engine;
        registry.introduce_device(manager, deployment, &producer, &certificate)
    };
    api.engine.ask(introduce).await??;
    encode(&())
}

/// Frames that count for nothing, as far as that is known. With one frame a tick, the engine sums
/// what has come first. Otherwise it does so in its next turn, and the device learns of it with its
/// next upload.
async fn sum_and_list_refused(
    api: &Api,
    streams: BTreeSet<StreamId>,
) -> Result<Vec<RefusedFrame>, ApiError> {
    if api.tick.is_some() {
        let summed = api.engine.ask(Engine::ingest).await?;
        summed.map_err(|_| ApiError::failed("the uploads are durable, but could not be summed"))?;
    }
    Ok(streams.iter().flat_map(|stream| api.refused.take(stream)).collect())
}
