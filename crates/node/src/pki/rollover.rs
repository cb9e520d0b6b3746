//! Another authority takes the place of one. Both count until every process has a certificate of the
//! new one; then the old one counts no more.
//!
//! The authority in use is the one whose key the folder has. So a crash between two files leaves
//! either authority in use, and both of them known.

use super::issued_certificate::{IssuedCertificate, PublicKey};
use super::{AUTHORITY_KEY, Folder, key_pair, new_authority};
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
    /// The command that began ended between two files.
    #[error(
        "the command that began to replace the authority was interrupted, so the old authority still issues certificates"
    )]
    CutOff,
    /// A process would be refused everywhere.
    #[error("the certificate is still from the authority that is being replaced")]
    NotRenewed,
    /// The folder has no certificate of its own authority.
    #[error("there is no certificate of the authority whose key is in this folder")]
    Unknown,
}

/// Creates the authority that takes the place of the one in use. From now on it issues certificates, and
/// both are in the folder's file of authorities. Returns whether it did: if one is being replaced already,
/// nothing changes.
///
/// # Errors
/// If a file cannot be read or written.
pub fn begin(authority: &Folder) -> Result<bool, Failure> {
    let (known, own) = (known(authority)?, PublicKey::from(&key_pair(authority)?));
    if known.len() > 1 && known.first().is_some_and(|first| own.is_of(first)) {
        return Ok(false);
    }
    // Without its key, an authority that an earlier command has left there issued nothing.
    let old = in_use(&known, &own, authority)?.to_pem(LineEnding::LF).blame(Category::Io)?;
    let key = KeyPair::generate().blame(Category::Io)?;
    let new = new_authority(&key).self_signed(&key).blame(Category::Io)?.pem();
    write(authority, AUTHORITY, &(new + &old), Readers::Everybody)?;
    let key = Zeroizing::new(key.serialize_pem());
    write(authority, AUTHORITY_KEY, &key, Readers::Owner)?;
    Ok(true)
}

/// Forgets the authority that was replaced, if these identities' certificates are all of the one in use.
/// If none was, nothing changes.
///
/// # Errors
/// If a certificate is not renewed yet, or a file cannot be read or written.
pub fn finish(authority: &Folder, identities: &[PathBuf]) -> Result<(), Failure> {
    let (known, own) = (known(authority)?, PublicKey::from(&key_pair(authority)?));
    let path = authority.path(AUTHORITY);
    let first = known.first().ok_or(RolloverError::Unknown).blame_input(&path)?;
    if !own.is_of(first) {
        let failure = Err(RolloverError::CutOff).blame(Category::Check);
        let help = "begin again: `alpheus ca rollover FOLDER`, and renew all certificates after it";
        return failure
            .map_err(|failure: Failure| failure.at(path.display().to_string()).with_help(help));
    }
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
    let text = first.to_pem(LineEnding::LF).blame(Category::Io)?;
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

/// The name of the authority that has this key.
pub(super) fn name_of(authority: &Folder, key: &KeyPair) -> Result<String, Failure> {
    let known = known(authority)?;
    let in_use = in_use(&known, &PublicKey::from(key), authority)?;
    let name = in_use.tbs_certificate().subject().to_string();
    Ok(name.strip_prefix("CN=").unwrap_or(&name).to_owned())
}

fn known(authority: &Folder) -> Result<Vec<Certificate>, Failure> {
    let path = authority.path(AUTHORITY);
    let pem = fs::read(&path).blame_io(&path)?;
    Certificate::load_pem_chain(&pem)
        .map_err(|_| "it holds no certificates in PEM form")
        .blame_input(&path)
}

/// The certificate of the authority that has this key.
fn in_use<'a>(
    known: &'a [Certificate],
    own: &PublicKey,
    authority: &Folder,
) -> Result<&'a Certificate, Failure> {
    let found = known.iter().find(|certificate| own.is_of(certificate));
    found.ok_or(RolloverError::Unknown).blame_input(&authority.path(AUTHORITY))
}

fn write(folder: &Folder, file: &str, text: &str, readers: Readers) -> Result<(), Failure> {
    let path = folder.path(file);
    replace(&path, text, readers).blame_io(&path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::role::{Name, Role};
    use crate::pki::{Lifetime, issue, make_authority, read_certificate, renew};

    struct Setup {
        folder: tempfile::TempDir,
        authority: Folder,
    }

    impl Setup {
        fn new() -> Setup {
            let folder = tempfile::tempdir().unwrap();
            let authority = Folder::create(&folder.path().join("pki")).unwrap();
            make_authority(&authority).unwrap();
            Setup { folder, authority }
        }

        fn identity(&self, name: &str) -> PathBuf {
            let folder = self.folder.path().join(name);
            let own = Folder::create(&folder).unwrap();
            let name = Name::new(Role::Server, name).unwrap();
            issue(&self.authority, &own, &name, &[], Lifetime::days(1)).unwrap();
            folder
        }
    }

    fn is_of(identity: &Path, keys: &[PublicKey]) -> bool {
        let der = read_certificate(&identity.join(CERTIFICATE)).unwrap();
        IssuedCertificate::open(&der, keys).is_ok()
    }

    #[test]
    fn an_authority_is_replaced_in_two_steps() {
        let place = Setup::new();
        let (authority, service) = (&place.authority, place.identity("service"));
        let first = keys(authority).unwrap();
        assert!(begin(authority).unwrap());
        let [new, old] = &keys(authority).unwrap()[..] else { panic!("two count") };
        assert!(*old == first[0] && *new != *old);
        assert!(!begin(authority).unwrap() && keys(authority).unwrap().len() == 2, "again");
        assert!(is_of(&service, &first));
        let refused = finish(authority, std::slice::from_ref(&service)).unwrap_err();
        assert!(refused.to_string().contains("still from the authority"), "{refused}");

        // What the old one has issued is renewed by the new one.
        renew(authority, &service.join(CERTIFICATE), Lifetime::days(1)).unwrap();
        assert!(is_of(&service, std::slice::from_ref(new)) && !is_of(&service, &first));
        trust(authority, &service).unwrap();
        let text = |folder: &Path| fs::read_to_string(folder.join(AUTHORITY)).unwrap();
        assert_eq!(text(&service), text(&authority.path("")));
        finish(authority, std::slice::from_ref(&service)).unwrap();
        assert!(keys(authority).unwrap() == std::slice::from_ref(new));
        finish(authority, std::slice::from_ref(&service)).unwrap();
        assert!(keys(authority).unwrap() == std::slice::from_ref(new), "again");
    }

    /// Between the two files that a beginning writes.
    #[test]
    fn after_a_crash_nobody_takes_the_old_authority_for_the_new_one() {
        let place = Setup::new();
        let authority = &place.authority;
        let (first, key) = (keys(authority).unwrap(), authority.path(AUTHORITY_KEY));
        let old = fs::read(&key).unwrap();
        assert!(begin(authority).unwrap());
        let lost = keys(authority).unwrap().remove(0);
        fs::write(&key, old).unwrap();
        assert!(is_of(&place.identity("service"), &first));
        assert!(finish(authority, &[]).unwrap_err().to_string().contains("was interrupted"));
        assert!(begin(authority).unwrap());
        let now = keys(authority).unwrap();
        assert!(now.len() == 2 && now[1] == first[0] && !now.contains(&lost));
        assert!(!is_of(&place.identity("another"), &first));
    }
}
