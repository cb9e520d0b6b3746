//! The deployment of an identity folder: the file that says which authority certifies
//! controllers, and protocol certificates as text.
//!
//! | file | holds |
//! | --- | --- |
//! | `deployment.json` | the authority of controllers' protocol certificates, and the service's |
//! | `owner.txt`, `owner.seed` | of an owner: the protocol certificate and the key in it, which signs choices |
//! | `device.txt`, `device.seed` | of a producer: the certificate of its device, and the key that opens sessions |
//! | `ingest.seed` | of the server: the key that devices seal the keys of sessions to |
//! | `consumer.txt`, `consumer.seed` | of a consumer: its protocol certificate and the keys in it, to which results are sealed |
//! | `verified.known` | of a consumer: the queries that it asked to be verified |

use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::error::CertificateError;
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::files::read_text;
use alpheus_node::network::identity::{DEPLOYMENT, IdentityFolder};
use alpheus_node::network::revocations::key_of_hex;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A consumer's protocol certificate.
pub const CONSUMER_CERTIFICATE: &str = "consumer.txt";

/// An owner's protocol certificate.
pub const OWNER_CERTIFICATE: &str = "owner.txt";

/// The key that signs protocol certificates.
pub const AUTHORITY_SEED: &str = "authority.seed";
/// The service's keys.
pub const SERVICE_SEED: &str = "service.seed";
/// An owner's signing key, which signs their choices.
pub const OWNER_SEED: &str = "owner.seed";
/// The certificate of a producer's device.
pub const DEVICE_CERTIFICATE: &str = "device.txt";
/// The key of a producer's device, which opens its sessions.
pub const DEVICE_SEED: &str = "device.seed";
/// The service's ingest key.
pub const INGEST_SEED: &str = "ingest.seed";
/// A consumer's keys, which open results that are sealed to it.
pub const CONSUMER_SEED: &str = "consumer.seed";

const VERSION: u32 = 1;

/// Why a deployment file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The file has an unknown version.
    #[error("the deployment file has version {0}, but this build reads version 1")]
    Version(u32),
    /// A field is not the hexadecimal form of what it should hold.
    #[error("`{0}` is not a valid value in hexadecimal digits")]
    Hex(&'static str),
    /// The service's certificate is not signed by the authority.
    #[error("the service's certificate in the deployment file is not valid: {0}")]
    Service(#[from] CertificateError),
    /// An ingest key's certificate is not signed by the authority.
    #[error("the certificate of an ingest key in the deployment file is not valid: {0}")]
    Ingest(CertificateError),
}

/// `deployment.json`: public, the same for all processes of a deployment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeploymentFile {
    version: u32,
    /// Verifies controllers' and the service's protocol certificates: 32 bytes in hex.
    authority: String,
    /// The service's protocol certificate, signed: in hex.
    service: String,
    /// Certificates of the service's ingest keys: the one that devices use, then retired ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ingest: Vec<String>,
}

impl DeploymentFile {
    /// The file of a deployment.
    #[must_use]
    pub fn new(authority: &VerifyingKey, service: &Signed<Certificate>) -> DeploymentFile {
        let authority = HEXLOWER.encode(authority.as_bytes());
        let (version, service, ingest) = (VERSION, to_hex(service), Vec::new());
        DeploymentFile { version, authority, service, ingest }
    }

    /// The same with the certificate of the ingest key.
    #[must_use]
    pub fn with_ingest(mut self, ingest: &Signed<Certificate>) -> DeploymentFile {
        self.ingest.insert(0, to_hex(ingest));
        self
    }

    /// The ingest keys with the digests of their certificates, the current one first.
    ///
    /// # Errors
    /// [`DeploymentError`].
    pub fn ingest(
        &self,
        deployment: &Deployment,
    ) -> Result<Vec<(Digest, SealingPublic)>, DeploymentError> {
        let open = |text: &String| {
            let signed = from_hex(text).ok_or(DeploymentError::Hex("ingest"))?;
            deployment.ingest(&signed).map_err(DeploymentError::Ingest)
        };
        self.ingest.iter().map(open).collect()
    }

    /// Checks it.
    ///
    /// # Errors
    /// [`DeploymentError`].
    pub fn check(&self) -> Result<Deployment, DeploymentError> {
        if self.version != VERSION {
            return Err(DeploymentError::Version(self.version));
        }
        let authority = key_of_hex(&self.authority).ok_or(DeploymentError::Hex("authority"))?;
        let service = from_hex(&self.service).ok_or(DeploymentError::Hex("service"))?;
        Ok(Deployment::new(authority, &service)?)
    }
}

/// A signed certificate as text.
#[must_use]
pub fn to_hex<T>(signed: &Signed<T>) -> String {
    HEXLOWER.encode(&postcard::to_allocvec(signed).unwrap_or_default())
}

/// Reads such a text back.
#[must_use]
pub fn from_hex<T>(text: &str) -> Option<Signed<T>> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok()?;
    postcard::from_bytes(&bytes).ok()
}

/// Reads a file with such a text.
///
/// # Errors
/// If it cannot be read, or is no certificate.
pub fn read_certificate(path: &Path) -> Result<Signed<Certificate>, Failure> {
    from_hex(&read_text(path)?)
        .ok_or("not a certificate from `alpheus ca issue` or `alpheus ca certify`")
        .blame_input(path)
}

/// Checks that a certificate in an identity folder is for the folder's name and for this key.
///
/// # Errors
/// If it is not.
pub fn check_own(
    path: &Path,
    (key, name): (&VerifyingKey, &str),
    own: &SigningKey,
    folder: &IdentityFolder,
) -> Result<(), Failure> {
    if *key != own.verifying_key() {
        return Err(CertificateError::OtherKeys).blame_input(path);
    }
    if name != folder.name().name {
        return Err(CertificateError::OtherName).blame_input(path);
    }
    Ok(())
}

/// The deployment of an identity folder.
///
/// # Errors
/// If the file cannot be read or parsed, or is not signed by the authority.
pub fn of(identity: &IdentityFolder) -> Result<Deployment, Failure> {
    let (path, file) = file_of(identity)?;
    file.check().blame_input(&path)
}

/// The ingest keys of an identity folder's deployment, with the digests of their certificates:
/// the one that devices use, then retired ones.
///
/// # Errors
/// As [`of`].
pub fn ingest_of(identity: &IdentityFolder) -> Result<Vec<(Digest, SealingPublic)>, Failure> {
    let (path, file) = file_of(identity)?;
    let deployment = file.check().blame_input(&path)?;
    file.ingest(&deployment).blame_input(&path)
}

fn file_of(identity: &IdentityFolder) -> Result<(PathBuf, DeploymentFile), Failure> {
    let path = identity.path(DEPLOYMENT);
    let text = std::fs::read_to_string(&path).blame_io(&path)?;
    let file = serde_json::from_str(&text).blame_input(&path)?;
    Ok((path, file))
}

/// The file of an ingest key: the current one's, or a retired one's.
#[must_use]
pub fn ingest_seed(place: u32) -> String {
    if place == 0 { INGEST_SEED.to_owned() } else { format!("ingest.{place}.seed") }
}
