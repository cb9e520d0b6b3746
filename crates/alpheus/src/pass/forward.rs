//! Hands a request on to another server and streams what comes back, upgrades
//! (WebSocket) included, until the session that it rests on is over.

use crate::pass::link::{Link, LinkError};
use crate::service::http::{Closer, Cut, Watching};
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

/// What ends a request in the middle of its answer: the connection is closed, also
/// if nobody reads from it, so that nobody takes what came for the whole.
pub struct Cutting {
    /// When.
    pub cut: Cut,
    /// The connection that it came on.
    pub closer: Closer,
}

/// Why nothing comes back.
#[derive(Debug, thiserror::Error)]
pub enum NotForwarded {
    /// The session was over before the answer began.
    #[error("the session ended while the request ran")]
    Cut,
    /// It asks for a tunnel to anywhere.
    #[error("CONNECT is not for this service")]
    Tunnel,
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

/// Takes off what says where a request came from, and through what.
pub fn strip_forwarded(headers: &mut HeaderMap) {
    strip(headers, |name| {
        name.starts_with("x-forwarded-") || ["forwarded", "via", "x-real-ip"].contains(&name)
    });
}

/// Takes off what only we say to each other.
pub fn strip_ours(headers: &mut HeaderMap) {
    strip(headers, |name| name.starts_with("alpheus-"));
}

fn strip(headers: &mut HeaderMap, which: impl Fn(&str) -> bool) {
    let names = headers.keys().filter(|name| which(name.as_str()));
    let names: Vec<HeaderName> = names.cloned().collect();
    names.iter().for_each(|name| drop(headers.remove(name)));
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

/// Sends the request on. `guard` lives as long as anything of it runs, an upload that
/// goes on after its answer too; `cutting` ends it, in the middle of either if need be. Of upgrades only WebSockets are
/// handed on: another protocol would be requests that nobody checks.
///
/// # Errors
/// [`NotForwarded`].
pub async fn forward(
    link: &Link,
    mut request: Request<Body>,
    cutting: Option<Cutting>,
    guard: impl Send + Sync + 'static,
) -> Result<Response<Body>, NotForwarded> {
    if request.method() == Method::CONNECT {
        return Err(NotForwarded::Tunnel);
    }
    let (mut cut, closer) = match cutting {
        Some(Cutting { cut, closer }) => (cut, Some(closer)),
        None => (never(), None),
    };
    let ours = outbound(&mut request);
    let lasting = Arc::new(Lasting::new(guard));
    let uploads = !request.body().is_end_stream();
    let request = if uploads { request.map(|body| lasting.watched(body)) } else { request };
    let mut response = tokio::select! {
        biased;
        () = &mut cut => {
            lasting.over.store(true, Ordering::Relaxed);
            return Err(NotForwarded::Cut);
        }
        response = link.send(request) => response?,
    };
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let unasked = || LinkError::Malformed(link.base().origin());
        let ours = ours.ok_or_else(unasked)?;
        let theirs = on(&mut response);
        tokio::spawn(async move {
            let _lasting = lasting;
            tokio::select! {
                () = cut => {}
                () = bridge(ours, theirs) => {}
            }
        });
        let (head, _) = response.into_parts();
        return Ok(Response::from_parts(head, Body::empty()));
    }
    strip_hop_by_hop(response.headers_mut());
    // The answer may be whole before what it answers is.
    let closer = closer.filter(|_| uploads || !response.body().is_end_stream());
    *lasting.watching() = closer.map(|closer| closer.watch(cut));
    Ok(response.map(|body| lasting.watched(body)))
}

/// Leaves in a request what is for the other server: of its connection nothing but
/// a WebSocket's upgrade, which is given.
fn outbound(request: &mut Request<Body>) -> Option<OnUpgrade> {
    let upgrade = wanted_upgrade(request.headers());
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

/// Carries bytes both ways until either side closes.
async fn bridge(ours: OnUpgrade, theirs: OnUpgrade) {
    let (Ok(ours), Ok(theirs)) = tokio::join!(ours, theirs) else { return };
    let (mut ours, mut theirs) = (TokioIo::new(ours), TokioIo::new(theirs));
    // Either side may go away whenever it likes.
    let _ = tokio::io::copy_bidirectional(&mut ours, &mut theirs).await;
}

/// What lasts until both a request's body and its answer's have ended.
struct Lasting<G> {
    /// It was cut before there was an answer: of the request nothing more is handed on.
    over: AtomicBool,
    watching: Mutex<Option<Watching>>,
    _guard: G,
}

/// One of the two bodies.
struct Watched<B, G> {
    inner: B,
    lasting: Arc<Lasting<G>>,
}

impl<G: Send + Sync + 'static> Lasting<G> {
    fn new(guard: G) -> Self {
        Self { over: AtomicBool::new(false), watching: Mutex::new(None), _guard: guard }
    }

    fn watching(&self) -> MutexGuard<'_, Option<Watching>> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched<B>(self: &Arc<Self>, inner: B) -> Body
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        Body::new(Watched { inner, lasting: Arc::clone(self) })
    }
}

impl<B, G> HttpBody for Watched<B, G>
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
        if self.lasting.over.load(Ordering::Relaxed) {
            return Poll::Ready(Some(Err(NotForwarded::Cut.into())));
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
