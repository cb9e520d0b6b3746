//! What a device opens its sessions with.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};

/// What a device opens its sessions with, so that its frames count for the service.
///
/// # Privacy
/// None of it opens data. Anyone with the device's key can open sessions in its name, whose
/// windows all fail: they have no valid claims.
pub struct OpeningSecrets {
    /// The device's key, which its certificate names.
    pub device: SigningKey,
    /// Digest of that certificate.
    pub certificate: Digest,
    /// The key of the deployment's authority.
    pub authority: VerifyingKey,
    /// Digest of the certificate of the service's ingest key.
    pub ingest: Digest,
    /// That key. Session keys are sealed to it.
    pub ingest_key: SealingPublic,
}
