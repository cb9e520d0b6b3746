//! The authority's list of revoked certificates, read again while processes run.
//!
//! | file | in the folder of | holds |
//! | --- | --- | --- |
//! | `revoked.txt` | the authority, and every process that is to refuse others | the signed list, in hexadecimal digits |
//! | `revoked.known` | every process with a list | the latest list that it has read, so that it never takes an older one |

use crate::failure::{Blame, Failure};
use crate::files::{Readers, read_text, replace};
use crate::network::identity::{DEPLOYMENT, IdentityFolder};
use crate::network::revocation_list::{
    RevocationError, RevocationList, tls_digest, tls_key_digest,
};
use crate::network::revoked_certificates::RevokedCertificates;
use crate::network::role::Role;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::Signed;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

/// The authority's list of revoked certificates.
pub const REVOKED: &str = "revoked.txt";
/// The latest such list that the folder's processes have read.
pub const REVOKED_KNOWN: &str = "revoked.known";

/// How often the file is read again.
const INTERVAL: Duration = Duration::from_secs(5);

/// The list of an identity folder. Clones share it.
#[derive(Clone)]
pub struct Revocations {
    path: PathBuf,
    /// The latest list that was read here.
    kept: PathBuf,
    authority: VerifyingKey,
    known: Arc<Mutex<LatestList>>,
    revoked: RevokedCertificates,
}

/// The latest list, and the version of the one that is kept for the next start.
struct LatestList {
    list: RevocationList,
    /// The version that is kept.
    kept: u64,
    /// The version that could not be kept, which was said.
    unkept: u64,
}

/// An identity folder whose connections refuse certificates that the authority has revoked, also
/// in a list that comes while they are open.
///
/// # Errors
/// As [`IdentityFolder::open`] and [`Revocations::open`].
pub fn open_identity(folder: &Path, wanted: Role) -> Result<IdentityFolder, Failure> {
    watched(folder, IdentityFolder::open(folder, wanted)?)
}

/// As [`open_identity`], where the command also acts as some other roles.
///
/// # Errors
/// As [`open_identity`].
pub fn open_identity_of(folder: &Path, roles: (Role, &[Role])) -> Result<IdentityFolder, Failure> {
    watched(folder, IdentityFolder::open_one_of(folder, roles)?)
}

fn watched(folder: &Path, identity: IdentityFolder) -> Result<IdentityFolder, Failure> {
    if !identity.path(DEPLOYMENT).exists() {
        // It knows no authority whose list it could check.
        return match identity.path(REVOKED).exists() {
            true => Err(AuthorityError::Missing).blame_input(folder),
            false => Ok(identity),
        };
    }
    let authority = authority_of(&identity.path(DEPLOYMENT))?;
    let revocations = Revocations::open(&identity, &authority)?;
    let identity = identity.without(revocations.revoked());
    revocations.watch().blame_io(folder)?;
    Ok(identity)
}

/// What a deployment's file says of the authority. Parts read the rest of it.
#[derive(Deserialize)]
struct AuthorityField {
    /// Its public key: 32 bytes in hexadecimal digits.
    authority: String,
}

/// Why a deployment's file names no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// It is not the file that `alpheus ca init` wrote.
    #[error("not a deployment's file: {0}; copy it from the authority's folder")]
    Json(#[from] serde_json::Error),
    /// There is a list, and nothing says who may sign it.
    #[error(
        "`revoked.txt` exists without `deployment.json`, which says who may sign it; copy both from the authority's folder"
    )]
    Missing,
    /// The key is none.
    #[error(
        "`authority` is not a public key in hexadecimal digits; copy the file from the authority's folder"
    )]
    Key,
}

fn authority_of(path: &Path) -> Result<VerifyingKey, Failure> {
    key_in(&read_text(path)?).blame_input(path)
}

fn key_in(text: &str) -> Result<VerifyingKey, AuthorityError> {
    let field: AuthorityField = serde_json::from_str(text)?;
    key_of_hex(&field.authority).ok_or(AuthorityError::Key)
}

/// A public key that signs, from its 32 bytes in hexadecimal digits.
#[must_use]
pub fn key_of_hex(text: &str) -> Option<VerifyingKey> {
    let bytes: [u8; 32] = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()?;
    VerifyingKey::from_bytes(bytes).ok()
}

