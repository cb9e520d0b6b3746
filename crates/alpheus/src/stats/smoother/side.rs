//! What a smoother keeps beside its role, in the same ledger: keys that are being made,
//! the certificates of those that are, and definitions as they were signed.

use super::bulletin::{Bulletin, Said};
use alpheus_accountable_statistics::configuration::{KeyEpoch, Pinned, SmootherId};
use alpheus_accountable_statistics::definition::{Agreed, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::keymaking::{Circle, Fault, KeyMaker, KeyWord, Patience, Talk};
use alpheus_accountable_statistics::messages::Card;
use alpheus_accountable_statistics::smoother::Smoother;
use alpheus_accountable_statistics::threshold::{KeyShare, SharedKey};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Step, put};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// What all its records begin with; the role's begin with letters.
const SIDE: u8 = 0xff;
const MAKING: u8 = b'm';
const CARD: u8 = b'c';
const KEY: u8 = b'q';
const DEFINITION: u8 = b'd';

/// So many words of keys that are not begun here are kept, of each smoother its share.
const EARLY: usize = 4096;
/// Keys of so many key epochs after the running one are heard of: they are made one day before,
/// and clocks differ.
const SOON: u64 = 2;

/// It all. Its changes are for the smoother's ledger.
pub struct Side {
    id: SmootherId,
    signing: SigningKey,
    pinned: Pinned,
    /// How long a key's makers wait, which has nothing to do with a replay's clock.
    patience: Patience,
    started: Instant,
    /// The key epoch at the last tick.
    running: Option<KeyEpoch>,
    making: BTreeMap<KeyEpoch, KeyMaker>,
    /// Of keys that were being made.
    stored: BTreeMap<KeyEpoch, Records>,
    /// Keys whose cards a quorum has signed.
    made: BTreeSet<KeyEpoch>,
    /// What was heard of keys that this smoother has not begun to make.
    early: Vec<(KeyEpoch, SmootherId, Signed<KeyWord>)>,
    /// The last card of each smoother.
    cards: BTreeMap<KeyEpoch, BTreeMap<SmootherId, (u32, Signed<Card>)>>,
    /// Who was told of.
    told: BTreeSet<(KeyEpoch, SmootherId, Fault)>,
}

