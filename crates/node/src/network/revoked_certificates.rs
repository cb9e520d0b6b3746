//! Certificates that are no longer let in, although they have not expired.

use alpheus_crypto::hash::Digest;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};
use x509_cert::Certificate;
use x509_cert::der::{Decode, Encode};

/// What names a certificate in the set, given its DER form; or the key of certificates, given its own.
pub type DigestOf = fn(&[u8]) -> Digest;

/// Revoked certificates, by digest. Clones share them.
#[derive(Clone, Debug)]
pub struct RevokedCertificates {
    digest: DigestOf,
    key_digest: DigestOf,
    digests: Arc<RwLock<Arc<BTreeSet<Digest>>>>,
}

impl RevokedCertificates {
    /// None yet. Certificates are named by their digest, or by that of their key.
    #[must_use]
    pub fn new(digest: DigestOf, key_digest: DigestOf) -> RevokedCertificates {
        RevokedCertificates { digest, key_digest, digests: Arc::default() }
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

    /// Whether a TLS certificate in DER form is revoked, or its key.
    #[must_use]
    pub fn has_certificate(&self, der: &[u8]) -> bool {
        let all = self.all();
        // Mostly there are none.
        if all.is_empty() {
            return false;
        }
        let has_key = |key: Vec<u8>| all.contains(&(self.key_digest)(&key));
        all.contains(&(self.digest)(der)) || public_key(der).is_some_and(has_key)
    }
}

/// The public key of a certificate, both in DER form; none if it is no certificate.
#[must_use]
pub fn public_key(der: &[u8]) -> Option<Vec<u8>> {
    let certificate = Certificate::from_der(der).ok()?;
    certificate.tbs_certificate().subject_public_key_info().to_der().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    #[test]
    fn a_revoked_key_revokes_all_its_certificates() {
        let digest = |bytes: &[u8]| Digest([bytes.iter().fold(0, |sum, byte| sum ^ byte); 32]);
        let revoked = RevokedCertificates::new(|_| Digest([0; 32]), digest);
        let [key, other] = [(); 2].map(|()| KeyPair::generate().unwrap());
        let certificate = |key: &KeyPair, name: &str| {
            CertificateParams::new([name.to_owned()]).unwrap().self_signed(key).unwrap()
        };
        let (old, new) = (certificate(&key, "old.example"), certificate(&key, "new.example"));
        let own = public_key(old.der()).unwrap();
        assert_eq!(public_key(new.der()), Some(own.clone()));
        revoked.replace([digest(&own)].into());
        assert!(revoked.has_certificate(old.der()) && revoked.has_certificate(new.der()));
        let strange = certificate(&other, "old.example");
        let same = digest(&public_key(strange.der()).unwrap()) == digest(&own);
        assert_eq!(revoked.has_certificate(strange.der()), same);
        assert!(!revoked.has_certificate(b"no certificate"));
    }
}
