//! HTTP/1.1 with or without TLS: accepts, serves a router, drains, stops.
//!
//! Slow and idle clients are bounded: by the number of connections, in total, per certificate
//! and per address without one, and by timeouts for a handshake, for a request's head, and
//! between two bytes. Handshakes run beside the accept loop, so that a slow client delays
//! nobody. Until a handshake is over, a connection has no part in these numbers: see
//! [`strangers`].

mod closer;
pub mod handshakes;
mod refusals;
mod strangers;

use super::MayRead;
use super::health::Health;
use super::metrics::{CONTENT_TYPE, Metrics};
use super::reload::Live;
use super::shutdown::{Shutdown, Trigger};
use crate::BUILD;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
pub use closer::{Closer, Cut, CutGuard};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use refusals::Refusals;
use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use strangers::{EvictionNotice, Network, StrangerSlot, Strangers};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_cert::der::Decode;

/// How long a client may leave an answer unread or a request incomplete. Longer than any
/// request may wait for news.
const STALLED: Duration = Duration::from_secs(75);
/// Maximum time for a client's TLS handshake, and for a request's head.
const PATIENCE: Duration = Duration::from_secs(10);
/// The size up to which a request's head is surely accepted. A connection's read buffer has
/// this size too, so it holds at most twice as much.
const HEAD: usize = 64 << 10;
const PROBLEM: &str = "application/problem+json";
/// What others than operators get for metrics.
const NO_METRICS: &str = r#"{"rule":"role","detail":"only an operator may read metrics here","help":"show the certificate of `alpheus ca issue --role operator`, or ask at the address of --listen","status":403}"#;
/// Pause after an error of the listener, such as too many open files.
const REST: Duration = Duration::from_millis(50);
/// How often the end of an open connection's certificate is looked at.
const LOOK: Duration = Duration::from_secs(10);

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
pub enum DrainOutcome {
    /// Every connection had finished its work.
    All,
    /// This many were cut off at the deadline.
    Cut(usize),
}

/// Limits of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of connections that are served; further ones wait for a place.
    pub connections: usize,
    /// Maximum number of connections with one certificate, or over TLS from one address without a
    /// certificate; further ones are closed.
    pub of_one: usize,
    /// Maximum number of connections that are not served yet: their handshake has not finished,
    /// or they wait for a place.
    pub strangers: usize,
    /// How long a client may be silent; none if it may listen for hours, as with a download
    /// or a WebSocket. Heads of requests are still bounded.
    pub silence: Option<Duration>,
}

impl Default for Bounds {
    /// For connections between processes of a deployment.
    fn default() -> Bounds {
        Bounds { connections: 1_024, of_one: 32, strangers: 256, silence: Some(STALLED) }
    }
}

/// A listener that does not serve yet. Its address is known, so that others can be informed
/// before the first request arrives.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    tls: Option<Arc<Live<rustls::ServerConfig>>>,
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
    strangers: Strangers,
    entrance: Entrance,
}

/// What a connection passes before it is served. Clones share it.
#[derive(Clone)]
struct Entrance {
    tls: Option<Arc<Live<rustls::ServerConfig>>>,
    refusals: Refusals,
    slots: Arc<Semaphore>,
    guests: Guests,
    silence: Option<Duration>,
}

/// A connection after its handshake.
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that may be served, and what it holds while it lasts.
struct AdmittedConnection {
    stream: Stream,
    certificate: Option<Arc<[u8]>>,
    _slot: OwnedSemaphorePermit,
    _guest: Option<Guest>,
}

/// How many connections each client has. Clones share it.
#[derive(Clone)]
struct Guests {
    most: usize,
    counts: Arc<Mutex<Counts>>,
}

type Counts = HashMap<Client, usize>;

/// What tells clients apart.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Client {
    /// A certificate in DER form.
    Certificate(Arc<[u8]>),
    /// Where a client without a certificate connects from.
    Network(Network),
}

