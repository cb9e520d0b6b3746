//! Asks a process once, and tells apart why there is no answer. For diagnosis: other callers use
//! [`HttpClient`](super::client::HttpClient), which tries again.

use super::connector::Connector;
use super::peer::{LastPeer, WrongPeerError};
use super::role::Name;
use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError};
use std::error::Error;
use std::io;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long a handshake and an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest answer.
const MAX_ANSWER: usize = 16 << 20;

/// An answer, of whatever status.
#[derive(Clone, Debug)]
pub struct ProbeAnswer {
    /// Who answered.
    pub peer: Option<Name>,
    /// The HTTP status.
    pub status: u16,
    /// The program that answered, as [`BUILD`](crate::BUILD) has it.
    pub build: Option<String>,
    /// The clock at the other end, in seconds since 1970.
    pub date: Option<i64>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The host's name is unknown.
    #[error("the host's name is unknown")]
    NoSuchHost,
    /// Nothing listens there.
    #[error("nothing listens there")]
    Refused,
    /// Nobody answers, or the line breaks.
    #[error("nobody answers")]
    Silent,
    /// What listens there does not speak TLS.
    #[error("the listener there does not speak TLS")]
    NotTls,
    /// Its certificate is for another host name.
    #[error("its certificate is for another host name")]
    OtherHost,
    /// Its certificate is of another authority.
    #[error("its certificate is from another authority")]
    OtherAuthority,
    /// Its certificate is over.
    #[error("its certificate has expired")]
    Expired,
    /// Its certificate is not valid yet.
    #[error("its certificate is not valid yet")]
    NotYetValid,
    /// Its certificate was revoked.
    #[error("its certificate was revoked")]
    Revoked,
    /// It is another process than the one that was expected.
    #[error("it is {0}")]
    OtherPeer(Name),
    /// Its certificate names no process.
    #[error("its certificate names no process")]
    Nameless,
    /// It refuses our certificate, because it is over.
    #[error("it reports that our certificate has expired")]
    RejectedExpired,
    /// It refuses our certificate, which is of another authority.
    #[error("it does not know the authority of our certificate")]
    RejectedAuthority,
    /// It refuses our certificate for another reason.
    #[error("it refuses our certificate")]
    Rejected,
}

/// Asks the server of a client, and demands the same role of it. A client makes it
/// ([`HttpClient::probe`](super::client::HttpClient::probe)).
pub struct Probe {
    connector: Connector,
    last: LastPeer,
}

impl Probe {
    /// One that connects as a client does, and notes who was at the other end.
    pub(super) fn new(connector: Connector, last: LastPeer) -> Probe {
        Probe { connector, last }
    }

