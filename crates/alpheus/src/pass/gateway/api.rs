//! What clients ask of a gateway itself, under `/.alpheus/pass`; everything else
//! is for the service behind it.
//!
//! | request | does |
//! | --- | --- |
//! | `GET /.alpheus/pass` | fingerprint, challenge, agreement key |
//! | `POST …/login`, `…/re-up` | handed to the session's verifier; acknowledged |
//! | `POST …/connect` | a holder speaks for a session, with a fresh key |
//! | `POST …/logout` | ends it |

use crate::network::answer::ApiError;
use crate::network::door::in_time;
use crate::pass::gateway::Api;
use alpheus_access_pass::error::Denied;
use alpheus_access_pass::gateway::session_of;
use alpheus_access_pass::messages::{Acknowledgement, Connect};
use alpheus_anonymous_credential::error::Refused;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, Logout, ReUp, SessionId};
use alpheus_anonymous_credential::sessions::Standing;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{self, HeaderName};
use axum::routing::{get, post};
use std::sync::Arc;

/// Where all of it is.
pub const PATH: &str = "/.alpheus/pass";
/// The largest body: a login.
const LARGEST: usize = 1024;

/// Answers are for whoever asked, now.
type Answer = Result<([(HeaderName, &'static str); 2], Vec<u8>), ApiError>;

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
    in_time(router, LARGEST)
}

async fn hello(State(api): State<Arc<Api>>) -> Answer {
    answer(api.sessions.hello().to_bytes())
}

async fn log_in(State(api): State<Arc<Api>>, body: Bytes) -> Answer {
    let login = Login::from_bytes(&body, Limit::ONE).map_err(Refused::from)?;
    api.ask("login", session_of(&api.pinned, &login), body).await
}

async fn re_up(State(api): State<Arc<Api>>, body: Bytes) -> Answer {
    let re_up = ReUp::from_bytes(&body).map_err(Refused::from)?;
    api.ask("re-up", re_up.session, body).await
}

async fn connect(State(api): State<Arc<Api>>, body: Bytes) -> Answer {
    let connect = Connect::from_bytes(&body)?;
    // Strangers do not get as far as the verifier.
    api.sessions.recognises(&connect.challenge)?;
    if !api.sessions.knows(connect.session) {
        api.refresh(connect.session).await?;
    }
    let connected = api.sessions.connect(&connect);
    api.count(connected.as_ref().err());
    answer(connected?.to_bytes())
}

async fn log_out(State(api): State<Arc<Api>>, body: Bytes) -> Answer {
    let logout = Logout::from_bytes(&body).map_err(Refused::from)?;
    match api.sessions.log_out(&logout) {
        // The verifier knows it; here it was never connected.
        Ok(()) | Err(Denied::NoSession) => {}
        Err(denied) => return Err(denied.into()),
    }
    let tag = logout.session.0;
    api.shards.ask::<crate::network::wire::Done>("logout", tag, body.to_vec()).await?;
    answer(Vec::new())
}

impl Api {
    /// Hands a login or re-up to its shard; takes note of what comes of it.
    async fn ask(&self, what: &str, session: SessionId, body: Bytes) -> Answer {
        let standing: Standing = self.shards.ask(what, session.0, body.to_vec()).await?;
        self.sessions.note(standing);
        let Standing { session, epoch, .. } = standing;
        answer(Acknowledgement { session, epoch }.to_bytes())
    }

    /// Asks the verifier about a session that it may know more of.
    pub(super) async fn refresh(&self, session: SessionId) -> Result<(), ApiError> {
        let id = postcard::to_allocvec(&session).unwrap_or_default();
        let standing: Standing = self.shards.ask("session", session.0, id).await?;
        self.sessions.note(standing);
        Ok(())
    }
}
