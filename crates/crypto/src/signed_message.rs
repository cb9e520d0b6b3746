//! Signed messages. The sender sends the exact bytes that it signed. The receiver gets a
//! value that only a checked signature can create.

use crate::hash::{Digest, labelled_hash};
use crate::sign::{Signature, SigningKey, VerifyingKey, verify_digests};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// A kind of signed message.
///
/// Its serialisation must not fail. Plain structs, enums, numbers, strings and lists
/// never do.
pub trait Message: Serialize + DeserializeOwned {
    /// Separates this kind of message from all others. It ends in a version:
    /// `alpheus/<what>/v1`.
    const LABEL: &'static str;
}

/// A message and a signature over its label and exact bytes. It is read only when
/// [opened](Signed::open).
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Signed<T> {
    bytes: Vec<u8>,
    signature: Signature,
    #[serde(skip)]
    kind: PhantomData<fn() -> T>,
}

/// A message whose signature has been checked. Only [`Signed::open`] and
/// [`Signed::open_with`] create one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T> {
    message: T,
    digest: Digest,
    signer: VerifyingKey,
}

/// Signatures to check in a batch, at about half the cost of checking each. Only for a
/// party that decides alone: see [`verify_batch`](crate::sign::verify_batch).
#[derive(Default)]
pub struct SignatureBatch(Vec<(VerifyingKey, Digest, Signature)>);

/// The signatures that held in a [`SignatureBatch`].
#[derive(Default)]
pub struct CheckedSignatures(HashSet<(VerifyingKey, Digest, Signature)>);

impl SignatureBatch {
    /// A smaller batch is not cheaper.
    const MIN: usize = 4;

    /// Adds a message and the key of its claimed signer.
    pub fn add<T: Message>(&mut self, signed: &Signed<T>, key: &VerifyingKey) {
        self.0.push((*key, signed.digest(), signed.signature));
    }

    /// Checks the batch. If any signature fails, none counts as checked, and each is
    /// checked separately when its message is opened.
    #[must_use]
    pub fn check(self) -> CheckedSignatures {
        let hold = self.0.len() >= Self::MIN && verify_digests(&self.0).is_ok();
        CheckedSignatures(if hold { self.0.into_iter().collect() } else { HashSet::new() })
    }
}

/// Why a signed message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SignedMessageError {
    /// The signature was not made by this key over this kind of message and these bytes.
    #[error("the signature was not made by this key over this kind of message")]
    Signature,
    /// The signer signed bytes that are not a message of this kind in canonical form,
    /// or that have more bytes behind it.
    #[error("the signed bytes are not a message of this kind in canonical form")]
    Malformed,
}

impl<T: Message> Signed<T> {
    /// Signs a message.
    #[must_use]
    pub fn new(message: &T, key: &SigningKey) -> Self {
        #[expect(clippy::expect_used, reason = "plain data serialises; see `Message`")]
        let bytes = postcard::to_allocvec(message).expect("plain data serialises");
        let signature = key.sign_digest(&labelled_hash(T::LABEL, &[&bytes]));
        Self { bytes, signature, kind: PhantomData }
    }

    /// Checks the signature, then decodes the message.
    ///
    /// # Errors
    /// [`SignedMessageError`]. The content is not read before the signature holds.
    pub fn open(&self, key: &VerifyingKey) -> Result<Verified<T>, SignedMessageError> {
        self.open_with(key, &CheckedSignatures::default())
    }

    /// Like [`Signed::open`], but skips the check of signatures that a
    /// [batch](SignatureBatch) has already checked.
    ///
    /// # Errors
    /// [`SignedMessageError`], as for [`Signed::open`].
    pub fn open_with(
        &self,
        key: &VerifyingKey,
        checked: &CheckedSignatures,
    ) -> Result<Verified<T>, SignedMessageError> {
        let digest = self.digest();
        if !checked.0.contains(&(*key, digest, self.signature)) {
            key.verify_digest(&digest, &self.signature)
                .map_err(|_| SignedMessageError::Signature)?;
        }
        let message = self.decode().ok_or(SignedMessageError::Malformed)?;
        Ok(Verified { message, digest, signer: *key })
    }

    /// The [`Verified::digest`] of the opened message. Signers use it, since they need not
    /// check their own signatures.
    #[must_use]
    pub fn digest(&self) -> Digest {
        labelled_hash(T::LABEL, &[&self.bytes])
    }

    /// Bytes of the content: what is longer than any message of its kind need not be read.
    #[must_use]
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The content, without a check of the signature. Use it only to find the key to check
    /// it with.
    #[must_use]
    pub fn dangerous_unverified(&self) -> Option<T> {
        self.decode()
    }

    /// The first field of the content, without a check of the signature or of the other
    /// fields. Use it only to find the key to check the signature with.
    #[must_use]
    pub fn dangerous_first<U: DeserializeOwned>(&self) -> Option<U> {
        postcard::take_from_bytes(&self.bytes).ok().map(|(first, _)| first)
    }

    /// The message, if the bytes are its canonical form. So each message has only one
    /// digest, and its signer cannot choose among several.
    fn decode(&self) -> Option<T> {
        let (message, rest) = postcard::take_from_bytes::<T>(&self.bytes).ok()?;
        let canonical = postcard::to_allocvec(&message).ok()?;
        (rest.is_empty() && canonical == self.bytes).then_some(message)
    }
}

impl<T> Verified<T> {
    /// SHA-256 of the label and the exact bytes. Other messages refer to it by this digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The signer's key.
    #[must_use]
    pub fn signer(&self) -> &VerifyingKey {
        &self.signer
    }

    /// The message, without digest and signer.
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
