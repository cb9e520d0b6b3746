//! Hands a request on to another server and streams what comes back, upgrades
//! (WebSocket) included, until the session that it rests on is over.

use crate::pass::link::{Link, LinkError};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Completes when a request must be cut off.
pub type Cut = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why nothing comes back.
#[derive(Debug, thiserror::Error)]
pub enum NotForwarded {
    /// The session was over before the answer began.
    #[error("the session ended while the request ran")]
    Cut,
    /// The other server does not answer.
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// Headers that are about one connection, not about the request.
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Takes off what is about one connection, and what `Connection` says is.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    HOP_BY_HOP.iter().chain(&named).for_each(|name| drop(headers.remove(name)));
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}

/// What the request wants its connection to become, if anything.
#[must_use]
pub fn wanted_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default();
        value.split(',').any(|token| token.trim().eq_ignore_ascii_case("upgrade"))
    };
    let asked = headers.get_all(header::CONNECTION).iter().any(asks);
    headers.get(header::UPGRADE).filter(|_| asked).cloned()
}

/// Sends the request on. `guard` lives as long as anything of it runs; `cut`
/// ends it, in the middle of an answer if need be.
///
/// # Errors
/// [`NotForwarded`].
pub async fn forward(
    link: &Link,
    mut request: Request<Body>,
    mut cut: Cut,
    guard: impl Send + Unpin + 'static,
) -> Result<Response<Body>, NotForwarded> {
    let upgrade = wanted_upgrade(request.headers());
    let ours = upgrade.is_some().then(|| on(&mut request));
    request.extensions_mut().clear();
    strip_hop_by_hop(request.headers_mut());
    if let Some(upgrade) = upgrade {
        request.headers_mut().insert(header::UPGRADE, upgrade);
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    let mut response = tokio::select! {
        biased;
        () = &mut cut => return Err(NotForwarded::Cut),
        response = link.send(request) => response?,
    };
    if response.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some(ours) = ours
    {
        let theirs = on(&mut response);
        tokio::spawn(async move {
            let _guard = guard;
            tokio::select! {
                () = cut => {}
                () = bridge(ours, theirs) => {}
            }
        });
        let (head, _) = response.into_parts();
        return Ok(Response::from_parts(head, Body::empty()));
    }
    strip_hop_by_hop(response.headers_mut());
    Ok(response.map(|inner| Body::new(Watched { inner, cut, _guard: guard })))
}

/// Carries bytes both ways until either side closes.
async fn bridge(ours: OnUpgrade, theirs: OnUpgrade) {
    let (Ok(ours), Ok(theirs)) = tokio::join!(ours, theirs) else { return };
    let (mut ours, mut theirs) = (TokioIo::new(ours), TokioIo::new(theirs));
    // Either side may go away whenever it likes.
    let _ = tokio::io::copy_bidirectional(&mut ours, &mut theirs).await;
}

/// An answer's body that breaks off when it is cut: the connection is closed, so
/// that nobody takes what came for the whole.
struct Watched<G> {
    inner: Incoming,
    cut: Cut,
    _guard: G,
}

/// The body broke off.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the session ended while the answer was sent")]
    Cut,
    #[error(transparent)]
    Upstream(#[from] hyper::Error),
}

impl<G: Unpin> HttpBody for Watched<G> {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Broken::Cut)));
        }
        Pin::new(&mut self.inner).poll_frame(cx).map_err(Broken::from)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.inner)
    }
}

/// Nothing cuts it.
#[must_use]
pub fn never() -> Cut {
    Box::pin(std::future::pending())
}

/// Reads a short body whole.
///
/// # Errors
/// If it breaks off or is longer.
pub async fn short(body: Body, most: usize) -> Option<Bytes> {
    let body = http_body_util::Limited::new(body, most).collect().await;
    body.ok().map(|body| body.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_a_connection_is_not_handed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("accept", "*/*"),
        ] {
            headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        strip_hop_by_hop(&mut headers);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["accept"]);
    }

    #[test]
    fn an_upgrade_is_asked_for_by_two_headers() {
        let mut headers = HeaderMap::new();
        headers.insert(header::UPGRADE, "websocket".parse().unwrap());
        assert_eq!(wanted_upgrade(&headers), None);
        headers.insert(header::CONNECTION, "keep-alive, Upgrade".parse().unwrap());
        assert_eq!(wanted_upgrade(&headers).unwrap(), "websocket");
    }
}
