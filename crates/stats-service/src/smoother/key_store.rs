//! Records that a smoother keeps beside its role in the same ledger: keys in creation, certificates
//! of keys, and signed definitions.

use super::outbox::{Outbox, PeerMessage};
use alpheus_accountable_statistics::configuration::{KeyEpoch, PinnedConfiguration, SmootherId};
use alpheus_accountable_statistics::definition::{AgreedDefinition, Definition};
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::keymaking::{
    FaultError, KeyMaker, KeyMessage, KeymakingOutput, Participants, Timeouts, longest_message,
};
use alpheus_accountable_statistics::messages::Card;
use alpheus_accountable_statistics::smoother::Smoother;
use alpheus_accountable_statistics::threshold::{KeyShare, SharedKey};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Step, put};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The prefix of its records; the role's begin with letters.
const KEY_STORE: u8 = 0xff;
const MAKING: u8 = b'm';
const CARD: u8 = b'c';
const KEY: u8 = b'q';
const DEFINITION: u8 = b'd';

/// The maximum number of messages on keys not begun here, shared equally among smoothers.
const EARLY: usize = 4096;
/// Their maximum size in bytes, shared in the same way.
const EARLY_BYTES: usize = 64 << 20;
/// Messages on keys up to this many key epochs ahead are accepted: keys are created one day ahead,
/// and clocks differ.
const SOON: u64 = 2;

/// The key store. Its changes go to the smoother's ledger.
pub struct KeyStore {
    id: SmootherId,
    signing: SigningKey,
    pinned: PinnedConfiguration,
    /// The timeouts for the creation of a key, which do not follow a replay's clock.
    patience: Timeouts,
    started: Instant,
    /// The key epoch at the last tick.
    running: Option<KeyEpoch>,
    making: BTreeMap<KeyEpoch, KeyMaker>,
    /// Records of keys in creation, from before this start.
    stored: BTreeMap<KeyEpoch, Records>,
    /// The key epochs whose cards a quorum has signed.
    made: BTreeSet<KeyEpoch>,
    /// Messages on keys that this smoother has not begun to create.
    /// With their sizes.
    early: Vec<EarlyMessage>,
    /// The latest card of each smoother.
    cards: BTreeMap<KeyEpoch, BTreeMap<SmootherId, (u32, Signed<Card>)>>,
    /// Faults that were logged.
    reported_faults: BTreeSet<(KeyEpoch, SmootherId, FaultError)>,
}

/// The key epoch, the sender, the size in bytes and the message.
type EarlyMessage = (KeyEpoch, SmootherId, usize, Signed<KeyMessage>);

/// Records of a ledger.
pub type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// A record is corrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the smoother's records of keys and definitions are corrupt; restore the state from a copy"
)]
pub struct DamagedKeyStoreError;

