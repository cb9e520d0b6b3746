//! Another authority takes the place of one. Both count until every process has a certificate of the
//! new one; then the old one counts no more.
//!
//! The authority in use is the one whose key the folder has. So a crash between two files leaves
//! either authority in use, and both of them known.

use super::issued::{IssuedCertificate, PublicKey};
use super::{AUTHORITY_KEY, Folder, authority_params};
use crate::failure::{Blame, Category, Failure};
use crate::files::{Readers, replace};
use crate::network::identity::{AUTHORITY, CERTIFICATE};
use rcgen::KeyPair;
use std::fs;
use std::path::{Path, PathBuf};
use x509_cert::Certificate;
use x509_cert::der::EncodePem;
use x509_cert::der::pem::LineEnding;
use zeroize::Zeroizing;

/// Why an authority is not replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RolloverError {
    /// Another one is under way.
    #[error("the authority is being replaced already")]
    UnderWay,
    /// None is under way.
    #[error("the authority is not being replaced")]
    NotUnderWay,
    /// A process would be refused everywhere.
    #[error("the certificate is still of the authority that is replaced")]
    NotRenewed,
    /// The folder has no certificate of its own authority.
    #[error("there is no certificate of the authority whose key is in this folder")]
    Unknown,
}

/// Creates the authority that takes the place of the one in use. From now on it issues certificates, and
/// both are in the folder's file of authorities.
///
/// # Errors
/// If one is being replaced already, or a file cannot be read or written.
pub fn begin(authority: &Folder) -> Result<(), Failure> {
    let known = known(authority)?;
    if known.len() > 1 {
        let help = "finish it first: `alpheus ca rollover FOLDER --finish`";
        return refused(authority, RolloverError::UnderWay, help);
    }
    let key = KeyPair::generate().blame(Category::Io)?;
    let new = authority_params().self_signed(&key).blame(Category::Io)?.pem();
    let old = fs::read_to_string(authority.path(AUTHORITY)).blame_io(&authority.path(AUTHORITY))?;
    write(authority, AUTHORITY, &(new + &old), Readers::Everybody)?;
    let key = Zeroizing::new(key.serialize_pem());
    write(authority, AUTHORITY_KEY, &key, Readers::Owner)
}

/// Forgets the authority that was replaced, if these identities' certificates are all of the one in use.
///
/// # Errors
/// If none is being replaced, a certificate is not renewed yet, or a file cannot be read or written.
pub fn finish(authority: &Folder, identities: &[PathBuf]) -> Result<(), Failure> {
    let known = known(authority)?;
    if known.len() < 2 {
        let help = "`alpheus ca rollover FOLDER` begins";
        return refused(authority, RolloverError::NotUnderWay, help);
    }
    let own = own_key(authority)?;
    for identity in identities {
        let file = identity.join(CERTIFICATE);
        let der = super::read_certificate(&file)?;
        if IssuedCertificate::open(&der, std::slice::from_ref(&own)).is_err() {
            let failure = Err(RolloverError::NotRenewed).blame(Category::Check);
            return failure.map_err(|failure: Failure| {
                failure
                    .at(file.display().to_string())
                    .with_help("renew it first: `alpheus ca renew`")
            });
        }
    }
    let mut in_use =
        known.iter().filter(|known| PublicKey::of(known).is_some_and(|key| key == own));
    let in_use =
        in_use.next().ok_or(RolloverError::Unknown).blame_input(&authority.path(AUTHORITY))?;
    let text = in_use.to_pem(LineEnding::LF).blame(Category::Io)?;
    write(authority, AUTHORITY, &text, Readers::Everybody)
}

/// Puts the folder's authorities into an identity folder. Its process reads them within seconds.
///
/// # Errors
/// If a file cannot be read or written.
pub fn trust(authority: &Folder, identity: &Path) -> Result<PathBuf, Failure> {
    let from = authority.path(AUTHORITY);
    let text = fs::read_to_string(&from).blame_io(&from)?;
    let file = identity.join(AUTHORITY);
    replace(&file, text, Readers::Everybody).blame_io(&file)?;
    Ok(file)
}

