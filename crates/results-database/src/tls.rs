//! A certificate and its key, for both protocols.

use crate::failure::ProgramError;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::transport::{Identity, ServerTlsConfig};

/// What both listeners show.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) postgres: TlsAcceptor,
    pub(crate) flight: ServerTlsConfig,
    /// The certificate as a file has it, which SCRAM binds logins to.
    pub(crate) certificate: Vec<u8>,
}

impl Tls {
    /// Reads the certificate chain and the key from files in PEM.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Tls, ProgramError> {
        let read = |path: &Path| {
            std::fs::read(path)
                .map_err(|error| ProgramError::File(path.display().to_string(), error))
        };
        let (certificate, key) = (read(certificate)?, read(key)?);
        let bad = |error: &dyn std::fmt::Display| ProgramError::Tls(error.to_string());
        let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<Vec<_>, _>>();
        let secret = PrivateKeyDer::from_pem_slice(&key).map_err(|error| bad(&error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(&error))?
            .with_no_client_auth()
            .with_single_cert(chain.map_err(|error| bad(&error))?, secret)
            .map_err(|error| bad(&error))?;
        let flight = ServerTlsConfig::new().identity(Identity::from_pem(&certificate, &key));
        Ok(Tls { postgres: TlsAcceptor::from(Arc::new(config)), flight, certificate })
    }
}
