//! HTTP/1.1 with or without TLS: accepts, serves a router, drains, stops.
//!
//! Slow and idle clients are bounded: so many connections at once, so long
//! for a handshake and for a request's head. Handshakes run beside the accept
//! loop, so that one slow client holds up nobody.

use super::health::Health;
use super::metrics::{CONTENT_TYPE, Metrics};
use super::shutdown::Shutdown;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// The most connections at once, if nothing else is said; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 1_024;
/// How long a client may take for its TLS handshake, and for a request's head.
const PATIENCE: Duration = Duration::from_secs(10);
/// After an error of the listener (too many open files), it rests so long.
const REST: Duration = Duration::from_millis(50);

/// The listener could not be had.
#[derive(Debug, thiserror::Error)]
#[error("{address}: cannot listen there")]
pub struct ListenError {
    /// The address asked for.
    pub address: SocketAddr,
    /// Why not.
    pub source: io::Error,
}

/// Who is at the other end; an extension of each request.
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
    /// Every connection had finished what it had begun.
    All,
    /// So many were cut off at the deadline.
    Cut(usize),
}

/// A listener that does not serve yet: its address is known, so that others
/// can be told before the first request comes.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    connections: usize,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").field("open", &self.tasks.len()).finish_non_exhaustive()
    }
}

/// Connections being served.
struct Connections {
    tasks: JoinSet<()>,
    graceful: GracefulShutdown,
    slots: Arc<Semaphore>,
}

impl Server {
    /// Listens at `address` (port 0: any free one).
    ///
    /// # Errors
    /// The address cannot be had.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Result<Self, ListenError> {
        let failed = |source| ListenError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        Ok(Self { listener, tls, connections: MAX_CONNECTIONS })
    }

    /// Lets so many connections be open at once.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The operating system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown`, then lets what has begun finish for at most `drain`.
    pub async fn serve(self, router: Router, mut shutdown: Shutdown, drain: Duration) -> Drained {
        let tls = self.tls.clone().map(TlsAcceptor::from);
        let mut connections = Connections {
            tasks: JoinSet::new(),
            graceful: GracefulShutdown::new(),
            slots: Arc::new(Semaphore::new(self.connections)),
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
        let watcher = self.graceful.watcher();
        self.tasks.spawn(async move {
            let _slot = slot;
            let Some(tls) = tls else {
                let peer = Peer { address, certificate: None };
                return serve_one(stream, peer, router, watcher).await;
            };
            match timeout(PATIENCE, tls.accept(stream)).await {
                Ok(Ok(stream)) => {
                    let (_, session) = stream.get_ref();
                    let first = session.peer_certificates().and_then(<[_]>::first);
                    let certificate = first.map(|certificate| Arc::from(certificate.as_ref()));
                    serve_one(stream, Peer { address, certificate }, router, watcher).await;
                }
                Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake refused"),
                Err(_) => tracing::debug!(%address, "TLS handshake timed out"),
            }
        });
    }

    async fn drain(mut self, patience: Duration) -> Drained {
        let finished = timeout(patience, self.graceful.shutdown()).await;
        while self.tasks.try_join_next().is_some() {}
        match (finished, self.tasks.len()) {
            (Ok(()), _) | (Err(_), 0) => Drained::All,
            (Err(_), left) => {
                self.tasks.shutdown().await;
                Drained::Cut(left)
            }
        }
    }
}

async fn serve_one(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let address = peer.address;
    let service = TowerToHyperService::new(router.layer(Extension(peer)));
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%address, %error, "connection ended early");
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
