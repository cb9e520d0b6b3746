//! The requests that a verifier answers, over mutual TLS. Each names its shard and the
//! number of shards, and a misdirected request is refused: a tag that two shards accept
//! would allow two sessions.
//!
//! | request | from | effect |
//! | --- | --- | --- |
//! | `…/login`, `…/re-up`, `…/logout` | gateway | as in the credential's protocol; the answer is durable |
//! | `…/session` | gateway | returns a session's status |
//! | `…/code` | gateway (a gate) | spends all tags of a login code, or none |
//! | `…/hold`, `…/keep`, `…/hold-for-code`, `…/release` | verifier | tags for sessions of other shards |
//!
//! All start with `/v1/shards/{shard}/{of}` and are `POST`.

use crate::refusal;
use crate::refusal::Refusal;
use crate::verifier::engine::{Call, ReUpProgress, is_on};
use crate::verifier::shards::Shards;
use alpheus_access_pass::code::{self, GateNonce};
use alpheus_access_pass::error::CodeError;
use alpheus_access_pass::gateway::session_of;
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::error::VerifierError;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, Logout, ReUp, SessionId};
use alpheus_anonymous_credential::sessions::codes::{VoidOutcome, code_tags};
use alpheus_anonymous_credential::sessions::peers::HoldRequest;
use alpheus_anonymous_credential::sessions::{MovedReUp, SessionStatus};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_node::clock;
use alpheus_node::engine::Handle;
use alpheus_node::ledger::ShardIndex;
use alpheus_node::network::answer::EmptyAnswer;
use alpheus_node::network::answer::{ApiError, caller, decode, encode};
use alpheus_node::network::door::in_time;
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_node::service::metrics::Requests;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};

/// The largest body is a login code with its scan.
const MAX_BODY: usize = 16 << 10;

/// The state that requests share.
#[derive(Clone)]
pub struct Api {
    /// The shard.
    pub engine: Handle<Call>,
    /// The configuration.
    pub pinned: PinnedConfiguration,
    /// The index of this shard.
    pub place: ShardIndex,
    /// Links to all shards. The link to this one is never used.
    pub shards: Shards,
    /// Counts requests.
    pub requests: Requests,
}

/// A code that a gate has read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scan {
    /// Drawn by the gate for this scan. A retry has the same value.
    pub scan: [u8; 32],
    /// The nonce that the gate displayed, if it displays one.
    pub nonce: Option<GateNonce>,
    /// The bytes of the code.
    pub shown: Vec<u8>,
}

/// The routes.
pub fn router(api: Api) -> Router {
    let shard = Router::new()
        .route("/login", post(log_in))
        .route("/re-up", post(re_up))
        .route("/logout", post(log_out))
        .route("/session", post(session))
        .route("/code", post(scan))
        .route("/hold", post(hold))
        .route("/keep", post(keep))
        .route("/hold-for-code", post(hold_for_code))
        .route("/release", post(release))
        .route_layer(middleware::from_fn_with_state(api.clone(), addressed));
    let router = Router::new().nest("/v1/shards/{shard}/{of}", shard).with_state(api);
    in_time(router, MAX_BODY)
}

/// Refuses requests for another shard, or for another number of shards.
async fn addressed(
    State(api): State<Api>,
    Path(target): Path<(u64, u64)>,
    request: Request,
    next: Next,
) -> Response {
    let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let ShardIndex { index: shard, count: of } = api.place;
    let answer = if target == (shard, of) {
        next.run(request).await
    } else {
        let detail = format!(
            "this is shard {shard} of {of}; configure the same list of verifiers everywhere"
        );
        ApiError::new(StatusCode::MISDIRECTED_REQUEST, "shard", detail).into_response()
    };
    let status = answer.status().as_u16();
    api.requests.count(name, status);
    answer
}

fn misplaced() -> ApiError {
    ApiError::new(StatusCode::MISDIRECTED_REQUEST, "shard", "the tag belongs to another shard")
}

impl Api {
    fn check_here(&self, session: SessionId) -> Result<(), Refusal> {
        let home = session.0.shard(self.place.count);
        if home == self.place.index { Ok(()) } else { Err(misplaced().into()) }
    }

    /// Activates a moved session's tag, on whichever shard it is.
    async fn activate(&self, moved: MovedReUp) -> Result<SessionStatus, Refusal> {
        let wanted = moved.hold_request(&self.pinned);
        if is_on(self.place, &wanted) {
            self.engine.ask(|reply| Call::Activate(moved, reply)).await??;
        } else {
            self.shards.send("keep", wanted.tag, &wanted).await?;
        }
        Ok(self.engine.ask(|reply| Call::Session(wanted.session, reply)).await??)
    }

