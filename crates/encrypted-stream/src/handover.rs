//! How a stream's master secret gets from its device to its controller: sealed for the
//! controller and bound to the stream (Zeph §2.3: "over a secure channel").
//!
//! # Privacy
//! Parties that carry it learn nothing. Only the certificate's holder can open it, also when
//! one of X25519 and ML-KEM-768 is broken.

use alpheus_crypto::hybrid::{HybridKey, HybridSealed, seal};
use alpheus_crypto::labels;
use alpheus_crypto::seal::UnsealError;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use rand_core::CryptoRng;

use crate::certificate::{Recipient, fingerprint};
use crate::error::CertificateError;
use crate::keys::MasterSecret;

/// What a master secret is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    /// The stream.
    pub stream: StreamId,
    /// The stream's schema.
    pub schema: SchemaId,
    /// The stream's owner, who seals the secret.
    pub owner: OwnerId,
}

impl Purpose {
    /// What the sealed secret is bound to.
    fn context<'a>(
        &'a self,
        authority: &'a VerifyingKey,
        controller: &'a ControllerId,
    ) -> [&'a [u8]; 5] {
        let Self { stream, schema, owner } = self;
        [authority.as_bytes(), &controller.0, &owner.0, &stream.0, &schema.0]
    }

    /// Seals a master secret for a controller of the authority's deployment.
    ///
    /// # Errors
    /// [`CertificateError::HalfHybrid`] if the controller's key is not usable.
    pub fn seal(
        &self,
        authority: &VerifyingKey,
        to: &Recipient,
        master: &MasterSecret,
        rng: &mut impl CryptoRng,
    ) -> Result<HybridSealed, CertificateError> {
        let controller = fingerprint(to.certificate());
        let context = self.context(authority, &controller);
        let sealed = seal(to.key(), labels::MASTER, &context, master.secret(), rng);
        sealed.map_err(|_| CertificateError::HalfHybrid)
    }

    /// Opens a master secret that was sealed for this purpose and this controller.
    ///
    /// # Errors
    /// [`UnsealError`] if it was sealed for another key, controller, deployment or purpose, or
    /// is damaged.
    pub(crate) fn open(
        &self,
        authority: &VerifyingKey,
        (controller, key): (&ControllerId, &HybridKey),
        sealed: &HybridSealed,
    ) -> Result<MasterSecret, UnsealError> {
        let context = self.context(authority, controller);
        key.open(labels::MASTER, &context, sealed).map(MasterSecret::new)
    }
}
