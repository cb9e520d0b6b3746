//! What a smoother keeps beside its role, in the same ledger: keys that are being made,
//! the words that it has said of them, their cards, and definitions as they were signed.

use super::bulletin::{Bulletin, Said};
use super::keymaking::{KeyWord, Making, NotMade};
use alpheus_accountable_statistics::configuration::{KeyEpoch, Pinned, SmootherId};
use alpheus_accountable_statistics::definition::{Agreed, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::Card;
use alpheus_accountable_statistics::threshold::{KeyShare, SharedKey};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, put};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// What all its records begin with; the role's begin with letters.
const SIDE: u8 = 0xff;
const SEED: u8 = b'k';
const DEALING: u8 = b'p';
const WORD: u8 = b'w';
const CARD: u8 = b'c';
const DEFINITION: u8 = b'd';

/// It all. Its changes are for the smoother's ledger.
pub struct Side {
    id: SmootherId,
    signing: SigningKey,
    pinned: Pinned,
    making: BTreeMap<KeyEpoch, Making>,
    /// Seeds and dealings of keys that were being made.
    stored: BTreeMap<KeyEpoch, (Option<Secret<32>>, Option<Vec<u8>>)>,
    held: BTreeSet<KeyEpoch>,
    /// What was heard of keys that this smoother has not begun to make.
    heard: BTreeMap<KeyEpoch, Vec<KeyWord>>,
    cards: BTreeMap<KeyEpoch, Endorsed<Card>>,
    failed: BTreeSet<KeyEpoch>,
}

/// Records of a ledger.
pub type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// What to make durable, and then to say.
#[derive(Default)]
pub struct Words(pub Vec<Change>, pub Vec<Said>);

/// A record that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what is kept beside the smoother's ledger is damaged; restore the state from a copy")]
pub struct DamagedSide;

