//! A small certificate authority for trials and tests: its folder, and the identity folders
//! that it issues. Nothing is ever overwritten.
//!
//! A production deployment has an authority already, with its root key somewhere safer than
//! a folder; see [`crate::network::identity`] for the files that it must provide.

mod issued_certificate;
mod rollover;

use crate::failure::{Blame, Category, Failure};
use crate::files::{Readers, make_private_folder, replace, write_new};
use crate::network::identity;
use crate::network::role::{Name, Role};
use alpheus_crypto::secret::Secret;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use issued_certificate::IssuedCertificate;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
pub use rollover::{RolloverError, begin as begin_rollover, finish as finish_rollover, trust};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use zeroize::Zeroizing;

const AUTHORITY_KEY: &str = "ca.key";
/// Where processes that listen are also reached.
const LOCAL: [&str; 2] = ["localhost", "127.0.0.1"];

/// A folder whose files are written once.
pub struct Folder(PathBuf);

impl Folder {
    /// A new folder that only its owner can read.
    ///
    /// # Errors
    /// If it exists or cannot be created.
    pub fn create(folder: &Path) -> Result<Folder, Failure> {
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).blame_io(parent)?;
        }
        make_private_folder(folder)?;
        Ok(Folder(folder.to_owned()))
    }

    /// A folder that exists.
    #[must_use]
    pub fn existing(folder: &Path) -> Folder {
        Folder(folder.to_owned())
    }

    /// Where a file of the folder is.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// Writes a public file.
    ///
    /// # Errors
    /// If it exists or cannot be written.
    pub fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        write_new(&self.path(file), text.as_bytes(), Readers::Everybody)
    }

    fn write_private(&self, file: &str, text: &str) -> Result<(), Failure> {
        write_new(&self.path(file), text.as_bytes(), Readers::Owner)
    }

    /// Writes a seed, which only the folder's owner can read.
    ///
    /// # Errors
    /// If it exists or cannot be written.
    pub fn write_secret(&self, file: &str, secret: &Secret<32>) -> Result<(), Failure> {
        self.write_private(file, &Zeroizing::new(HEXLOWER.encode(secret.expose())))
    }

    fn read(&self, file: &str) -> Result<Zeroizing<String>, Failure> {
        let path = self.path(file);
        let help = "`alpheus ca init` creates the authority's folder";
        let text = fs::read_to_string(&path).map(Zeroizing::new);
        text.blame_io(&path).map_err(|failure| failure.with_help(help))
    }

    /// Copies a public file of another folder.
    ///
    /// # Errors
    /// If it cannot be read, exists here or cannot be written.
    pub fn copy(&self, from: &Folder, file: &str) -> Result<(), Failure> {
        self.write(file, &from.read(file)?)
    }

    /// Copies a secret file of another folder.
    ///
    /// # Errors
    /// If it cannot be read, exists here or cannot be written.
    pub fn copy_secret(&self, from: &Folder, file: &str) -> Result<(), Failure> {
        self.write_private(file, &from.read(file)?)
    }
}

/// Reads a seed.
///
/// # Errors
/// If it cannot be read or is not a seed.
pub fn read_seed(path: &Path) -> Result<Secret<32>, Failure> {
    let text = Zeroizing::new(fs::read_to_string(path).blame_io(path)?);
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok().map(Zeroizing::new);
    let secret = bytes.and_then(|bytes| Secret::from_slice(&bytes));
    secret.ok_or("not a seed: 64 hexadecimal digits").blame_input(path)
}

/// Reads the first certificate of a PEM file, in DER form.
///
/// # Errors
/// If it cannot be read or has none.
pub fn read_certificate(path: &Path) -> Result<Vec<u8>, Failure> {
    let pem = fs::read(path).blame_io(path)?;
    let der = CertificateDer::from_pem_slice(&pem);
    let der = der.map_err(|_| "it has no certificate in PEM format").blame_input(path)?;
    Ok(der.to_vec())
}

/// Creates an authority and identities, for trials on one machine.
///
/// # Errors
/// If a folder exists or cannot be written.
pub fn make(folder: &Path, identities: &[(Role, &str)]) -> Result<(), Failure> {
    let authority = Folder::create(folder)?;
    make_authority(&authority)?;
    identities.iter().try_for_each(|(role, name)| {
        let name = Name::new(*role, *name).blame(Category::Usage)?;
        let identity = Folder::create(&folder.join(&name.name))?;
        issue(&authority, &identity, &name, &[], Lifetime::days(1))
    })
}

/// Creates the authority of all TLS certificates.
///
/// # Errors
/// If its files exist or cannot be written.
pub fn make_authority(folder: &Folder) -> Result<(), Failure> {
    let key = KeyPair::generate().blame(Category::Io)?;
    let certificate = new_authority(&key).self_signed(&key).blame(Category::Io)?;
    folder.write(identity::AUTHORITY, &certificate.pem())?;
    folder.write_private(AUTHORITY_KEY, &Zeroizing::new(key.serialize_pem()))
}

