//! The folder that makes a process somebody. `alpheus ca issue` makes one; with
//! a PKI of your own, put the same files there.
//!
//! | file | holds |
//! | --- | --- |
//! | `tls.pem`, `tls.key` | its certificate, with those that lead to the authority, and the key |
//! | `ca.pem` | the authority that everybody's certificate comes from |
//! | `deployment.json` | the authority of controllers' protocol certificates, and the service's |
//! | `consumer.txt`, `consumer.seed` | of a consumer: its protocol certificate and the keys in it, to which results are sealed |

use crate::failure::{Blame, Category, Failure};
use crate::network::role::{Name, NoName, Role};
use crate::service::tls::TlsFiles;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::error::BadCertificate;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Names of the files.
pub const CERTIFICATE: &str = "tls.pem";
/// The certificate's private key.
pub const KEY: &str = "tls.key";
/// The authority.
pub const AUTHORITY: &str = "ca.pem";
/// The deployment.
pub const DEPLOYMENT: &str = "deployment.json";

/// A consumer's protocol certificate.
pub const CONSUMER_CERTIFICATE: &str = "consumer.txt";

const VERSION: u32 = 1;

/// Who a process is, by its folder.
#[derive(Clone, Debug)]
pub struct IdentityFolder {
    folder: PathBuf,
    name: Name,
}

/// Why a folder is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The certificate names nobody.
    #[error(transparent)]
    Name(#[from] NoName),
    /// The certificate is for another role.
    #[error("the certificate is a {is}'s, and this command acts as a {wanted}")]
    Role {
        /// Whose it is.
        is: Role,
        /// Whose it should be.
        wanted: Role,
    },
    /// The deployment's file is of another version.
    #[error("version {0} of the deployment's file is not known here, only version 1")]
    Version(u32),
    /// A field is not the hexadecimal form of what it should hold.
    #[error("`{0}` is not what it should be, in hexadecimal digits")]
    Hex(&'static str),
    /// The service's certificate is not signed by the authority.
    #[error("the service's certificate in it is not good: {0}")]
    Service(#[from] BadCertificate),
}

/// `deployment.json`: public, the same for all of a deployment.
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
    /// [`IdentityError`].
    pub fn check(&self) -> Result<Deployment, IdentityError> {
        if self.version != VERSION {
            return Err(IdentityError::Version(self.version));
        }
        let bytes = HEXLOWER_PERMISSIVE.decode(self.authority.as_bytes()).ok();
        let bytes: Option<[u8; 32]> = bytes.and_then(|bytes| bytes.try_into().ok());
        let authority = bytes.and_then(|bytes| VerifyingKey::from_bytes(bytes).ok());
        let authority = authority.ok_or(IdentityError::Hex("authority"))?;
        let service = from_hex(&self.service).ok_or(IdentityError::Hex("service"))?;
        Ok(Deployment::new(authority, &service)?)
    }
}

/// A signed certificate as text.
#[must_use]
pub fn to_hex(certificate: &Signed<Certificate>) -> String {
    HEXLOWER.encode(&postcard::to_allocvec(certificate).unwrap_or_default())
}

/// The same back.
#[must_use]
pub fn from_hex(text: &str) -> Option<Signed<Certificate>> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok()?;
    postcard::from_bytes(&bytes).ok()
}

impl IdentityFolder {
    /// Reads whom the folder names; it must be a `wanted`.
    ///
    /// # Errors
    /// If its certificate cannot be read, or is another role's.
    pub fn open(folder: &Path, wanted: Role) -> Result<IdentityFolder, Failure> {
        let path = folder.join(CERTIFICATE);
        let help = "`alpheus ca issue` makes a folder with the files that belong there";
        let pem = std::fs::read(&path).blame_io(&path).map_err(|e| e.with_help(help))?;
        let der = CertificateDer::from_pem_slice(&pem)
            .map_err(|_| NoName::Malformed)
            .blame_input(&path)?;
        let name = Name::of_certificate(&der).blame_input(&path)?;
        if name.role != wanted {
            return Err(IdentityError::Role { is: name.role, wanted }).blame_input(&path);
        }
        Ok(IdentityFolder { folder: folder.to_owned(), name })
    }

    /// Who it is.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// A file of the folder.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// Settings of a server that asks its clients for certificates of the same
    /// authority.
    #[must_use]
    pub fn tls(&self) -> TlsFiles {
        TlsFiles {
            certificate: Some(self.path(CERTIFICATE)),
            key: Some(self.path(KEY)),
            client_ca: Some(self.path(AUTHORITY)),
        }
    }

    /// The deployment.
    ///
    /// # Errors
    /// If the file cannot be read, understood, or is not what the authority signed.
    pub fn deployment(&self) -> Result<Deployment, Failure> {
        let path = self.path(DEPLOYMENT);
        let text = std::fs::read_to_string(&path).blame_io(&path)?;
        let file: DeploymentFile = serde_json::from_str(&text).blame_input(&path)?;
        file.check()
            .map_err(|error| Failure::new(Category::Input, error).at(path.display().to_string()))
    }
}
