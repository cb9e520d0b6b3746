//! A key epoch's key as smoothers make it: each pledges a dealing, shows it once all
//! have pledged, and settles once all are shown.

use alpheus_accountable_statistics::configuration::{KeyEpoch, Pinned, SmootherId};
use alpheus_accountable_statistics::threshold::dealing::{Dealer, Dealing, Dealt, Pledge};
use alpheus_accountable_statistics::threshold::settling::Settled;
use alpheus_accountable_statistics::threshold::{Committee, KeyShare, SharedKey};
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::{Message, Signed};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a smoother says while a key is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyWord {
    /// Of which key epoch.
    pub epoch: KeyEpoch,
    /// Who says it.
    pub by: SmootherId,
    /// What.
    pub what: What,
}

/// The rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// First.
    Pledge(Pledge),
    /// Once all have pledged.
    Dealing(Vec<u8>),
}

impl Message for KeyWord {
    const LABEL: &'static str = labels::STATISTICS_KEY_WORD;
}

/// A key that is being made.
pub struct Making {
    committee: Committee,
    epoch: KeyEpoch,
    id: SmootherId,
    dealer: Dealer,
    pledges: BTreeMap<SmootherId, Pledge>,
    dealings: BTreeMap<SmootherId, Vec<u8>>,
    shown: bool,
}

/// Why no key is made.
#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    /// A smoother's dealing does not hold.
    #[error("smoother {} has dealt what does not hold ({why}); its operator must see to it", by.0 + 1)]
    Dealing {
        /// Whose.
        by: SmootherId,
        /// Why.
        why: String,
    },
    /// It cannot be begun or ended.
    #[error("no key can be made: {0}")]
    Broken(String),
}

fn broken(error: impl std::fmt::Display) -> NotMade {
    NotMade::Broken(error.to_string())
}

impl Making {
    /// Begins, from a seed that is durable and for this key epoch alone.
    ///
    /// # Errors
    /// [`NotMade`].
    pub fn begin(
        pinned: &Pinned,
        epoch: KeyEpoch,
        id: SmootherId,
        seed: &Secret<32>,
        dealing: Option<&[u8]>,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, NotMade> {
        let committee = pinned.committee(epoch).map_err(broken)?;
        let keys: Vec<_> = pinned.smoothers.iter().map(|smoother| smoother.sealing).collect();
        let dealer = match dealing {
            None => Dealer::new(committee, &keys, id.0, seed, rng).map_err(broken)?,
            Some(bytes) => {
                let dealing = Dealing::from_bytes(bytes, &committee).map_err(broken)?;
                Dealer::restore(committee, id.0, seed, dealing).map_err(broken)?
            }
        };
        let (pledges, dealings) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { committee, epoch, id, dealer, pledges, dealings, shown: false })
    }

    /// What is stored beside the seed.
    #[must_use]
    pub fn dealing(&self) -> Vec<u8> {
        self.dealer.dealing().to_bytes()
    }

    /// The first word.
    #[must_use]
    pub fn pledge(&mut self, key: &SigningKey) -> Signed<KeyWord> {
        let pledge = self.dealer.pledge();
        self.pledges.insert(self.id, pledge);
        self.word(What::Pledge(pledge), key)
    }

    fn word(&self, what: What, key: &SigningKey) -> Signed<KeyWord> {
        Signed::new(&KeyWord { epoch: self.epoch, by: self.id, what }, key)
    }

    /// Hears a word; the first of its kind counts.
    pub fn hear(&mut self, word: KeyWord) {
        match word.what {
            What::Pledge(pledge) => drop(self.pledges.entry(word.by).or_insert(pledge)),
            What::Dealing(bytes) => drop(self.dealings.entry(word.by).or_insert(bytes)),
        }
    }

    /// The second word, once all have pledged.
    pub fn show(&mut self, key: &SigningKey) -> Option<Signed<KeyWord>> {
        let all = self.pledges.len() == usize::from(self.committee.members());
        if !all || self.shown {
            return None;
        }
        self.shown = true;
        let dealing = self.dealing();
        self.dealings.insert(self.id, dealing.clone());
        Some(self.word(What::Dealing(dealing), key))
    }

    /// The key, once all dealings are there.
    ///
    /// # Errors
    /// [`NotMade`].
    pub fn settle(&self, own: &SealingKey) -> Result<Option<(SharedKey, KeyShare)>, NotMade> {
        if self.dealings.len() < usize::from(self.committee.members()) || !self.shown {
            return Ok(None);
        }
        let mut dealt: Vec<Dealt> = Vec::new();
        for (by, bytes) in &self.dealings {
            let wrong = |why: String| NotMade::Dealing { by: *by, why };
            let pledge = self.pledges.get(by).ok_or_else(|| wrong("no pledge".into()))?;
            let dealing = Dealing::from_bytes(bytes, &self.committee);
            let dealing = dealing.map_err(|error| wrong(error.to_string()))?;
            let verified = dealing.verify(&self.committee, by.0, pledge);
            dealt.push(verified.map_err(|error| wrong(error.to_string()))?);
        }
        let settled = Settled::new(&self.committee, &dealt, &[], &[]).map_err(broken)?;
        let mut taken = Vec::new();
        for dealt in &dealt {
            let by = SmootherId(dealt.dealer());
            let why = || "its share for this smoother does not fit".into();
            taken.push(dealt.take(self.id.0, own).map_err(|_| NotMade::Dealing { by, why: why() })?);
        }
        let share = settled.share(self.id.0, taken).map_err(broken)?;
        Ok(Some((settled.key().clone(), share)))
    }
}
