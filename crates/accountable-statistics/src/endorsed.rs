//! What several smoothers have signed alike.

use crate::configuration::{Pinned, SmootherId};
use alpheus_crypto::hash::Digest;
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

    /// What the first of them says, whoever says it: to find who is to check it, and for nothing
    /// else.
    #[must_use]
    pub fn dangerous_unverified(&self) -> Option<T> {
        self.0.first()?.1.dangerous_unverified()
    }

    /// The message that so many smoothers have signed alike. Signatures that do not hold count
    /// for nothing, and so do a smoother's second ones.
    ///
    /// # Errors
    /// [`NotEndorsed`].
    pub fn open(&self, pinned: &Pinned, needed: usize) -> Result<Verified<T>, NotEndorsed> {
        self.alike(needed, |by, signed| {
            let opened = signed.open(pinned.key(by)?).ok()?;
            Some((opened.digest(), opened))
        })
    }

    /// As [`Endorsed::open`], without another look at signatures that are known to hold.
    pub(crate) fn open_knowing(
        &self,
        pinned: &Pinned,
        needed: usize,
        known: impl Fn(SmootherId, &Signed<T>) -> bool,
    ) -> Result<T, NotEndorsed> {
        self.alike(needed, |by, signed| {
            let holds = known(by, signed) || signed.open(pinned.key(by)?).is_ok();
            Some((signed.digest(), signed.dangerous_unverified().filter(|_| holds)?))
        })
    }

    /// The last of so many of different smoothers that hold and have one digest.
    fn alike<R>(
        &self,
        needed: usize,
        holds: impl Fn(SmootherId, &Signed<T>) -> Option<(Digest, R)>,
    ) -> Result<R, NotEndorsed> {
        let mut signers: BTreeMap<Digest, Vec<SmootherId>> = BTreeMap::new();
        for (by, signed) in &self.0 {
            let Some((digest, message)) = holds(*by, signed) else { continue };
            let alike = signers.entry(digest).or_default();
            if !alike.contains(by) {
                alike.push(*by);
            }
            if alike.len() >= needed {
                return Ok(message);
            }
        }
        Err(NotEndorsed)
    }
}
