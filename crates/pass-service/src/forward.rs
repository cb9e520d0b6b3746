//! Forwards a request to another server and streams the response, including upgrades to
//! WebSocket, until the request's session ends.

use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::service::http::{Closer, Cut, CutGuard};
use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// Ends a request in the middle of its response. The connection is closed even if nobody
/// reads from it, so a truncated response is not mistaken for a whole one.
pub struct RequestCut {
    /// Completes when the request must end.
    pub cut: Cut,
    /// Closes the request's connection.
    pub closer: Closer,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The session ended before the response began.
    #[error("the session ended while the request ran")]
    Cut,
    /// The request asks for a tunnel.
    #[error("this service does not support CONNECT")]
    Tunnel,
    /// The other server does not respond.
    #[error(transparent)]
    Link(#[from] RequestError),
}

/// Headers that apply to one connection, not to the request.
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Removes headers that apply to one connection, including those that `Connection` names.
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

/// Removes headers about a request's origin and the proxies on its way.
pub fn strip_forwarded(headers: &mut HeaderMap) {
    strip(headers, |name| {
        name.starts_with("x-forwarded-") || ["forwarded", "via", "x-real-ip"].contains(&name)
    });
}

/// Removes headers that are internal to this system.
pub fn strip_ours(headers: &mut HeaderMap) {
    strip(headers, |name| name.starts_with("alpheus-"));
}

fn strip(headers: &mut HeaderMap, matches: impl Fn(&str) -> bool) {
    let names = headers.keys().filter(|name| matches(name.as_str()));
    let names: Vec<HeaderName> = names.cloned().collect();
    names.iter().for_each(|name| drop(headers.remove(name)));
}

/// The protocol that the request wants to upgrade to, if any.
#[must_use]
pub fn requested_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default();
        value.split(',').any(|token| token.trim().eq_ignore_ascii_case("upgrade"))
    };
    let upgrades = headers.get_all(header::CONNECTION).iter().any(asks);
    headers.get(header::UPGRADE).filter(|_| upgrades).cloned()
}

/// Forwards the request. `guard` lives until both bodies have ended; an upload may outlast
/// its response. `cutting` ends the request, even in the middle of a body. Only upgrades
/// to WebSocket are forwarded: another protocol could carry unchecked requests.
///
/// # Errors
/// [`ForwardError`].
pub async fn forward(
    link: &HttpClient,
    mut request: Request<Body>,
    cutting: Option<RequestCut>,
    guard: impl Send + Sync + 'static,
) -> Result<Response<Body>, ForwardError> {
    if request.method() == Method::CONNECT {
        return Err(ForwardError::Tunnel);
    }
    let (mut cut, closer) = match cutting {
        Some(RequestCut { cut, closer }) => (cut, Some(closer)),
        None => (never(), None),
    };
    let ours = outbound(&mut request);
    let exchange = Arc::new(Exchange::new(guard));
    let uploads = !request.body().is_end_stream();
    let request = if uploads { request.map(|body| exchange.guarded(body)) } else { request };
    let mut response = tokio::select! {
        biased;
        () = &mut cut => {
            exchange.is_cut.store(true, Ordering::Relaxed);
            return Err(ForwardError::Cut);
        }
        response = link.send(request) => response?,
    };
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let unrequested = || link.malformed();
        let ours = ours.ok_or_else(unrequested)?;
        let theirs = on(&mut response);
        tokio::spawn(async move {
            let _exchange = exchange;
            tokio::select! {
                () = cut => {}
                () = bridge(ours, theirs) => {}
            }
        });
        let (head, _) = response.into_parts();
        return Ok(Response::from_parts(head, Body::empty()));
    }
    strip_hop_by_hop(response.headers_mut());
    // The response may end before the request's body does.
    let closer = closer.filter(|_| uploads || !response.body().is_end_stream());
    *exchange.watching() = closer.map(|closer| closer.watch(cut));
    Ok(response.map(|body| exchange.guarded(body)))
}

/// Prepares a request for the other server. Of the headers of its connection only an
/// upgrade to WebSocket remains, which is returned.
fn outbound(request: &mut Request<Body>) -> Option<OnUpgrade> {
    let upgrade = requested_upgrade(request.headers());
    let upgrade = upgrade.filter(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let ours = upgrade.is_some().then(|| on(&mut *request));
    request.extensions_mut().clear();
    strip_hop_by_hop(request.headers_mut());
    if let Some(upgrade) = upgrade {
        request.headers_mut().insert(header::UPGRADE, upgrade);
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    ours
}

/// Copies bytes in both directions until either side closes.
async fn bridge(ours: OnUpgrade, theirs: OnUpgrade) {
    let (Ok(ours), Ok(theirs)) = tokio::join!(ours, theirs) else { return };
    let (mut ours, mut theirs) = (TokioIo::new(ours), TokioIo::new(theirs));
    // Either side may close at any time.
    let _ = tokio::io::copy_bidirectional(&mut ours, &mut theirs).await;
}

/// Lives until both bodies, of the request and of its response, have ended.
struct Exchange<G> {
    /// The request was cut before its response: no more of its body is forwarded.
    is_cut: AtomicBool,
    watching: Mutex<Option<CutGuard>>,
    _guard: G,
}

/// One of the two bodies.
struct GuardedBody<B, G> {
    inner: B,
    exchange: Arc<Exchange<G>>,
}

impl<G: Send + Sync + 'static> Exchange<G> {
    fn new(guard: G) -> Self {
        Self { is_cut: AtomicBool::new(false), watching: Mutex::new(None), _guard: guard }
    }

    fn watching(&self) -> MutexGuard<'_, Option<CutGuard>> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn guarded<B>(self: &Arc<Self>, inner: B) -> Body
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        Body::new(GuardedBody { inner, exchange: Arc::clone(self) })
    }
}

impl<B, G> HttpBody for GuardedBody<B, G>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.exchange.is_cut.load(Ordering::Relaxed) {
            return Poll::Ready(Some(Err(ForwardError::Cut.into())));
        }
        Pin::new(&mut self.inner).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.inner)
    }
}

fn never() -> Cut {
    Box::pin(std::future::pending())
}

#[cfg(test)]
mod tests;
