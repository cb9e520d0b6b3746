//! The deployment of an identity folder: the file that says which authority certifies
//! controllers, and protocol certificates as text.
//!
//! | file | holds |
//! | --- | --- |
//! | `deployment.json` | the authority of controllers' protocol certificates, and the service's |
//! | `owner.txt`, `owner.seed` | of an owner: the protocol certificate and the key in it, which signs choices |
//! | `consumer.txt`, `consumer.seed` | of a consumer: its protocol certificate and the keys in it, to which results are sealed |

use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::error::CertificateError;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::identity::IdentityFolder;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};

/// The deployment.
pub const DEPLOYMENT: &str = "deployment.json";

/// A consumer's protocol certificate.
pub const CONSUMER_CERTIFICATE: &str = "consumer.txt";

/// An owner's protocol certificate.
pub const OWNER_CERTIFICATE: &str = "owner.txt";

/// The key that signs protocol certificates.
pub(crate) const AUTHORITY_SEED: &str = "authority.seed";
/// The service's keys.
pub const SERVICE_SEED: &str = "service.seed";
/// An owner's signing key, which signs their choices.
pub const OWNER_SEED: &str = "owner.seed";
/// A consumer's keys, which open results that are sealed to it.
pub const CONSUMER_SEED: &str = "consumer.seed";

const VERSION: u32 = 1;

/// Why a deployment file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The file has an unknown version.
    #[error("the deployment file has version {0}, and this build reads version 1")]
    Version(u32),
    /// A field is not the hexadecimal form of what it should hold.
    #[error("`{0}` is not a valid value in hexadecimal digits")]
    Hex(&'static str),
    /// The service's certificate is not signed by the authority.
    #[error("the service's certificate in the deployment file is not valid: {0}")]
    Service(#[from] CertificateError),
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
}

impl DeploymentFile {
    /// The file of a deployment.
    #[must_use]
    pub fn new(authority: &VerifyingKey, service: &Signed<Certificate>) -> DeploymentFile {
        let authority = HEXLOWER.encode(authority.as_bytes());
        DeploymentFile { version: VERSION, authority, service: to_hex(service) }
    }

    /// Checks it.
    ///
    /// # Errors
    /// [`DeploymentError`].
    pub fn check(&self) -> Result<Deployment, DeploymentError> {
        if self.version != VERSION {
            return Err(DeploymentError::Version(self.version));
        }
        let bytes = HEXLOWER_PERMISSIVE.decode(self.authority.as_bytes()).ok();
        let bytes: Option<[u8; 32]> = bytes.and_then(|bytes| bytes.try_into().ok());
        let authority = bytes.and_then(|bytes| VerifyingKey::from_bytes(bytes).ok());
        let authority = authority.ok_or(DeploymentError::Hex("authority"))?;
        let service = from_hex(&self.service).ok_or(DeploymentError::Hex("service"))?;
        Ok(Deployment::new(authority, &service)?)
    }
}

/// A signed certificate as text.
#[must_use]
pub fn to_hex(certificate: &Signed<Certificate>) -> String {
    HEXLOWER.encode(&postcard::to_allocvec(certificate).unwrap_or_default())
}

/// Reads such a text back.
#[must_use]
pub fn from_hex(text: &str) -> Option<Signed<Certificate>> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok()?;
    postcard::from_bytes(&bytes).ok()
}

/// The deployment of an identity folder.
///
/// # Errors
/// If the file cannot be read or parsed, or is not signed by the authority.
pub fn of(identity: &IdentityFolder) -> Result<Deployment, Failure> {
    let path = identity.path(DEPLOYMENT);
    let text = std::fs::read_to_string(&path).blame_io(&path)?;
    let file: DeploymentFile = serde_json::from_str(&text).blame_input(&path)?;
    file.check()
        .map_err(|error| Failure::new(Category::Input, error).at(path.display().to_string()))
}
