//! Who takes part in a test: the authority, the service, and the owners that it certifies.

use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_encrypted_stream::certificate::{CertifiedOwner, Deployment, Party, Role, Subject};
use alpheus_encrypted_stream::mask::generation::KeySource;
use alpheus_policy::ids::StreamId;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::protocol::world::key;

/// What a controller's generations come from at its first start.
pub fn keys_of(seed: u8) -> KeySource {
    KeySource::new(Secret::from_bytes([seed ^ 0x55; 32]))
}

/// What a controller's generations come from at another start.
pub fn other_keys() -> KeySource {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let mut bytes = [0xaa; 32];
    bytes[..8].copy_from_slice(&LAST.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    KeySource::new(Secret::from_bytes(bytes))
}

/// The owner's key of a stream.
pub fn owner_key(stream: StreamId) -> SigningKey {
    let mut seed = [9; 32];
    seed[..16].copy_from_slice(&stream.0);
    SigningKey::from_seed(&Secret::from_bytes(seed))
}

/// The certified owner of a stream.
pub fn owner(stream: StreamId) -> CertifiedOwner {
    certified(&owner_key(stream))
}

/// The owner with this key, as the authority certified it.
pub fn certified(key: &SigningKey) -> CertifiedOwner {
    let verifying = key.verifying_key();
    let subject = Subject(verifying.as_bytes()[..16].try_into().unwrap());
    let signed = Party::signing(Role::Owner, "owner", verifying).certify(subject, &authority());
    deployment().owner(&signed).unwrap()
}

/// Where it does not matter which subject a certificate has.
pub const SUBJECT: Subject = Subject([5; 16]);

/// The authority of every world.
pub fn authority() -> SigningKey {
    key(101)
}

/// The deployment of every world, with the service's key.
pub fn deployment() -> Deployment {
    let service = Party::signing(Role::Service, "service", key(102).verifying_key());
    let service = service.certify(SUBJECT, &authority());
    Deployment::new(authority().verifying_key(), &service).unwrap()
}
