//! An owner's withdrawal of consent, and the controller's statement that a stream's key is
//! gone.

use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Message, Signed, SignedMessageError, Verified};
use alpheus_policy::ids::{ControllerId, OwnerId, StreamId};
use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::certificate::CertifiedOwner;
use crate::error::AnnotationError;

/// An owner withdraws consent for a stream, for good. Repeating it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// The stream.
    pub stream: StreamId,
    /// Whether the key must be destroyed as well.
    pub erase: bool,
}

impl Message for Withdrawal {
    const LABEL: &'static str = labels::WITHDRAWAL;
}

/// Opens a withdrawal if this owner signed it and is the one `expected`.
pub(crate) fn open(
    signed: &Signed<Withdrawal>,
    owner: &CertifiedOwner,
    expected: &OwnerId,
) -> Result<Verified<Withdrawal>, AnnotationError> {
    let opened = signed.open(owner.key()).map_err(|_| AnnotationError::Unsigned)?;
    if owner.id() == *expected { Ok(opened) } else { Err(AnnotationError::WrongOwner) }
}

/// A controller's statement that it has destroyed its copy of a stream's master secret.
/// Without that secret, the stream's ciphertexts are noise to everybody.
///
/// # What it proves
/// Who made the statement, and when. If the key appears later, the statement convicts the
/// controller. No signature can prove that no copy was made before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    /// The stream.
    pub stream: StreamId,
    /// The stream's owner.
    pub owner: OwnerId,
    /// The controller that held the key.
    pub controller: ControllerId,
    /// When it was asked to erase the key, on its own clock.
    pub at: Timestamp,
}

impl Message for Erasure {
    const LABEL: &'static str = labels::ERASURE;
}

impl Erasure {
    /// Opens the statement of `controller`, whose key this is, about a stream.
    ///
    /// # Errors
    /// [`SignedMessageError::Signature`] if the controller did not make it, or it is about another
    /// stream.
    pub fn open(
        signed: &Signed<Erasure>,
        (controller, key): (&ControllerId, &VerifyingKey),
        stream: &StreamId,
    ) -> Result<Verified<Erasure>, SignedMessageError> {
        let opened = signed.open(key)?;
        let fits = opened.controller == *controller && opened.stream == *stream;
        if fits { Ok(opened) } else { Err(SignedMessageError::Signature) }
    }
}