/// The keys of all authorities that count.
pub(super) fn keys(authority: &Folder) -> Result<Vec<PublicKey>, Failure> {
    let keys = known(authority)?.iter().filter_map(PublicKey::of).collect();
    Ok(keys)
}

fn known(authority: &Folder) -> Result<Vec<Certificate>, Failure> {
    let path = authority.path(AUTHORITY);
    let pem = fs::read(&path).blame_io(&path)?;
    Certificate::load_pem_chain(&pem)
        .map_err(|_| "it holds no certificates in PEM form")
        .blame_input(&path)
}

fn own_key(authority: &Folder) -> Result<PublicKey, Failure> {
    let pair = KeyPair::from_pem(&authority.read(AUTHORITY_KEY)?);
    Ok(PublicKey::from(&pair.blame_input(&authority.path(AUTHORITY_KEY))?))
}

fn write(folder: &Folder, file: &str, text: &str, readers: Readers) -> Result<(), Failure> {
    let path = folder.path(file);
    replace(&path, text, readers).blame_io(&path)
}

fn refused<T>(folder: &Folder, error: RolloverError, help: &'static str) -> Result<T, Failure> {
    let failure = Err(error).blame(Category::Check);
    failure.map_err(|failure: Failure| {
        failure.at(folder.path(AUTHORITY).display().to_string()).with_help(help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::role::{Name, Role};
    use crate::pki::{issue, make_authority, read_certificate, renew};

    struct Place {
        folder: tempfile::TempDir,
        authority: Folder,
    }

    impl Place {
        fn new() -> Place {
            let folder = tempfile::tempdir().unwrap();
            let authority = Folder::create(&folder.path().join("pki")).unwrap();
            make_authority(&authority).unwrap();
            Place { folder, authority }
        }

        fn identity(&self, name: &str) -> PathBuf {
            let folder = self.folder.path().join(name);
            let own = Folder::create(&folder).unwrap();
            let name = Name::new(Role::Server, name).unwrap();
            issue(&self.authority, &own, &name, &[], 1).unwrap();
            folder
        }
    }

    fn is_of(identity: &Path, keys: &[PublicKey]) -> bool {
        let der = read_certificate(&identity.join(CERTIFICATE)).unwrap();
        IssuedCertificate::open(&der, keys).is_ok()
    }

    #[test]
    fn an_authority_is_replaced_in_two_steps() {
        let place = Place::new();
        let (authority, service) = (&place.authority, place.identity("service"));
        let first = keys(authority).unwrap();
        begin(authority).unwrap();
        let [new, old] = &keys(authority).unwrap()[..] else { panic!("two count") };
        assert!(*old == first[0] && *new != *old);
        assert!(begin(authority).unwrap_err().to_string().contains("already"));
        assert!(is_of(&service, &first));
        let refused = finish(authority, std::slice::from_ref(&service)).unwrap_err();
        assert!(refused.to_string().contains("still of the authority"), "{refused}");

        // What the old one has issued is renewed by the new one.
        renew(authority, &service.join(CERTIFICATE), 1).unwrap();
        assert!(is_of(&service, std::slice::from_ref(new)) && !is_of(&service, &first));
        trust(authority, &service).unwrap();
        let text = |folder: &Path| fs::read_to_string(folder.join(AUTHORITY)).unwrap();
        assert_eq!(text(&service), text(&authority.path("")));
        finish(authority, std::slice::from_ref(&service)).unwrap();
        assert!(keys(authority).unwrap() == std::slice::from_ref(new));
        assert!(finish(authority, &[]).unwrap_err().to_string().contains("not being replaced"));
    }

    /// Between the two files that a beginning writes.
    #[test]
    fn after_a_crash_the_authority_in_use_is_the_one_whose_key_is_there() {
        let place = Place::new();
        let authority = &place.authority;
        let (first, key) = (keys(authority).unwrap(), authority.path(AUTHORITY_KEY));
        let old = fs::read(&key).unwrap();
        begin(authority).unwrap();
        fs::write(&key, old).unwrap();
        assert!(is_of(&place.identity("service"), &first));
        finish(authority, &[]).unwrap();
        assert!(keys(authority).unwrap() == first);
    }
}
