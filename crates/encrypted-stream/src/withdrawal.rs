//! How an owner takes consent back, and what a controller says when the stream's key
//! is gone.

use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Message, Rejected, Signed, Verified};
use alpheus_policy::ids::{ControllerId, OwnerId, StreamId};
use alpheus_policy::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::annotation::owner_id;
use crate::error::AnnotationRefused;

/// An owner takes consent for a stream back, for good. Said again it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// The stream.
    pub stream: StreamId,
    /// Whether the key is to be destroyed as well.
    pub erase: bool,
}

impl Message for Withdrawal {
    const LABEL: &'static str = labels::WITHDRAWAL;
}

/// Opens a withdrawal, if this owner signed it with this key.
pub(crate) fn open(
    signed: &Signed<Withdrawal>,
    key: &VerifyingKey,
    owner: &OwnerId,
) -> Result<Verified<Withdrawal>, AnnotationRefused> {
    let opened = signed.open(key).map_err(|_| AnnotationRefused::Unsigned)?;
    if owner_id(key) == *owner { Ok(opened) } else { Err(AnnotationRefused::WrongOwner) }
}

/// A controller's word that it has destroyed its copy of a stream's master
/// secret. Without one, the stream's ciphertexts are noise to everybody.
///
/// # What it proves
/// Who said it, and when: whoever shows the key later convicts the controller.
/// That no copy was made before, no signature can prove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    /// The stream.
    pub stream: StreamId,
    /// Whose it was.
    pub owner: OwnerId,
    /// Who held the key.
    pub controller: ControllerId,
    /// When it was told to erase it, by its clock.
    pub at: Timestamp,
}

impl Message for Erasure {
    const LABEL: &'static str = labels::ERASURE;
}

impl Erasure {
    /// Opens what `controller`, whose key this is, said of a stream.
    ///
    /// # Errors
    /// [`Rejected::Signature`] if it is not its word, or not about this stream.
    pub fn open(
        signed: &Signed<Erasure>,
        (controller, key): (&ControllerId, &VerifyingKey),
        stream: &StreamId,
    ) -> Result<Verified<Erasure>, Rejected> {
        let opened = signed.open(key)?;
        let fits = opened.controller == *controller && opened.stream == *stream;
        if fits { Ok(opened) } else { Err(Rejected::Signature) }
    }
}
