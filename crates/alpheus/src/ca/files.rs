//! The authority's folder and the identity folders that it gives out. Nothing is
//! ever written over.

use crate::failure::{Blame, Category, Failure};
use crate::files::{For, make_private_folder, write_new};
use crate::network::identity;
use crate::network::role::{Name, Role};
use alpheus_crypto::secret::Secret;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use zeroize::Zeroizing;

/// Signs protocol certificates.
pub(super) const AUTHORITY_SEED: &str = "authority.seed";
/// The service's keys.
pub const SERVICE_SEED: &str = "service.seed";
/// An owner's signing key: it signs their choices.
pub const OWNER_SEED: &str = "owner.seed";
/// A consumer's keys: they read what is sealed to it.
pub const CONSUMER_SEED: &str = "consumer.seed";
const AUTHORITY_KEY: &str = "ca.key";

/// A folder that files are put into once.
pub(super) struct Place(PathBuf);

impl Place {
    /// A new folder that only its owner can read.
    pub(super) fn create(folder: &Path) -> Result<Place, Failure> {
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).blame_io(parent)?;
        }
        make_private_folder(folder)?;
        Ok(Place(folder.to_owned()))
    }

    pub(super) fn existing(folder: &Path) -> Place {
        Place(folder.to_owned())
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    pub(super) fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        write_new(&self.path(file), text.as_bytes(), For::Everybody)
    }

    fn write_private(&self, file: &str, text: &str) -> Result<(), Failure> {
        write_new(&self.path(file), text.as_bytes(), For::Owner)
    }

    pub(super) fn write_secret(&self, file: &str, secret: &Secret<32>) -> Result<(), Failure> {
        self.write_private(file, &Zeroizing::new(HEXLOWER.encode(secret.expose())))
    }

    fn read(&self, file: &str) -> Result<Zeroizing<String>, Failure> {
        let path = self.path(file);
        let help = "`alpheus ca init` makes the authority's folder";
        let text = fs::read_to_string(&path).map(Zeroizing::new);
        text.blame_io(&path).map_err(|failure| failure.with_help(help))
    }

    pub(super) fn copy(&self, from: &Place, file: &str) -> Result<(), Failure> {
        self.write(file, &from.read(file)?)
    }

    pub(super) fn copy_secret(&self, from: &Place, file: &str) -> Result<(), Failure> {
        self.write_private(file, &from.read(file)?)
    }
}

/// Reads a seed.
///
/// # Errors
/// If it cannot be read or is none.
pub fn read_seed(path: &Path) -> Result<Secret<32>, Failure> {
    let text = Zeroizing::new(fs::read_to_string(path).blame_io(path)?);
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok().map(Zeroizing::new);
    let secret = bytes.and_then(|bytes| Secret::from_slice(&bytes));
    secret.ok_or("not a seed: 64 hexadecimal digits").blame_input(path)
}

/// Where the identity of `name` goes.
pub(super) fn folder_for(output: Option<&Path>, authority: &Path, name: &Name) -> PathBuf {
    output.map_or_else(|| authority.join(&name.name), Path::to_owned)
}

/// The authority of everybody's TLS certificate.
pub(super) fn make_tls_authority(place: &Place) -> Result<(), Failure> {
    let key = KeyPair::generate().blame(Category::Io)?;
    let certificate = authority_params().self_signed(&key).blame(Category::Io)?;
    place.write(identity::AUTHORITY, &certificate.pem())?;
    place.write_private(AUTHORITY_KEY, &Zeroizing::new(key.serialize_pem()))
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Alpheus test authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) = validity(3650);
    params
}

/// A certificate for a role and a name, and its key.
pub(super) fn issue_tls(
    authority: &Place,
    place: &Place,
    name: &Name,
    hosts: &[String],
    days: u32,
) -> Result<(), Failure> {
    let path = authority.path(AUTHORITY_KEY);
    let issuer = KeyPair::from_pem(&authority.read(AUTHORITY_KEY)?).blame_input(&path)?;
    let issuer = Issuer::new(authority_params(), issuer);
    let key = KeyPair::generate().blame(Category::Io)?;
    let certificate = leaf(name, hosts, days)?.signed_by(&key, &issuer).blame(Category::Io)?;
    place.write(identity::CERTIFICATE, &certificate.pem())?;
    place.write_private(identity::KEY, &Zeroizing::new(key.serialize_pem()))
}

fn leaf(name: &Name, hosts: &[String], days: u32) -> Result<CertificateParams, Failure> {
    let mut names = hosts.to_vec();
    // Who is reached also on the machine itself.
    let serves = matches!(name.role, Role::Server | Role::Controller)
        || matches!(name.role, Role::Issuer | Role::Verifier | Role::Gateway | Role::Board)
        || matches!(name.role, Role::Registrar | Role::Smoother | Role::Aggregator);
    if serves {
        names.extend(["localhost".to_owned(), "127.0.0.1".to_owned()]);
    }
    let mut params = CertificateParams::new(names).blame(Category::Usage)?;
    let uri = name.to_string().try_into().blame(Category::Usage)?;
    params.subject_alt_names.push(SanType::URI(uri));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name.name.clone());
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // Who only calls cannot pose as somebody who listens, nor the service as a caller.
    params.extended_key_usages = match name.role {
        Role::Server | Role::Issuer | Role::Board | Role::Registrar => {
            vec![ExtendedKeyUsagePurpose::ServerAuth]
        }
        Role::Controller | Role::Verifier | Role::Gateway | Role::Smoother | Role::Aggregator => {
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth]
        }
        Role::Producer | Role::Owner | Role::Consumer => vec![ExtendedKeyUsagePurpose::ClientAuth],
    };
    (params.not_before, params.not_after) = validity(days);
    Ok(params)
}

/// From an hour ago, for clocks that go slow, for so many days.
fn validity(days: u32) -> (time::OffsetDateTime, time::OffsetDateTime) {
    let now = time::OffsetDateTime::from(SystemTime::now());
    (now - time::Duration::hours(1), now + time::Duration::days(i64::from(days)))
}