fn record(kind: u8, name: &[u8]) -> Vec<u8> {
    [&[SIDE, kind], name].concat()
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

fn value<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DamagedSide> {
    postcard::from_bytes(bytes).map_err(|_| DamagedSide)
}

fn epoch_of(name: &[u8]) -> Result<KeyEpoch, DamagedSide> {
    let bytes = name.first_chunk().ok_or(DamagedSide)?;
    Ok(KeyEpoch(u64::from_be_bytes(*bytes)))
}

/// Records of the role, and those beside it.
#[must_use]
pub fn divided(records: Records) -> (Records, Records) {
    records.into_iter().partition(|(key, _)| key.first() != Some(&SIDE))
}

impl Side {
    /// What the ledger holds; what was said is said again.
    ///
    /// # Errors
    /// [`DamagedSide`].
    pub fn restore(
        records: Records,
        (id, signing): (SmootherId, SigningKey),
        pinned: &Pinned,
        bulletin: &Bulletin,
    ) -> Result<Self, DamagedSide> {
        let mut side = Self {
            id,
            signing,
            pinned: pinned.clone(),
            making: BTreeMap::new(),
            stored: BTreeMap::new(),
            held: BTreeSet::new(),
            heard: BTreeMap::new(),
            cards: BTreeMap::new(),
            failed: BTreeSet::new(),
        };
        for (key, record) in records {
            let [_, kind, name @ ..] = key.as_slice() else { return Err(DamagedSide) };
            side.put_back(*kind, name, record, bulletin)?;
        }
        Ok(side)
    }

    fn put_back(
        &mut self,
        kind: u8,
        name: &[u8],
        record: Vec<u8>,
        bulletin: &Bulletin,
    ) -> Result<(), DamagedSide> {
        match kind {
            SEED => {
                let seed = Secret::from_slice(&record).ok_or(DamagedSide)?;
                self.stored.entry(epoch_of(name)?).or_default().0 = Some(seed);
            }
            DEALING => self.stored.entry(epoch_of(name)?).or_default().1 = Some(record),
            WORD => bulletin.say(Said::Word(value(&record)?)),
            CARD => {
                self.held.insert(epoch_of(name)?);
                let card: Signed<Card> = value(&record)?;
                self.hear_card(self.id, &card);
                bulletin.say(Said::Card(card));
            }
            DEFINITION => {
                let signed = value(&record)?;
                let agreed = Agreed::open(&signed, &self.pinned).map_err(|_| DamagedSide)?;
                bulletin.define(agreed.name(), &signed);
            }
            _ => return Err(DamagedSide),
        }
        Ok(())
    }

    /// A definition as it was signed.
    #[must_use]
    pub fn definition(name: &Digest, signed: &Endorsed<Definition>) -> Change {
        put(record(DEFINITION, name.as_bytes()), bytes(signed))
    }

    /// Hears a word of a key.
    pub fn hear(&mut self, by: SmootherId, word: &Signed<KeyWord>) {
        let opened = self.pinned.key(by).and_then(|key| word.open(key).ok());
        let Some(word) = opened.filter(|word| word.by == by) else {
            tracing::warn!(by = by.0, "a word that is not its smoother's");
            return;
        };
        let (epoch, word) = (word.epoch, word.into_inner());
        match self.making.get_mut(&epoch) {
            Some(making) => making.hear(word),
            None if self.held.contains(&epoch) => {}
            None => self.heard.entry(epoch).or_default().push(word),
        }
    }

    /// Hears that a smoother has a share of a key; gives the card once a quorum has said
    /// the same.
    pub fn hear_card(&mut self, by: SmootherId, card: &Signed<Card>) -> Option<Endorsed<Card>> {
        let opened = self.pinned.key(by).and_then(|key| card.open(key).ok())?;
        let endorsed = self.cards.entry(opened.key_epoch).or_default();
        endorsed.add(by, card.clone());
        endorsed.open(&self.pinned, self.pinned.quorum()).ok()?;
        Some(endorsed.clone())
    }

    /// Begins keys of the running and the next key epoch, and goes on with those begun.
    pub fn tick(&mut self, now: Time, rng: &mut ChaCha20Rng) -> Words {
        let mut words = Words::default();
        let Some(running) = self.pinned.key_epoch(now) else { return words };
        for epoch in [running, KeyEpoch(running.0.saturating_add(1))] {
            let known = self.held.contains(&epoch) || self.making.contains_key(&epoch);
            if known || self.failed.contains(&epoch) {
                continue;
            }
            if let Err(error) = self.begin(epoch, &mut words, rng) {
                self.fail(epoch, &error);
            }
        }
        let epochs: Vec<KeyEpoch> = self.making.keys().copied().collect();
        for epoch in epochs {
            if let Err(error) = self.go_on(epoch, &mut words, rng) {
                self.fail(epoch, &error);
            }
        }
        words
    }

    /// A key that cannot be made is told of once.
    fn fail(&mut self, epoch: KeyEpoch, error: &NotMade) {
        if self.failed.insert(epoch) {
            tracing::error!(%error, epoch = epoch.0, "no key is made");
        }
    }

    fn say(&self, word: &KeyWord, words: &mut Words) {
        let name = [word.epoch.0.to_be_bytes().as_slice(), &[word.round()]].concat();
        let signed = Signed::new(word, &self.signing);
        words.0.push(put(record(WORD, &name), bytes(&signed)));
        words.1.push(Said::Word(signed));
    }

    fn begin(
        &mut self,
        epoch: KeyEpoch,
        words: &mut Words,
        rng: &mut ChaCha20Rng,
    ) -> Result<(), NotMade> {
        let (seed, dealing) = self.stored.remove(&epoch).unwrap_or_default();
        let seed = seed.unwrap_or_else(|| Secret::random(rng));
        let name = epoch.0.to_be_bytes();
        words.0.push(put(record(SEED, &name), seed.expose().to_vec()));
        let (mut making, word) = Making::begin(&self.pinned, epoch, self.id, seed, dealing)?;
        for word in self.heard.remove(&epoch).unwrap_or_default() {
            making.hear(word);
        }
        self.making.insert(epoch, making);
        self.say(&word, words);
        Ok(())
    }

    fn go_on(
        &mut self,
        epoch: KeyEpoch,
        words: &mut Words,
        rng: &mut ChaCha20Rng,
    ) -> Result<(), NotMade> {
        let Some(making) = self.making.get_mut(&epoch) else { return Ok(()) };
        let pledged = making.pledge(rng)?;
        let shown = making.show()?;
        if let Some((word, dealing)) = pledged {
            words.0.push(put(record(DEALING, &epoch.0.to_be_bytes()), dealing));
            self.say(&word, words);
        }
        if let Some(word) = shown {
            self.say(&word, words);
        }
        Ok(())
    }

    /// Keys that are settled: the role is to hold them.
    pub fn settled(&mut self) -> Vec<(KeyEpoch, SharedKey, KeyShare)> {
        let (mut settled, mut failed) = (Vec::new(), Vec::new());
        for (epoch, making) in &self.making {
            match making.settle() {
                Ok(None) => {}
                Ok(Some((shared, share))) => settled.push((*epoch, shared, share)),
                Err(error) => failed.push((*epoch, error)),
            }
        }
        failed.iter().for_each(|(epoch, error)| self.fail(*epoch, error));
        settled
    }

    /// What is durable in the commit that makes a share durable: its card, and that what it
    /// was made from is destroyed.
    pub fn made(&mut self, epoch: KeyEpoch, card: &Signed<Card>) -> Vec<Change> {
        let name = epoch.0.to_be_bytes();
        let gone = |kind| Change { key: record(kind, &name), value: None };
        self.making.remove(&epoch);
        self.held.insert(epoch);
        vec![put(record(CARD, &name), bytes(card)), gone(SEED), gone(DEALING)]
    }
}
