//! The authority's list of revoked certificates, read again while processes run.
//!
//! | file | in the folder of | holds |
//! | --- | --- | --- |
//! | `revoked.txt` | the authority, the server, hosts of controllers | the signed list, in hexadecimal digits |

use crate::deployment::REVOKED;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::revocation::{RevocationError, RevocationList, tls_digest};
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::revoked::Revoked;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use std::{fs, io};

/// How often the file is read again.
const INTERVAL: Duration = Duration::from_secs(5);

/// The list of an identity folder. Clones share it.
#[derive(Clone)]
pub struct Revocations {
    path: PathBuf,
    authority: VerifyingKey,
    known: Arc<Mutex<RevocationList>>,
    revoked: Revoked,
}

impl Revocations {
    /// Reads the list, if the folder has one.
    ///
    /// # Errors
    /// If it cannot be read, or is not the authority's.
    pub fn open(
        identity: &IdentityFolder,
        authority: &VerifyingKey,
    ) -> Result<Revocations, Failure> {
        let (path, revoked) = (identity.path(REVOKED), Revoked::new(tls_digest));
        let revocations =
            Revocations { path, authority: *authority, known: Arc::default(), revoked };
        revocations.read()?;
        Ok(revocations)
    }

    /// The certificates in it, for doors.
    #[must_use]
    pub fn revoked(&self) -> Revoked {
        self.revoked.clone()
    }

    /// Their digests.
    #[must_use]
    pub fn digests(&self) -> BTreeSet<Digest> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.certificates.iter().copied().collect()
    }

    /// The version of the list; 0 without one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).version
    }

    /// Reads the file again. A list that is refused changes nothing.
    ///
    /// # Errors
    /// If it cannot be read, is not the authority's, or is older than the known one.
    pub fn read(&self) -> Result<(), Failure> {
        let text = match fs::read_to_string(&self.path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read.blame_io(&self.path)?,
        };
        let signed = from_text(&text).blame_input(&self.path)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let list = RevocationList::open(&signed, &self.authority, &known);
        let list = list.blame_input(&self.path)?;
        if list.version != known.version {
            let (version, certificates) = (list.version, list.certificates.len());
            tracing::warn!(version, certificates, "certificates are revoked");
        }
        *known = list;
        self.revoked.replace(known.certificates.iter().copied().collect());
        Ok(())
    }

    /// Reads the file again from time to time, for as long as the list is in use.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn watch(&self) -> io::Result<()> {
        let in_use: Weak<_> = Arc::downgrade(&self.known);
        let Revocations { path, authority, revoked, .. } = self.clone();
        let run = move || {
            loop {
                std::thread::sleep(INTERVAL);
                let Some(known) = in_use.upgrade() else { return };
                let (path, revoked) = (path.clone(), revoked.clone());
                if let Err(error) = (Revocations { path, authority, known, revoked }).read() {
                    tracing::error!(%error, "the list of revoked certificates was not read");
                }
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
    fn a_list_is_read_again_and_a_bad_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let authority = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let revocations = Revocations {
            path: folder.path().join(REVOKED),
            authority: authority.verifying_key(),
            known: Arc::default(),
            revoked: Revoked::new(tls_digest),
        };
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
        assert_eq!(revocations.digests().len(), 2);
    }
}