/// One of them, while it lasts.
struct Guest {
    guests: Guests,
    client: Client,
}

impl Guests {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection, unless its client has too many.
    fn admit(&self, client: Client) -> Option<Guest> {
        let mut counts = self.counts();
        let count = counts.entry(client.clone()).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Guest { guests: self.clone(), client })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut counts = self.guests.counts();
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

/// Waits until a certificate is over. The clock is looked at again and again: timers stand still while
/// a machine sleeps, and do not know that the clock was set.
async fn has_expired(certificate: &[u8]) {
    // One that cannot be read is over.
    let Ok(read) = x509_cert::Certificate::from_der(certificate) else { return };
    let end = read.tbs_certificate().validity().not_after.to_system_time();
    drop(read);
    while let Ok(left) = end.duration_since(SystemTime::now())
        && !left.is_zero()
    {
        sleep(left.min(LOOK)).await;
    }
}

impl Server {
    /// Listens at `address` (port 0: any free one).
    ///
    /// # Errors
    /// The address cannot be used.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<Live<rustls::ServerConfig>>>,
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
    pub async fn serve(
        self,
        router: Router,
        mut shutdown: Shutdown,
        drain: Duration,
    ) -> DrainOutcome {
        let entrance = Entrance {
            tls: self.tls.clone(),
            refusals: Refusals::default(),
            slots: Arc::new(Semaphore::new(self.bounds.connections)),
            guests: Guests { most: self.bounds.of_one, counts: Arc::default() },
            silence: self.bounds.silence,
        };
        let strangers = Strangers::new(self.bounds.strangers);
        let (tasks, trigger) = (JoinSet::new(), Trigger::new());
        let mut connections = Connections { tasks, trigger, strangers, entrance };
        let mut is_stuck = false;
        loop {
            tokio::select! {
                () = shutdown.stopping() => break,
                accepted = self.accept() => match accepted {
                    Ok((stream, address)) => {
                        is_stuck = false;
                        connections.spawn(stream, address, router.clone());
                    }
                    // It was gone before it was taken.
                    Err(error) if is_of_one(&error) => {}
                    Err(error) => {
                        // Said once: it comes again with each rest.
                        if !std::mem::replace(&mut is_stuck, true) {
                            tracing::warn!(%error, "cannot accept connections");
                        }
                        sleep(REST).await;
                    }
                },
                Some(_) = connections.tasks.join_next() => {}
            }
        }
        drop(self.listener);
        connections.drain(drain).await
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, address) = self.listener.accept().await?;
        // Its answers come a little later then.
        let _ = stream.set_nodelay(true);
        Ok((stream, address))
    }
}