    /// GET of a path, over a connection of its own. Not inside an asynchronous task.
    ///
    /// # Errors
    /// [`ProbeError`].
    pub fn get(&self, path: &str) -> Result<ProbeAnswer, ProbeError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|_| ProbeError::Silent)?.block_on(self.ask(path))
    }

    async fn ask(&self, path: &str) -> Result<ProbeAnswer, ProbeError> {
        // Without TLS no role is checked.
        let tls = self.connector.tls().ok_or(ProbeError::NotTls)?;
        let stream = self.connect().await?;
        let host = self.connector.base().host().to_owned();
        let name = ServerName::try_from(host.clone()).map_err(|_| ProbeError::NoSuchHost)?;
        let shaken = TlsConnector::from(tls).connect(name, stream);
        let stream = timeout(PATIENCE, shaken).await.map_err(|_| ProbeError::Silent)?;
        let stream = stream.map_err(|error| self.reason(&error, ProbeError::Silent))?;
        let answer = timeout(PATIENCE, self.exchange(TokioIo::new(stream), path, &host));
        // Who accepts a handshake and then ends the line does not want our certificate.
        let unwanted = |error: hyper::Error| self.reason(&error, ProbeError::Rejected);
        answer.await.map_err(|_| ProbeError::Silent)?.map_err(unwanted)
    }

    async fn connect(&self) -> Result<TcpStream, ProbeError> {
        let opened = timeout(self.connector.limit(), self.open()).await;
        opened.map_err(|_| ProbeError::Silent)?
    }

    async fn open(&self) -> Result<TcpStream, ProbeError> {
        // A proxy looks the name up, and says only that there is no connection.
        if let Some(opened) = self.connector.through_proxy().await {
            return opened.map_err(|_| ProbeError::Silent);
        }
        let base = self.connector.base();
        let known = lookup_host((base.host(), base.port())).await;
        let addresses: Vec<_> = known.map_err(|_| ProbeError::NoSuchHost)?.collect();
        TcpStream::connect(&addresses[..]).await.map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => ProbeError::Refused,
            _ => ProbeError::Silent,
        })
    }

    async fn exchange<S>(
        &self,
        stream: TokioIo<S>,
        path: &str,
        host: &str,
    ) -> Result<ProbeAnswer, hyper::Error>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(stream).await?;
        let driven = tokio::spawn(connection);
        let request = Request::get(path).header(header::HOST, host).body(Body::empty());
        let answered = sender.send_request(request.unwrap_or_default()).await;
        let (head, body) = match answered {
            Ok(answer) => answer.into_parts(),
            Err(error) => {
                // The connection knows why it ended.
                let why = driven.await.ok().and_then(Result::err);
                return Err(why.unwrap_or(error));
            }
        };
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        let body = body.map(|whole| whole.to_bytes().to_vec()).unwrap_or_default();
        let (build, date) = (text(&head.headers, header::SERVER), date_of(&head.headers));
        Ok(ProbeAnswer { peer: self.last.name(), status: head.status.as_u16(), build, date, body })
    }

    /// Why a connection failed, by its cause in TLS.
    fn reason(&self, error: &(dyn Error + 'static), otherwise: ProbeError) -> ProbeError {
        let mut next = Some(error);
        while let Some(cause) = next {
            let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            let tls = cause.downcast_ref::<rustls::Error>();
            let tls = tls.or_else(|| inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()));
            if let Some(tls) = tls {
                return of_tls(tls, otherwise);
            }
            next = cause.source();
        }
        otherwise
    }
}

fn of_tls(error: &rustls::Error, otherwise: ProbeError) -> ProbeError {
    match error {
        rustls::Error::InvalidMessage(_) | rustls::Error::PeerIncompatible(_) => ProbeError::NotTls,
        rustls::Error::InvalidCertificate(wrong) => of_certificate(wrong),
        rustls::Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateExpired => ProbeError::RejectedExpired,
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::DecryptError => ProbeError::RejectedAuthority,
            _ => ProbeError::Rejected,
        },
        _ => otherwise,
    }
}

