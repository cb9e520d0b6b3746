//! Opens connections to one server: over TLS, through the process's proxy if there is one, or, on
//! this machine, without either.

use super::base::Base;
use super::peer::WrongPeerError;
use super::revoked_certificates::RevokedCertificates;
use crate::proxy::Route;
use crate::retry::{RetryPolicy, retry};
use crate::service::reload::Live;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long a connection may take to open, and through a proxy, which may first build a circuit.
const CONNECT: Duration = Duration::from_secs(10);
const CONNECT_BY_PROXY: Duration = Duration::from_secs(20);
/// A server that is flooded may close a connection in the middle of its handshake. Nothing was
/// sent by then, so the next attempt is safe.
const HANDSHAKES: RetryPolicy =
    RetryPolicy::doubling(Duration::from_millis(50), Duration::from_secs(1))
        .within(Duration::from_secs(4));

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector {
    base: Base,
    tls: Option<Arc<Live<ClientConfig>>>,
    /// Certificates that end a connection.
    revoked: Option<RevokedCertificates>,
    route: Option<Route>,
}

impl Connector {
    /// One with TLS, perhaps through a proxy, or without.
    pub(super) fn new(
        base: Base,
        (tls, revoked): (Option<Arc<Live<ClientConfig>>>, Option<RevokedCertificates>),
        route: Option<Route>,
    ) -> Self {
        // Without TLS it stays on this machine, which for a proxy would be the proxy's.
        let route = route.filter(|_| tls.is_some());
        Self { base, tls, revoked, route }
    }

    /// One of its own way through the proxy.
    pub(super) fn unlinked(&self) -> Self {
        let route = self.route.as_ref().map(Route::another);
        Self { route, ..self.clone() }
    }

    async fn connect(self) -> io::Result<TokioIo<Stream>> {
        retry(HANDSHAKES, was_cut, || self.connect_once()).await
    }

    /// The server's address.
    pub(super) fn base(&self) -> &Base {
        &self.base
    }

    /// The TLS of new connections; none without TLS.
    pub(super) fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.as_ref().map(|tls| tls.current())
    }

    /// How long a connection may take to open.
    pub(super) fn limit(&self) -> Duration {
        if self.route.is_some() { CONNECT_BY_PROXY } else { CONNECT }
    }

    /// A connection to the server through the proxy; none if the process has no proxy.
    pub(super) async fn through_proxy(&self) -> Option<io::Result<TcpStream>> {
        let route = self.route.as_ref()?;
        Some(route.connect(self.base.host(), self.base.port()).await)
    }

    async fn connect_once(&self) -> io::Result<TokioIo<Stream>> {
        let stream = match self.through_proxy().await {
            Some(opened) => opened?,
            None => TcpStream::connect((self.base.host(), self.base.port())).await?,
        };
        stream.set_nodelay(true)?;
        let Some(tls) = self.tls() else {
            return Ok(TokioIo::new(Stream::Plain(stream)));
        };
        let name = ServerName::try_from(self.base.host().to_owned()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(tls).connect(name, stream).await?;
        Ok(TokioIo::new(Stream::Tls(Box::new(stream), self.revoked.clone())))
    }
}

impl tower_service::Service<axum::http::Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: axum::http::Uri) -> Self::Future {
        let limit = self.limit();
        let connect = self.clone().connect();
        Box::pin(async move {
            match tokio::time::timeout(limit, connect).await {
                Ok(connected) => connected,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            }
        })
    }
}

/// Whether the other end closed the connection before it was open.
fn was_cut(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

/// A connection with or without TLS.
pub(super) enum Stream {
    Plain(TcpStream),
    /// It ends once the certificate at the other end is one of these.
    Tls(Box<TlsStream<TcpStream>>, Option<RevokedCertificates>),
}

/// Refuses to send anything to whose certificate was revoked since the connection was opened.
fn check(stream: &TlsStream<TcpStream>, revoked: Option<&RevokedCertificates>) -> io::Result<()> {
    let end = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    match (revoked, end) {
        (Some(revoked), Some(end)) if revoked.has_certificate(end) => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, WrongPeerError::Revoked))
        }
        _ => Ok(()),
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream, _) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream, revoked) => match check(stream, revoked.as_ref()) {
                Ok(()) => Pin::new(stream).poll_write(cx, bytes),
                Err(refused) => Poll::Ready(Err(refused)),
            },
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
