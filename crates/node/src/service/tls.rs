//! TLS for our servers: version 1.3 only, keys and certificates from PEM files.
//!
//! Faulty files are reported with their names when the process starts, rather than to each
//! client as a failed handshake. Changed files are read again.

use super::reload::Live;
use crate::key_exchange;
use crate::settings::TlsFiles;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, version::TLS13};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::time::Time;

/// Why a server cannot offer TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A required file is not set.
    #[error("TLS needs the setting tls.{setting}")]
    Missing {
        /// The setting.
        setting: &'static str,
    },
    /// A file cannot be read.
    #[error("{path}: cannot read it")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file lacks the expected content.
    #[error("{path}: it contains no {wanted} in PEM format")]
    Empty {
        /// The file.
        path: PathBuf,
        /// `certificate` or `private key`.
        wanted: &'static str,
    },
    /// A file is damaged, or is not what its header says.
    #[error("{path}: the {wanted} in it is corrupted")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// `certificate` or `private key`.
        wanted: &'static str,
    },
    /// A certificate has expired.
    #[error("{path}: the certificate expired at {at}")]
    Expired {
        /// The file.
        path: PathBuf,
        /// When.
        at: Time,
    },
    /// A certificate is not yet valid.
    #[error("{path}: the certificate is not valid before {at}")]
    NotYetValid {
        /// The file.
        path: PathBuf,
        /// When it will be.
        at: Time,
    },
    /// The key belongs to another certificate.
    #[error("{key}: not the key of the certificate in {certificate}")]
    KeyMismatch {
        /// The key's file.
        key: PathBuf,
        /// The certificate's file.
        certificate: PathBuf,
    },
    /// TLS rejects it for another reason.
    #[error("{path}: TLS cannot use it")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// Reads and checks the files, and again when they change. `now` is the time by which certificates
/// must be valid.
///
/// # Errors
/// What is wrong with which file.
pub fn server(files: &TlsFiles, now: SystemTime) -> Result<Arc<Live<ServerConfig>>, TlsError> {
    let paths = [&files.certificate, &files.key, &files.client_ca].into_iter().flatten().cloned();
    let again = files.clone();
    let make = move || read(&again, SystemTime::now());
    Live::watching(paths.collect(), || read(files, now), make)
}

fn read(files: &TlsFiles, now: SystemTime) -> Result<ServerConfig, TlsError> {
    let named = |file: &Option<PathBuf>, setting| file.clone().ok_or(TlsError::Missing { setting });
    let certificate = named(&files.certificate, "certificate")?;
    let key = named(&files.key, "key")?;
    let chain = certificates(&certificate, now)?;
    let secret = private_key(&key)?;
    let provider = Arc::new(key_exchange::provider());
    let unusable = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Unusable { path, source }
    };
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable(&certificate))?;
    let builder = match &files.client_ca {
        Some(path) => builder.with_client_cert_verifier(client_verifier(path, now)?),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, secret).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            TlsError::KeyMismatch { key: key.clone(), certificate: certificate.clone() }
        }
        error => unusable(&certificate)(error),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A ticket would let an eavesdropper or the server link two connections of a client.
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn client_verifier(path: &Path, now: SystemTime) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities(path, now)? {
        let unusable = |source| TlsError::Unusable { path: path.to_owned(), source };
        roots.add(authority).map_err(unusable)?;
    }
    let provider = Arc::new(key_exchange::provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|_| TlsError::Empty { path: path.to_owned(), wanted: "certificate" })
}

/// The authorities of a file that are valid now. One that is over, or not valid yet, stops no other.
fn authorities(path: &Path, now: SystemTime) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let (mut valid, mut left_out) = (Vec::new(), None);
    for authority in all_certificates(path)? {
        match check_time(path, &authority, now) {
            Ok(()) => valid.push(authority),
            Err(error) => {
                tracing::warn!(%error, "an authority is left out");
                left_out = Some(error);
            }
        }
    }
    match left_out {
        Some(error) if valid.is_empty() => Err(error),
        _ => Ok(valid),
    }
}

/// All certificates of a file, each valid now.
fn certificates(path: &Path, now: SystemTime) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = all_certificates(path)?;
    found.iter().try_for_each(|certificate| check_time(path, certificate, now))?;
    Ok(found)
}

fn all_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |error| pem_error(path, "certificate", error);
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(failed)?.collect();
    let found: Vec<CertificateDer<'static>> = found.map_err(failed)?;
    if found.is_empty() {
        return Err(TlsError::Empty { path: path.to_owned(), wanted: "certificate" });
    }
    Ok(found)
}

fn check_time(path: &Path, certificate: &[u8], now: SystemTime) -> Result<(), TlsError> {
    let path = path.to_owned();
    let Ok(certificate) = Certificate::from_der(certificate) else {
        return Err(TlsError::Malformed { path, wanted: "certificate" });
    };
    let validity = certificate.tbs_certificate().validity();
    if now > validity.not_after.to_system_time() {
        return Err(TlsError::Expired { path, at: validity.not_after });
    }
    if now < validity.not_before.to_system_time() {
        return Err(TlsError::NotYetValid { path, at: validity.not_before });
    }
    Ok(())
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| pem_error(path, "private key", error))
}

fn pem_error(path: &Path, wanted: &'static str, error: pem::Error) -> TlsError {
    let path = path.to_owned();
    match error {
        pem::Error::Io(source) => TlsError::Read { path, source },
        pem::Error::NoItemsFound => TlsError::Empty { path, wanted },
        _ => TlsError::Malformed { path, wanted },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::role::Role;
    use crate::pki;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use std::time::Duration;

    #[test]
    fn an_authority_that_is_over_stops_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        pki::make(&pki, &[(Role::Server, "service")]).unwrap();
        let own = |file: &str| pki.join("service").join(file);
        let now = SystemTime::now();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let ago = |days: u64| (now - Duration::from_secs(86_400 * days)).into();
        (params.not_before, params.not_after) = (ago(20), ago(10));
        let over = params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
        let files = TlsFiles {
            certificate: Some(own("tls.pem")),
            key: Some(own("tls.key")),
            client_ca: Some(own("ca.pem")),
        };
        let valid = std::fs::read_to_string(own("ca.pem")).unwrap();
        for (bundle, is_read) in
            [(over.clone() + &valid, true), (valid + &over, true), (over, false)]
        {
            std::fs::write(own("ca.pem"), bundle).unwrap();
            let read = read(&files, now);
            assert_eq!(read.is_ok(), is_read, "{:?}", read.err());
        }
    }
}