    /// Admits a fresh code.
    async fn admit(&self, code: Code, scan: Digest) -> Result<(), Refusal> {
        let tags = code_tags(&self.pinned, &code, &scan);
        let code = Box::new(code);
        let Some(proven) = self.engine.ask(|reply| Call::Code(code, scan, reply)).await?? else {
            return Ok(());
        };
        let elsewhere: Vec<&HoldRequest> =
            tags.iter().skip(1).filter(|wanted| !is_on(self.place, wanted)).collect();
        let taken = async {
            for wanted in &elsewhere {
                self.shards.send("hold-for-code", wanted.tag, *wanted).await?;
            }
            let proven = Box::new(proven);
            Ok(self.engine.ask(|reply| Call::Admit(proven, scan, reply)).await??)
        };
        let taken: Result<(), Refusal> = taken.await;
        match taken {
            Err(error) if error.rule() == refusal::rule(VerifierError::Spent) => {
                self.void_scan(tags, scan).await.or(Err(error))
            }
            taken => taken,
        }
    }

    /// Releases the tags that a refused scan holds on other shards, unless another request
    /// of the same scan was admitted.
    async fn void_scan(&self, tags: Vec<HoldRequest>, scan: Digest) -> Result<(), Refusal> {
        let outcome = self.engine.ask(|reply| Call::VoidScan(tags, scan, reply)).await??;
        let VoidOutcome::Void(tags) = outcome else { return Ok(()) };
        for wanted in tags.iter().filter(|wanted| !is_on(self.place, wanted)) {
            // If its shard is unreachable, the tag stays held, and nobody will use it.
            let _ = self.shards.send("release", wanted.tag, wanted).await;
        }
        Err(VerifierError::Spent.into())
    }
}

async fn log_in(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    caller(&peer, &[Role::Gateway])?;
    let login = Login::from_bytes(&body, Limit::ONE).map_err(VerifierError::from)?;
    api.check_here(session_of(&api.pinned, &login))?;
    Ok(encode(&api.engine.ask(|reply| Call::LogIn(Box::new(login), reply)).await??)?)
}

async fn re_up(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    caller(&peer, &[Role::Gateway])?;
    let re_up = ReUp::from_bytes(&body).map_err(VerifierError::from)?;
    api.check_here(re_up.session)?;
    let progress = api.engine.ask(|reply| Call::ReUp(Box::new(re_up), reply)).await??;
    let status = match progress {
        ReUpProgress::Done(status) => status,
        ReUpProgress::Moved(moved) => api.activate(moved).await?,
        ReUpProgress::Proven(proven) => {
            let wanted = proven.hold_request(&api.pinned);
            api.shards.send("hold", wanted.tag, &wanted).await?;
            let reserved = proven.dangerous_reserved_elsewhere();
            let moved = api.engine.ask(|reply| Call::Advance(reserved, reply)).await??;
            api.activate(moved).await?
        }
    };
    Ok(encode(&status)?)
}

async fn log_out(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    caller(&peer, &[Role::Gateway])?;
    let logout = Logout::from_bytes(&body).map_err(VerifierError::from)?;
    api.engine.ask(|reply| Call::LogOut(logout, reply)).await??;
    Ok(encode(&EmptyAnswer {})?)
}

async fn session(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    caller(&peer, &[Role::Gateway])?;
    let id: SessionId = decode(&body)?;
    Ok(encode(&api.engine.ask(|reply| Call::Session(id, reply)).await??)?)
}

async fn scan(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    let gate = caller(&peer, &[Role::Gateway])?.name;
    let Scan { scan, nonce, shown } = decode(&body)?;
    let code = code::read(&api.pinned, nonce.as_ref(), &shown, clock::now());
    let code = code.map_err(|refused: CodeError| Refusal::from(refused))?;
    api.check_here(code.session(&api.pinned))?;
    let scan = labelled_hash(labels::PASS_SCAN, &[gate.as_bytes(), &scan]);
    api.admit(code, scan).await?;
    Ok(encode(&EmptyAnswer {})?)
}

async fn hold(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    let wanted = for_peer(&api, &peer, &body)?;
    api.engine.ask(|reply| Call::Hold(wanted, reply)).await??;
    Ok(encode(&EmptyAnswer {})?)
}

async fn keep(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    let wanted = for_peer(&api, &peer, &body)?;
    api.engine.ask(|reply| Call::Keep(wanted, reply)).await??;
    Ok(encode(&EmptyAnswer {})?)
}

async fn hold_for_code(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    let wanted = for_peer(&api, &peer, &body)?;
    api.engine.ask(|reply| Call::HoldForCode(wanted, reply)).await??;
    Ok(encode(&EmptyAnswer {})?)
}

async fn release(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    let wanted = for_peer(&api, &peer, &body)?;
    api.engine.ask(|reply| Call::Release(wanted, reply)).await??;
    Ok(encode(&EmptyAnswer {})?)
}

/// A request from another verifier about a tag of this shard.
fn for_peer(api: &Api, peer: &Peer, body: &[u8]) -> Result<HoldRequest, Refusal> {
    caller(peer, &[Role::Verifier])?;
    let wanted: HoldRequest = decode(body)?;
    if is_on(api.place, &wanted) { Ok(wanted) } else { Err(misplaced().into()) }
}

#[cfg(test)]
mod tests;
