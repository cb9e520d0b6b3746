//! HTTP/1.1 with or without TLS: accepts, serves a router, drains, stops.
//!
//! Slow and idle clients are bounded: by the number of connections, in total and per
//! certificate, and by timeouts for a handshake, for a request's head, and between two
//! bytes. Handshakes run beside the accept loop, so that a slow client delays nobody.

mod closer;

use super::health::Health;
use super::metrics::{CONTENT_TYPE, Metrics};
use super::shutdown::{Shutdown, Trigger};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
pub use closer::{Closer, Cut, CutGuard};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use x509_cert::der::Decode;

/// How long a client may leave an answer unread or a request incomplete. Longer than any
/// request may wait for news.
const STALLED: Duration = Duration::from_secs(75);
/// Maximum time for a client's TLS handshake, and for a request's head.
const PATIENCE: Duration = Duration::from_secs(10);
/// The size up to which a request's head is surely accepted. A connection's read buffer has
/// this size too, so it holds at most twice as much.
const HEAD: usize = 64 << 10;
/// Pause after an error of the listener, such as too many open files.
const REST: Duration = Duration::from_millis(50);

/// The listener could not be created.
#[derive(Debug, thiserror::Error)]
#[error("{address}: cannot listen at this address")]
pub struct ListenError {
    /// The address asked for.
    pub address: SocketAddr,
    /// Why not.
    pub source: io::Error,
}

/// The client; an extension of each request.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where it connected from.
    pub address: SocketAddr,
    /// Its certificate in DER form, verified, if the server asked for one.
    pub certificate: Option<Arc<[u8]>>,
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every connection had finished its work.
    All,
    /// This many were cut off at the deadline.
    Cut(usize),
}

/// Limits of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of connections; further ones wait to be accepted.
    pub connections: usize,
    /// Maximum number of connections with one certificate; further ones are closed.
    pub of_one: usize,
    /// How long a client may be silent; none if it may listen for hours, as with a download
    /// or a WebSocket. Heads of requests are still bounded.
    pub silence: Option<Duration>,
}

impl Default for Bounds {
    /// For connections between processes of a deployment.
    fn default() -> Bounds {
        Bounds { connections: 1_024, of_one: 32, silence: Some(STALLED) }
    }
}

/// A listener that does not serve yet. Its address is known, so that others can be informed
/// before the first request arrives.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    bounds: Bounds,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").field("open", &self.tasks.len()).finish_non_exhaustive()
    }
}

/// Connections being served.
struct Connections {
    tasks: JoinSet<()>,
    /// Makes all of them end after the current answer.
    trigger: Trigger,
    slots: Arc<Semaphore>,
    guests: Guests,
    silence: Option<Duration>,
}

/// How many connections each certificate has. Clones share it.
#[derive(Clone)]
struct Guests {
    most: usize,
    counts: Arc<Mutex<Counts>>,
}

/// By certificate, in DER form.
type Counts = HashMap<Option<Arc<[u8]>>, usize>;

/// One of them, while it lasts.
struct Guest {
    guests: Guests,
    certificate: Option<Arc<[u8]>>,
}

impl Guests {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection, unless its certificate has too many. Connections without a
    /// certificate are bounded only by the total limit.
    fn admit(&self, certificate: Option<Arc<[u8]>>) -> Option<Guest> {
        let mut counts = self.counts();
        let count = counts.entry(certificate.clone()).or_default();
        if certificate.is_some() && *count >= self.most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Guest { guests: self.clone(), certificate })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut counts = self.guests.counts();
        if let Some(count) = counts.get_mut(&self.certificate) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.certificate);
            }
        }
    }
}

/// How long a certificate is still valid.
fn left_of(certificate: &[u8]) -> Duration {
    let read = x509_cert::Certificate::from_der(certificate);
    let end = read.map(|read| read.tbs_certificate().validity().not_after.to_system_time());
    end.ok().and_then(|end| end.duration_since(SystemTime::now()).ok()).unwrap_or_default()
}