/// Whether an error of the listener is of one connection, and the next one can be taken at once.
fn is_of_one(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

impl Connections {
    fn spawn(&mut self, stream: TcpStream, address: SocketAddr, router: Router) {
        let Some(place) = self.strangers.enter(address.ip(), Instant::now()) else {
            return tracing::debug!(%address, "too many handshakes under way");
        };
        let (ending, entrance) = (self.trigger.shutdown(), self.entrance.clone());
        self.tasks.spawn(entrance.handle(stream, address, place, router, ending));
    }

    async fn drain(mut self, patience: Duration) -> DrainOutcome {
        self.trigger.stop();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(patience, all).await.is_ok() {
            return DrainOutcome::All;
        }
        while self.tasks.try_join_next().is_some() {}
        let left = self.tasks.len();
        self.tasks.shutdown().await;
        if left == 0 { DrainOutcome::All } else { DrainOutcome::Cut(left) }
    }
}

impl Entrance {
    async fn handle(
        self,
        stream: TcpStream,
        address: SocketAddr,
        (place, given_away): (StrangerSlot, EvictionNotice),
        router: Router,
        mut ending: Shutdown,
    ) {
        let entered = tokio::select! {
            entered = timeout(PATIENCE, self.enter(stream, address, &place)) => entered,
            _ = given_away => return tracing::debug!(%address, "a newcomer took its place"),
            () = ending.stopping() => return,
        };
        drop(place);
        let entered = match entered {
            Ok(Ok(entered)) => entered,
            Ok(Err(error)) => return tracing::debug!(%address, %error, "connection refused"),
            Err(_) => return tracing::debug!(%address, "handshake timed out"),
        };
        // The certificate was checked at the handshake, but it may expire later.
        let certificate = entered.certificate.clone();
        let expired = async {
            match &certificate {
                Some(certificate) => has_expired(certificate).await,
                None => pending().await,
            }
        };
        let peer = Peer { address, certificate: entered.certificate };
        let serving = async {
            match entered.stream {
                Stream::Plain(stream) => {
                    serve_one(stream, peer, router, ending, self.silence).await;
                }
                Stream::Tls(stream) => {
                    serve_one(stream, peer, router, ending, self.silence).await;
                }
            }
        };
        tokio::select! {
            () = serving => {}
            () = expired => tracing::debug!(%address, "the certificate has expired"),
        }
    }

    /// Waits for the client's first bytes, for the handshake, and for a free place.
    async fn enter(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        place: &StrangerSlot,
    ) -> io::Result<AdmittedConnection> {
        stream.peek(&mut [0]).await?;
        place.note_speaking();
        let Some(tls) = &self.tls else {
            // A proxy in front has one address for all its clients.
            let (stream, slot) = (Stream::Plain(stream), self.slot().await?);
            return Ok(AdmittedConnection { stream, certificate: None, _slot: slot, _guest: None });
        };
        let accepted = TlsAcceptor::from(tls.current()).accept(stream).await;
        handshakes::note(accepted.is_ok());
        let stream = Box::new(accepted.inspect_err(|error| self.refusals.note(error))?);
        let (_, session) = stream.get_ref();
        let first = session.peer_certificates().and_then(<[_]>::first);
        let certificate: Option<Arc<[u8]>> = first.map(|first| Arc::from(first.as_ref()));
        let client = match &certificate {
            Some(certificate) => Client::Certificate(Arc::clone(certificate)),
            None => Client::Network(Network::of(address.ip())),
        };
        let guest = self.guests.admit(client);
        let guest = guest.ok_or_else(|| io::Error::other("too many connections of one client"))?;
        let (stream, slot) = (Stream::Tls(stream), self.slot().await?);
        Ok(AdmittedConnection { stream, certificate, _slot: slot, _guest: Some(guest) })
    }

    async fn slot(&self) -> io::Result<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).acquire_owned().await.map_err(io::Error::other)
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

/// `/livez`: 200 as long as the process answers; only a restart would help one that does not.
/// `/healthz`, also as `/readyz`: 200 if every part is ready, else 503; the parts as JSON.
/// `/metrics`: what Prometheus reads; of those who show a certificate, only for whom `may_read` holds.
pub fn observability(health: Health, metrics: Metrics, may_read: MayRead) -> Router {
    let healthz = move || async move {
        let report = health.report();
        let status = if report.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let body = serde_json::to_string(&report).unwrap_or_default();
        let heads = [(header::CONTENT_TYPE, "application/json"), (header::SERVER, BUILD)];
        (status, heads, body).into_response()
    };
    let metrics = move |peer: Option<Extension<Peer>>| async move {
        let certificate = peer.and_then(|Extension(peer)| peer.certificate);
        if certificate.is_some_and(|certificate| !may_read(&certificate)) {
            return (
                StatusCode::FORBIDDEN,
                [(header::CONTENT_TYPE, PROBLEM)],
                NO_METRICS.to_owned(),
            );
        }
        (StatusCode::OK, [(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.text())
    };
    let livez = || async { ([(header::CONTENT_TYPE, "application/json")], r#"{"alive":true}"#) };
    Router::new()
        .route("/healthz", get(healthz.clone()))
        .route("/readyz", get(healthz))
        .route("/livez", get(livez))
        .route("/metrics", get(metrics))
}
