//! Requests to one server over HTTP/1.1: a pool of connections, and the
//! [peer](ExpectedPeer) that must be at the other end of each. A new client shares
//! nothing with another: no connection, no ticket, no cookie, and no circuit of a [proxy](crate::proxy).

use super::base::{Base, BaseUrlError};
use super::connector::Connector;
use super::error::{Problem, RequestError, causes};
use super::identity::IdentityFolder;
use super::peer::{self, ExpectedPeer, LastPeer};
use super::probe::Probe;
use super::revoked_certificates::RevokedCertificates;
use super::role::Name;
use crate::failure::{Blame, Category, Failure};
use crate::proxy::Route;
use crate::service::reload::Live;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a typed answer may take, beyond the wait that was asked for and beyond
/// what a slow line needs for the body.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest typed answer.
const MAX_ANSWER: usize = 64 << 20;
/// Bytes that the slowest line carries in a second.
const SLOWEST: u32 = 64 << 10;
/// Bytes of a body that hyper holds before the operating system takes them.
const MAX_BUFFER: usize = 128 << 10;
/// Bytes of a revocable body that are handed over at once.
const PIECE: usize = 16 << 10;
/// How long a connection stays open without a request.
const IDLE: Duration = Duration::from_secs(30);

/// What an answer may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes.
    pub bytes: usize,
    /// Time.
    pub time: Duration,
}

impl Limits {
    /// For an answer of a few bytes.
    pub const SHORT: Self = Self { bytes: 64 << 10, time: Duration::from_secs(20) };

    /// For a typed answer for which the server may wait so long, to so many bytes.
    fn typed(wait: Duration, sent: usize) -> Self {
        let for_size = Duration::from_secs(sent as u64) / SLOWEST;
        Self { bytes: MAX_ANSWER, time: PATIENCE + wait + for_size }
    }
}

/// A client of one server. Clones share its connections.
#[derive(Clone)]
pub struct HttpClient {
    base: Base,
    connector: Connector,
    http: legacy::Client<Connector, Body>,
    last: LastPeer,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("base", &self.base).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// A client that shows no certificate. The server's comes from `authority`. Without
    /// TLS, on this machine, the server shows none and is not checked.
    ///
    /// # Errors
    /// If the authority is missing or cannot be used.
    pub fn anonymous(
        base: Base,
        peer: impl Into<ExpectedPeer>,
        authority: Option<&str>,
    ) -> Result<Self, Failure> {
        let last = LastPeer::default();
        let tls = if base.is_tls() {
            let tls = match authority {
                Some(authority) => peer::anonymous(peer.into(), authority, last.clone()),
                None => Err("no authority is given that its certificate may come from")
                    .blame(Category::Input),
            };
            Some(Live::fixed(tls.map_err(|failure| failure.at(base.origin()))?))
        } else {
            None
        };
        Self::with(base, (tls, None), last)
    }

    /// A client that shows the certificate of its identity, over TLS alone. New connections show
    /// the one that is in the folder then.
    ///
    /// # Errors
    /// If the address is without TLS, or a file of the identity cannot be used.
    pub fn identified(
        base: Base,
        peer: impl Into<ExpectedPeer>,
        identity: &IdentityFolder,
    ) -> Result<Self, Failure> {
        if !base.is_tls() {
            let failure = Err(BaseUrlError::NoCertificates).blame(Category::Usage);
            return failure.map_err(|failure| failure.at(base.origin()));
        }
        let last = LastPeer::default();
        let tls = peer::identified(peer.into(), identity, last.clone())?;
        Self::with(base, (Some(tls), identity.revoked().cloned()), last)
    }

    fn with(
        base: Base,
        (tls, revoked): (Option<Arc<Live<ClientConfig>>>, Option<RevokedCertificates>),
        last: LastPeer,
    ) -> Result<Self, Failure> {
        let connector = Connector::new(base.clone(), (tls, revoked), Route::draw()?);
        let http = pool(connector.clone());
        Ok(Self { base, connector, http, last })
    }

    /// A client of the same server over connections of its own: nothing links its requests
    /// with this one's, neither at the server nor behind a proxy. It costs no reading of
    /// certificates again.
    #[must_use]
    pub fn unlinked(&self) -> Self {
        let connector = self.connector.unlinked();
        let http = pool(connector.clone());
        Self { http, connector, ..self.clone() }
    }

    /// The server's address.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Asks the same server for diagnosis, over connections of its own: a server that this client
    /// would refuse is refused there too.
    #[must_use]
    pub fn probe(&self) -> Probe {
        Probe::new(self.connector.unlinked(), self.last.clone())
    }

    /// Who was at the other end, once a request was answered.
    #[must_use]
    pub fn peer(&self) -> Option<Name> {
        self.last.name()
    }

