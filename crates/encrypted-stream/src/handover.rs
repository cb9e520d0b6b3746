//! How a stream's master secret gets from its device to its controller: sealed for the
//! controller and bound to the stream (Zeph §2.3: "over a secure channel"). And how it gets from
//! there to the next controller, if the owner moves the stream, with what the owner was charged.
//!
//! # Privacy
//! Parties that carry it learn nothing. Only the certificate's holder can open it, also when
//! one of X25519 and ML-KEM-768 is broken.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::{HybridKey, HybridSealed, seal, seal_bytes};
use alpheus_crypto::labels;
use alpheus_crypto::seal::UnsealError;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::Message;
use alpheus_policy::budget::BudgetRecord;
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_time::Timestamp;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

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

/// A controller's statement that it hands a stream over, and answers no window that ends after the
/// border of this placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The stream.
    pub stream: StreamId,
    /// The digest of the placement by which its owner moves it.
    pub placement: Digest,
    /// The version of the owner's choice that was in force.
    pub choice: u32,
    /// What the next controller needs, sealed for it.
    pub sealed: HybridSealed,
}

impl Message for HandedOver {
    const LABEL: &'static str = labels::HANDED_OVER;
}

/// What goes along with a stream.
pub struct HandoverContents {
    /// The source of its keys.
    pub master: MasterSecret,
    /// What its owner was charged.
    pub accounts: Vec<BudgetRecord>,
    /// Sessions in which a copy of its device showed, and when the owner confirmed that it is gone.
    pub copies: Vec<(u64, Option<Timestamp>)>,
}

impl HandoverContents {
    /// Seals it for the next controller of the authority's deployment, under the owner's placement.
    ///
    /// # Errors
    /// [`CertificateError::HalfHybrid`] if the controller's key is not usable.
    pub(crate) fn seal(
        &self,
        authority: &VerifyingKey,
        to: &Recipient,
        (purpose, placement): (&Purpose, &Digest),
        rng: &mut impl CryptoRng,
    ) -> Result<HybridSealed, CertificateError> {
        // Plain data serialises.
        let rest = postcard::to_allocvec(&(&self.accounts, &self.copies)).unwrap_or_default();
        // Allocated at its final size, since growing would leave copies in memory.
        let mut bytes = Zeroizing::new(Vec::with_capacity(32 + rest.len()));
        bytes.extend_from_slice(self.master.secret().expose());
        bytes.extend_from_slice(&rest);
        let controller = fingerprint(to.certificate());
        let [a, c, o, s, h] = purpose.context(authority, &controller);
        let context = [a, c, o, s, h, &placement.0];
        let sealed = seal_bytes(to.key(), labels::CARRIED, &context, &bytes, rng);
        sealed.map_err(|_| CertificateError::HalfHybrid)
    }

    /// Opens what was sealed for this controller, purpose and placement.
    ///
    /// # Errors
    /// [`UnsealError`] if it was sealed for another key, controller, deployment, purpose or
    /// placement, or is damaged.
    pub(crate) fn open(
        authority: &VerifyingKey,
        (controller, key): (&ControllerId, &HybridKey),
        (purpose, placement): (&Purpose, &Digest),
        sealed: &HybridSealed,
    ) -> Result<Self, UnsealError> {
        let [a, c, o, s, h] = purpose.context(authority, controller);
        let context = [a, c, o, s, h, &placement.0];
        let bytes = key.open_bytes(labels::CARRIED, &context, sealed)?;
        let (master, rest) = bytes.split_first_chunk::<32>().ok_or(UnsealError)?;
        let master = Secret::from_slice(master).ok_or(UnsealError)?;
        match postcard::take_from_bytes(rest) {
            Ok(((accounts, copies), [])) => {
                Ok(Self { master: MasterSecret::new(master), accounts, copies })
            }
            _ => Err(UnsealError),
        }
    }
}
