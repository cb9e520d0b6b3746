//! What several smoothers have signed alike.

use crate::configuration::{Pinned, SmootherId};
use alpheus_crypto::signed::{Message, Signed, Verified};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One message, signed by several smoothers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Endorsed<T>(Vec<(SmootherId, Signed<T>)>);

/// Too few smoothers have signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not signed alike by as many smoothers as it takes; collect more signatures")]
pub struct NotEndorsed;

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
}
