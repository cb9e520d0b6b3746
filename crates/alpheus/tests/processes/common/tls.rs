//! Connections over TLS whose bytes a test writes itself.

use super::PATIENCE;
use alpheus_node::network::identity::{AUTHORITY, CERTIFICATE, KEY};
use alpheus_time::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::ring};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Connection = StreamOwned<ClientConnection, TcpStream>;

/// Connects to a service with an identity.
pub(crate) fn connect(identity: &Path, api: &str) -> Connection {
    open(identity, api, true, Arc::new(DefaultTimeProvider))
}

/// The same at a time of its own, which certificates have to be valid at.
pub(crate) fn connect_at(identity: &Path, api: &str, time: Timestamp) -> Connection {
    open(identity, api, true, Arc::new(FixedTime(time)))
}

#[derive(Debug)]
struct FixedTime(Timestamp);

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_micros(self.0.0)))
    }
}

/// Connects without a certificate, to a server certified by the authority of an identity.
pub(crate) fn connect_as_stranger(identity: &Path, api: &str) -> Connection {
    open(identity, api, false, Arc::new(DefaultTimeProvider))
}

fn open(own: &Path, api: &str, known: bool, time: Arc<dyn TimeProvider>) -> Connection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(own.join(AUTHORITY)).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_details(Arc::new(ring::default_provider()), time)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots);
    let chain = vec![CertificateDer::from_pem_file(own.join(CERTIFICATE)).unwrap()];
    let key = PrivateKeyDer::from_pem_file(own.join(KEY)).unwrap();
    let config = match known {
        true => builder.with_client_auth_cert(chain, key).unwrap(),
        false => builder.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(api).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}
