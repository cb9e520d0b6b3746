//! Requests to the gateway itself, under `/.alpheus/pass`. All other requests are for the
//! service behind it.
//!
//! | request | effect |
//! | --- | --- |
//! | `GET /.alpheus/pass` | returns fingerprint, challenge and agreement key |
//! | `POST …/login`, `…/re-up` | forwarded to the session's verifier, and acknowledged |
//! | `POST …/connect` | a holder authenticates for a session, with a fresh key |
//! | `POST …/logout` | ends the session |

use crate::gateway::Api;
use crate::refusal::Refusal;
use alpheus_access_pass::error::GatewayError;
use alpheus_access_pass::gateway::session_of;
use alpheus_access_pass::messages::{Acknowledgement, Connect};
use alpheus_anonymous_credential::error::VerifierError;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, Logout, ReUp, SessionId};
use alpheus_anonymous_credential::sessions::SessionStatus;
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::door::in_time;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{self, HeaderName};
use axum::routing::{get, post};
use std::sync::Arc;

/// The prefix of these requests.
pub const PATH: &str = "/.alpheus/pass";
/// The largest body is a login.
const MAX_BODY: usize = 1024;

/// A response that no cache may store.
type Answer = Result<([(HeaderName, &'static str); 2], Vec<u8>), Refusal>;

fn answer(bytes: Vec<u8>) -> Answer {
    let kind = (header::CONTENT_TYPE, "application/octet-stream");
    Ok(([kind, (header::CACHE_CONTROL, "no-store")], bytes))
}

/// The routes.
pub fn router() -> Router<Arc<Api>> {
    let router = Router::new()
        .route("/", get(hello))
        .route("/login", post(log_in))
        .route("/re-up", post(re_up))
        .route("/connect", post(connect))
        .route("/logout", post(log_out))
        .fallback(|| async { ApiError::missing("a gateway knows no such request") });
    in_time(router, MAX_BODY)
}

async fn hello(State(api): State<Arc<Api>>) -> Answer {
    answer(api.sessions.hello().to_bytes())
}

async fn log_in(State(api): State<Arc<Api>>, body: Bytes) -> Answer {
    let login = Login::from_bytes(&body, Limit::ONE).map_err(VerifierError::from)?;
    api.ask("login", session_of(&api.pinned, &login), body).await
}

async fn re_up(State(api): State<Arc<Api>>, body: Bytes) -> Answer {
    let re_up = ReUp::from_bytes(&body).map_err(VerifierError::from)?;
    api.ask("re-up", re_up.session, body).await
}

async fn connect(State(api): State<Arc<Api>>, body: Bytes) -> Answer {
    let connect = Connect::from_bytes(&body)?;
    // Requests without our challenge do not reach the verifier.
    api.sessions.recognises(&connect.challenge)?;
    if !api.sessions.knows(connect.session) {
        api.refresh(connect.session).await?;
    }
    let connected = api.sessions.connect(&connect);
    api.count(connected.as_ref().err());
    answer(connected?.to_bytes())
}

async fn log_out(State(api): State<Arc<Api>>, body: Bytes) -> Answer {
    let logout = Logout::from_bytes(&body).map_err(VerifierError::from)?;
    match api.sessions.log_out(&logout) {
        // The verifier knows the session. It was never connected here.
        Ok(()) | Err(GatewayError::NoSession) => {}
        Err(denied) => return Err(denied.into()),
    }
    let tag = logout.session.0;
    api.shards
        .ask::<alpheus_node::network::answer::EmptyAnswer>("logout", tag, body.to_vec())
        .await?;
    answer(Vec::new())
}

impl Api {
    /// Sends a login or re-up to its shard, and records the session's new status.
    async fn ask(&self, name: &str, session: SessionId, body: Bytes) -> Answer {
        let status: SessionStatus = self.shards.ask(name, session.0, body.to_vec()).await?;
        self.sessions.note(status);
        let SessionStatus { session, epoch, .. } = status;
        answer(Acknowledgement { session, epoch }.to_bytes())
    }

    /// Asks the verifier for the current status of a session.
    pub(super) async fn refresh(&self, session: SessionId) -> Result<(), Refusal> {
        let id = postcard::to_allocvec(&session).unwrap_or_default();
        let status: SessionStatus = self.shards.ask("session", session.0, id).await?;
        self.sessions.note(status);
        Ok(())
    }
}
