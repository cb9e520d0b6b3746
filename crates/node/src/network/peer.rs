//! Who a client expects at the other end, and the TLS that checks it: version 1.3,
//! without resumption.
//!
//! A certificate of the right authority for the right host does not make its holder
//! the right process: any controller's certificate is good for `localhost`. So the
//! role and the name in the certificate count as well.

use super::identity::{AUTHORITY, CERTIFICATE, IdentityFolder, KEY};
use super::revoked_certificates::RevokedCertificates;
use super::role::{Name, PeerNameError, Role};
use crate::failure::{Blame, Category, Failure};
use crate::key_exchange;
use crate::service::reload::Live;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, OtherError,
    RootCertStore, SignatureScheme, WantsVerifier, client::WantsClientCert, version::TLS13,
};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Who a client expects at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedPeer {
    /// A process of the deployment.
    Process {
        /// Its role.
        role: Role,
        /// Its name, if the client knows it.
        name: Option<String>,
    },
    /// A process with this role, or a proxy in front of it whose certificate names no
    /// role. A process with another role is refused.
    Front(Role),
    /// A server that is not part of the deployment: whatever has a certificate of the
    /// authority for the host.
    External,
}

impl From<Role> for ExpectedPeer {
    fn from(role: Role) -> Self {
        Self::Process { role, name: None }
    }
}

/// The other end is not who the client expects.
#[derive(thiserror::Error)]
pub enum WrongPeerError {
    /// Its certificate names no process.
    #[error("the certificate at the other end: {0}")]
    Nameless(#[from] PeerNameError),
    /// The authority has revoked its certificate.
    #[error("the authority has revoked the certificate at the other end; ask whose it is")]
    Revoked,
    /// Another role, or another name.
    #[error("the other end is {is}, but the client expects {expected}; check the address")]
    Other {
        /// Who it is.
        is: Name,
        /// Who the client expects.
        expected: String,
    },
}

/// In words: TLS shows the error of a refused certificate in this form.
impl fmt::Debug for WrongPeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl ExpectedPeer {
    /// A controller, by its name if it is known.
    #[must_use]
    pub fn controller(name: Option<&str>) -> Self {
        Self::Process { role: Role::Controller, name: name.map(str::to_owned) }
    }

    fn check(&self, certificate: &[u8]) -> Result<Option<Name>, WrongPeerError> {
        let (role, name, is) = match self {
            Self::Process { role, name } => {
                (role, name.as_ref(), Name::of_certificate(certificate)?)
            }
            Self::Front(role) => match Name::in_certificate(certificate)? {
                Some(is) => (role, None, is),
                None => return Ok(None),
            },
            Self::External => return Ok(None),
        };
        if is.role == *role && name.is_none_or(|name| *name == is.name) {
            return Ok(Some(is));
        }
        let expected = match name {
            Some(name) => format!("alpheus://{role}/{name}"),
            None => format!("the role `{role}`"),
        };
        Err(WrongPeerError::Other { is, expected })
    }
}

/// Who was at the other end last. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct LastPeer(Arc<Mutex<Option<Name>>>);

impl LastPeer {
    pub(super) fn name(&self) -> Option<Name> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Checks a certificate as always, and then its role and name.
#[derive(Debug)]
struct Verifier {
    chain: Arc<WebPkiServerVerifier>,
    expected: ExpectedPeer,
    revoked: Option<RevokedCertificates>,
    last: LastPeer,
}

impl Verifier {
    fn check(&self, certificate: &[u8]) -> Result<Option<Name>, WrongPeerError> {
        if self.revoked.as_ref().is_some_and(|revoked| revoked.has_certificate(certificate)) {
            return Err(WrongPeerError::Revoked);
        }
        self.expected.check(certificate)
    }
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
        let name = self.check(end).map_err(|wrong| {
            rustls::Error::from(CertificateError::Other(OtherError(Arc::new(wrong))))
        })?;
        *self.last.0.lock().unwrap_or_else(PoisonError::into_inner) = name;
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

/// TLS of a client that shows no certificate.
pub(super) fn anonymous(
    expected: ExpectedPeer,
    authority: &str,
    last: LastPeer,
) -> Result<ClientConfig, Failure> {
    let authorities = CertificateDer::pem_slice_iter(authority.as_bytes()).collect();
    let authorities = some(authorities).blame(Category::Input)?;
    let builder = verifying(expected, authorities, (None, last)).blame(Category::Input)?;
    Ok(unlinkable(builder.with_no_client_auth()))
}

/// TLS of a client that shows the certificate of its identity, which is read again when it changes.
pub(super) fn identified(
    expected: ExpectedPeer,
    identity: &IdentityFolder,
    last: LastPeer,
) -> Result<Arc<Live<ClientConfig>>, Failure> {
    let files = [CERTIFICATE, KEY, AUTHORITY].map(|file| identity.path(file));
    let identity = identity.clone();
    let read = move || read_identity(expected.clone(), &identity, last.clone());
    let again = read.clone();
    Live::watching(files.into(), read, move || again().map_err(|failure| failure.to_string()))
}

fn read_identity(
    expected: ExpectedPeer,
    identity: &IdentityFolder,
    last: LastPeer,
) -> Result<ClientConfig, Failure> {
    let authority = identity.path(AUTHORITY);
    let given = (identity.revoked().cloned(), last);
    let builder = verifying(expected, certificates(&authority)?, given).blame_input(&authority)?;
    let key = identity.path(KEY);
    let secret = PrivateKeyDer::from_pem_file(&key)
        .map_err(|_| "there is no private key in PEM form in it")
        .blame_input(&key)?;
    let chain = certificates(&identity.path(CERTIFICATE))?;
    Ok(unlinkable(builder.with_client_auth_cert(chain, secret).blame_input(&key)?))
}

fn verifying(
    expected: ExpectedPeer,
    authorities: Vec<CertificateDer<'static>>,
    (revoked, last): (Option<RevokedCertificates>, LastPeer),
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Box<dyn std::error::Error + Send + Sync>>
{
    let provider = Arc::new(key_exchange::provider());
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority)?;
    }
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let verifier = Verifier { chain: chain.build()?, expected, revoked, last };
    let builder: ConfigBuilder<ClientConfig, WantsVerifier> =
        ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
}

/// A ticket would link connections.
fn unlinkable(mut config: ClientConfig) -> ClientConfig {
    config.resumption = Resumption::disabled();
    config
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    some(CertificateDer::pem_file_iter(path).and_then(Iterator::collect)).blame_input(path)
}

fn some<E>(
    found: Result<Vec<CertificateDer<'static>>, E>,
) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err("there is no certificate in PEM form in it"),
        Err(_) => Err("it holds no certificates in PEM form"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, SanType};
    use rustls::crypto::{CryptoProvider, ring};
    use rustls::{HandshakeKind as Kind, NamedGroup as Group};

