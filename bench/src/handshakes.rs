//! A handshake of TLS 1.3 in which both sides show a certificate, with the hybrid key exchange of
//! our processes, beside X25519 alone.

use crate::BenchError;
use crate::measure::Effort;
use crate::report::Figure;
use alpheus_node::key_exchange;
use rcgen::{CertificateParams, KeyPair};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConfig, ServerConnection,
};
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

const GROUP: &str = "handshakes";

type Failable<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Both sides' time, and the bytes that they exchange.
pub(crate) fn figures(
    effort: Effort,
    mut say: impl FnMut(&str),
) -> Result<Vec<Figure>, BenchError> {
    say("handshakes: X25519 with ML-KEM-768, beside X25519 alone");
    let sides = |provider| Sides::new(provider).map_err(BenchError::Handshake);
    let (classical, hybrid) = (sides(ring::default_provider())?, sides(key_exchange::provider())?);
    let bytes = |sides: &Sides| sides.shake().map_err(BenchError::Handshake);
    let (before, now) = (bytes(&classical)?, bytes(&hybrid)?);
    let times =
        effort.compare(|| drop(black_box(classical.shake())), || drop(black_box(hybrid.shake())));
    #[expect(clippy::cast_precision_loss, reason = "a few thousand bytes")]
    let figure = |what: &str, bytes: usize| {
        Figure::alone(GROUP, format!("a handshake, {what}"), "bytes", bytes as f64)
    };
    Ok(vec![
        Figure::compared(GROUP, "a handshake, both sides".into(), "ns", times),
        figure("X25519 alone", before),
        figure("hybrid", now),
    ])
}

/// A client and a server that know each other's certificates.
struct Sides {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Sides {
    fn new(provider: CryptoProvider) -> Failable<Sides> {
        let provider = Arc::new(provider);
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(["localhost".to_owned()])?.self_signed(&key)?;
        let chain = || vec![CertificateDer::from(certificate.der().to_vec())];
        let secret = || PrivateKeyDer::try_from(key.serialize_der());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone())?;
        let roots = Arc::new(roots);
        let clients =
            WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build()?;
        let servers =
            WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build()?;
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain(), secret()?)?;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_webpki_verifier(servers)
            .with_client_auth_cert(chain(), secret()?)?;
        // As our processes: each handshake is a full one.
        server.send_tls13_tickets = 0;
        client.resumption = Resumption::disabled();
        Ok(Sides { client: Arc::new(client), server: Arc::new(server) })
    }

    /// The bytes of a whole handshake.
    fn shake(&self) -> Failable<usize> {
        let name = ServerName::try_from("localhost")?;
        let mut client = ClientConnection::new(self.client.clone(), name)?;
        let mut server = ServerConnection::new(self.server.clone())?;
        let mut bytes = 0;
        while client.wants_write() || server.wants_write() {
            let mut sent = Vec::new();
            client.write_tls(&mut sent)?;
            server.read_tls(&mut sent.as_slice())?;
            server.process_new_packets()?;
            let mut answered = Vec::new();
            server.write_tls(&mut answered)?;
            client.read_tls(&mut answered.as_slice())?;
            client.process_new_packets()?;
            bytes += sent.len() + answered.len();
        }
        let full = client.handshake_kind() == Some(HandshakeKind::Full);
        if !full || client.is_handshaking() || server.is_handshaking() {
            return Err("the handshake is not a full one".into());
        }
        Ok(bytes)
    }
}
