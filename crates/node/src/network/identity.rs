//! The folder that makes a process somebody. `alpheus ca issue` makes one; with
//! a PKI of your own, put the same files there.
//!
//! | file | holds |
//! | --- | --- |
//! | `tls.pem`, `tls.key` | its certificate, with those that lead to the authority, and the key |
//! | `ca.pem` | the authority that everybody's certificate comes from |
//!
//! Parts put files of their own beside these.

use crate::failure::{Blame, Failure};
use crate::network::revoked_certificates::RevokedCertificates;
use crate::network::role::{Name, PeerNameError, Role};
use crate::settings::TlsFiles;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::path::{Path, PathBuf};

/// Names of the files.
pub const CERTIFICATE: &str = "tls.pem";
/// The certificate's private key.
pub const KEY: &str = "tls.key";
/// The authority.
pub const AUTHORITY: &str = "ca.pem";
/// Which key signs for the deployment.
pub const DEPLOYMENT: &str = "deployment.json";

/// Who a process is, by its folder.
#[derive(Clone, Debug)]
pub struct IdentityFolder {
    folder: PathBuf,
    name: Name,
    /// Certificates that its connections refuse at the other end.
    revoked: Option<RevokedCertificates>,
}

/// Why a folder is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The certificate names nobody.
    #[error(transparent)]
    Name(#[from] PeerNameError),
    /// The certificate is for another role.
    #[error("the certificate is {}'s, and this command acts as {}", is.with_article(), wanted.with_article())]
    Role {
        /// Whose it is.
        is: Role,
        /// Whose it should be.
        wanted: Role,
    },
}

impl IdentityFolder {
    /// Reads whom the folder names; it must be a `wanted`.
    ///
    /// # Errors
    /// If its certificate cannot be read, or is another role's.
    pub fn open(folder: &Path, wanted: Role) -> Result<IdentityFolder, Failure> {
        IdentityFolder::open_one_of(folder, (wanted, &[]))
    }

    /// The same where the command also acts as some other roles.
    ///
    /// # Errors
    /// If its certificate cannot be read, or is of none of these roles.
    pub fn open_one_of(
        folder: &Path,
        (wanted, others): (Role, &[Role]),
    ) -> Result<IdentityFolder, Failure> {
        let path = folder.join(CERTIFICATE);
        let help = "`alpheus ca issue` creates a folder with the files that belong there";
        let pem = std::fs::read(&path).blame_io(&path).map_err(|e| e.with_help(help))?;
        let der = CertificateDer::from_pem_slice(&pem)
            .map_err(|_| PeerNameError::Malformed)
            .blame_input(&path)?;
        let name = Name::of_certificate(&der).blame_input(&path)?;
        if name.role != wanted && !others.contains(&name.role) {
            return Err(IdentityError::Role { is: name.role, wanted }).blame_input(&path);
        }
        Ok(IdentityFolder { folder: folder.to_owned(), name, revoked: None })
    }

    /// The same folder, whose connections refuse these certificates at the other end, also once
    /// they are open.
    #[must_use]
    pub fn without(self, revoked: RevokedCertificates) -> IdentityFolder {
        IdentityFolder { revoked: Some(revoked), ..self }
    }

    /// Certificates that its connections refuse.
    #[must_use]
    pub fn revoked(&self) -> Option<&RevokedCertificates> {
        self.revoked.as_ref()
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

    /// Whether the key file holds the key of the certificate.
    #[must_use]
    pub fn has_own_key(&self) -> bool {
        let chain = CertificateDer::pem_file_iter(self.path(CERTIFICATE));
        let chain = chain.ok().and_then(|all| all.collect::<Result<Vec<_>, _>>().ok());
        let key = PrivateKeyDer::from_pem_file(self.path(KEY)).ok();
        let both = chain
            .zip(key)
            .map(|(chain, key)| CertifiedKey::from_der(chain, key, &ring::default_provider()));
        both.is_some_and(|own| own.is_ok())
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
}
