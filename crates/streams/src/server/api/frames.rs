//! Raw reads by a consumer with the owner's permission: ciphertext, in order of arrival.

use super::Api;
use super::problem::runtime_failed;
use crate::server::engine::Engine;
use crate::wire::{FramesRequest, FramesResponse};
use alpheus_encrypted_stream::certificate::consumer_id;
use alpheus_encrypted_stream::error::GrantError;
use alpheus_encrypted_stream::frame::Frame;
use alpheus_encrypted_stream::grant::{self, Days};
use alpheus_encrypted_stream::keys::DAY;
use alpheus_encrypted_stream::tick::frame::TickFrame;
use alpheus_node::network::answer::{ApiError, caller, decode, encode};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_policy::ids::StreamId;
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::storage::device_partition;
use alpheus_time::Span;
use alpheus_transport::{Limits, Offset};
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;

/// Frames of the granted days, after an offset.
pub(super) async fn frames(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let reader = caller(&peer, &[Role::Consumer])?.name;
    let asked: FramesRequest = decode(&body)?;
    let after = asked.after;
    let granted = move |engine: &mut Engine| granted(engine, &reader, &asked);
    let granted = api.engine.ask(granted).await?;
    let (stream, days) = granted.map_err(|refused| ApiError::policy(refused.to_string()))?;
    let read = move || read(&api, stream, days, after);
    let read = tokio::task::spawn_blocking(read).await;
    let read = read.map_err(|_| ApiError::failed("reading was cut short"))?;
    encode(&read.map_err(runtime_failed)?)
}

/// The stream and days that its owner granted and has not withdrawn.
fn granted(
    engine: &mut Engine,
    reader: &str,
    asked: &FramesRequest,
) -> Result<(StreamId, Days), GrantError> {
    let certified = engine.deployment.consumer(&asked.certificate);
    let certified = certified.map_err(|_| GrantError::Certificate)?;
    if [&asked.certificate, &asked.owner].iter().any(|c| engine.registry.has_revoked(&c.digest())) {
        return Err(GrantError::Revoked);
    }
    let signer = engine.deployment.owner(&asked.owner).map_err(|_| GrantError::Unsigned)?;
    let stream = asked.signed.open(signer.key()).map_err(|_| GrantError::Unsigned)?.stream;
    let known = engine.manager.catalog.streams().find(|known| known.stream == stream);
    let owner = known.ok_or(GrantError::NotGranted)?.owner;
    let opened = grant::open(&asked.signed, &signer, &owner)?;
    if certified.party.name != reader || consumer_id(&certified) != opened.reader {
        return Err(GrantError::OtherReader);
    }
    Ok((stream, opened.days.ok_or(GrantError::NotGranted)?))
}

fn read(
    api: &Api,
    stream: StreamId,
    days: Days,
    after: u64,
) -> Result<FramesResponse, RuntimeError> {
    let partition = device_partition(&api.topics, &stream.0);
    let start = Offset(after.max(api.store.bounds(&partition)?.start.0));
    let fetched = api.store.read(&partition, start, Limits::default())?;
    let next = fetched.next_offset().0;
    let own = fetched.filter(|record| record.key.as_ref() == stream.0);
    let frames = own.filter(|record| is_of(days, &record.value, api.tick));
    Ok(FramesResponse { frames: frames.map(|record| record.value.to_vec()).collect(), next })
}

/// Whether a frame is of these days. The border or tick that ends the last day is, though it
/// lies on the next day.
fn is_of(days: Days, frame: &[u8], tick: Option<Span>) -> bool {
    let Some(tick) = tick else {
        let ends = |frame: &Frame<_>| frame.link().is_some_and(|link| days.contain(link.previous));
        return Frame::parse(frame).is_ok_and(|frame| days.contain(frame.t()) || ends(&frame));
    };
    let (from, to) = match TickFrame::parse(frame, tick) {
        Ok(TickFrame::Opening(opening)) => (opening.head.at, opening.head.at),
        Ok(TickFrame::Tick(claim, _) | TickFrame::Gap(claim)) => (claim.from, claim.to),
        Err(_) => return false,
    };
    days.contain(from) || days.contain(to) || (from.0 / DAY < days.first && days.last < to.0 / DAY)
}