    /// Sends a request whose URI is a path; the answer streams.
    ///
    /// # Errors
    /// [`RequestError::Unreachable`].
    pub async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, RequestError> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let uri = format!("{}{path}", self.base.origin());
        *request.uri_mut() = uri.parse().map_err(|_| self.unreachable("not a path"))?;
        self.http.request(request).await.map_err(|error| self.unreachable(causes(&error)))
    }

    /// Sends bytes and takes an answer within the limits.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn exchange(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: impl Into<Body>,
        limits: Limits,
    ) -> Result<Vec<u8>, RequestError> {
        let mut request = Request::new(body.into());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| self.malformed())?;
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(|_| self.malformed())?;
            request.headers_mut().insert(name, value);
        }
        let answer = tokio::time::timeout(limits.time, self.whole(request, limits.bytes)).await;
        let (status, bytes) = answer.map_err(|_| self.unreachable("it took too long"))??;
        if status.is_success() {
            Ok(bytes)
        } else {
            Err(RequestError::Refused(Problem::read(status, &bytes)))
        }
    }

    async fn whole(
        &self,
        request: Request<Body>,
        max: usize,
    ) -> Result<(StatusCode, Vec<u8>), RequestError> {
        let answer = self.send(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), max).collect().await;
        let body = body.map_err(|error| match error.downcast::<LengthLimitError>() {
            Ok(_) => self.malformed(),
            // The connection broke on the way.
            Err(error) => self.unreachable(causes(&*error)),
        })?;
        Ok((status, body.to_bytes().to_vec()))
    }

    /// Posts bytes and takes a short answer.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn post(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, RequestError> {
        self.exchange(Method::POST, path, &[], body, Limits::SHORT).await
    }

    /// Takes JSON, for which the server may wait up to `wait`.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn get_json<T: DeserializeOwned>(
        &self,
        path: &str,
        wait: Duration,
    ) -> Result<T, RequestError> {
        let limits = Limits::typed(wait, 0);
        let answer = self.exchange(Method::GET, path, &[], Body::empty(), limits).await?;
        serde_json::from_slice(&answer).map_err(|_| self.malformed())
    }

    /// Sends JSON and takes JSON.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, RequestError> {
        let body = serde_json::to_vec(body).map_err(|_| self.malformed())?;
        let (kind, limits) = (content("application/json"), Limits::typed(Duration::ZERO, 0));
        let answer = self.exchange(Method::POST, path, &kind, body, limits).await?;
        serde_json::from_slice(&answer).map_err(|_| self.malformed())
    }

    /// Sends a binary message and takes one, for which the server may wait up to `wait`.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        message: &(impl Serialize + Sync),
        wait: Duration,
    ) -> Result<T, RequestError> {
        self.call_while(path, message, wait, || true).await
    }

    /// The same, but the message leaves only while it `stands`. Once it no longer does,
    /// no more bytes of it are handed to the connection.
    ///
    /// # Errors
    /// [`RequestError`]; `Unreachable` too if the message no longer stands.
    pub async fn call_while<T: DeserializeOwned>(
        &self,
        path: &str,
        message: &(impl Serialize + Sync),
        wait: Duration,
        stands: impl Fn() -> bool + Send + Sync + Unpin + 'static,
    ) -> Result<T, RequestError> {
        let bytes = postcard::to_allocvec(message).map_err(|_| self.malformed())?;
        let (kind, limits) =
            (content("application/octet-stream"), Limits::typed(wait, bytes.len()));
        let body = Body::new(RevocableBody { rest: bytes.into(), stands });
        let answer = self.exchange(Method::POST, path, &kind, body, limits).await?;
        postcard::from_bytes(&answer).map_err(|_| self.malformed())
    }

    /// The error of an answer that makes no sense.
    #[must_use]
    pub fn malformed(&self) -> RequestError {
        RequestError::Malformed { base: self.base.origin() }
    }

    /// The error of a server that does not answer.
    #[must_use]
    pub fn unreachable(&self, reason: impl Into<String>) -> RequestError {
        RequestError::Unreachable { base: self.base.origin(), reason: reason.into() }
    }
}

fn pool(connector: Connector) -> legacy::Client<Connector, Body> {
    legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .http1_max_buf_size(MAX_BUFFER)
        .build(connector)
}

fn content(kind: &'static str) -> [(HeaderName, &'static str); 1] {
    [(header::CONTENT_TYPE, kind)]
}

/// A body that may be taken back while it is sent.
struct RevocableBody<F> {
    rest: Bytes,
    stands: F,
}

/// The body was taken back.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the message was withdrawn")]
struct RevokedBodyError;

impl<F: Fn() -> bool + Unpin> HttpBody for RevocableBody<F> {
    type Data = Bytes;
    type Error = RevokedBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RevokedBodyError>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if !(self.stands)() {
            return Poll::Ready(Some(Err(RevokedBodyError)));
        }
        let piece = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
