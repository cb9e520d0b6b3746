//! A smoother (an aggregation node): grants slots, stores deposits, checks every tuple, and takes
//! part in opening an aggregate once.
//!
//! Everything that it sends comes out of a [`Step`], so it is durable first.

mod aggregate;
mod closings;
mod deadlines;
mod definitions;
mod openings;
mod receipts;
mod records;
mod shard;

pub use shard::Shard;

use crate::configuration::{KeyEpoch, PinnedConfiguration, SmootherId};
use crate::definition::AgreedDefinition;
use crate::endorsement::Endorsed;
use crate::logarithm::Table;
use crate::messages::{End, Entry, Evidence, Opening, Outcome, Ready, Receipt, SealedUpload};
use crate::role_error::{RestoreError, StatementError};
use crate::threshold::KeyShare;
use aggregate::AggregateState;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLedgerError, StateOrigin, Step};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use records::{AggregateRecord, CardRecord, Claim, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A message that a smoother sends without a request.
#[derive(Clone, Debug)]
pub enum Output {
    /// To all smoothers, this one included.
    Ready(Signed<Ready>),
    /// To the other smoothers only.
    Opening(Signed<Opening>),
    /// To the aggregator.
    Outcome(Signed<Outcome>),
}

/// A key epoch's key, as far as this smoother has it.
struct Key {
    card: CardRecord,
    /// None if it took no part in making the key, or has destroyed its share.
    share: Option<KeyShare>,
}

impl Key {
    /// Destroys the share for good.
    fn destroy(&mut self, epoch: KeyEpoch) -> [Change; 2] {
        self.share = None;
        self.card.erased = true;
        [records::share(epoch, None), records::card(epoch, &self.card)]
    }
}

/// A smoother's identity and keys.
pub struct Identity {
    /// Its position in the configuration.
    pub id: SmootherId,
    /// Its signing key.
    pub key: SigningKey,
    /// The issuer key of its slot credential.
    pub slots: IssuerKey,
}

/// A smoother.
pub struct Smoother {
    pinned: PinnedConfiguration,
    id: SmootherId,
    key: SigningKey,
    verifier: Verifier,
    table: Arc<Table>,
    keys: BTreeMap<KeyEpoch, Key>,
    claims: BTreeMap<Digest, Claim>,
    aggregates: BTreeMap<Digest, AggregateState>,
    /// Keepers proven to grant slots twice or to sign two entries of a slot.
    convicted: BTreeSet<SmootherId>,
    /// It may have forgotten what it signed in key epochs up to this one.
    sits_out: Option<KeyEpoch>,
    /// Key epochs before this one are over and pruned.
    first_epoch: KeyEpoch,
}

impl Smoother {
    /// A smoother from its ledger; the ledger of a new smoother is empty.
    ///
    /// After a ledger that may be an old copy, it sits out the running key epoch and the next one, for
    /// which it may have signed definitions, and destroys their shares: it may have agreed to a set
    /// that it does not remember.
    ///
    /// A smoother that stopped after its first commit and has sent nothing is still new: its ledger
    /// records only that it has started.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(
        pinned: &PinnedConfiguration,
        identity: Identity,
        table: Arc<Table>,
        origin: StateOrigin,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        now: Timestamp,
    ) -> Result<(Self, Step<()>), RestoreError> {
        let Identity { id, key, slots } = identity;
        let pass = pinned.slots(id).ok_or(RestoreError::OtherKey)?.clone();
        if pinned.key(id) != Some(&key.verifying_key()) {
            return Err(RestoreError::OtherKey);
        }
        let verifier = Verifier::new(slots, pass).map_err(|_| RestoreError::OtherKey)?;
        let (keys, claims, aggregates) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let pinned = pinned.clone();
        let mut smoother = Self {
            pinned,
            id,
            key,
            verifier,
            table,
            keys,
            claims,
            aggregates,
            convicted: BTreeSet::new(),
            sits_out: None,
            first_epoch: KeyEpoch(0),
        };
        let begun = smoother.restore_record(records)?;
        let (keys, claims) = (smoother.keys.is_empty(), smoother.claims.is_empty());
        let pruned = smoother.first_epoch > KeyEpoch(0) || smoother.sits_out.is_some();
        let in_use = !keys || !claims || !smoother.aggregates.is_empty() || pruned;
        if (origin == StateOrigin::New && in_use) || (origin == StateOrigin::Intact && !begun) {
            return Err(DamagedLedgerError.into());
        }
        let mut changes = vec![records::begun(smoother.sits_out, smoother.first_epoch)];
        if origin == StateOrigin::Restored {
            changes.extend(smoother.sit_out(now));
        }
        Ok((smoother, Step::new(changes, ())))
    }

    fn restore_record(
        &mut self,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<bool, DamagedLedgerError> {
        let (mut begun, mut lines, mut shares) = (false, Vec::new(), Vec::new());
        for (key, value) in records {
            match records::read(&key, &value)? {
                Record::Begun(sits_out, first) => {
                    (begun, self.sits_out, self.first_epoch) = (true, sits_out, first);
                }
                Record::Card(epoch, card) => {
                    self.keys.insert(epoch, Key { card: *card, share: None });
                }
                Record::Share(epoch, share) => shares.push((epoch, share)),
                Record::Claim(name, claimed) => drop(self.claims.insert(name, claimed)),
                Record::Of(name, line) => match *line {
                    AggregateRecord::Definition(signed) => {
                        let agreed = AgreedDefinition::open(&signed, &self.pinned)
                            .map_err(|_| DamagedLedgerError)?;
                        let state = AggregateState::new(agreed, &self.pinned, self.id);
                        self.aggregates.insert(name, state.ok_or(DamagedLedgerError)?);
                    }
                    line => lines.push((name, line)),
                },
            }
        }
        for (epoch, share) in shares {
            self.restore_share(epoch, &share)?;
        }
        let signer = self.key.verifying_key();
        for (name, line) in lines {
            let state = self.aggregates.get_mut(&name).ok_or(DamagedLedgerError)?;
            let own = (self.id, &signer);
            state.restore_record(line, &self.pinned, own).ok_or(DamagedLedgerError)?;
        }
        Ok(begun)
    }

    fn restore_share(
        &mut self,
        epoch: KeyEpoch,
        share: &Secret<32>,
    ) -> Result<(), DamagedLedgerError> {
        let key = self.keys.get_mut(&epoch).ok_or(DamagedLedgerError)?;
        let share = KeyShare::restore(&key.card.shared, self.id.0, share)
            .map_err(|_| DamagedLedgerError)?;
        key.share = Some(share);
        Ok(())
    }

    /// Burns the running key epoch and the next one, of which it may have forgotten what it signed.
    fn sit_out(&mut self, now: Timestamp) -> Vec<Change> {
        let current = self.pinned.key_epoch(now).map_or(0, |epoch| epoch.0);
        let last = KeyEpoch(current.saturating_add(1));
        self.sits_out = self.sits_out.max(Some(last));
        let mut changes = vec![records::begun(self.sits_out, self.first_epoch)];
        for (epoch, key) in self.keys.range_mut(..=last) {
            changes.extend(key.destroy(*epoch));
        }
        changes
    }

    /// Whether it takes no part in a key epoch.
    #[must_use]
    pub fn sits_out(&self, epoch: KeyEpoch) -> bool {
        Some(epoch) <= self.sits_out
    }

    /// Whether it has adopted a definition and not pruned it.
    #[must_use]
    pub fn knows(&self, aggregate: &Digest) -> bool {
        self.aggregates.contains_key(aggregate)
    }

    /// The first key epoch that it has not pruned.
    #[must_use]
    pub fn first_epoch(&self) -> KeyEpoch {
        self.first_epoch
    }

    /// Its identifier.
    #[must_use]
    pub fn id(&self) -> SmootherId {
        self.id
    }

    /// Burns what it may have forgotten, after receiving its own statement about a key epoch that
    /// it has no record of. If it sits that epoch out already, it knows why.
    fn sit_out_for(&mut self, epoch: KeyEpoch, now: Timestamp) -> Step<()> {
        let known = self.sits_out(epoch);
        Step::new(if known { Vec::new() } else { self.sit_out(now) }, ())
    }

    /// Why it rejects a valid statement about an aggregate that it has not adopted. It remembers
    /// nothing of a pruned key epoch, its own statements included, so anyone who kept one could
    /// send it again forever.
    fn not_here(&self, epoch: KeyEpoch, own: bool) -> StatementError {
        match own {
            _ if epoch < self.first_epoch => StatementError::Over,
            true => StatementError::Forgotten,
            false => StatementError::Unknown,
        }
    }

    /// All certificates of an aggregate, for another smoother that asks. For nobody else: who has
    /// signed an entry reveals when.
    #[must_use]
    pub fn certificates(&self, aggregate: &Digest) -> Vec<Endorsed<Entry>> {
        self.certificates_from(aggregate, (0, usize::MAX))
    }

    /// At most so many of [`Smoother::certificates`], from a slot on.
    #[must_use]
    pub fn certificates_from(
        &self,
        aggregate: &Digest,
        (from, most): (u32, usize),
    ) -> Vec<Endorsed<Entry>> {
        let state = self.aggregates.get(aggregate);
        state.map(|state| state.certificates(from, most)).unwrap_or_default()
    }

    /// The ready statements of other smoothers received since the start. For another smoother that
    /// asks, which may have forgotten its own.
    #[must_use]
    pub fn ready_statements(&self, aggregate: &Digest) -> Vec<(SmootherId, Signed<Ready>)> {
        let state = self.aggregates.get(aggregate);
        let heard = state.into_iter().flat_map(|state| &state.signed_ready_by);
        heard.map(|(by, ready)| (*by, ready.clone())).collect()
    }

    /// Receipts of uncertified entries, for another smoother that asks.
    #[must_use]
    pub fn receipts(&self, aggregate: &Digest) -> Vec<Receipt> {
        self.aggregates.get(aggregate).map(AggregateState::receipts).unwrap_or_default()
    }

    /// Certified slots whose deposit this smoother lacks: fetch them from others before the
    /// release.
    #[must_use]
    pub fn missing_deposits(&self, aggregate: &Digest) -> Vec<u32> {
        self.aggregates.get(aggregate).map(AggregateState::missing_deposits).unwrap_or_default()
    }

    /// The sealed upload of a certified slot, for another smoother that asks.
    #[must_use]
    pub fn sealed_upload(&self, aggregate: &Digest, slot: u32) -> Option<&SealedUpload> {
        self.aggregates.get(aggregate)?.sealed_upload(slot)
    }

    /// Stores the sealed upload of a certified slot from another smoother, if it matches the entry.
    pub fn handle_sealed_upload(
        &mut self,
        aggregate: &Digest,
        slot: u32,
        sealed: SealedUpload,
    ) -> Step<()> {
        let state = self.aggregates.get_mut(aggregate);
        let change = state.and_then(|state| state.store_sealed_upload(slot, sealed));
        Step::new(change.into_iter().collect(), ())
    }

    /// Evidence that other smoothers have broken the protocol.
    pub fn evidence(&self, aggregate: &Digest) -> impl Iterator<Item = &Evidence> {
        self.aggregates.get(aggregate).into_iter().flat_map(AggregateState::evidence)
    }

    /// The certified entry of a slot.
    #[must_use]
    pub fn certified(&self, aggregate: &Digest, slot: u32) -> Option<&Entry> {
        self.aggregates.get(aggregate)?.certified(slot)
    }

    /// How an aggregate ended, once it has.
    #[must_use]
    pub fn outcome(&self, aggregate: &Digest) -> Option<Outcome> {
        self.aggregates.get(aggregate)?.outcome()
    }

    /// The same, signed, for an aggregator that asks at any time.
    #[must_use]
    pub fn signed_outcome(&self, aggregate: &Digest) -> Option<Signed<Outcome>> {
        self.outcome(aggregate).map(|outcome| Signed::new(&outcome, &self.key))
    }

    /// How an aggregate ended here, and the set that this smoother has agreed to. For everybody.
    #[must_use]
    pub fn end(&self, aggregate: &Digest) -> Option<End> {
        let outcome = self.signed_outcome(aggregate)?;
        let ready = self.aggregates.get(aggregate).and_then(|state| state.ready);
        Some(End { outcome, ready: ready.map(|ready| Signed::new(&ready, &self.key)) })
    }

    /// Its messages about aggregates that are not over, to be sent again: messages get lost.
    #[must_use]
    pub fn resend(&self, now: Timestamp) -> Vec<Output> {
        let open = self.aggregates.values().filter(|state| now < state.definition().deadline());
        open.flat_map(|state| state.messages_to_resend(&self.key)).collect()
    }
}

fn is_out(sits_out: Option<KeyEpoch>, state: &AggregateState) -> bool {
    Some(state.definition().key_epoch) <= sits_out
}
