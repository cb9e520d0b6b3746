//! What several smoothers have signed alike.

use crate::configuration::{MOST_SMOOTHERS, Pinned, SmootherId};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::{Message, Signed, Verified};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One message, signed by several smoothers: each once, and no more than a deployment has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "", try_from = "Vec<(SmootherId, Signed<T>)>")]
pub struct Endorsed<T>(Vec<(SmootherId, Signed<T>)>);

/// Signatures that no deployment's smoothers give together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more signatures than smoothers, or two of one smoother; send one of each")]
pub struct NotSeveral;

/// Too few smoothers have signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not signed alike by as many smoothers as it takes; collect more signatures")]
pub struct NotEndorsed;

impl<T> TryFrom<Vec<(SmootherId, Signed<T>)>> for Endorsed<T> {
    type Error = NotSeveral;

    /// Whoever checks signatures pays for each: what strangers send has few.
    fn try_from(signatures: Vec<(SmootherId, Signed<T>)>) -> Result<Self, NotSeveral> {
        let few = signatures.len() <= MOST_SMOOTHERS;
        let mut known = BTreeSet::new();
        let once = few && signatures.iter().all(|(by, _)| known.insert(*by));
        if once { Ok(Self(signatures)) } else { Err(NotSeveral) }
    }
}

impl<T> Default for Endorsed<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Message> Endorsed<T> {
    /// Adds what a smoother has signed, unless its signature is there.
    pub fn add(&mut self, by: SmootherId, signed: Signed<T>) {
        if self.0.iter().all(|(known, _)| *known != by) {
            self.0.push((by, signed));
        }
    }

    /// The signatures.
    pub fn signatures(&self) -> impl Iterator<Item = &(SmootherId, Signed<T>)> {
        self.0.iter()
    }

    /// What the first of them says, whoever says it: to find who is to check it, and for nothing
    /// else.
    #[must_use]
    pub fn dangerous_unverified(&self) -> Option<T> {
        self.0.first()?.1.dangerous_unverified()
    }

    /// The first field of that, for the same.
    #[must_use]
    pub fn dangerous_first<U: DeserializeOwned>(&self) -> Option<U> {
        self.0.first()?.1.dangerous_first()
    }

    /// The message that so many smoothers have signed alike. Signatures that do not hold count
    /// for nothing, and so do a smoother's second ones.
    ///
    /// # Errors
    /// [`NotEndorsed`].
    pub fn open(&self, pinned: &Pinned, needed: usize) -> Result<Verified<T>, NotEndorsed> {
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
        Err(NotEndorsed)
    }

    /// The same, with all signatures that hold for the message and no others: what is kept and
    /// handed on is what was checked. Those that are known to hold are not looked at again.
    ///
    /// # Errors
    /// [`NotEndorsed`].
    pub(crate) fn sift(
        &self,
        pinned: &Pinned,
        needed: usize,
        known: impl Fn(SmootherId, &Signed<T>) -> bool,
    ) -> Result<(T, Self), NotEndorsed> {
        let mut alike: BTreeMap<Digest, Self> = BTreeMap::new();
        for (by, signed) in &self.0 {
            let holds = || pinned.key(*by).is_some_and(|key| signed.open(key).is_ok());
            if known(*by, signed) || holds() {
                alike.entry(signed.digest()).or_default().add(*by, signed.clone());
            }
        }
        let same = alike.into_values().find(|same| same.0.len() >= needed).ok_or(NotEndorsed)?;
        let message = same.dangerous_unverified().ok_or(NotEndorsed)?;
        Ok((message, same))
    }

    /// Whether a smoother's signature is among them, good or bad.
    pub(crate) fn has(&self, smoother: SmootherId) -> bool {
        self.0.iter().any(|(by, _)| *by == smoother)
    }
}