fn record(kind: u8, name: &[u8]) -> Vec<u8> {
    [&[KEY_STORE, kind], name].concat()
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

fn value<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DamagedKeyStoreError> {
    postcard::from_bytes(bytes).map_err(|_| DamagedKeyStoreError)
}

fn epoch_of(name: &[u8]) -> Result<KeyEpoch, DamagedKeyStoreError> {
    let bytes = name.first_chunk().ok_or(DamagedKeyStoreError)?;
    Ok(KeyEpoch(u64::from_be_bytes(*bytes)))
}

/// Splits records into the role's and the key store's.
#[must_use]
pub fn split_records(records: Records) -> (Records, Records) {
    records.into_iter().partition(|(key, _)| key.first() != Some(&KEY_STORE))
}

impl KeyStore {
    /// Restores the key store, and adds its messages to the outbox again.
    ///
    /// # Errors
    /// [`DamagedKeyStoreError`].
    pub fn restore(
        records: Records,
        (id, signing): (SmootherId, SigningKey),
        (pinned, patience): (&PinnedConfiguration, Timeouts),
        outbox: &Outbox,
    ) -> Result<Self, DamagedKeyStoreError> {
        let mut key_store = Self {
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
            reported_faults: BTreeSet::new(),
        };
        for (key, record) in records {
            let [_, kind, name @ ..] = key.as_slice() else { return Err(DamagedKeyStoreError) };
            key_store.put_back(*kind, name, record, outbox)?;
        }
        Ok(key_store)
    }

    fn put_back(
        &mut self,
        kind: u8,
        name: &[u8],
        record: Vec<u8>,
        outbox: &Outbox,
    ) -> Result<(), DamagedKeyStoreError> {
        match kind {
            MAKING => {
                let (epoch, key) = (epoch_of(name)?, name.get(8..).unwrap_or_default());
                self.stored.entry(epoch).or_default().push((key.to_vec(), record));
            }
            CARD => {
                let card: Signed<Card> = value(&record)?;
                self.hear_card(self.id, &card);
                outbox.say(PeerMessage::Card(card));
            }
            KEY => {
                self.made.insert(epoch_of(name)?);
                outbox.made(value(&record)?);
            }
            DEFINITION => {
                let signed = value(&record)?;
                let agreed = AgreedDefinition::open(&signed, &self.pinned)
                    .map_err(|_| DamagedKeyStoreError)?;
                outbox.define(agreed.name(), &signed, Timestamp(0));
            }
            _ => return Err(DamagedKeyStoreError),
        }
        Ok(())
    }

    /// The record of a signed definition.
    #[must_use]
    pub fn definition(name: &Digest, signed: &Endorsed<Definition>) -> Change {
        put(record(DEFINITION, name.as_bytes()), bytes(signed))
    }

    /// Handles a message on the creation of a key.
    pub fn hear(&mut self, by: SmootherId, word: &Signed<KeyMessage>) {
        let (size, members) = (bytes(word).len(), self.pinned.smoothers.len().max(1));
        if size > longest_message(members) {
            return;
        }
        let opened = self.pinned.key(by).and_then(|key| word.open(key).ok());
        let Some(epoch) = opened.map(|word| word.epoch) else { return };
        match self.making.get_mut(&epoch) {
            Some(maker) => maker.handle(word, by),
            None => {
                let (many, held) = self.early_of(by);
                let room = many < EARLY / members && held + size <= EARLY_BYTES / members;
                if !self.made.contains(&epoch) && self.is_soon(epoch) && room {
                    self.early.push((epoch, by, size, word.clone()));
                }
            }
        }
    }

    /// How many early messages of a smoother are kept, and their bytes.
    pub(super) fn early_of(&self, by: SmootherId) -> (usize, usize) {
        let of_it = self.early.iter().filter(|(_, of, ..)| *of == by);
        of_it.fold((0, 0), |(many, held), (_, _, size, _)| (many + 1, held + size))
    }

    /// Handles a smoother's signed card; returns the certificate once a quorum has signed the card of
    /// one attempt.
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

    /// Whether a key epoch is near enough to be plausible.
    fn is_soon(&self, epoch: KeyEpoch) -> bool {
        let soon = |now: KeyEpoch| now.0.saturating_sub(1)..=now.0.saturating_add(SOON);
        self.running.is_none_or(|running| soon(running).contains(&epoch.0))
    }

    /// Begins keys of the current and the next key epoch, and advances those in creation.
    pub fn tick(
        &mut self,
        now: Timestamp,
        smoother: &Smoother,
        rng: &mut ChaCha20Rng,
    ) -> Vec<(KeyEpoch, Step<KeymakingOutput>)> {
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
            let step = maker.poll(Timestamp(elapsed), &self.signing, rng);
            steps.push((*epoch, step.under(&record(MAKING, &epoch.0.to_be_bytes()))));
            for (by, fault) in maker.faults() {
                if self.reported_faults.insert((*epoch, *by, *fault)) {
                    tracing::warn!(smoother = by.0 + 1, %fault, epoch = epoch.0, "making a key");
                }
            }
        }
        steps
    }

    /// Destroys records of keys that were not created in time, and of key epochs that this smoother
    /// sits out because its state may be incomplete.
    fn give_up(
        &mut self,
        running: KeyEpoch,
        smoother: &Smoother,
    ) -> Vec<(KeyEpoch, Step<KeymakingOutput>)> {
        let known = self.making.keys().chain(self.stored.keys()).copied();
        let over = known.filter(|epoch| *epoch < running || smoother.sits_out(*epoch));
        let over: BTreeSet<KeyEpoch> = over.collect();
        let nothing = |epoch| (epoch, Step::new(self.destroy(epoch), KeymakingOutput::default()));
        over.into_iter().map(nothing).collect()
    }

    /// Destroys the secrets that a key is created from.
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

    fn begin(&mut self, epoch: KeyEpoch) -> Option<(KeyEpoch, Step<KeymakingOutput>)> {
        let records = self.stored.remove(&epoch).unwrap_or_default();
        let circle = Participants::of(&self.pinned, epoch).ok()?;
        let maker = KeyMaker::restore(circle, self.id, self.patience, records);
        let mut maker = maker.inspect_err(|error| tracing::error!(%error, "making a key")).ok()?;
        let (ours, others) = self.early.drain(..).partition(|(of, ..)| *of == epoch);
        self.early = others;
        let ours: Vec<EarlyMessage> = ours;
        ours.iter().for_each(|(_, by, _, word)| maker.handle(word, *by));
        let messages = maker.sent();
        self.making.insert(epoch, maker);
        Some((epoch, Step::new(Vec::new(), KeymakingOutput { messages, key: None })))
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

    /// The record of this smoother's signed card.
    #[must_use]
    pub fn card(epoch: KeyEpoch, card: &Signed<Card>) -> Change {
        put(record(CARD, &epoch.0.to_be_bytes()), bytes(card))
    }

    /// This smoother's share of a key whose card a quorum has signed.
    #[must_use]
    pub fn share(&self, card: &Card) -> Option<KeyShare> {
        self.making.get(&card.key_epoch)?.share(&card.key)
    }

    /// Records a certified key: keeps its certificate and destroys the secrets it was created from.
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

    /// Deletes aggregates, and keys of key epochs before `first`.
    pub fn forget(&mut self, aggregates: &[Digest], first: KeyEpoch) -> Vec<Change> {
        let later = self.made.split_off(&first);
        let keys = std::mem::replace(&mut self.made, later).into_iter();
        let keys = keys.map(|epoch| record(KEY, &epoch.0.to_be_bytes()));
        let definitions = aggregates.iter().map(|name| record(DEFINITION, name.as_bytes()));
        let cards = self.cards.split_off(&first);
        let cards = std::mem::replace(&mut self.cards, cards).into_keys();
        let cards = cards.map(|epoch| record(CARD, &epoch.0.to_be_bytes()));
        self.reported_faults.retain(|(epoch, ..)| *epoch >= first);
        self.early.retain(|(epoch, ..)| *epoch >= first);
        let gone = keys.chain(cards).chain(definitions);
        gone.map(|key| Change { key, value: None }).collect()
    }

    /// Whether a key is certified.
    #[must_use]
    pub fn is_made(&self, epoch: KeyEpoch) -> bool {
        self.made.contains(&epoch)
    }

    /// The deployment.
    #[must_use]
    pub fn pinned(&self) -> &PinnedConfiguration {
        &self.pinned
    }
}
