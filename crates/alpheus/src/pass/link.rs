//! A way to one server, over HTTP/1.1 with or without TLS 1.3: a pool of
//! connections of its own. A new link shares nothing with another: no
//! connection, no ticket, no cookie.

use crate::failure::{Blame, Failure};
use crate::network::client::Problem;
use crate::network::identity::{AUTHORITY, CERTIFICATE, IdentityFolder, KEY};
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, version::TLS13};
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a short answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The largest short answer.
const LARGEST: usize = 64 << 10;

/// Where a server is: `https://host:port`, or `http://` to this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    tls: bool,
    host: String,
    port: u16,
}

/// An address that is no server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBase {
    /// Not of the form.
    #[error("an address is `https://host` or `https://host:port`, without a path")]
    Form,
    /// Without TLS to another machine.
    #[error("without TLS only this machine is reached (127.0.0.1, localhost); say https://")]
    Plain,
}

impl Base {
    /// Reads an address that passes and sessions may be sent to.
    ///
    /// # Errors
    /// [`BadBase`].
    pub fn parse(text: &str) -> Result<Self, BadBase> {
        let base = Self::anywhere(text)?;
        if base.tls || base.is_local() { Ok(base) } else { Err(BadBase::Plain) }
    }

    /// Reads any address: a service behind a gateway may be in a network that is
    /// trusted.
    ///
    /// # Errors
    /// [`BadBase::Form`].
    pub fn anywhere(text: &str) -> Result<Self, BadBase> {
        let uri: Uri = text.parse().map_err(|_| BadBase::Form)?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(BadBase::Form),
        };
        let bare = uri.query().is_none() && matches!(uri.path(), "" | "/");
        let authority = uri.authority().filter(|a| bare && !a.as_str().contains('@'));
        let authority = authority.ok_or(BadBase::Form)?;
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Self { tls, host: authority.host().to_ascii_lowercase(), port })
    }

    fn is_local(&self) -> bool {
        let address = self.host.trim_matches(['[', ']']).parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// `host:port`, without the port if it is the scheme's: the `Host` header.
    #[must_use]
    pub fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// `https://host:port`.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Nobody answered; asking again later may help.
    #[error("{0}: no answer: {1}")]
    Unreachable(String, String),
    /// It answered that it will not.
    #[error("{0}")]
    Refused(Problem),
    /// It answered something else than was agreed.
    #[error("{0}: the answer is not what this version of alpheus expects")]
    Malformed(String),
}

impl LinkError {
    /// The rule of a refusal.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::Refused(problem) => Some(&problem.rule),
            _ => None,
        }
    }

    /// Whether the same request may be answered later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(..) => true,
            Self::Refused(problem) => problem.status >= 500,
            Self::Malformed(_) => false,
        }
    }
}

/// What an answer may take.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Bytes.
    pub bytes: usize,
    /// Time.
    pub time: Duration,
}

/// A way to one server.
#[derive(Clone)]
pub struct Link {
    base: Base,
    client: Client<Connector, Body>,
}

impl Link {
    /// A way of its own, with the authorities that its certificate may come from.
    ///
    /// # Errors
    /// If these are none.
    pub fn new(base: Base, authority: Option<&str>) -> Result<Self, Failure> {
        Ok(Self::with(base, Arc::new(tls(authority.unwrap_or_default().as_bytes(), None)?)))
    }

    /// A way of a process that says who it is.
    ///
    /// # Errors
    /// If a file of the identity cannot be used.
    pub fn of(base: Base, identity: &IdentityFolder) -> Result<Self, Failure> {
        let read = |file| {
            let path = identity.path(file);
            std::fs::read(&path).blame_io(&path)
        };
        let (chain, key) = (read(CERTIFICATE)?, read(KEY)?);
        let config = tls(&read(AUTHORITY)?, Some((&chain, &key)))?;
        Ok(Self::with(base, Arc::new(config)))
    }

    fn with(base: Base, config: Arc<ClientConfig>) -> Self {
        let connector = Connector { base: base.clone(), tls: TlsConnector::from(config) };
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self { base, client }
    }

    /// Whom it reaches.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Sends a request whose URI is a path; the answer streams.
    ///
    /// # Errors
    /// [`LinkError::Unreachable`].
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, LinkError> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let uri = format!("{}{path}", self.base.origin());
        let unreachable = |why: String| LinkError::Unreachable(self.base.origin(), why);
        *request.uri_mut() = uri.parse().map_err(|_| unreachable("not a path".into()))?;
        self.client.request(request).await.map_err(|error| unreachable(chain(&error)))
    }

    /// Sends bytes and takes a short answer.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn exchange(
        &self,
        method: Method,
        path: &str,
        headers: &[(header::HeaderName, &str)],
        body: Vec<u8>,
    ) -> Result<Vec<u8>, LinkError> {
        let most = Most { bytes: LARGEST, time: PATIENCE };
        self.exchange_within(method, path, headers, body, most).await
    }

    /// Sends bytes and takes an answer of so many bytes at most, in so much time.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn exchange_within(
        &self,
        method: Method,
        path: &str,
        headers: &[(header::HeaderName, &str)],
        body: Vec<u8>,
        most: Most,
    ) -> Result<Vec<u8>, LinkError> {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        let malformed = || LinkError::Malformed(self.base.origin());
        *request.uri_mut() = path.parse().map_err(|_| malformed())?;
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(|_| malformed())?;
            request.headers_mut().insert(name, value);
        }
        let unreachable = |why: &str| LinkError::Unreachable(self.base.origin(), why.to_owned());
        let answer = tokio::time::timeout(most.time, self.short(request, most.bytes)).await;
        let (status, bytes) = answer.map_err(|_| unreachable("it took too long"))??;
        if status.is_success() {
            Ok(bytes)
        } else {
            Err(LinkError::Refused(problem(status, &bytes)))
        }
    }

    async fn short(
        &self,
        request: Request<Body>,
        most: usize,
    ) -> Result<(StatusCode, Vec<u8>), LinkError> {
        let answer = self.send(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), most).collect().await;
        let body = body.map_err(|error| match error.downcast::<LengthLimitError>() {
            Ok(_) => LinkError::Malformed(self.base.origin()),
            // The connection broke on the way.
            Err(error) => LinkError::Unreachable(self.base.origin(), chain(&*error)),
        })?;
        Ok((status, body.to_bytes().to_vec()))
    }

    /// Posts bytes.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn post(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, LinkError> {
        self.exchange(Method::POST, path, &[], body).await
    }
}

