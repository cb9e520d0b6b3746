//! Requests of hosts of controllers.

use super::Api;
use super::problem::runtime_failed;
use crate::server::registry::IntroductionError;
use crate::wire::{Introduction, Mail, Notice, NoticeReply, Welcome};
use alpheus_node::network::answer::{ApiError, caller, decode, encode};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use std::time::Duration;

/// Maximum time that a host may ask to wait.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Registers a host's controllers.
pub(super) async fn introduce(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let host = caller(&peer, &[Role::Controller])?.name;
    let introduction: Introduction = decode(&body)?;
    api.engine.ask(move |engine| engine.introduce(&host, &introduction)).await??;
    let wait = u32::try_from(api.windows_wait.0 / 1000).unwrap_or(u32::MAX);
    encode(&Welcome { life: api.outboxes.life(), wait })
}

/// Registers streams, later choices of their owners, and withdrawals.
pub(super) async fn register(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let host = caller(&peer, &[Role::Controller])?.name;
    let notices: Vec<Notice> = decode(&body)?;
    let mut answer = Vec::with_capacity(notices.len());
    for notice in notices {
        let host = host.clone();
        // One at a time, so that other work can run in between.
        answer.push(match api.engine.ask(move |engine| engine.note(&host, notice)).await? {
            Ok(()) => NoticeReply::Yes,
            Err(IntroductionError::Runtime(error)) => return Err(runtime_failed(error)),
            Err(IntroductionError::Moved(stands)) => NoticeReply::Moved(stands),
            Err(refused) => NoticeReply::Refused { why: refused.to_string() },
        });
    }
    encode(&answer)
}

/// Takes messages of controllers and answers with messages for them.
pub(super) async fn mail(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let host = caller(&peer, &[Role::Controller])?.name;
    let Mail { messages, wait, received } = decode(&body)?;
    if !messages.is_empty() {
        let host = host.clone();
        let received = api.engine.ask(move |engine| engine.receive(&host, messages)).await?;
        received.map_err(runtime_failed)?;
    }
    let wait = Duration::from_millis(u64::from(wait)).min(MAX_WAIT);
    encode(&api.outboxes.fetch(&host, received, wait).await)
}
