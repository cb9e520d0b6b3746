//! The requests that a verifier answers, over mutual TLS. Each says which shard
//! of how many it means: one that is sent astray is refused, since a tag that is
//! spent on two shards would be two sessions.
//!
//! | request | by | does |
//! | --- | --- | --- |
//! | `…/login`, `…/re-up`, `…/logout` | gateway | as the credential's protocol says; the answer is durable |
//! | `…/session` | gateway | what is known of a session |
//! | `…/code` | gateway (a gate) | a login code, all or none |
//! | `…/hold`, `…/keep`, `…/hold-for-code`, `…/release` | verifier | tags for other shards' sessions |
//!
//! All start with `/v1/shards/{shard}/{of}` and are `POST`.

use crate::network::answer::{ApiError, caller, decode, encode};
use crate::network::door::in_time;
use crate::network::role::Role;
use crate::network::wire::Done;
use crate::pass::clock;
use crate::pass::link::LinkError;
use crate::pass::refusal;
use crate::pass::verifier::engine::{Begun, Job, Place};
use crate::pass::verifier::shards::Shards;
use crate::service::engine::Handle;
use crate::service::http::Peer;
use crate::service::metrics::Requests;
use alpheus_access_pass::code::{self, GateNonce};
use alpheus_access_pass::error::CodeRefused;
use alpheus_access_pass::gateway::session_of;
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::error::Refused;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, Logout, ReUp, SessionId};
use alpheus_anonymous_credential::sessions::codes::{GivenUp, code_tags};
use alpheus_anonymous_credential::sessions::peers::Wanted;
use alpheus_anonymous_credential::sessions::{Moved, Standing};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};

/// The largest body: a code and what is around it.
const LARGEST: usize = 16 << 10;

/// What requests need.
#[derive(Clone)]
pub struct Api {
    /// The shard.
    pub engine: Handle<Job>,
    /// The configuration.
    pub pinned: Pinned,
    /// Which shard this is.
    pub place: Place,
    /// The ways to all shards; its own is never taken.
    pub shards: Shards,
    /// Counts requests.
    pub requests: Requests,
}

/// A code that a gate has read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scan {
    /// Drawn by the gate for this scan; the same again only to ask again.
    pub scan: [u8; 32],
    /// What the gate showed, if it shows something.
    pub nonce: Option<GateNonce>,
    /// What was read.
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
    in_time(router, LARGEST)
}

/// Refuses what is meant for another shard, or for another number of them.
async fn addressed(
    State(api): State<Api>,
    Path(meant): Path<(u64, u64)>,
    request: Request,
    next: Next,
) -> Response {
    let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let Place { shard, of } = api.place;
    let answer = if meant == (shard, of) {
        next.run(request).await
    } else {
        let detail = format!("this is shard {shard} of {of}; say the same verifiers everywhere");
        ApiError::new(StatusCode::MISDIRECTED_REQUEST, "shard", detail).into_response()
    };
    let status = answer.status().as_u16();
    api.requests.count(name, status);
    answer
}

impl From<LinkError> for ApiError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Refused(problem) => problem.into(),
            error => {
                tracing::warn!(%error, "another process does not answer");
                let detail = "another process of the service does not answer; try again";
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unreachable", detail)
            }
        }
    }
}

fn misplaced() -> ApiError {
    ApiError::new(StatusCode::MISDIRECTED_REQUEST, "shard", "the tag lies on another shard")
}

impl Api {
    fn here(&self, session: SessionId) -> Result<(), ApiError> {
        let home = session.0.shard(self.place.of);
        if home == self.place.shard { Ok(()) } else { Err(misplaced()) }
    }

    /// Keeps a moved session's tag, wherever it lies.
    async fn kept(&self, moved: Moved) -> Result<Standing, ApiError> {
        let wanted = moved.wanted(&self.pinned);
        if self.place.has(&wanted) {
            self.engine.ask(|reply| Job::Activate(moved, reply)).await??;
        } else {
            self.shards.tell("keep", wanted.tag, &wanted).await?;
        }
        Ok(self.engine.ask(|reply| Job::Session(wanted.session, reply)).await??)
    }