impl Revocations {
    /// Reads the list, if the folder has one.
    ///
    /// # Errors
    /// If it cannot be read, is not the authority's, or is older than one that was read before.
    pub fn open(
        identity: &IdentityFolder,
        authority: &VerifyingKey,
    ) -> Result<Revocations, Failure> {
        Revocations::in_folder(identity.path(REVOKED), identity.path(REVOKED_KNOWN), authority)
    }

    fn in_folder(
        path: PathBuf,
        kept: PathBuf,
        authority: &VerifyingKey,
    ) -> Result<Revocations, Failure> {
        let list = list_of(&kept, authority)?;
        let revoked = RevokedCertificates::new(tls_digest, tls_key_digest);
        revoked.replace(list.certificates.iter().copied().collect());
        let known = LatestList { kept: list.version, unkept: 0, list };
        let known = Arc::new(Mutex::new(known));
        let revocations = Revocations { path, kept, authority: *authority, known, revoked };
        revocations.read()?;
        Ok(revocations)
    }

    /// The certificates in it, for doors.
    #[must_use]
    pub fn revoked(&self) -> RevokedCertificates {
        self.revoked.clone()
    }

    /// The version of the list; 0 without one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).list.version
    }

    /// Reads the file again. A list that is refused changes nothing.
    ///
    /// # Errors
    /// If it cannot be read, is not the authority's, or is older than the known one. That it cannot be
    /// kept is logged.
    pub fn read(&self) -> Result<(), Failure> {
        let text = match fs::read_to_string(&self.path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read.blame_io(&self.path)?,
        };
        let signed = from_text(&text).blame_input(&self.path)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let list = RevocationList::open(&signed, &self.authority, &known.list);
        let list = list.blame_input(&self.path)?;
        let version = list.version;
        if version != known.list.version {
            let certificates = list.certificates.len();
            tracing::warn!(version, certificates, "certificates are revoked");
            self.revoked.replace(list.certificates.iter().copied().collect());
            known.list = list;
        }
        // It holds from now on, whether or not it can be kept. Until it is, each reading tries. A
        // folder that may only be read is no reason to end: the list itself was read.
        if version != known.kept {
            match replace(&self.kept, to_text(&signed), Readers::Everybody) {
                Ok(()) => known.kept = version,
                Err(error) if known.unkept != version => {
                    let path = self.kept.display();
                    tracing::error!(%path, %error, version, "the list of revoked certificates holds, \
                        but after a restart an older one would be taken");
                    known.unkept = version;
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Reads the file again from time to time, for as long as the list is in use.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn watch(&self) -> io::Result<()> {
        let own = self.clone();
        let run = move || {
            // One that stays unreadable is said once, and that it is read again.
            let mut unread = None;
            while own.revoked.is_shared() {
                std::thread::sleep(INTERVAL);
                let failed = own.read().err().map(|error| error.to_string());
                if let Some(error) = failed.as_ref().filter(|_| failed != unread) {
                    tracing::error!(%error, "the list of revoked certificates was not read");
                }
                if failed.is_none() && unread.is_some() {
                    tracing::info!("the list of revoked certificates is read again");
                }
                unread = failed;
            }
        };
        std::thread::Builder::new().name("revocations".into()).spawn(run).map(drop)
    }
}

/// Not a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a list of revoked certificates; write it with `alpheus ca revoke`")]
pub struct NotAListError;

/// A list as text.
#[must_use]
pub fn to_text(list: &Signed<RevocationList>) -> String {
    HEXLOWER.encode(&postcard::to_allocvec(list).unwrap_or_default()) + "\n"
}

fn from_text(text: &str) -> Result<Signed<RevocationList>, NotAListError> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).map_err(|_| NotAListError)?;
    postcard::from_bytes(&bytes).map_err(|_| NotAListError)
}

/// The list of the authority's folder; an empty one if there is none.
///
/// # Errors
/// If it cannot be read or is not the authority's.
pub fn list_of(path: &Path, authority: &VerifyingKey) -> Result<RevocationList, Failure> {
    let nothing = RevocationList::default();
    if !path.exists() {
        return Ok(nothing);
    }
    let signed = from_text(&fs::read_to_string(path).blame_io(path)?).blame_input(path)?;
    let opened: Result<_, RevocationError> = RevocationList::open(&signed, authority, &nothing);
    opened.blame_input(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_crypto::secret::Secret;
    use alpheus_crypto::sign::SigningKey;

    #[test]
    fn the_authority_is_the_one_in_the_deployments_file() {
        let key = SigningKey::from_seed(&Secret::from_bytes([1; 32])).verifying_key();
        let hex = HEXLOWER.encode(key.as_bytes());
        let file = |authority: &str| format!(r#"{{"version": 1, "authority": "{authority}"}}"#);
        assert_eq!(key_in(&file(&hex)).unwrap(), key);
        for bad in [file("12"), file("no digits"), "{}".to_owned(), "no JSON".to_owned()] {
            let refused = key_in(&bad).unwrap_err().to_string();
            assert!(refused.contains("copy"), "{bad}: {refused}");
        }
    }

    #[test]
    fn a_list_is_read_again_and_a_bad_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let authority = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let open = || {
            let [path, kept] = [REVOKED, REVOKED_KNOWN].map(|file| folder.path().join(file));
            Revocations::in_folder(path, kept, &authority.verifying_key())
        };
        let revocations = open().unwrap();
        assert!(revocations.read().is_ok() && revocations.version() == 0, "none is there");
        let list = RevocationList::default().with([tls_digest(b"eve")]);
        let write = |list: &RevocationList, key: &SigningKey| {
            fs::write(&revocations.path, to_text(&Signed::new(list, key))).unwrap();
        };
        write(&list, &authority);
        revocations.read().unwrap();
        let revoked = revocations.revoked();
        assert!(revoked.has_certificate(b"eve") && !revoked.has_certificate(b"adam"));
        assert_eq!(list_of(&revocations.path, &authority.verifying_key()).unwrap(), list);
        let later = list.clone().with([tls_digest(b"adam")]);
        write(&later, &SigningKey::from_seed(&Secret::from_bytes([2; 32])));
        assert!(revocations.read().is_err());
        fs::write(&revocations.path, "no list").unwrap();
        assert!(revocations.read().is_err());
        fs::remove_file(&revocations.path).unwrap();
        revocations.read().unwrap();
        assert!(revoked.has_certificate(b"eve") && !revoked.has_certificate(b"adam"));
        write(&later, &authority);
        revocations.read().unwrap();
        assert!(revoked.has_certificate(b"adam") && revocations.version() == 2);
        assert_eq!(revoked.all().len(), 2);
        // An older list is refused after a restart, too, and one that is gone stays in force.
        fs::remove_file(&revocations.path).unwrap();
        let again = open().unwrap();
        assert!(again.version() == 2 && again.revoked().has_certificate(b"adam"));
        write(&list, &authority);
        let refused = open().map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("version 1, but version 2 is already known"), "{refused}");
    }

    #[test]
    fn a_list_that_could_not_be_kept_is_kept_once_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let authority = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let (path, state) = (folder.path().join(REVOKED), folder.path().join("full"));
        let kept = state.join(REVOKED_KNOWN);
        let open =
            || Revocations::in_folder(path.clone(), kept.clone(), &authority.verifying_key());
        let revocations = open().unwrap();
        let write = |list: &RevocationList| {
            fs::write(&path, to_text(&Signed::new(list, &authority))).unwrap();
        };
        let old = RevocationList::default().with([tls_digest(b"adam")]);
        let list = old.clone().with([tls_digest(b"eve")]);
        write(&list);
        revocations.read().unwrap();
        assert!(revocations.revoked().has_certificate(b"eve"), "it holds, and nothing is written");
        let again = open().unwrap();
        assert!(again.revoked().has_certificate(b"eve"), "also where a process starts");
        fs::create_dir(&state).unwrap();
        revocations.read().unwrap();
        assert_eq!(list_of(&kept, &authority.verifying_key()).unwrap(), list);
        write(&old);
        assert!(open().is_err(), "an older list is refused after a restart");
    }
}
