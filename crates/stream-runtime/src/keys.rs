//! The keys of an embedded deployment, all derived from one root secret, which is only in
//! the private store.
//!
//! In production each device, each controller and the service draw their own keys. Here
//! they share one process, and one secret to back up.

use alpheus_crypto::kdf::derive;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Party, Role, Subject};
use alpheus_encrypted_stream::consumer::ConsumerSecrets;
use alpheus_encrypted_stream::controller::IdentitySecrets;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_policy::ids::StreamId;
use alpheus_transport::{Batch, Error, Space, Store};
use rand_core::CryptoRng;
use thiserror::Error;

const ROOT: &[u8] = b"root/v1";

/// The root secret.
pub struct RootSecret(Secret<32>);

/// Why there is no root secret.
#[derive(Debug, Error)]
pub enum RootError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The stored root secret is corrupted.
    #[error(
        "the root secret in the private store is corrupted; restore the store from a backup, or start with a new --state folder"
    )]
    Damaged,
}

/// The keys of a service: they sign its messages and decrypt nothing.
pub struct ServiceKeys {
    signing: SigningKey,
}

impl ServiceKeys {
    /// The keys that belong to a seed.
    #[must_use]
    pub fn from_seed(seed: &Secret<32>) -> ServiceKeys {
        let signing = derive::<32>(seed.expose(), "alpheus/service/signing/v1", &[]);
        ServiceKeys { signing: SigningKey::from_seed(&signing) }
    }

    /// What the authority is asked to certify.
    #[must_use]
    pub fn request(&self) -> Party {
        Party::signing(Role::Service, "service", self.signing.verifying_key())
    }

    /// What the authority is asked to certify for the service's ingest key.
    #[must_use]
    pub fn ingest_request(&self, ingest: &SealingKey) -> Party {
        let sealing = Some(ingest.public());
        Party { sealing, ..Party::signing(Role::Ingest, "ingest", self.signing.verifying_key()) }
    }

    /// The key that signs.
    #[must_use]
    pub fn into_signing(self) -> SigningKey {
        self.signing
    }
}

impl RootSecret {
    /// Loads the root secret of a store, or draws it if the store is new. True if drawn.
    ///
    /// # Errors
    /// [`RootError`] if the store fails or is damaged.
    pub fn load(
        store: &dyn Store,
        space: &Space,
        rng: &mut impl CryptoRng,
    ) -> Result<(RootSecret, bool), RootError> {
        if let Some(bytes) = store.get(space, ROOT)? {
            let root = Secret::from_slice(&bytes).ok_or(RootError::Damaged)?;
            return Ok((RootSecret(root), false));
        }
        let root = Secret::random(rng);
        let mut batch = Batch::new();
        batch.put(space, ROOT, root.expose().to_vec())?;
        store.commit(batch)?;
        Ok((RootSecret(root), true))
    }

    fn derive(&self, role: &str, name: &[u8]) -> Secret<32> {
        derive(self.0.expose(), "alpheus/embedded-deployment/v1", &[role.as_bytes(), name])
    }

    /// Signs certificates.
    #[must_use]
    pub fn authority(&self) -> SigningKey {
        SigningKey::from_seed(&self.derive("authority", b""))
    }

    /// Certifies a party. Its role and name decide the certificate's subject.
    #[must_use]
    pub fn certify(&self, party: Party) -> Signed<Certificate> {
        let named = format!("{:?}/{}", party.role, party.name);
        let derived = self.derive("subject", named.as_bytes());
        let mut subject = [0; 16];
        subject.copy_from_slice(&derived.expose()[..16]);
        party.certify(Subject(subject), &self.authority())
    }

    /// The service's keys.
    #[must_use]
    pub fn service(&self) -> ServiceKeys {
        ServiceKeys::from_seed(&self.derive("service", b""))
    }

    /// A controller's keys.
    #[must_use]
    pub fn controller(&self, name: &str) -> IdentitySecrets {
        IdentitySecrets::from_seed(&self.derive("controller", name.as_bytes()))
    }

    /// The keys of a consumer that results are sealed to.
    #[must_use]
    pub fn consumer(&self, name: &str) -> ConsumerSecrets {
        ConsumerSecrets::from_seed(&self.derive("consumer", name.as_bytes()))
    }

    /// The key of a stream's device, which signs the openings of its sessions.
    #[must_use]
    pub fn device(&self, key: &str) -> SigningKey {
        SigningKey::from_seed(&self.derive("device", key.as_bytes()))
    }

    /// The service's ingest key, to which devices seal the keys of their sessions.
    #[must_use]
    pub fn ingest(&self) -> SealingKey {
        SealingKey::from_seed(&self.derive("ingest", b""))
    }

    /// An owner's signing key.
    #[must_use]
    pub fn owner(&self, owner: &str) -> SigningKey {
        SigningKey::from_seed(&self.derive("owner", owner.as_bytes()))
    }

    /// A stream's id, which reveals nothing about its key in the file.
    #[must_use]
    pub fn stream(&self, key: &str) -> StreamId {
        let derived = self.derive("stream", key.as_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&derived.expose()[..16]);
        StreamId(id)
    }

    /// A stream's master secret.
    #[must_use]
    pub fn master(&self, key: &str) -> MasterSecret {
        MasterSecret::new(self.derive("master", key.as_bytes()))
    }
}