    /// A self-signed certificate for `localhost` with these URIs.
    fn certificate(uris: &[&str]) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let uri = |uri: &&str| SanType::URI((*uri).try_into().unwrap());
        params.subject_alt_names.extend(uris.iter().map(uri));
        (params.self_signed(&key).unwrap(), key)
    }

    fn named(role: Role, name: &str) -> ExpectedPeer {
        ExpectedPeer::Process { role, name: Some(name.to_owned()) }
    }

    #[test]
    fn only_the_expected_role_and_name_pass() {
        let first = "alpheus://controller/first";
        let web = "https://site.example";
        for (uris, expected, passes) in [
            (&[first][..], ExpectedPeer::from(Role::Controller), true),
            (&[first], named(Role::Controller, "first"), true),
            (&[first], named(Role::Controller, "second"), false),
            (&[first], Role::Server.into(), false),
            (&[], Role::Controller.into(), false),
            (&[first, "alpheus://server/a"], Role::Controller.into(), false),
            (&["alpheus://gateway/a"], ExpectedPeer::Front(Role::Gateway), true),
            (&[web], ExpectedPeer::Front(Role::Gateway), true),
            (&[first], ExpectedPeer::Front(Role::Gateway), false),
            (&["alpheus://gateway/a", first], ExpectedPeer::Front(Role::Gateway), false),
            (&["alpheus://king/a"], ExpectedPeer::Front(Role::Gateway), false),
            (&[first], ExpectedPeer::External, true),
        ] {
            let checked = expected.check(certificate(uris).0.der());
            assert_eq!(checked.is_ok(), passes, "{uris:?} as {expected:?}: {checked:?}");
        }
    }

    /// Carries bytes both ways until neither side has more.
    fn shake(client: &mut rustls::ClientConnection, server: &mut rustls::ServerConnection) {
        while client.wants_write() || server.wants_write() {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut bytes.as_slice()).unwrap();
            server.process_new_packets().unwrap();
            let mut bytes = Vec::new();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut bytes.as_slice()).unwrap();
            client.process_new_packets().unwrap();
        }
    }

    /// A server that issues tickets, and the PEM of the authority that its clients need.
    fn server(provider: CryptoProvider) -> (Arc<rustls::ServerConfig>, String) {
        let (certificate, key) = certificate(&[]);
        let builder = rustls::ServerConfig::builder_with_provider(Arc::new(provider));
        let builder = builder.with_protocol_versions(&[&TLS13]).unwrap().with_no_client_auth();
        let secret = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let server = builder.with_single_cert(vec![certificate.der().clone()], secret).unwrap();
        (Arc::new(server), certificate.pem())
    }

    fn connection(client: &Arc<ClientConfig>, server: &Arc<rustls::ServerConfig>) -> (Kind, Group) {
        let name = ServerName::try_from("localhost").unwrap();
        let mut ours = rustls::ClientConnection::new(client.clone(), name).unwrap();
        let mut theirs = rustls::ServerConnection::new(server.clone()).unwrap();
        shake(&mut ours, &mut theirs);
        let group = ours.negotiated_key_exchange_group().unwrap().name();
        (ours.handshake_kind().unwrap(), group)
    }

    /// Even a server that issues tickets cannot recognise a returning client by them.
    #[test]
    fn a_connection_is_never_resumed() {
        let (server, authority) = server(ring::default_provider());
        assert!(server.send_tls13_tickets > 0);
        let client = anonymous(ExpectedPeer::External, &authority, LastPeer::default()).unwrap();
        let client = Arc::new(client);
        for _ in 0..2 {
            assert_eq!(connection(&client, &server).0, Kind::Full);
        }
    }

    /// Full, so without a second round.
    #[test]
    fn keys_are_hybrid_and_those_with_servers_that_have_no_ml_kem_are_classical() {
        for (provider, group) in [
            (key_exchange::provider(), Group::X25519MLKEM768),
            (ring::default_provider(), Group::X25519),
        ] {
            let (server, authority) = server(provider);
            let client = anonymous(ExpectedPeer::External, &authority, LastPeer::default());
            let agreed = connection(&Arc::new(client.unwrap()), &server);
            assert_eq!(agreed, (Kind::Full, group));
        }
    }
}
