//! Saved states: the owner's records, sealed for the server, from which a lost ledger is
//! recovered.

use super::{Owner, random, records};
use crate::error::VerifyError;
use crate::ledger::{PendingStep, UncommittedError};
use crate::saved_state::{OpenedState, SavedState, StateId, StateName};
use alpheus_crypto::ledger::Change;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A state that cannot be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// The server has not acknowledged everything.
    #[error(
        "blocks or an earlier state are waiting to be sent to the server: send and acknowledge them first"
    )]
    Waiting,
    /// The records are not those of this owner, or older.
    #[error("the records are not the table's current ones: read the ledger again")]
    Records,
    /// An earlier change was not stored.
    #[error(transparent)]
    Uncommitted(#[from] UncommittedError),
}

/// What the ledger says about saved states.
#[derive(Default)]
pub(super) struct SavedStatus {
    /// The state that was made last.
    pub(super) last: Option<SavedRecord>,
    /// Whether the server has not acknowledged it.
    pub(super) unsent: bool,
    /// Whether rows, corrections or runs have changed since.
    pub(super) changed: bool,
}

/// A state that was made, and the one that it replaces at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedRecord {
    name: StateName,
    id: StateId,
    replaces: Option<StateName>,
}

/// A state that the server has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsentState {
    /// Its name.
    pub name: StateName,
    /// The state that the server may delete once it has this one.
    pub replaces: Option<StateName>,
}

/// The second byte of a record's key.
const LAST: u8 = 0;
const BYTES: u8 = 1;
const CHANGED: u8 = 2;

impl OpenedState {
    /// The changes that make an empty ledger the one that was saved.
    #[must_use]
    pub fn into_changes(self) -> Vec<Change> {
        let standing = last_record(&SavedRecord { name: self.name, id: self.id, replaces: None });
        let put = |(key, value): (Vec<u8>, Zeroizing<Vec<u8>>)| Change { key, value: Some(value) };
        self.records.into_iter().map(put).chain([standing]).collect()
    }
}

fn last_record(last: &SavedRecord) -> Change {
    Change::put(records::key(records::STATE, &[LAST]), records::encode(last))
}

pub(super) fn changed_record() -> Change {
    Change::put(records::key(records::STATE, &[CHANGED]), Vec::new())
}

impl SavedStatus {
    /// Reads one record. `None` if it is damaged.
    pub(super) fn read(&mut self, rest: &[u8], value: &[u8]) -> Option<()> {
        match rest {
            [LAST] => self.last = Some(postcard::from_bytes(value).ok()?),
            [BYTES] => self.unsent = true,
            [CHANGED] => self.changed = true,
            _ => return None,
        }
        Some(())
    }
}

impl Owner {
    /// The name of the state that was saved last, sent or not.
    #[must_use]
    pub fn saved(&self) -> Option<StateName> {
        self.standing.last.map(|last| last.name)
    }

    /// Checks the state that was saved last, as the server has it.
    ///
    /// # Errors
    /// [`VerifyError`], whatever is wrong, also if none was saved.
    pub fn check_saved(&self, bytes: &[u8]) -> Result<(), VerifyError> {
        let last = self.standing.last.ok_or(VerifyError)?;
        let state = SavedState::from_bytes(&self.manifest.data_set, bytes);
        let state = state.map_err(|_| VerifyError)?;
        let opened = self.state_key.open(&state)?;
        let same = (opened.name(), opened.id()) == (last.name, last.id);
        if same { Ok(()) } else { Err(VerifyError) }
    }

    /// Records changes of the application alone. Saved states hold its records too.
    ///
    /// # Errors
    /// [`UncommittedError`].
    pub fn record(
        &mut self,
        mut changes: Vec<Change>,
    ) -> Result<PendingStep<()>, UncommittedError> {
        self.guard.check()?;
        if !std::mem::replace(&mut self.standing.changed, true) {
            changes.push(changed_record());
        }
        Ok(PendingStep::new(changes, (), &self.guard))
    }

    /// Whether rows, corrections, runs or the application's records have changed since the last
    /// state was saved.
    #[must_use]
    pub fn has_unsaved(&self) -> bool {
        self.standing.changed
    }

    /// The state that the server has not acknowledged. The ledger has its exact bytes under
    /// [`Owner::state_key`]. Send these again; a state is never recreated.
    #[must_use]
    pub fn unsent_state(&self) -> Option<UnsentState> {
        let last = self.standing.last.filter(|_| self.standing.unsent)?;
        Some(UnsentState { name: last.name, replaces: last.replaces })
    }

    /// Whether a record says what the table holds, and not what the server has acknowledged of it.
    #[must_use]
    pub fn is_content(key: &[u8]) -> bool {
        !matches!(key.first(), Some(&(records::STATE | records::OUTBOX)))
    }

    /// The ledger key of a state that is not acknowledged.
    #[must_use]
    pub fn state_key() -> Vec<u8> {
        records::key(records::STATE, &[BYTES])
    }

    /// Seals all records for the server. `records` are those of the ledger as it is now, with
    /// the application's. Send the state until the server has it, and then call
    /// [`Owner::acknowledge_state`].
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn save<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        records: &[(K, V)],
        rng: &mut impl CryptoRng,
    ) -> Result<PendingStep<SavedState>, SaveError> {
        self.guard.check()?;
        if !self.outbox.is_empty() || self.standing.unsent {
            return Err(SaveError::Waiting);
        }
        self.check_records(records)?;
        let pairs = records.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        let kept = pairs.filter(|(key, _)| key.first() != Some(&records::STATE)).collect();
        let last = self.standing.last;
        let version = last.map_or(0, |last| last.name.version) + 1;
        let name = StateName { version, segment: self.segment };
        let previous = last.map_or(StateId::NONE, |last| last.id);
        let (state, id) = self.state_key.seal(name, previous, &kept, &random(rng));
        let saved = SavedRecord { name, id, replaces: last.map(|last| last.name) };
        self.standing = SavedStatus { last: Some(saved), unsent: true, changed: false };
        let changes = vec![
            last_record(&saved),
            Change::put(Self::state_key(), state.as_bytes().to_vec()),
            Change::remove(records::key(records::STATE, &[CHANGED])),
        ];
        Ok(PendingStep::new(changes, state, &self.guard))
    }

    /// Checks that records are this owner's current ones. A state of others would recover
    /// another table.
    fn check_records<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        records: &[(K, V)],
    ) -> Result<(), SaveError> {
        let pairs = records.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        let read = records::Records::read(pairs).map_err(|_| SaveError::Records)?;
        let chunks = read.chunks.into_values().flatten();
        let same = read.meta.data_set == self.manifest.data_set
            && read.runs == self.runs
            && read.exceptions == self.exceptions
            && chunks.eq(self.tail.iter().cloned());
        if same { Ok(()) } else { Err(SaveError::Records) }
    }

    /// Records that the server has stored the state durably, and has deleted the one that it
    /// replaces.
    ///
    /// # Errors
    /// [`UncommittedError`].
    pub fn acknowledge_state(&mut self) -> Result<PendingStep<()>, UncommittedError> {
        self.guard.check()?;
        self.standing.unsent = false;
        Ok(PendingStep::new(vec![Change::remove(Self::state_key())], (), &self.guard))
    }
}
