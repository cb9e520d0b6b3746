//! Messages that several smoothers have signed alike.

use crate::configuration::{MAX_SMOOTHERS, PinnedConfiguration, SmootherId};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One message signed by several smoothers: each once, and no more than a deployment can have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "", try_from = "Vec<(SmootherId, Signed<T>)>")]
pub struct Endorsed<T>(Vec<(SmootherId, Signed<T>)>);

/// A list of signatures that no deployment's smoothers could produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more signatures than smoothers, or two of one smoother; send one of each")]
pub struct SignatureListError;

/// Too few smoothers have signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too few smoothers have signed this alike; collect more signatures")]
pub struct EndorsementError;

impl<T> TryFrom<Vec<(SmootherId, Signed<T>)>> for Endorsed<T> {
    type Error = SignatureListError;

    /// Checking costs time for each signature, so lists from strangers are short.
    fn try_from(signatures: Vec<(SmootherId, Signed<T>)>) -> Result<Self, SignatureListError> {
        let few = signatures.len() <= MAX_SMOOTHERS;
        let mut known = BTreeSet::new();
        let once = few && signatures.iter().all(|(by, _)| known.insert(*by));
        if once { Ok(Self(signatures)) } else { Err(SignatureListError) }
    }
}

impl<T> Default for Endorsed<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Message> Endorsed<T> {
    /// Adds a smoother's signature, unless it has one already.
    pub fn add(&mut self, by: SmootherId, signed: Signed<T>) {
        if self.0.iter().all(|(known, _)| *known != by) {
            self.0.push((by, signed));
        }
    }

    /// The signatures.
    pub fn signatures(&self) -> impl Iterator<Item = &(SmootherId, Signed<T>)> {
        self.0.iter()
    }

    /// The first message without any check: only to find the party that checks it.
    #[must_use]
    pub fn dangerous_unverified(&self) -> Option<T> {
        self.0.first()?.1.dangerous_unverified()
    }

    /// The first field of that message, for the same purpose.
    #[must_use]
    pub fn dangerous_first<U: DeserializeOwned>(&self) -> Option<U> {
        self.0.first()?.1.dangerous_first()
    }

    /// The message that `needed` smoothers have signed alike. Invalid signatures do not count, nor
    /// do a smoother's second ones.
    ///
    /// # Errors
    /// [`EndorsementError`].
    pub fn open(
        &self,
        pinned: &PinnedConfiguration,
        needed: usize,
    ) -> Result<Verified<T>, EndorsementError> {
        let mut signers: BTreeMap<_, Vec<SmootherId>> = BTreeMap::new();
        for (by, signed) in &self.0 {
            let Some(Ok(opened)) = pinned.key(*by).map(|key| signed.open(key)) else { continue };
            let alike = signers.entry(opened.digest()).or_default();
            if !alike.contains(by) {
                alike.push(*by);
            }
            if alike.len() >= needed {
                return Ok(opened);
            }
        }
        Err(EndorsementError)
    }

    /// The same, with all valid signatures of the message and no others: what is stored and
    /// forwarded has been checked. Signatures that are `known` to be valid are not checked again.
    ///
    /// # Errors
    /// [`EndorsementError`].
    pub(crate) fn sift(
        &self,
        pinned: &PinnedConfiguration,
        needed: usize,
        known: impl Fn(SmootherId, &Signed<T>) -> bool,
    ) -> Result<(T, Self), EndorsementError> {
        let mut alike: BTreeMap<Digest, Self> = BTreeMap::new();
        for (by, signed) in &self.0 {
            let holds = || pinned.key(*by).is_some_and(|key| signed.open(key).is_ok());
            if known(*by, signed) || holds() {
                alike.entry(signed.digest()).or_default().add(*by, signed.clone());
            }
        }
        let same =
            alike.into_values().find(|same| same.0.len() >= needed).ok_or(EndorsementError)?;
        let message = same.dangerous_unverified().ok_or(EndorsementError)?;
        Ok((message, same))
    }

    /// Whether a smoother's signature is among them, valid or not.
    pub(crate) fn has(&self, smoother: SmootherId) -> bool {
        self.0.iter().any(|(by, _)| *by == smoother)
    }
}
