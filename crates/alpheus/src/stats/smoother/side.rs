//! What a smoother keeps beside its role: keys that are being made, the words that it has
//! said of them, their cards, and definitions as they were signed.

use super::bulletin::{Bulletin, Said};
use super::keymaking::{KeyWord, Making, NotMade};
use crate::pass::ledger::FencedLedger;
use alpheus_accountable_statistics::configuration::{KeyEpoch, Pinned, SmootherId};
use alpheus_accountable_statistics::definition::{Agreed, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::Card;
use alpheus_accountable_statistics::threshold::{KeyShare, SharedKey};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Ledger, LedgerError, put};
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

const SEED: u8 = b'k';
const DEALING: u8 = b'p';
const WORD: u8 = b'w';
const CARD: u8 = b'c';
const DEFINITION: u8 = b'd';

/// It all, with the ledger that it is in.
pub struct Side {
    ledger: FencedLedger,
    id: SmootherId,
    signing: SigningKey,
    sealing: SealingKey,
    making: BTreeMap<KeyEpoch, Making>,
    /// Stored seeds and dealings of keys that were being made.
    stored: BTreeMap<KeyEpoch, (Secret<32>, Option<Vec<u8>>)>,
    held: BTreeSet<KeyEpoch>,
    /// What was heard of keys that this smoother has not begun to make.
    heard: BTreeMap<KeyEpoch, Vec<KeyWord>>,
}

/// A record that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what is kept beside the smoother's ledger is damaged; restore the state from a copy")]
pub struct DamagedSide;

