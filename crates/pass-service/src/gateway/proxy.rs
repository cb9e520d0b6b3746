//! The reverse proxy, and forward authentication for existing proxies.

use crate::forward::{
    ForwardError, RequestCut, forward, requested_upgrade, strip_forwarded, strip_ours,
};
use crate::gateway::Api;
use crate::gateway::sessions::Permit;
use crate::refusal::Refusal;
use alpheus_access_pass::error::GatewayError;
use alpheus_access_pass::gateway::AdmittedRequest;
use alpheus_access_pass::request::{HEADER, Stamp, Target};
use alpheus_node::network::answer::ApiError;
use alpheus_node::service::http::Closer;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64URL_NOPAD;
use std::sync::Arc;

/// Checks a request to the service, removes its stamp, and forwards it.
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
        Err(denied) => return refuse(&api, denied),
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
    let cutting = RequestCut { cut: permit.cut(), closer };
    match forward(upstream, request, Some(cutting), permit).await {
        Ok(response) => response,
        Err(ForwardError::Cut) => refuse(&api, GatewayError::Lapsed),
        Err(error @ ForwardError::Tunnel) => {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", error.to_string())
                .into_response()
        }
        Err(ForwardError::Link(error)) => {
            tracing::warn!(%error, "the service behind this gateway does not answer");
            let detail = "the service behind this gateway does not answer";
            ApiError::new(StatusCode::BAD_GATEWAY, "upstream", detail).into_response()
        }
    }
}

async fn admit(
    api: &Api,
    headers: &HeaderMap,
    method: &str,
    uri: &Uri,
) -> Result<Permit, GatewayError> {
    let stamp = stamp(headers)?;
    let authority = one(headers, &header::HOST)?.ok_or(GatewayError::Malformed)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let target = Target { method, authority, path };
    match api.sessions.admit(&stamp, &target) {
        // It may have been renewed at another gateway.
        Err(GatewayError::Lapsed) if api.refresh(stamp.session).await.is_ok() => {
            api.sessions.admit(&stamp, &target)
        }
        admitted => admitted,
    }
}

/// A refusal, with the schemes that would help: ours, by which our client recognises a gateway, and
/// that of Privacy Pass.
fn refuse(api: &Api, denied: GatewayError) -> Response {
    let mut response = Refusal::from(denied).into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Alpheus-Pass");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        let challenge = api.token_challenge().and_then(|it| it.header().parse().ok());
        challenge
            .map(|it: HeaderValue| response.headers_mut().append(header::WWW_AUTHENTICATE, it));
    }
    response
}

/// The stamp of a request.
fn stamp(headers: &HeaderMap) -> Result<Stamp, GatewayError> {
    one(headers, &HeaderName::from_static(HEADER))?.ok_or(GatewayError::NoPass)?.parse()
}

/// The only value of a header. Different parties could read different ones of two values.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, GatewayError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| GatewayError::Malformed),
        _ => Err(GatewayError::Malformed),
    }
}

/// Headers in which proxies describe the original request: nginx as in our guide, and
/// Traefik and Caddy.
const METHODS: [&str; 2] = ["x-original-method", "x-forwarded-method"];
const PATHS: [&str; 2] = ["x-original-uri", "x-forwarded-uri"];
const HOSTS: [&str; 2] = ["x-original-host", "x-forwarded-host"];

/// Forward authentication with the original request in headers.
pub(super) async fn check(State(api): State<Arc<Api>>, request: Request) -> Response {
    let headers = request.headers();
    let target = || -> Result<Target<'_>, GatewayError> {
        let read = |names: [&'static str; 2]| either(headers, names);
        Ok(Target { method: read(METHODS)?, path: read(PATHS)?, authority: read(HOSTS)? })
    };
    match target() {
        Ok(target) => answer(&api, headers, &target).await,
        Err(denied) => refuse(&api, denied),
    }
}

/// Forward authentication with the original method, host and, after a prefix, path
/// (Envoy).
pub(super) async fn check_path(State(api): State<Arc<Api>>, request: Request) -> Response {
    let whole = request.uri().path_and_query().map_or("", |path| path.as_str());
    let (path, headers) = (whole.strip_prefix("/path").unwrap_or("/"), request.headers());
    match one(headers, &header::HOST) {
        Ok(Some(authority)) => {
            let target = Target { method: request.method().as_str(), authority, path };
            answer(&api, headers, &target).await
        }
        _ => refuse(&api, GatewayError::Malformed),
    }
}

/// The value of one of two headers; both at once are ambiguous.
fn either<'a>(headers: &'a HeaderMap, names: [&'static str; 2]) -> Result<&'a str, GatewayError> {
    let [first, second] = names.map(HeaderName::from_static);
    match (one(headers, &first)?, one(headers, &second)?) {
        (Some(value), None) | (None, Some(value)) => Ok(value),
        _ => Err(GatewayError::Malformed),
    }
}

/// 204 with the session, or 401. Only the start of a request is visible here, so upgrades
/// are refused: a WebSocket would outlive its session.
async fn answer(api: &Api, headers: &HeaderMap, target: &Target<'_>) -> Response {
    let upgrade = headers.get("x-original-upgrade").is_some_and(|value| !value.is_empty());
    // Traefik and Caddy remove `Upgrade` before they ask, but not these.
    let socket = headers.keys().any(|name| name.as_str().starts_with("sec-websocket-"));
    if upgrade || socket || requested_upgrade(headers).is_some() {
        let detail = "upgrades need the reverse proxy; forward authentication cannot end them with their session";
        return ApiError::new(StatusCode::FORBIDDEN, "no-upgrade", detail).into_response();
    }
    let checked = match stamp(headers) {
        Ok(stamp) => match api.sessions.check(&stamp, target) {
            Err(GatewayError::Lapsed) if api.refresh(stamp.session).await.is_ok() => {
                api.sessions.check(&stamp, target)
            }
            checked => checked,
        },
        Err(denied) => Err(denied),
    };
    api.count(checked.as_ref().err());
    match checked {
        Ok(AdmittedRequest { session, until }) => {
            let session = BASE64URL_NOPAD.encode(session.0.0.as_bytes());
            let until = (until.0 / 1_000_000).to_string();
            let headers = [("alpheus-session", session), ("alpheus-until", until)];
            (StatusCode::NO_CONTENT, headers, Body::empty()).into_response()
        }
        Err(denied) => refuse(api, denied),
    }
}