    /// Takes a code that was read and is fresh.
    async fn admit(&self, code: Code, scan: Digest) -> Result<(), ApiError> {
        let tags = code_tags(&self.pinned, &code, &scan);
        let code = Box::new(code);
        let Some(proven) = self.engine.ask(|reply| Job::Code(code, scan, reply)).await?? else {
            return Ok(());
        };
        let elsewhere: Vec<&Wanted> =
            tags.iter().skip(1).filter(|wanted| !self.place.has(wanted)).collect();
        let taken = async {
            for wanted in &elsewhere {
                self.shards.tell("hold-for-code", wanted.tag, *wanted).await?;
            }
            let proven = Box::new(proven);
            Ok(self.engine.ask(|reply| Job::Admit(proven, scan, reply)).await??)
        };
        let taken: Result<(), ApiError> = taken.await;
        match taken {
            Err(error) if error.rule() == refusal::rule(Refused::Spent) => {
                self.give_up(tags, scan).await.or(Err(error))
            }
            taken => taken,
        }
    }

    /// Gives back what a refused scan holds elsewhere, unless the same scan went through,
    /// asked by another request.
    async fn give_up(&self, tags: Vec<Wanted>, scan: Digest) -> Result<(), ApiError> {
        let given_up = self.engine.ask(|reply| Job::GiveUp(tags, scan, reply)).await??;
        let GivenUp::Void(tags) = given_up else { return Ok(()) };
        for wanted in tags.iter().filter(|wanted| !self.place.has(wanted)) {
            // One that cannot be told keeps a tag that nobody will use.
            let _ = self.shards.tell("release", wanted.tag, wanted).await;
        }
        Err(Refused::Spent.into())
    }
}

async fn log_in(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    caller(&peer, &[Role::Gateway])?;
    let login = Login::from_bytes(&body, Limit::ONE).map_err(Refused::from)?;
    api.here(session_of(&api.pinned, &login))?;
    encode(&api.engine.ask(|reply| Job::LogIn(Box::new(login), reply)).await??)
}

async fn re_up(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    caller(&peer, &[Role::Gateway])?;
    let re_up = ReUp::from_bytes(&body).map_err(Refused::from)?;
    api.here(re_up.session)?;
    let begun = api.engine.ask(|reply| Job::ReUp(Box::new(re_up), reply)).await??;
    let standing = match begun {
        Begun::Done(standing) => standing,
        Begun::Moved(moved) => api.kept(moved).await?,
        Begun::Proven(proven) => {
            let wanted = proven.wanted(&api.pinned);
            api.shards.tell("hold", wanted.tag, &wanted).await?;
            let reserved = proven.dangerous_reserved_elsewhere();
            let moved = api.engine.ask(|reply| Job::Advance(reserved, reply)).await??;
            api.kept(moved).await?
        }
    };
    encode(&standing)
}

async fn log_out(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    caller(&peer, &[Role::Gateway])?;
    let logout = Logout::from_bytes(&body).map_err(Refused::from)?;
    api.engine.ask(|reply| Job::LogOut(logout, reply)).await??;
    encode(&Done {})
}

async fn session(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    caller(&peer, &[Role::Gateway])?;
    let id: SessionId = decode(&body)?;
    encode(&api.engine.ask(|reply| Job::Session(id, reply)).await??)
}

async fn scan(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let gate = caller(&peer, &[Role::Gateway])?.name;
    let Scan { scan, nonce, shown } = decode(&body)?;
    let code = code::read(&api.pinned, clock::now(), nonce.as_ref(), &shown);
    let code = code.map_err(|refused: CodeRefused| ApiError::from(refused))?;
    api.here(code.session(&api.pinned))?;
    let scan = labelled(labels::PASS_SCAN, &[gate.as_bytes(), &scan]);
    api.admit(code, scan).await?;
    encode(&Done {})
}

async fn hold(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let wanted = for_peer(&api, &peer, &body)?;
    api.engine.ask(|reply| Job::Hold(wanted, reply)).await??;
    encode(&Done {})
}

async fn keep(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let wanted = for_peer(&api, &peer, &body)?;
    api.engine.ask(|reply| Job::Keep(wanted, reply)).await??;
    encode(&Done {})
}

async fn hold_for_code(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let wanted = for_peer(&api, &peer, &body)?;
    api.engine.ask(|reply| Job::HoldForCode(wanted, reply)).await??;
    encode(&Done {})
}

async fn release(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let wanted = for_peer(&api, &peer, &body)?;
    api.engine.ask(|reply| Job::Release(wanted, reply)).await??;
    encode(&Done {})
}

/// What another verifier asks of a tag that lies here.
fn for_peer(api: &Api, peer: &Peer, body: &[u8]) -> Result<Wanted, ApiError> {
    caller(peer, &[Role::Verifier])?;
    let wanted: Wanted = decode(body)?;
    if api.place.has(&wanted) { Ok(wanted) } else { Err(misplaced()) }
}