/// Another authority. Its name has a part of its key: some libraries choose among authorities by name alone.
fn new_authority(key: &KeyPair) -> CertificateParams {
    // Behind the byte that says how the point is written.
    let own = HEXLOWER.encode(key.der_bytes().get(1..5).unwrap_or_default());
    authority_params(&format!("Alpheus authority {own}"))
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) = validity(Lifetime::days(3650));
    params
}

/// Who issues: the authority whose key is in the folder, under its name.
fn issuer(authority: &Folder) -> Result<Issuer<'static, KeyPair>, Failure> {
    let key = key_pair(authority)?;
    Ok(Issuer::new(authority_params(&rollover::name_of(authority, &key)?), key))
}

fn key_pair(authority: &Folder) -> Result<KeyPair, Failure> {
    let pair = KeyPair::from_pem(&authority.read(AUTHORITY_KEY)?);
    pair.blame_input(&authority.path(AUTHORITY_KEY))
}

/// Issues an identity: a certificate for a role and a name, its key, and the authority's certificate.
///
/// # Errors
/// If the authority's files cannot be read, or the identity's exist or cannot be written.
pub fn issue(
    authority: &Folder,
    identity_folder: &Folder,
    name: &Name,
    hosts: &[String],
    lifetime: Lifetime,
) -> Result<(), Failure> {
    let issuer = issuer(authority)?;
    let key = KeyPair::generate().blame(Category::Io)?;
    let certificate = leaf(name, hosts, lifetime)?.signed_by(&key, &issuer).blame(Category::Io)?;
    identity_folder.write(identity::CERTIFICATE, &certificate.pem())?;
    identity_folder.write_private(identity::KEY, &Zeroizing::new(key.serialize_pem()))?;
    identity_folder.copy(authority, identity::AUTHORITY)
}

/// Extends a certificate that the authority has issued, or the one that it replaces: its key, its role,
/// its name and its hosts stay. The file is replaced as a whole. The private key is not needed.
///
/// # Errors
/// If the authority's files or the certificate cannot be read, the authority has not issued it, or
/// the file cannot be replaced.
pub fn renew(authority: &Folder, certificate: &Path, lifetime: Lifetime) -> Result<(), Failure> {
    let der = read_certificate(certificate)?;
    let name = Name::of_certificate(&der).blame_input(certificate)?;
    let authorities = rollover::keys(authority)?;
    let known = IssuedCertificate::open(&der, &authorities).blame_input(certificate)?;
    let renewed = leaf(&name, &known.hosts, lifetime)?.signed_by(&known.key, &issuer(authority)?);
    replace(certificate, renewed.blame(Category::Io)?.pem(), Readers::Everybody)
        .blame_io(certificate)
}

fn leaf(name: &Name, hosts: &[String], lifetime: Lifetime) -> Result<CertificateParams, Failure> {
    let mut names = hosts.to_vec();
    // Processes that listen are also reached on the machine itself.
    if name.role.serves() {
        names.extend(LOCAL.map(str::to_owned));
    }
    let mut params = CertificateParams::new(names).blame(Category::Usage)?;
    let uri = name.to_string().try_into().blame(Category::Usage)?;
    params.subject_alt_names.push(SanType::URI(uri));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name.name.clone());
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // A process that only calls cannot pose as a server, nor the service as a caller.
    params.extended_key_usages = match name.role {
        Role::Server | Role::Issuer | Role::Board | Role::Registrar => {
            vec![ExtendedKeyUsagePurpose::ServerAuth]
        }
        Role::Controller | Role::Verifier | Role::Gateway | Role::Smoother | Role::Aggregator => {
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth]
        }
        Role::Producer | Role::Owner | Role::Consumer | Role::Operator => {
            vec![ExtendedKeyUsagePurpose::ClientAuth]
        }
    };
    (params.not_before, params.not_after) = validity(lifetime);
    Ok(params)
}

/// For how long a certificate is valid from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime(time::Duration);

impl Lifetime {
    /// So many days.
    #[must_use]
    pub fn days(days: u32) -> Lifetime {
        Lifetime(time::Duration::days(i64::from(days)))
    }

    /// So many hours.
    #[must_use]
    pub fn hours(hours: u32) -> Lifetime {
        Lifetime(time::Duration::hours(i64::from(hours)))
    }
}

/// Valid from an hour ago, for slow clocks, for this long from now on.
fn validity(Lifetime(lifetime): Lifetime) -> (time::OffsetDateTime, time::OffsetDateTime) {
    let now = time::OffsetDateTime::from(SystemTime::now());
    (now - time::Duration::hours(1), now + lifetime)
}
