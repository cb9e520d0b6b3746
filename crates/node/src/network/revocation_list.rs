//! Certificates that the deployment's authority has revoked.
//!
//! The list names each certificate by a digest: of a certificate of this protocol its own, of a
//! TLS certificate [`tls_key_digest`], so that every certificate of its key is revoked, earlier and
//! renewed ones too; or [`tls_digest`], of that certificate alone. Lists only grow, and a
//! party that has seen one takes no older one.

use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Message, Signed};
use serde::{Deserialize, Serialize};

/// The authority's list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevocationList {
    /// Grows with each list.
    pub version: u64,
    /// Digests of revoked certificates, ascending.
    pub certificates: Vec<Digest>,
}

impl Message for RevocationList {
    const LABEL: &'static str = labels::REVOCATION;
}

/// Why a list of revoked certificates is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevocationError {
    /// Not signed by the deployment's authority.
    #[error("the list is not signed by this deployment's authority")]
    Unsigned,
    /// The digests do not ascend.
    #[error(
        "the list's certificates are not in ascending order; write it with `alpheus ca revoke`"
    )]
    Unordered,
    /// A later list is known.
    #[error(
        "the list has version {version}, but version {known} is already known; use the latest list"
    )]
    Older {
        /// Its version.
        version: u64,
        /// The known version.
        known: u64,
    },
    /// It has the version of the known list and another content, or lacks some of it.
    #[error(
        "certificates that an earlier list revoked are missing from this one; use the latest list"
    )]
    Shrunk,
}

impl RevocationList {
    /// The list with more certificates in it.
    #[must_use]
    pub fn with(mut self, certificates: impl IntoIterator<Item = Digest>) -> RevocationList {
        self.certificates.extend(certificates);
        self.certificates.sort_unstable();
        self.certificates.dedup();
        self.version = self.version.saturating_add(1);
        self
    }

    /// Checks a list against the known one.
    ///
    /// # Errors
    /// [`RevocationError`].
    pub fn open(
        signed: &Signed<RevocationList>,
        authority: &VerifyingKey,
        known: &RevocationList,
    ) -> Result<RevocationList, RevocationError> {
        let list = signed.open(authority).map_err(|_| RevocationError::Unsigned)?.into_inner();
        if !list.certificates.is_sorted_by(|one, next| one < next) {
            return Err(RevocationError::Unordered);
        }
        if list.version < known.version {
            let (version, known) = (list.version, known.version);
            return Err(RevocationError::Older { version, known });
        }
        let keeps = |digest: &Digest| list.certificates.binary_search(digest).is_ok();
        let same = list.version != known.version || list == *known;
        if same && known.certificates.iter().all(keeps) {
            Ok(list)
        } else {
            Err(RevocationError::Shrunk)
        }
    }
}

/// The digest of a TLS certificate, given its DER form.
#[must_use]
pub fn tls_digest(der: &[u8]) -> Digest {
    labelled_hash(labels::TLS_CERTIFICATE, &[der])
}

/// The digest of the key of TLS certificates, given its `SubjectPublicKeyInfo` in DER form.
#[must_use]
pub fn tls_key_digest(key: &[u8]) -> Digest {
    labelled_hash(labels::TLS_KEY, &[key])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_crypto::secret::Secret;
    use alpheus_crypto::sign::SigningKey;

    fn key(number: u8) -> SigningKey {
        SigningKey::from_seed(&Secret::from_bytes([number; 32]))
    }

    #[test]
    fn lists_grow_and_are_the_authoritys() {
        let (authority, nothing) = (key(1), RevocationList::default());
        let [one, two, three] = [1, 2, 3].map(|number| Digest([number; 32]));
        let check = |list: &RevocationList, signer: &SigningKey, known: &RevocationList| {
            RevocationList::open(&Signed::new(list, signer), &authority.verifying_key(), known)
        };
        let first = nothing.clone().with([two, one, two]);
        assert_eq!((first.version, first.certificates.clone()), (1, vec![one, two]));
        assert_eq!(check(&first, &authority, &nothing), Ok(first.clone()));
        assert_eq!(check(&first, &authority, &first), Ok(first.clone()), "the same again");
        assert_eq!(check(&first, &key(2), &nothing), Err(RevocationError::Unsigned));
        let second = first.clone().with([three]);
        assert_eq!(check(&second, &authority, &first), Ok(second.clone()));
        let older = RevocationError::Older { version: 1, known: 2 };
        assert_eq!(check(&first, &authority, &second), Err(older));
        let shrunk = RevocationList { version: 3, certificates: vec![three] };
        assert_eq!(check(&shrunk, &authority, &second), Err(RevocationError::Shrunk));
        let other = RevocationList { version: 2, certificates: vec![one, two] };
        assert_eq!(check(&other, &authority, &second), Err(RevocationError::Shrunk));
        let unordered = RevocationList { version: 4, certificates: vec![two, one] };
        assert_eq!(check(&unordered, &authority, &nothing), Err(RevocationError::Unordered));
    }
}
