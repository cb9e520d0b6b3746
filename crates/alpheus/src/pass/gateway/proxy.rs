//! The reverse proxy, and forward authentication for proxies that are there
//! already.

use crate::network::answer::ApiError;
use crate::pass::forward::{
    Cutting, NotForwarded, forward, strip_forwarded, strip_ours, wanted_upgrade,
};
use crate::pass::gateway::Api;
use crate::pass::gateway::sessions::Permit;
use crate::service::http::Closer;
use alpheus_access_pass::error::Denied;
use alpheus_access_pass::gateway::Admitted;
use alpheus_access_pass::request::{HEADER, Stamp, Target};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64URL_NOPAD;
use std::sync::Arc;

/// Any request to the service: checked, stripped of its stamp, handed on.
pub(super) async fn serve(
    State(api): State<Arc<Api>>,
    Extension(closer): Extension<Closer>,
    request: Request,
) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let admitted = admit(&api, request.headers(), method.as_str(), &uri).await;
    api.count(admitted.as_ref().err());
    let permit = match admitted {
        Ok(permit) => permit,
        Err(denied) => return refuse(denied),
    };
    let Some(upstream) = &api.upstream else {
        return ApiError::missing("this gateway answers forward authentication only")
            .into_response();
    };
    let mut request = request;
    strip_ours(request.headers_mut());
    if !api.fronted {
        strip_forwarded(request.headers_mut());
    }
    let cutting = Cutting { cut: permit.cut(), closer };
    match forward(upstream, request, Some(cutting), permit).await {
        Ok(response) => response,
        Err(NotForwarded::Cut) => refuse(Denied::Lapsed),
        Err(error @ NotForwarded::Tunnel) => {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", error.to_string())
                .into_response()
        }
        Err(NotForwarded::Link(error)) => {
            tracing::warn!(%error, "the service behind this gateway does not answer");
            let detail = "the service behind this gateway does not answer";
            ApiError::new(StatusCode::BAD_GATEWAY, "upstream", detail).into_response()
        }
    }
}

async fn admit(api: &Api, headers: &HeaderMap, method: &str, uri: &Uri) -> Result<Permit, Denied> {
    let stamp = stamp(headers)?;
    let authority = one(headers, &header::HOST)?.ok_or(Denied::Malformed)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let target = Target { method, authority, path };
    match api.sessions.admit(&stamp, &target) {
        // It may have been carried on at another gateway.
        Err(Denied::Lapsed) if api.refresh(stamp.session).await.is_ok() => {
            api.sessions.admit(&stamp, &target)
        }
        admitted => admitted,
    }
}

/// With what a client can do about it.
fn refuse(denied: Denied) -> Response {
    let mut response = ApiError::from(denied).into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Alpheus-Pass");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

/// The one stamp of a request.
fn stamp(headers: &HeaderMap) -> Result<Stamp, Denied> {
    one(headers, &HeaderName::from_static(HEADER))?.ok_or(Denied::NoPass)?.parse()
}

/// The one value of a header; two would be read differently by different parties.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Denied> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Denied::Malformed),
        _ => Err(Denied::Malformed),
    }
}

/// Names under which proxies say what the request was: nginx as our guide sets
/// them; Traefik and Caddy.
const METHODS: [&str; 2] = ["x-original-method", "x-forwarded-method"];
const PATHS: [&str; 2] = ["x-original-uri", "x-forwarded-uri"];
const HOSTS: [&str; 2] = ["x-original-host", "x-forwarded-host"];

/// A proxy asks about a request by headers.
pub(super) async fn check(State(api): State<Arc<Api>>, request: Request) -> Response {
    let headers = request.headers();
    let said = || -> Result<Target<'_>, Denied> {
        let read = |names: [&'static str; 2]| said(headers, names);
        Ok(Target { method: read(METHODS)?, path: read(PATHS)?, authority: read(HOSTS)? })
    };
    match said() {
        Ok(target) => answer(&api, headers, &target).await,
        Err(denied) => refuse(denied),
    }
}

/// A proxy asks with the request's own method, host and, after a prefix, path
/// (Envoy).
pub(super) async fn check_path(State(api): State<Arc<Api>>, request: Request) -> Response {
    let whole = request.uri().path_and_query().map_or("", |path| path.as_str());
    let (path, headers) = (whole.strip_prefix("/path").unwrap_or("/"), request.headers());
    match one(headers, &header::HOST) {
        Ok(Some(authority)) => {
            let target = Target { method: request.method().as_str(), authority, path };
            answer(&api, headers, &target).await
        }
        _ => refuse(Denied::Malformed),
    }
}

fn said<'a>(headers: &'a HeaderMap, names: [&'static str; 2]) -> Result<&'a str, Denied> {
    let [first, second] = names.map(HeaderName::from_static);
    match (one(headers, &first)?, one(headers, &second)?) {
        (Some(said), None) | (None, Some(said)) => Ok(said),
        _ => Err(Denied::Malformed),
    }
}

/// 204 with the session, or 401. Only the start of a request is seen here, so
/// none may become something else: a WebSocket would outlive its session.
async fn answer(api: &Api, headers: &HeaderMap, target: &Target<'_>) -> Response {
    let said = headers.get("x-original-upgrade").is_some_and(|value| !value.is_empty());
    // Traefik and Caddy take `Upgrade` off before they ask, but not these.
    let socket = headers.keys().any(|name| name.as_str().starts_with("sec-websocket-"));
    if said || socket || wanted_upgrade(headers).is_some() {
        let detail = "upgrades need the reverse proxy; forward authentication sees no end of them";
        return ApiError::new(StatusCode::FORBIDDEN, "no-upgrade", detail).into_response();
    }
    let checked = match stamp(headers) {
        Ok(stamp) => match api.sessions.check(&stamp, target) {
            Err(Denied::Lapsed) if api.refresh(stamp.session).await.is_ok() => {
                api.sessions.check(&stamp, target)
            }
            checked => checked,
        },
        Err(denied) => Err(denied),
    };
    api.count(checked.as_ref().err());
    match checked {
        Ok(Admitted { session, until }) => {
            let session = BASE64URL_NOPAD.encode(session.0.0.as_bytes());
            let until = (until.0 / 1_000_000).to_string();
            let headers = [("alpheus-session", session), ("alpheus-until", until)];
            (StatusCode::NO_CONTENT, headers, Body::empty()).into_response()
        }
        Err(denied) => refuse(denied),
    }
}
