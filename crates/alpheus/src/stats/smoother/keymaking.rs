//! A key epoch's key as smoothers make it: each announces a key of this attempt alone,
//! pledges a dealing once all have announced, shows it once all have pledged, and settles
//! once all are shown.

use alpheus_accountable_statistics::configuration::{KeyEpoch, Pinned, SmootherId};
use alpheus_accountable_statistics::threshold::ceremony::{Announcement, Ceremony};
use alpheus_accountable_statistics::threshold::dealing::{Dealer, Dealing, Dealt, Pledge};
use alpheus_accountable_statistics::threshold::settling::Settled;
use alpheus_accountable_statistics::threshold::{Committee, KeyShare, SharedKey};
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Message;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The attempt: a faulty smoother stops a key; its operator is named, and mends it.
const ATTEMPT: u32 = 0;

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
    Announcement(Announcement),
    /// Once all have announced.
    Pledge(Pledge),
    /// Once all have pledged.
    Dealing(Vec<u8>),
}

impl Message for KeyWord {
    const LABEL: &'static str = labels::STATISTICS_KEY_WORD;
}

impl KeyWord {
    /// The round, from 0.
    #[must_use]
    pub fn round(&self) -> u8 {
        match self.what {
            What::Announcement(_) => 0,
            What::Pledge(_) => 1,
            What::Dealing(_) => 2,
        }
    }
}

/// A key that is being made.
pub struct Making {
    committee: Committee,
    epoch: KeyEpoch,
    id: SmootherId,
    seed: Secret<32>,
    /// What was dealt before this start.
    stored: Option<Vec<u8>>,
    announced: BTreeMap<SmootherId, Announcement>,
    pledges: BTreeMap<SmootherId, Pledge>,
    dealings: BTreeMap<SmootherId, Vec<u8>>,
    dealer: Option<(Ceremony, Dealer)>,
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
        seed: Secret<32>,
        stored: Option<Vec<u8>>,
    ) -> Result<(Self, KeyWord), NotMade> {
        let committee = pinned.committee(epoch).map_err(broken)?;
        let announcement = Announcement::new(&committee, ATTEMPT, id.0, &seed).map_err(broken)?;
        let making = Self {
            committee,
            epoch,
            id,
            seed,
            stored,
            announced: BTreeMap::from([(id, announcement)]),
            pledges: BTreeMap::new(),
            dealings: BTreeMap::new(),
            dealer: None,
            shown: false,
        };
        let word = making.word(What::Announcement(announcement));
        Ok((making, word))
    }

    fn word(&self, what: What) -> KeyWord {
        KeyWord { epoch: self.epoch, by: self.id, what }
    }

    /// Hears a word of somebody else; the first of its kind counts.
    pub fn hear(&mut self, word: KeyWord) {
        let by = word.by;
        match word.what {
            What::Announcement(said) if said.member == by.0 => {
                self.announced.entry(by).or_insert(said);
            }
            What::Pledge(said) if said.dealer == by.0 => {
                self.pledges.entry(by).or_insert(said);
            }
            What::Dealing(bytes) => drop(self.dealings.entry(by).or_insert(bytes)),
            _ => {}
        }
    }

    /// Whether that many is everybody.
    fn all(&self, many: usize) -> bool {
        many == usize::from(self.committee.members())
    }

    /// The second word, once all have announced, and the dealing to store before it leaves.
    ///
    /// # Errors
    /// [`NotMade`].
    pub fn pledge(
        &mut self,
        rng: &mut impl CryptoRng,
    ) -> Result<Option<(KeyWord, Vec<u8>)>, NotMade> {
        if self.dealer.is_some() || !self.all(self.announced.len()) {
            return Ok(None);
        }
        let announced: Vec<Announcement> = self.announced.values().copied().collect();
        let ceremony = Ceremony::new(self.committee, ATTEMPT, &announced);
        let dealer = match &self.stored {
            None => Dealer::new(&ceremony, self.id.0, &self.seed, rng).map_err(broken)?,
            Some(bytes) => {
                let dealing = Dealing::from_bytes(bytes, &ceremony).map_err(broken)?;
                Dealer::restore(&ceremony, self.id.0, &self.seed, dealing).map_err(broken)?
            }
        };
        let (pledge, dealing) = (dealer.pledge(), dealer.stored().to_bytes());
        self.pledges.insert(self.id, pledge);
        self.dealer = Some((ceremony, dealer));
        Ok(Some((self.word(What::Pledge(pledge)), dealing)))
    }

    /// The third word, once all have pledged.
    ///
    /// # Errors
    /// [`NotMade`].
    pub fn show(&mut self) -> Result<Option<KeyWord>, NotMade> {
        let Some((_, dealer)) = &self.dealer else { return Ok(None) };
        if self.shown || !self.all(self.pledges.len()) {
            return Ok(None);
        }
        let pledges: Vec<Pledge> = self.pledges.values().copied().collect();
        let dealing = dealer.show(&pledges).map_err(broken)?.to_bytes();
        self.shown = true;
        self.dealings.insert(self.id, dealing.clone());
        Ok(Some(self.word(What::Dealing(dealing))))
    }

    /// The key, once all dealings are there.
    ///
    /// # Errors
    /// [`NotMade`].
    pub fn settle(&self) -> Result<Option<(SharedKey, KeyShare)>, NotMade> {
        let Some((ceremony, dealer)) = &self.dealer else { return Ok(None) };
        if !self.shown || !self.all(self.dealings.len()) {
            return Ok(None);
        }
        let mut dealt: Vec<Dealt> = Vec::new();
        let mut taken = Vec::new();
        for (by, bytes) in &self.dealings {
            let wrong = |why: String| NotMade::Dealing { by: *by, why };
            let pledge = self.pledges.get(by).ok_or_else(|| wrong("no pledge".into()))?;
            let dealing = Dealing::from_bytes(bytes, ceremony);
            let dealing = dealing.map_err(|error| wrong(error.to_string()))?;
            let one = dealing.verify(ceremony, pledge).map_err(|error| wrong(error.to_string()))?;
            let unfit = |_| wrong("its share for this smoother does not fit".into());
            taken.push(dealer.take(&one).map_err(unfit)?);
            dealt.push(one);
        }
        let settled = Settled::new(ceremony, &dealt, &[], &[]).map_err(broken)?;
        let share = settled.share(self.id.0, taken).map_err(broken)?;
        Ok(Some((settled.key().clone(), share)))
    }
}
