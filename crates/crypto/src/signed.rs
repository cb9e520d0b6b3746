//! Signed messages: what is sent is the exact bytes that were signed, and what
//! comes out is a value that only a checked signature can make.

use crate::hash::{Digest, labelled};
use crate::sign::{Signature, SigningKey, VerifyingKey, verify_digests};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
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

/// Signatures to check at about half the price of one after the other; for one
/// party that decides alone, see [`verify_batch`](crate::sign::verify_batch).
#[derive(Default)]
pub struct Together(Vec<(VerifyingKey, Digest, Signature)>);

/// Which signatures held when they were checked together.
#[derive(Default)]
pub struct Checked(HashSet<(VerifyingKey, Digest, Signature)>);

impl Together {
    /// Below so many it is no cheaper.
    const FEWEST: usize = 4;

    /// Adds a message and whose it is said to be.
    pub fn add<T: Message>(&mut self, signed: &Signed<T>, key: &VerifyingKey) {
        self.0.push((*key, signed.digest(), signed.signature));
    }

    /// Checks them. If any does not hold, none counts as checked, and each is
    /// checked by itself when it is opened.
    #[must_use]
    pub fn check(self) -> Checked {
        let hold = self.0.len() >= Self::FEWEST && verify_digests(&self.0).is_ok();
        Checked(if hold { self.0.into_iter().collect() } else { HashSet::new() })
    }
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
        self.open_among(key, &Checked::default())
    }

    /// The same for one of the messages that were [checked together](Together).
    ///
    /// # Errors
    /// [`Rejected`], as [`Signed::open`], which this is for any other message.
    pub fn open_among(
        &self,
        key: &VerifyingKey,
        checked: &Checked,
    ) -> Result<Verified<T>, Rejected> {
        let digest = self.digest();
        if !checked.0.contains(&(*key, digest, self.signature)) {
            key.verify_digest(&digest, &self.signature).map_err(|_| Rejected::Signature)?;
        }
        let message = self.decode().ok_or(Rejected::Malformed)?;
        Ok(Verified { message, digest, signer: *key })
    }

    /// What [`Verified::digest`] is once it has been opened: for the signer, who
    /// need not check its own signature.
    #[must_use]
    pub fn digest(&self) -> Digest {
        labelled(T::LABEL, &[&self.bytes])
    }

    /// What it says, whoever says it: to find who is to check it, and for nothing else.
    #[must_use]
    pub fn dangerous_unverified(&self) -> Option<T> {
        self.decode()
    }

    /// The first field of what it says, whoever says it and whatever follows: to find who is to
    /// check it, without decoding the rest.
    #[must_use]
    pub fn dangerous_first<U: DeserializeOwned>(&self) -> Option<U> {
        postcard::take_from_bytes(&self.bytes).ok().map(|(first, _)| first)
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