/// Records of a ledger.
pub type Records = Vec<(Vec<u8>, Vec<u8>)>;

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
        (pinned, patience): (&Pinned, Patience),
        bulletin: &Bulletin,
    ) -> Result<Self, DamagedSide> {
        let mut side = Self {
            id,
            signing,
            pinned: pinned.clone(),
            patience,
            started: Instant::now(),
            running: None,
            making: BTreeMap::new(),
            stored: BTreeMap::new(),
            made: BTreeSet::new(),
            early: Vec::new(),
            cards: BTreeMap::new(),
            told: BTreeSet::new(),
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
            MAKING => {
                let (epoch, key) = (epoch_of(name)?, name.get(8..).unwrap_or_default());
                self.stored.entry(epoch).or_default().push((key.to_vec(), record));
            }
            CARD => {
                let card: Signed<Card> = value(&record)?;
                self.hear_card(self.id, &card);
                bulletin.say(Said::Card(card));
            }
            KEY => {
                self.made.insert(epoch_of(name)?);
                bulletin.made(value(&record)?);
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
        let Some(epoch) = opened.map(|word| word.epoch) else { return };
        match self.making.get_mut(&epoch) {
            Some(maker) => maker.hear(by, word),
            None => {
                let most = EARLY / self.pinned.smoothers.len().max(1);
                let of_it = self.early.iter().filter(|(_, of, _)| *of == by).count();
                if !self.made.contains(&epoch) && self.is_soon(epoch) && of_it < most {
                    self.early.push((epoch, by, word.clone()));
                }
            }
        }
    }

    /// Hears that a smoother has signed a key; gives the certificate once a quorum has signed it
    /// at one attempt.
    pub fn hear_card(&mut self, by: SmootherId, card: &Signed<Card>) -> Option<Endorsed<Card>> {
        let opened = self.pinned.key(by).and_then(|key| card.open(key).ok())?;
        if self.made.contains(&opened.key_epoch) || !self.is_soon(opened.key_epoch) {
            return None;
        }
        let cards = self.cards.entry(opened.key_epoch).or_default();
        if cards.get(&by).is_none_or(|(attempt, _)| *attempt < opened.attempt) {
            cards.insert(by, (opened.attempt, card.clone()));
        }
        let mut endorsed = Endorsed::default();
        cards.iter().for_each(|(by, (_, card))| endorsed.add(*by, card.clone()));
        endorsed.open(&self.pinned, self.pinned.quorum()).ok()?;
        Some(endorsed)
    }

    /// Whether a key epoch is none that only somebody who makes up numbers would name.
    fn is_soon(&self, epoch: KeyEpoch) -> bool {
        self.running.is_none_or(|running| epoch.0 <= running.0.saturating_add(SOON))
    }

    /// Begins keys of the running and the next key epoch, and goes on with those begun.
    pub fn tick(
        &mut self,
        now: Time,
        smoother: &Smoother,
        rng: &mut ChaCha20Rng,
    ) -> Vec<(KeyEpoch, Step<Talk>)> {
        let Some(running) = self.pinned.key_epoch(now) else { return Vec::new() };
        self.running = Some(running);
        let mut steps = self.give_up(running, smoother);
        for epoch in [running, KeyEpoch(running.0.saturating_add(1))] {
            let known = self.made.contains(&epoch) || self.making.contains_key(&epoch);
            if !known && !smoother.sits_out(epoch) {
                steps.extend(self.begin(epoch));
            }
        }
        let elapsed = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        for (epoch, maker) in &mut self.making {
            let step = maker.poll(Time(elapsed), &self.signing, rng);
            steps.push((*epoch, step.under(&record(MAKING, &epoch.0.to_be_bytes()))));
            for (by, fault) in maker.faults() {
                if self.told.insert((*epoch, *by, *fault)) {
                    tracing::warn!(smoother = by.0 + 1, %fault, epoch = epoch.0, "making a key");
                }
            }
        }
        steps
    }

    /// Destroys what is kept of keys that were not made in time, and of those that a smoother
    /// takes no part in which may have forgotten what it said.
    fn give_up(&mut self, running: KeyEpoch, smoother: &Smoother) -> Vec<(KeyEpoch, Step<Talk>)> {
        let known = self.making.keys().chain(self.stored.keys()).copied();
        let over = known.filter(|epoch| *epoch < running || smoother.sits_out(*epoch));
        let over: BTreeSet<KeyEpoch> = over.collect();
        let nothing = |epoch| (epoch, Step::new(self.destroy(epoch), Talk::default()));
        over.into_iter().map(nothing).collect()
    }

    /// Destroys what a key is made from.
    fn destroy(&mut self, epoch: KeyEpoch) -> Vec<Change> {
        let prefix = record(MAKING, &epoch.0.to_be_bytes());
        let stored = self.stored.remove(&epoch).unwrap_or_default();
        let gone = |key: &Vec<u8>| Change { key: [prefix.as_slice(), key].concat(), value: None };
        let mut changes: Vec<Change> = stored.iter().map(|(key, _)| gone(key)).collect();
        if let Some(maker) = self.making.remove(&epoch) {
            changes.extend(maker.end().under(&prefix).dangerous_changes());
        }
        changes
    }

    fn begin(&mut self, epoch: KeyEpoch) -> Option<(KeyEpoch, Step<Talk>)> {
        let records = self.stored.remove(&epoch).unwrap_or_default();
        let circle = Circle::of(&self.pinned, epoch).ok()?;
        let maker = KeyMaker::restore(circle, self.id, self.patience, records);
        let mut maker = maker.inspect_err(|error| tracing::error!(%error, "making a key")).ok()?;
        let (ours, others) = self.early.drain(..).partition(|(of, ..)| *of == epoch);
        self.early = others;
        let ours: Vec<(KeyEpoch, SmootherId, Signed<KeyWord>)> = ours;
        ours.iter().for_each(|(_, by, word)| maker.hear(*by, word));
        let words = maker.said();
        self.making.insert(epoch, maker);
        Some((epoch, Step::new(Vec::new(), Talk { words, key: None })))
    }

    /// This smoother's share of a key that a quorum has voted for, and the attempt, unless it has
    /// signed the card.
    pub fn voted(&self, epoch: KeyEpoch, key: &SharedKey) -> Option<(u32, Option<KeyShare>)> {
        let maker = self.making.get(&epoch)?;
        let attempt = maker.attempt()?;
        let last = self.cards.get(&epoch).and_then(|cards| cards.get(&self.id));
        let signed = last.is_some_and(|(signed, _)| *signed == attempt);
        (!signed).then(|| (attempt, maker.share(key)))
    }

    /// The card that it signs, durably.
    #[must_use]
    pub fn card(epoch: KeyEpoch, card: &Signed<Card>) -> Change {
        put(record(CARD, &epoch.0.to_be_bytes()), bytes(card))
    }

    /// This smoother's share of a key whose card a quorum has signed.
    #[must_use]
    pub fn share(&self, card: &Card) -> Option<KeyShare> {
        self.making.get(&card.key_epoch)?.share(&card.key)
    }

    /// A key is made: what it was made from is destroyed, its certificate kept.
    pub fn end(&mut self, epoch: KeyEpoch, card: &Endorsed<Card>) -> Vec<Change> {
        let name = epoch.0.to_be_bytes();
        self.made.insert(epoch);
        self.cards.remove(&epoch);
        self.early.retain(|(of, ..)| *of != epoch);
        let mut changes = vec![
            put(record(KEY, &name), bytes(card)),
            Change { key: record(CARD, &name), value: None },
        ];
        changes.extend(self.destroy(epoch));
        changes
    }

    /// Forgets aggregates, and keys of key epochs before the first.
    pub fn forget(&mut self, aggregates: &[Digest], first: KeyEpoch) -> Vec<Change> {
        let later = self.made.split_off(&first);
        let keys = std::mem::replace(&mut self.made, later).into_iter();
        let keys = keys.map(|epoch| record(KEY, &epoch.0.to_be_bytes()));
        let definitions = aggregates.iter().map(|name| record(DEFINITION, name.as_bytes()));
        let cards = self.cards.split_off(&first);
        let cards = std::mem::replace(&mut self.cards, cards).into_keys();
        let cards = cards.map(|epoch| record(CARD, &epoch.0.to_be_bytes()));
        self.told.retain(|(epoch, ..)| *epoch >= first);
        self.early.retain(|(epoch, ..)| *epoch >= first);
        let gone = keys.chain(cards).chain(definitions);
        gone.map(|key| Change { key, value: None }).collect()
    }

    /// Whether a key is made.
    #[must_use]
    pub fn is_made(&self, epoch: KeyEpoch) -> bool {
        self.made.contains(&epoch)
    }

    /// Deployment.
    #[must_use]
    pub fn pinned(&self) -> &Pinned {
        &self.pinned
    }
}