impl Server {
    /// Listens at `address` (port 0: any free one).
    ///
    /// # Errors
    /// The address cannot be used.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Result<Self, ListenError> {
        let failed = |source| ListenError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        Ok(Self { listener, tls, bounds: Bounds::default() })
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown`, then lets open requests finish for at most `drain`.
    pub async fn serve(self, router: Router, mut shutdown: Shutdown, drain: Duration) -> Drained {
        let tls = self.tls.clone().map(TlsAcceptor::from);
        let mut connections = Connections {
            tasks: JoinSet::new(),
            trigger: Trigger::new(),
            slots: Arc::new(Semaphore::new(self.bounds.connections)),
            guests: Guests { most: self.bounds.of_one, counts: Arc::default() },
            silence: self.bounds.silence,
        };
        loop {
            tokio::select! {
                () = shutdown.stopping() => break,
                accepted = self.accept(&connections.slots) => match accepted {
                    Ok((stream, address, permit)) => {
                        connections.spawn(stream, address, tls.clone(), router.clone(), permit);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(REST).await;
                    }
                },
                Some(_) = connections.tasks.join_next() => {}
            }
        }
        drop(self.listener);
        connections.drain(drain).await
    }

    async fn accept(
        &self,
        slots: &Arc<Semaphore>,
    ) -> io::Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
        let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
        let (stream, address) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, address, slot))
    }
}

impl Connections {
    fn spawn(
        &mut self,
        stream: TcpStream,
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        router: Router,
        slot: tokio::sync::OwnedSemaphorePermit,
    ) {
        let (mut ending, guests) = (self.trigger.shutdown(), self.guests.clone());
        let silence = self.silence;
        self.tasks.spawn(async move {
            let _slot = slot;
            let Some(tls) = tls else {
                let peer = Peer { address, certificate: None };
                return serve_one(stream, peer, router, ending, silence).await;
            };
            let shaken = tokio::select! {
                shaken = timeout(PATIENCE, tls.accept(stream)) => shaken,
                () = ending.stopping() => return,
            };
            match shaken {
                Ok(Ok(stream)) => {
                    let (_, session) = stream.get_ref();
                    let first = session.peer_certificates().and_then(<[_]>::first);
                    let certificate = first.map(|certificate| Arc::from(certificate.as_ref()));
                    let Some(_guest) = guests.admit(certificate.clone()) else {
                        return tracing::debug!(%address, "too many connections of one certificate");
                    };
                    // It was checked at the handshake, but it may expire later.
                    let good = certificate.as_deref().map_or(Duration::MAX, left_of);
                    let peer = Peer { address, certificate };
                    let serving = serve_one(stream, peer, router, ending, silence);
                    if timeout(good, serving).await.is_err() {
                        tracing::debug!(%address, "the certificate has expired");
                    }
                }
                Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake refused"),
                Err(_) => tracing::debug!(%address, "TLS handshake timed out"),
            }
        });
    }

    async fn drain(mut self, patience: Duration) -> Drained {
        self.trigger.stop();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(patience, all).await.is_ok() {
            return Drained::All;
        }
        while self.tasks.try_join_next().is_some() {}
        let left = self.tasks.len();
        self.tasks.shutdown().await;
        if left == 0 { Drained::All } else { Drained::Cut(left) }
    }
}

async fn serve_one(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: Router,
    mut ending: Shutdown,
    silence: Option<Duration>,
) {
    let address = peer.address;
    let closer = Closer::default();
    let closing = closer.closing();
    let router = router.layer(Extension(peer)).layer(Extension(closer));
    let service = TowerToHyperService::new(router);
    let mut patient = TimeoutStream::new(stream);
    patient.set_read_timeout(silence);
    patient.set_write_timeout(Some(STALLED));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD);
    let stream = TokioIo::new(Box::pin(patient));
    let connection = builder.serve_connection(stream, service).with_upgrades();
    tokio::pin!(connection, closing);
    let mut is_draining = false;
    loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%address, %error, "connection ended early");
                }
                return;
            }
            () = &mut closing => return tracing::debug!(%address, "connection cut off"),
            () = ending.stopping(), if !is_draining => {
                connection.as_mut().graceful_shutdown();
                is_draining = true;
            }
        }
    }
}

/// `/healthz`: 200 if every part is ready, else 503; the parts as JSON.
/// `/metrics`: what Prometheus reads.
pub fn observability(health: Health, metrics: Metrics) -> Router {
    let healthz = move || async move {
        let report = health.report();
        let status = if report.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let body = serde_json::to_string(&report).unwrap_or_default();
        (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    let metrics = move || async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.text()) };
    Router::new().route("/healthz", get(healthz)).route("/metrics", get(metrics))
}
