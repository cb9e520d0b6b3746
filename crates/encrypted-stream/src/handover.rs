//! How a stream's master secret gets from its device to its controller: sealed for the
//! controller and bound to the stream (Zeph §2.3: "over a secure channel"). And how it gets from
//! there to the next controller, if the owner moves the stream, with what the owner was charged.
//!
//! # Privacy
//! Parties that carry it learn nothing. Only the certificate's holder can open it.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::seal::{Sealed, SealingKey, UnsealError, seal, seal_bytes};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Message;
use alpheus_policy::budget::BudgetRecord;
use alpheus_policy::ids::{OwnerId, SchemaId, StreamId};
use alpheus_time::Timestamp;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::certificate::Certificate;
use crate::error::CertificateError;
use crate::keys::MasterSecret;

/// What a master secret is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    /// The stream.
    pub stream: StreamId,
    /// The stream's schema.
    pub schema: SchemaId,
    /// The stream's owner.
    pub owner: OwnerId,
}

impl Purpose {
    fn parts(&self) -> [&[u8]; 3] {
        [&self.stream.0, &self.schema.0, &self.owner.0]
    }

    /// Seals a master secret for a controller.
    ///
    /// # Errors
    /// [`CertificateError::NoSealing`] if the certificate has no valid key for that.
    pub fn seal(
        &self,
        to: &Certificate,
        master: &MasterSecret,
        rng: &mut impl CryptoRng,
    ) -> Result<Sealed, CertificateError> {
        let to = to.party.sealing.ok_or(CertificateError::NoSealing)?;
        let sealed = seal(&to, labels::MASTER, &self.parts(), master.secret(), rng);
        sealed.map_err(|_| CertificateError::NoSealing)
    }

    /// Opens a master secret that was sealed for this purpose.
    ///
    /// # Errors
    /// [`UnsealError`] if it was sealed for another key or purpose, or is damaged.
    pub(crate) fn open(
        &self,
        key: &SealingKey,
        sealed: &Sealed,
    ) -> Result<MasterSecret, UnsealError> {
        key.open(labels::MASTER, &self.parts(), sealed).map(MasterSecret::new)
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
    pub sealed: Sealed,
}

impl Message for HandedOver {
    const LABEL: &'static str = labels::HANDED_OVER;
}

/// What goes along with a stream.
pub struct Carried {
    /// The source of its keys.
    pub master: MasterSecret,
    /// What its owner was charged.
    pub accounts: Vec<BudgetRecord>,
    /// Sessions in which a copy of its device showed, and when the owner confirmed that it is gone.
    pub copies: Vec<(u64, Option<Timestamp>)>,
}

impl Carried {
    fn context<'a>(purpose: &'a Purpose, placement: &'a Digest) -> [&'a [u8]; 4] {
        let [stream, schema, owner] = purpose.parts();
        [stream, schema, owner, &placement.0]
    }

    /// Seals it for the next controller, under the owner's placement.
    ///
    /// # Errors
    /// [`CertificateError::NoSealing`] if the certificate has no valid key for that.
    pub(crate) fn seal(
        &self,
        to: &Certificate,
        (purpose, placement): (&Purpose, &Digest),
        rng: &mut impl CryptoRng,
    ) -> Result<Sealed, CertificateError> {
        let to = to.party.sealing.ok_or(CertificateError::NoSealing)?;
        // Plain data serialises.
        let rest = postcard::to_allocvec(&(&self.accounts, &self.copies)).unwrap_or_default();
        // Allocated at its final size, since growing would leave copies in memory.
        let mut bytes = Zeroizing::new(Vec::with_capacity(32 + rest.len()));
        bytes.extend_from_slice(self.master.secret().expose());
        bytes.extend_from_slice(&rest);
        let context = Self::context(purpose, placement);
        let sealed = seal_bytes(&to, labels::CARRIED, &context, &bytes, rng);
        sealed.map_err(|_| CertificateError::NoSealing)
    }

    /// Opens what was sealed for this purpose and placement.
    ///
    /// # Errors
    /// [`UnsealError`] if it was sealed for another key, purpose or placement, or is damaged.
    pub(crate) fn open(
        key: &SealingKey,
        (purpose, placement): (&Purpose, &Digest),
        sealed: &Sealed,
    ) -> Result<Self, UnsealError> {
        let context = Self::context(purpose, placement);
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