fn of_certificate(wrong: &CertificateError) -> ProbeError {
    match wrong {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => ProbeError::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ProbeError::NotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ProbeError::OtherHost
        }
        CertificateError::Other(other) => match other.0.downcast_ref::<WrongPeerError>() {
            Some(WrongPeerError::Other { is, .. }) => ProbeError::OtherPeer(is.clone()),
            Some(WrongPeerError::Revoked) => ProbeError::Revoked,
            Some(WrongPeerError::Nameless(_)) => ProbeError::Nameless,
            None => ProbeError::OtherAuthority,
        },
        _ => ProbeError::OtherAuthority,
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

/// What a server's clock showed when it answered, in seconds since 1970.
fn date_of(headers: &HeaderMap) -> Option<i64> {
    let date = OffsetDateTime::parse(&text(headers, header::DATE)?, &Rfc2822).ok()?;
    Some(date.unix_timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::base::Base;
    use crate::network::client::HttpClient;
    use crate::network::identity::{AUTHORITY, IdentityFolder};
    use crate::network::role::Role;
    use crate::pki;
    use crate::service::http::Server;
    use crate::service::shutdown::Trigger;
    use crate::service::tls;
    use axum::Router;
    use axum::routing::get;
    use std::io::Write;
    use std::net::TcpListener;
    use std::path::Path;
    use std::time::SystemTime;

    #[test]
    fn a_servers_date_is_read_as_http_writes_it() {
        let date = |value: &'static str| {
            let value = header::HeaderValue::from_static(value);
            date_of(&HeaderMap::from_iter([(header::DATE, value)]))
        };
        assert_eq!(date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!([date("yesterday"), date("Sun, 31 Feb 1994 08:49:37 GMT")], [None; 2]);
        assert_eq!(date_of(&HeaderMap::new()), None);
    }

    /// A server with the certificate of a folder; its address.
    fn serve(pki: &Path, name: &str, runtime: &tokio::runtime::Runtime, trigger: &Trigger) -> u16 {
        let identity = IdentityFolder::open(&pki.join(name), Role::Server).unwrap();
        let config = tls::server(&identity.tls(), SystemTime::now()).unwrap();
        let bound = Server::bind(([127, 0, 0, 1], 0).into(), Some(config));
        let server = runtime.block_on(bound).unwrap();
        let port = server.address().unwrap().port();
        let router = Router::new().route("/", get(|| async { "here" }));
        runtime.spawn(server.serve(router, trigger.shutdown(), Duration::ZERO));
        port
    }

    fn base(host: &str, port: u16) -> Base {
        Base::parse(&format!("https://{host}:{port}")).unwrap()
    }

    fn probe(base: Base, role: Role, identity: &IdentityFolder) -> Probe {
        HttpClient::identified(base, role, identity).unwrap().probe()
    }

    #[test]
    fn each_reason_has_its_error() {
        let folder = tempfile::tempdir().unwrap();
        let (own, foreign) = (folder.path().join("pki"), folder.path().join("foreign"));
        for pki in [&own, &foreign] {
            pki::make(pki, &[(Role::Server, "service"), (Role::Consumer, "reader")]).unwrap();
        }
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let trigger = Trigger::new();
        let port = serve(&own, "service", &runtime, &trigger);
        let reader =
            |pki: &Path| IdentityFolder::open(&pki.join("reader"), Role::Consumer).unwrap();
        let asked = |host: &str, port: u16, role: Role, pki: &Path| {
            probe(base(host, port), role, &reader(pki)).get("/")
        };
        let answer = asked("localhost", port, Role::Server, &own).unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &b"here"[..]));
        assert_eq!(answer.peer.unwrap().name, "service");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        assert!(answer.date.unwrap().abs_diff(i64::try_from(now).unwrap()) < 600);

        let refused =
            |host: &str, port, role, pki: &Path| asked(host, port, role, pki).unwrap_err();
        assert!(
            matches!(refused("localhost", port, Role::Issuer, &own), ProbeError::OtherPeer(is) if is.role == Role::Server)
        );
        assert_eq!(refused("localhost", port, Role::Server, &foreign), ProbeError::OtherAuthority);
        assert_eq!(refused("127.0.0.2", port, Role::Server, &own), ProbeError::Refused);
        assert_eq!(refused("host.invalid", port, Role::Server, &own), ProbeError::NoSuchHost);
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert_eq!(refused("localhost", free, Role::Server, &own), ProbeError::Refused);
        // It trusts the service, which does not trust it.
        std::fs::copy(own.join("service").join(AUTHORITY), foreign.join("reader").join(AUTHORITY))
            .unwrap();
        let mixed = refused("localhost", port, Role::Server, &foreign);
        assert!(matches!(mixed, ProbeError::RejectedAuthority | ProbeError::Rejected), "{mixed:?}");
    }

    #[test]
    fn what_does_not_speak_tls_is_not_silent() {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        pki::make(&pki, &[(Role::Consumer, "reader")]).unwrap();
        let reader = IdentityFolder::open(&pki.join("reader"), Role::Consumer).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok).take(1) {
                let mut stream = stream;
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
            }
        });
        let probe = probe(base("localhost", port), Role::Server, &reader);
        assert_eq!(probe.get("/").unwrap_err(), ProbeError::NotTls);
    }
}
