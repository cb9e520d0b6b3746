//! Signed messages: what is sent is the exact bytes that were signed, and what
//! comes out is a value that only a checked signature can make.

use crate::hash::{Digest, labelled};
use crate::sign::{Signature, SigningKey, VerifyingKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// A kind of message that is signed.
///
/// Its serialisation must not fail: plain structs, enums, numbers, strings and
/// lists never do.
pub trait Message: Serialize + DeserializeOwned {
    /// What keeps this kind of message apart from every other, with its
    /// version: `alpheus/<what>/v1`.
    const LABEL: &'static str;
}

/// A message and a signature over its label and exact bytes. Unread until
/// [opened](Signed::open).
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Signed<T> {
    bytes: Vec<u8>,
    signature: Signature,
    #[serde(skip)]
    kind: PhantomData<fn() -> T>,
}

/// A message whose signature has been checked: the only way to one is
/// [`Signed::open`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T> {
    message: T,
    digest: Digest,
    signer: VerifyingKey,
}

/// Why a signed message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Rejected {
    /// The signature is not by this key over this kind of message and these bytes.
    #[error("the signature is not by this key over this kind of message")]
    Signature,
    /// The signer signed bytes that are no message of this kind, in its one
    /// canonical form, without anything behind it.
    #[error("the signed bytes are not one message of this kind")]
    Malformed,
}

impl<T: Message> Signed<T> {
    /// Signs a message.
    #[must_use]
    pub fn new(message: &T, key: &SigningKey) -> Self {
        #[expect(clippy::expect_used, reason = "plain data serialises; see `Message`")]
        let bytes = postcard::to_allocvec(message).expect("plain data serialises");
        let signature = key.sign_digest(&labelled(T::LABEL, &[&bytes]));
        Self { bytes, signature, kind: PhantomData }
    }

    /// Checks the signature, then decodes.
    ///
    /// # Errors
    /// [`Rejected`]. Nothing of the content is read before the signature holds.
    pub fn open(&self, key: &VerifyingKey) -> Result<Verified<T>, Rejected> {
        let digest = labelled(T::LABEL, &[&self.bytes]);
        key.verify_digest(&digest, &self.signature).map_err(|_| Rejected::Signature)?;
        let message = self.decode().ok_or(Rejected::Malformed)?;
        Ok(Verified { message, digest, signer: *key })
    }

    /// What [`Verified::digest`] is once it has been opened: for the signer, who
    /// need not check its own signature.
    #[must_use]
    pub fn digest(&self) -> Digest {
        labelled(T::LABEL, &[&self.bytes])
    }

    /// The message, if the bytes are its canonical form: so one message has
    /// one digest, whatever its signer would like.
    fn decode(&self) -> Option<T> {
        let (message, rest) = postcard::take_from_bytes::<T>(&self.bytes).ok()?;
        let canonical = postcard::to_allocvec(&message).ok()?;
        (rest.is_empty() && canonical == self.bytes).then_some(message)
    }
}

impl<T> Verified<T> {
    /// SHA-256 of the label and the exact bytes: what other messages refer to it by.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whose signature it was.
    #[must_use]
    pub fn signer(&self) -> &VerifyingKey {
        &self.signer
    }

    /// The message alone.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.message
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.message
    }
}

impl<T> Clone for Signed<T> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), signature: self.signature, kind: PhantomData }
    }
}

impl<T> PartialEq for Signed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.signature == other.signature
    }
}

impl<T> Eq for Signed<T> {}

impl<T> fmt::Debug for Signed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signed({} unread bytes)", self.bytes.len())
    }
}
