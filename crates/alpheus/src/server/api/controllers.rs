//! What hosts of controllers send and fetch.

use super::Api;
use crate::network::answer::{ApiError, caller, decode, encode};
use crate::network::role::Role;
use crate::network::wire::{Introduction, Mail, Noted, Notice, Welcome};
use crate::server::registry::NotIntroduced;
use crate::service::http::Peer;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use std::time::Duration;

/// The longest that a host may ask to wait.
const LONGEST: Duration = Duration::from_secs(30);

/// Takes note of a host's controllers.
pub(super) async fn introduce(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let host = caller(&peer, &[Role::Controller])?.name;
    let introduction: Introduction = decode(&body)?;
    api.engine.ask(move |engine| engine.introduce(&host, &introduction)).await??;
    encode(&Welcome { life: api.outboxes.life() })
}

/// Takes note of streams, of their owners' later choices, or that they withdrew.
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
        // One at a time, so that others' work comes between them.
        answer.push(match api.engine.ask(move |engine| engine.note(&host, notice)).await? {
            Ok(()) => Noted::Yes,
            Err(NotIntroduced::Runtime(error)) => return Err(error.into()),
            Err(refused) => Noted::Refused { why: refused.to_string() },
        });
    }
    encode(&answer)
}

/// Takes what controllers say; answers with what there is to hear.
pub(super) async fn mail(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let host = caller(&peer, &[Role::Controller])?.name;
    let Mail { said, wait, heard } = decode(&body)?;
    if !said.is_empty() {
        let host = host.clone();
        api.engine.ask(move |engine| engine.hear(&host, said)).await??;
    }
    let wait = Duration::from_millis(u64::from(wait)).min(LONGEST);
    encode(&api.outboxes.fetch(&host, heard, wait).await)
}
