//! How a stream's master secret gets from its device to its controller: sealed for the
//! controller and bound to the stream (Zeph §2.3: "over a secure channel").
//!
//! # Privacy
//! Parties that carry it learn nothing. Only the certificate's holder can open it.

use alpheus_crypto::labels;
use alpheus_crypto::seal::{Sealed, SealingKey, UnsealError, seal};
use alpheus_policy::ids::{OwnerId, SchemaId, StreamId};
use rand_core::CryptoRng;

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
