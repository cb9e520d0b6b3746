//! The local proxy: any browser, curl or player speaks plain HTTP to it. It stamps each
//! request and forwards it.

use crate::client::browser::{Door, expire, inward, outward, stale};
use crate::client::session::{CurrentSession, LiveSession, Order};
use crate::forward::{ForwardError, forward};
use alpheus_access_pass::request::{HEADER, Target};
use alpheus_node::network::answer::ApiError;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::body::Body as _;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a request waits for a session.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a request without a body is sent again in its session: the gateway may have been
/// restarted, and an epoch's border may come before the request reaches it.
const RESENDS: usize = 2;

/// The state that requests share.
#[derive(Clone)]
pub struct Local {
    /// Checks requests.
    pub door: Arc<Door>,
    /// The session.
    pub current: CurrentSession,
    /// The session's driver.
    pub orders: mpsc::Sender<Order>,
}

/// The routes.
pub fn router(local: Local) -> Router {
    Router::new()
        .route("/.alpheus/local/open", get(open))
        .route("/.alpheus/local/logout", post(log_out))
        .fallback(serve)
        .with_state(local)
}

fn forbidden(error: &impl ToString) -> Response {
    ApiError::new(StatusCode::FORBIDDEN, "local", error.to_string()).into_response()
}

/// Sets the browser's cookie, and redirects to the service.
async fn open(State(local): State<Local>, request: Request) -> Response {
    if let Err(error) = local.door.check_host(request.headers()) {
        return forbidden(&error);
    }
    let Some(cookie) = local.door.cookie(request.uri()) else {
        return forbidden(&"this is not the address that the client printed");
    };
    let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, HeaderValue::from_static("/"))];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Ends the session and the client.
async fn log_out(State(local): State<Local>, headers: HeaderMap) -> Response {
    if let Err(error) = local.door.check(&headers) {
        return forbidden(&error);
    }
    match local.orders.send(Order::LogOut).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(_) => ApiError::failed("the client is already stopping").into_response(),
    }
}

/// Stamps and forwards a request.
async fn serve(State(local): State<Local>, request: Request) -> Response {
    if let Err(error) = local.door.check(request.headers()) {
        return forbidden(&error);
    }
    // A request without a body can be repeated.
    let again = request.body().is_end_stream().then(|| copy(&request));
    let Some(mut live) = local.live(None).await else { return no_session() };
    let mut response = send(&live, request).await;
    let Some(again) = again else { return response };
    for _ in 0..RESENDS {
        if !refused_by_gateway(&response) {
            break;
        }
        // All requests of a page may notice it together. If the queue is full, an order is
        // already waiting.
        let _ = local.orders.try_send(Order::Reconnect(live.clone()));
        let Some(next) = local.live(Some(&live)).await else { break };
        // Another session: the same address and headers in it would link the two.
        if next.jar != live.jar {
            return session_over();
        }
        response = send(&next, copy(&again)).await;
        live = next;
    }
    response
}

fn copy(request: &Request) -> Request {
    let mut copy = Request::new(Body::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

fn refused_by_gateway(response: &Response) -> bool {
    let scheme = response.headers().get(header::WWW_AUTHENTICATE);
    response.status() == StatusCode::UNAUTHORIZED
        && scheme.is_some_and(|scheme| scheme == "Alpheus-Pass")
}

fn no_session() -> Response {
    let detail = "there is no session; the pass may be in use, or the gateway is unreachable";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "no-session", detail).into_response()
}

fn session_over() -> Response {
    let detail = "the request's session is over, and another has begun; send the request again";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "session-over", detail).into_response()
}

impl Local {
    /// The session, other than `not`.
    async fn live(&self, not: Option<&Arc<LiveSession>>) -> Option<Arc<LiveSession>> {
        let mut current = self.current.clone();
        let fits = |live: &Option<Arc<LiveSession>>| {
            live.as_ref().is_some_and(|live| not.is_none_or(|not| !Arc::ptr_eq(live, not)))
        };
        let found = tokio::time::timeout(SESSION_TIMEOUT, current.wait_for(fits)).await;
        found.ok()?.ok()?.clone()
    }
}

async fn send(live: &LiveSession, mut request: Request) -> Response {
    let base = live.link.base();
    let (authority, origin) = (base.authority(), base.origin());
    let stale = stale(request.headers(), &live.jar);
    outward(request.headers_mut(), &live.jar, &authority, &origin);
    let local = request.uri().path().to_owned();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let target = Target { method: request.method().as_str(), authority: &authority, path };
    let stamp = live.stamper.lock().unwrap_or_else(PoisonError::into_inner).stamp(&target);
    let stamp = stamp.ok().and_then(|stamp| HeaderValue::from_str(&stamp.to_string()).ok());
    let Some(stamp) = stamp else { return no_session() };
    request.headers_mut().insert(HEADER, stamp);
    match forward(&live.link, request, None, ()).await {
        Ok(mut response) => {
            inward(response.headers_mut(), &live.jar, &origin);
            expire(response.headers_mut(), &stale, &local);
            response
        }
        Err(ForwardError::Cut) => no_session(),
        Err(error @ ForwardError::Tunnel) => {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", error.to_string())
                .into_response()
        }
        Err(ForwardError::Link(error)) => {
            let detail = error.to_string();
            ApiError::new(StatusCode::BAD_GATEWAY, "gateway", detail).into_response()
        }
    }
}
