//! How a stream's master secret gets from its device to its controller: sealed
//! for the controller, bound to the stream (Zeph §2.3: "over a secure channel").
//!
//! # Privacy
//! Whoever carries it learns nothing; only the certificate's holder opens it.

use alpheus_crypto::labels;
use alpheus_crypto::seal::{NotSealed, Sealed, SealingKey, seal};
use alpheus_policy::ids::{OwnerId, SchemaId, StreamId};
use rand_core::CryptoRng;

use crate::certificate::Certificate;
use crate::error::BadCertificate;
use crate::keys::MasterSecret;

/// What a master secret is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    /// Whose key it is.
    pub stream: StreamId,
    /// What the stream is a stream of.
    pub schema: SchemaId,
    /// Whose stream it is.
    pub owner: OwnerId,
}

impl Purpose {
    fn parts(&self) -> [&[u8]; 3] {
        [&self.stream.0, &self.schema.0, &self.owner.0]
    }

    /// Seals a master secret for a controller.
    ///
    /// # Errors
    /// [`BadCertificate::NoSealing`] if the certificate has no key for that, or a
    /// bad one.
    pub fn seal(
        &self,
        to: &Certificate,
        master: &MasterSecret,
        rng: &mut impl CryptoRng,
    ) -> Result<Sealed, BadCertificate> {
        let to = to.sealing.ok_or(BadCertificate::NoSealing)?;
        let sealed = seal(&to, labels::MASTER, &self.parts(), master.secret(), rng);
        sealed.map_err(|_| BadCertificate::NoSealing)
    }

    /// Opens a master secret that was sealed for this purpose.
    ///
    /// # Errors
    /// [`NotSealed`].
    pub(crate) fn open(
        &self,
        key: &SealingKey,
        sealed: &Sealed,
    ) -> Result<MasterSecret, NotSealed> {
        key.open(labels::MASTER, &self.parts(), sealed).map(MasterSecret::new)
    }
}
