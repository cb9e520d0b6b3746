//! TLS of those who call: version 1.3, with a certificate of their own, and only
//! with the role at the other end that they mean to reach.
//!
//! A certificate of the deployment's authority for the right host says that its
//! holder is somebody, not that they are the service: any controller's is good for
//! `localhost`. So the name in it counts as well.

use super::identity::{AUTHORITY, CERTIFICATE, IdentityFolder, KEY};
use super::role::{Name, NoName, Role};
use crate::failure::{Blame, Category, Failure};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, OtherError,
    RootCertStore, SignatureScheme, StreamOwned, crypto::ring, version::TLS13,
};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

/// Who a client means to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meant {
    /// Its role.
    pub role: Role,
    /// Its name, if the client knows it.
    pub name: Option<String>,
}

/// The other end is somebody else.
#[derive(thiserror::Error)]
pub enum WrongPeer {
    /// Its certificate names nobody.
    #[error("the certificate at the other end: {0}")]
    Nobody(#[from] NoName),
    /// Another role, or another name.
    #[error("the other end is {is}, and {wanted} was meant; check the address")]
    Other {
        /// Who it is.
        is: Name,
        /// Who was meant.
        wanted: String,
    },
}

/// In words: what TLS says of a refused certificate shows errors in this form.
impl fmt::Debug for WrongPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Meant {
    fn check(&self, certificate: &[u8]) -> Result<Name, WrongPeer> {
        let is = Name::of_certificate(certificate)?;
        if is.role == self.role && self.name.as_ref().is_none_or(|name| *name == is.name) {
            return Ok(is);
        }
        let wanted = match &self.name {
            Some(name) => format!("alpheus://{}/{name}", self.role),
            None => format!("a {}", self.role),
        };
        Err(WrongPeer::Other { is, wanted })
    }
}

/// Who was at the other end last. Clones are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Arc<Mutex<Option<Name>>>);

impl Seen {
    pub(super) fn name(&self) -> Option<Name> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Checks a certificate as always, and then its name.
#[derive(Debug)]
struct Verifier {
    chain: Arc<WebPkiServerVerifier>,
    meant: Meant,
    seen: Seen,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.chain.verify_server_cert(end, intermediates, host, ocsp, now)?;
        let name = self.meant.check(end).map_err(|wrong| {
            rustls::Error::from(CertificateError::Other(OtherError(Arc::new(wrong))))
        })?;
        *self.seen.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// Makes connections. It stands behind the one that makes TCP's.
#[derive(Debug)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Connections as the identity's holder to whom it means; what it sees is
    /// noted in `seen`.
    pub(super) fn new(identity: &IdentityFolder, meant: Meant, seen: Seen) -> Result<Tls, Failure> {
        let provider = Arc::new(ring::default_provider());
        let path = identity.path(AUTHORITY);
        let mut roots = RootCertStore::empty();
        for authority in certificates(&path)? {
            roots.add(authority).blame_input(&path)?;
        }
        let chain =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        let verifier = Verifier { chain: chain.blame_input(&path)?, meant, seen };
        let key = identity.path(KEY);
        let secret = PrivateKeyDer::from_pem_file(&key)
            .map_err(|_| "there is no private key in PEM form in it")
            .blame_input(&key)?;
        let builder = ClientConfig::builder_with_provider(provider);
        let config = builder
            .with_protocol_versions(&[&TLS13])
            .blame(Category::Io)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(certificates(&identity.path(CERTIFICATE))?, secret)
            .blame_input(&key)?;
        Ok(Tls(Arc::new(config)))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found: Vec<_> =
        found.map_err(|_| "it holds no certificates in PEM form").blame_input(path)?;
    if found.is_empty() {
        return Err("there is no certificate in PEM form in it").blame_input(path);
    }
    Ok(found)
}

impl<In: Transport> Connector<In> for Tls {
    type Out = Connection;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Connection>, ureq::Error> {
        let Some(transport) = chained else { return Ok(None) };
        let host = details.uri.host().unwrap_or_default();
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        let name = name.map_err(|_| ureq::Error::Tls("not the name of a host"))?;
        let mut connection = ClientConnection::new(Arc::clone(&self.0), name)?;
        let mut socket = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        let (input, output) =
            (details.config.input_buffer_size(), details.config.output_buffer_size());
        let buffers = LazyBuffers::new(input, output);
        Ok(Some(Connection { buffers, stream: StreamOwned::new(connection, socket) }))
    }
}

/// A connection over TLS.
pub(super) struct Connection {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        Ok(std::io::Write::write_all(&mut self.stream, output)?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = std::io::Read::read(&mut self.stream, self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