fn record(kind: u8, name: &[u8]) -> Vec<u8> {
    [&[kind], name].concat()
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

impl Side {
    /// What the ledger holds; what was said is said again.
    ///
    /// # Errors
    /// [`DamagedSide`].
    pub fn restore(
        ledger: FencedLedger,
        records: Vec<(Vec<u8>, Vec<u8>)>,
        (id, signing, sealing): (SmootherId, SigningKey, SealingKey),
        (pinned, bulletin): (&Pinned, &Bulletin),
    ) -> Result<Self, DamagedSide> {
        let (making, stored, held) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let heard = BTreeMap::new();
        let mut side = Self { ledger, id, signing, sealing, making, stored, held, heard };
        for (key, record) in &records {
            let (kind, name) = key.split_first().ok_or(DamagedSide)?;
            match *kind {
                SEED => {
                    let seed = Secret::from_slice(record).ok_or(DamagedSide)?;
                    side.stored.insert(epoch_of(name)?, (seed, None));
                }
                WORD => bulletin.say(Said::Word(value(record)?)),
                CARD => {
                    side.held.insert(epoch_of(name)?);
                    bulletin.say(Said::Card(value(record)?));
                }
                DEFINITION => {
                    let signed = value(record)?;
                    let agreed = Agreed::open(&signed, pinned).map_err(|_| DamagedSide)?;
                    bulletin.define(agreed.name(), &signed);
                }
                DEALING => {}
                _ => return Err(DamagedSide),
            }
        }
        for (key, record) in records {
            if let Some((&DEALING, name)) = key.split_first()
                && let Some(stored) = side.stored.get_mut(&epoch_of(name)?)
            {
                stored.1 = Some(record);
            }
        }
        Ok(side)
    }

    /// Notes a definition.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn define(
        &mut self,
        name: &Digest,
        signed: &Endorsed<Definition>,
    ) -> Result<(), LedgerError> {
        self.ledger.commit(&[put(record(DEFINITION, name.as_bytes()), bytes(signed))])
    }

    /// Hears a word of a key.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn hear(
        &mut self,
        by: SmootherId,
        word: &Signed<KeyWord>,
        pinned: &Pinned,
        bulletin: &Bulletin,
    ) -> Result<(), LedgerError> {
        let opened = pinned.key(by).and_then(|key| word.open(key).ok());
        let Some(word) = opened.filter(|word| word.by == by) else {
            tracing::warn!(by = by.0, "a word that is not its smoother's");
            return Ok(());
        };
        let (epoch, word) = (word.epoch, word.into_inner());
        if self.held.contains(&epoch) {
            return Ok(());
        }
        match self.making.get_mut(&epoch) {
            Some(making) => making.hear(word),
            None => self.heard.entry(epoch).or_default().push(word),
        }
        self.show(epoch, bulletin)
    }

    /// Hears that another smoother has the key.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn hear_card(
        &mut self,
        _by: SmootherId,
        _card: &Signed<Card>,
        _pinned: &Pinned,
    ) -> Result<(), LedgerError> {
        Ok(())
    }

    /// The second word, when its time has come.
    fn show(&mut self, epoch: KeyEpoch, bulletin: &Bulletin) -> Result<(), LedgerError> {
        let Some(making) = self.making.get_mut(&epoch) else { return Ok(()) };
        let Some(word) = making.show(&self.signing) else { return Ok(()) };
        self.say(epoch, 1, word, Vec::new(), bulletin)
    }

    /// Says a word, which is durable before.
    fn say(
        &mut self,
        epoch: KeyEpoch,
        round: u8,
        word: Signed<KeyWord>,
        mut changes: Vec<Change>,
        bulletin: &Bulletin,
    ) -> Result<(), LedgerError> {
        let name = [epoch.0.to_be_bytes().as_slice(), &[round]].concat();
        changes.push(put(record(WORD, &name), bytes(&word)));
        self.ledger.commit(&changes)?;
        bulletin.say(Said::Word(word));
        Ok(())
    }

    /// Begins keys of the running and the next key epoch, and gives those that are made.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn tick(
        &mut self,
        now: Time,
        pinned: &Pinned,
        bulletin: &Bulletin,
        rng: &mut ChaCha20Rng,
    ) -> Result<Vec<(KeyEpoch, SharedKey, KeyShare)>, LedgerError> {
        let Some(running) = pinned.key_epoch(now) else { return Ok(Vec::new()) };
        for epoch in [running, KeyEpoch(running.0.saturating_add(1))] {
            if !self.held.contains(&epoch) && !self.making.contains_key(&epoch) {
                self.begin(epoch, pinned, bulletin, rng)?;
            }
        }
        let mut made = Vec::new();
        let epochs: Vec<KeyEpoch> = self.making.keys().copied().collect();
        for epoch in epochs {
            self.show(epoch, bulletin)?;
            let Some(making) = self.making.get(&epoch) else { continue };
            match making.settle(&self.sealing) {
                Ok(None) => {}
                Ok(Some((shared, share))) => made.push((epoch, shared, share)),
                Err(error) => tracing::error!(%error, "no key is made"),
            }
        }
        Ok(made)
    }

    fn begin(
        &mut self,
        epoch: KeyEpoch,
        pinned: &Pinned,
        bulletin: &Bulletin,
        rng: &mut ChaCha20Rng,
    ) -> Result<(), LedgerError> {
        let (seed, dealing) =
            self.stored.remove(&epoch).unwrap_or_else(|| (Secret::random(rng), None));
        let begun = Making::begin(pinned, epoch, self.id, &seed, dealing.as_deref(), rng);
        let mut making = match begun {
            Ok(making) => making,
            Err(error) => {
                log_not_made(&error);
                return Ok(());
            }
        };
        for word in self.heard.remove(&epoch).unwrap_or_default() {
            making.hear(word);
        }
        let name = epoch.0.to_be_bytes();
        let changes = vec![
            put(record(SEED, &name), seed.expose().to_vec()),
            put(record(DEALING, &name), making.dealing()),
        ];
        let pledge = making.pledge(&self.signing);
        self.making.insert(epoch, making);
        self.say(epoch, 0, pledge, changes, bulletin)
    }

    /// The role holds the key: what it was made from is destroyed.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn made(
        &mut self,
        epoch: KeyEpoch,
        card: &Signed<Card>,
        bulletin: &Bulletin,
    ) -> Result<(), LedgerError> {
        let name = epoch.0.to_be_bytes();
        let gone = |kind| Change { key: record(kind, &name), value: None };
        let changes = [put(record(CARD, &name), bytes(card)), gone(SEED), gone(DEALING)];
        self.ledger.commit(&changes)?;
        self.making.remove(&epoch);
        self.held.insert(epoch);
        bulletin.say(Said::Card(card.clone()));
        Ok(())
    }
}

fn log_not_made(error: &NotMade) {
    tracing::error!(%error, "no key is begun");
}