fn problem(status: StatusCode, body: &[u8]) -> Problem {
    serde_json::from_slice(body).unwrap_or_else(|_| Problem {
        rule: "http".to_owned(),
        detail: format!("it answered {status}"),
        help: None,
        status: status.as_u16(),
    })
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        said = format!("{said}: {cause}");
        next = cause.source();
    }
    said
}

/// TLS 1.3 without resumption: a ticket would link connections.
fn tls(authorities: &[u8], ours: Option<(&[u8], &[u8])>) -> Result<ClientConfig, Failure> {
    use crate::failure::Category::Input;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        roots.add(certificate.blame(Input)?).blame(Input)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&TLS13]).blame(Input)?;
    let builder = builder.with_root_certificates(roots);
    let mut config = match ours {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
            let key = PrivateKeyDer::from_pem_slice(key).blame(Input)?;
            builder.with_client_auth_cert(chain.blame(Input)?, key).blame(Input)?
        }
    };
    config.resumption = Resumption::disabled();
    Ok(config)
}

#[derive(Clone)]
struct Connector {
    base: Base,
    tls: TlsConnector,
}

impl Connector {
    async fn connect(self) -> std::io::Result<TokioIo<Stream>> {
        let host = self.base.host.trim_matches(['[', ']']).to_owned();
        let stream = TcpStream::connect((host.as_str(), self.base.port)).await?;
        stream.set_nodelay(true)?;
        if !self.base.tls {
            return Ok(TokioIo::new(Stream::Plain(stream)));
        }
        let name = ServerName::try_from(host).map_err(std::io::Error::other)?;
        let stream = self.tls.connect(name, stream).await?;
        Ok(TokioIo::new(Stream::Tls(Box::new(stream))))
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connect = self.clone().connect();
        Box::pin(async {
            match tokio::time::timeout(CONNECT, connect).await {
                Ok(connected) => connected,
                Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
            }
        })
    }
}

/// A connection with or without TLS.
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
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
    ) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each side has to say goes to the other, until nobody has.
    fn shake(client: &mut rustls::ClientConnection, server: &mut rustls::ServerConnection) {
        while client.wants_write() || server.wants_write() {
            let mut said = Vec::new();
            client.write_tls(&mut said).unwrap();
            server.read_tls(&mut said.as_slice()).unwrap();
            server.process_new_packets().unwrap();
            let mut said = Vec::new();
            server.write_tls(&mut said).unwrap();
            client.read_tls(&mut said.as_slice()).unwrap();
            client.process_new_packets().unwrap();
        }
    }

    /// Even a server that hands out tickets cannot tell by them who comes again.
    #[test]
    fn a_connection_is_never_resumed() {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&TLS13]).unwrap().with_no_client_auth();
        let secret = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let server = builder.with_single_cert(vec![certificate.der().clone()], secret).unwrap();
        assert!(server.send_tls13_tickets > 0);
        let (server, client) = (Arc::new(server), tls(certificate.pem().as_bytes(), None).unwrap());
        let client = Arc::new(client);
        for _ in 0..2 {
            let name = ServerName::try_from("localhost").unwrap();
            let mut ours = rustls::ClientConnection::new(client.clone(), name).unwrap();
            let mut theirs = rustls::ServerConnection::new(server.clone()).unwrap();
            shake(&mut ours, &mut theirs);
            assert_eq!(ours.handshake_kind(), Some(rustls::HandshakeKind::Full));
        }
    }

    #[test]
    fn sessions_go_to_other_machines_by_tls_only() {
        for good in [
            "https://a.example",
            "https://a.example:8443/",
            "http://127.0.0.1:80",
            "http://localhost",
            "http://[::1]:9",
        ] {
            assert!(Base::parse(good).is_ok(), "{good}");
        }
        assert_eq!(Base::parse("http://a.example"), Err(BadBase::Plain));
        assert_eq!(Base::parse("http://localhost.example"), Err(BadBase::Plain));
        for bad in
            ["", "a.example", "ftp://a", "https://a/b", "https://a?b", "https://u@a", "https://"]
        {
            assert_eq!(Base::parse(bad), Err(BadBase::Form), "{bad}");
        }
        assert!(Base::anywhere("http://upstream.internal:8000").is_ok());
        assert_eq!(Base::parse("https://A.example:443").unwrap().authority(), "a.example");
        assert_eq!(Base::parse("http://localhost:443").unwrap().authority(), "localhost:443");
    }
}
