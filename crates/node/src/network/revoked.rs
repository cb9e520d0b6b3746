//! Certificates that are no longer let in, although they have not expired.

use alpheus_crypto::hash::Digest;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// What names a certificate in the set, given its DER form.
pub type DigestOf = fn(&[u8]) -> Digest;

/// Revoked certificates, by digest. Clones share them.
#[derive(Clone, Debug)]
pub struct Revoked {
    digest: DigestOf,
    digests: Arc<RwLock<Arc<BTreeSet<Digest>>>>,
}

impl Revoked {
    /// None yet.
    #[must_use]
    pub fn new(digest: DigestOf) -> Revoked {
        Revoked { digest, digests: Arc::default() }
    }

    /// From now on these are revoked.
    pub fn replace(&self, digests: BTreeSet<Digest>) {
        *self.digests.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(digests);
    }

    /// All of them. It is the same allocation until they change.
    #[must_use]
    pub fn all(&self) -> Arc<BTreeSet<Digest>> {
        Arc::clone(&self.digests.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether anybody else has a clone.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.digests) > 1
    }

    /// Whether the certificate with this digest is revoked.
    #[must_use]
    pub fn has(&self, digest: &Digest) -> bool {
        self.all().contains(digest)
    }

    /// Whether a TLS certificate in DER form is revoked.
    #[must_use]
    pub fn has_certificate(&self, der: &[u8]) -> bool {
        // Mostly there are none.
        !self.all().is_empty() && self.has(&(self.digest)(der))
    }
}
