//! How a database comes back from its ledger.

use super::epoch::EpochState;
use super::records::{self, Record};
use super::{Database, Output, RETAINED_EPOCHS, released_share, reveal};
use crate::configuration::{Board, Epoch, Party};
use crate::error::RestoreError;
use crate::messages::{
    Body, BurnReason, PublishedStatement, Statement, Submission, Tag, WriteName,
};
use crate::secrets::Secrets;
use crate::transcript::{Effect, StatementError};
use alpheus_crypto::ledger::{Change, DamagedLedgerError, StateOrigin, Step};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Records that are replayed after all others.
#[derive(Default)]
struct DeferredRecords {
    writes: Vec<(WriteName, (Tag, Submission))>,
    conflicts: Vec<(Epoch, Party, Signed<Statement>)>,
}

impl Database {
    /// Restores a database from its ledger. A new database has an empty one.
    ///
    /// After a log that may be an old copy, all epochs that may have begun are burnt. In mode 2 an
    /// epoch in which this server is not bound to its share yet is burnt after every end that was
    /// not orderly ([`Database::stop`]): a copy of the whole machine shows no other trace, and the
    /// other servers may all collude.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(
        board: &Board,
        party: impl Into<Party>,
        key: SigningKey,
        origin: StateOrigin,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        now: Timestamp,
    ) -> Result<(Self, Step<Vec<Output>>), RestoreError> {
        let party = party.into();
        let holds = board.databases().contains(&party);
        if !holds || Some(&key.verifying_key()) != board.key(party) {
            return Err(RestoreError::OtherKey);
        }
        let mut database =
            Self { board: board.clone(), party, key, epochs: BTreeMap::new(), last_begun: None };
        let (mut outputs, mut deferred) = (Vec::new(), DeferredRecords::default());
        let mut end = None;
        for (key, value) in records {
            if key == records::END {
                end = Some(value == records::ORDERLY);
                continue;
            }
            let (epoch, record) = records::read(board, &key, &value)?;
            database.replay(epoch, record, &mut deferred, &mut outputs)?;
        }
        let is_empty = database.epochs.is_empty() && end.is_none();
        if (origin == StateOrigin::New) != is_empty && origin != StateOrigin::Restored {
            return Err(DamagedLedgerError.into());
        }
        let unreadable = database.take_writes(deferred.writes, origin)?;
        database.epochs.values_mut().for_each(|state| state.note_missing_writes(board, party));
        for conflict in deferred.conflicts {
            outputs.push(database.replay_conflict(conflict)?);
        }
        for state in database.epochs.values() {
            outputs.extend(released_share(state));
            outputs.extend(reveal::due(board, party, &database.key, state));
        }
        let mut changes = database.distrust(origin, end, now, &mut outputs);
        changes.extend(unreadable);
        Ok((database, Step::new(changes, outputs)))
    }

    /// Whether the record of this key holds secrets: once it is removed, no copy of the ledger should
    /// still show them.
    #[must_use]
    pub fn is_secret(key: &[u8]) -> bool {
        records::is_seed(key)
    }

    /// Takes the stored writes in, and returns the removal of those that are unreadable: the secrets of
    /// their epoch were erased, or are lost, and the ledger is an old copy.
    fn take_writes(
        &mut self,
        writes: Vec<(WriteName, (Tag, Submission))>,
        origin: StateOrigin,
    ) -> Result<Vec<Change>, DamagedLedgerError> {
        let mut unreadable = Vec::new();
        for (name, (tag, submission)) in writes {
            let epoch = submission.epoch;
            let state = self.epochs.get_mut(&epoch).ok_or(DamagedLedgerError)?;
            if origin == StateOrigin::Restored && state.secrets.is_none() {
                unreadable.push(records::remove_write(epoch, &name));
                continue;
            }
            let taken = state.accept(&self.board, self.party, name, tag, submission);
            taken.map_err(|_| DamagedLedgerError)?;
        }
        Ok(unreadable)
    }

    /// Burns what a copy may have forgotten. `end` says whether the last end was orderly, if the
    /// ledger knows one.
    fn distrust(
        &mut self,
        origin: StateOrigin,
        end: Option<bool>,
        now: Timestamp,
        outputs: &mut Vec<Output>,
    ) -> Vec<Change> {
        // Only an end after this start counts as orderly again.
        let mut changes: Vec<Change> = end.map(|_| records::end(false)).into_iter().collect();
        changes.extend(match (origin, self.party) {
            (StateOrigin::Restored, _) => self.burn_begun(now, outputs),
            (_, Party::Server(_)) if end != Some(true) => self.burn_unbound(outputs),
            _ => Vec::new(),
        });
        changes
    }

    fn replay(
        &mut self,
        epoch: Epoch,
        record: Record,
        deferred: &mut DeferredRecords,
        outputs: &mut Vec<Output>,
    ) -> Result<(), DamagedLedgerError> {
        self.last_begun = self.last_begun.max(Some(epoch));
        let board = &self.board;
        let state = self.epochs.entry(epoch).or_insert_with(|| EpochState::new(board, epoch));
        match record {
            Record::Seed(seed) => state.secrets = Some(Secrets::new(&seed)),
            // In a ledger, writes sort after the seed. Do not depend on the store's order, though.
            Record::Write(name, held) => deferred.writes.push((name, *held)),
            Record::Conflict(by, signed) => deferred.conflicts.push((epoch, by, signed)),
            Record::Statement(by, signed) => {
                let effect =
                    state.transcript.record(by, &signed).map_err(|_| DamagedLedgerError)?;
                if effect != Effect::New {
                    return Err(DamagedLedgerError);
                }
                outputs.push(Output::Statement(PublishedStatement {
                    epoch,
                    by,
                    conflicts: false,
                    signed,
                }));
            }
            Record::OtherQuota(tag) => state.other_quotas.replay(tag),
            Record::Masked(share) => state.masked = Some(Arc::new(share)),
            Record::Table(table) => outputs.push(Output::Table(epoch, Arc::new(table))),
        }
        Ok(())
    }

    fn replay_conflict(
        &mut self,
        (epoch, by, signed): (Epoch, Party, Signed<Statement>),
    ) -> Result<Output, DamagedLedgerError> {
        let state = self.epochs.get_mut(&epoch).ok_or(DamagedLedgerError)?;
        let effect = state.transcript.record(by, &signed).map_err(|_| DamagedLedgerError)?;
        let Effect::Fault(fault) = effect else { return Err(DamagedLedgerError) };
        state.fault = Some((by, fault));
        Ok(Output::Statement(PublishedStatement { epoch, by, conflicts: true, signed }))
    }

    /// Notes that the process ends in an orderly way. Nothing may be handled afterwards.
    pub fn stop(&self) -> Step<()> {
        Step::new(vec![records::end(true)], ())
    }

    /// Handles a statement of this server that another server has received. If it is new here, the
    /// ledger is an old copy: all epochs that have begun are burnt.
    pub(super) fn handle_own_statement(
        &mut self,
        signed: &Signed<Statement>,
        epoch: Epoch,
    ) -> Result<Step<Vec<Output>>, StatementError> {
        let (board, by) = (self.board.fingerprint(), self.party);
        let statement = signed.open(self.board.key(by).ok_or(StatementError::Mismatch)?)?;
        if statement.board != board || statement.epoch != epoch || statement.by != by {
            return Err(StatementError::Mismatch);
        }
        let state = self.epochs.get(&epoch);
        let is_known = state.is_some_and(|state| {
            let mut own = state.transcript.digests(by);
            state.has_ended(by) || own.any(|digest| digest == signed.digest())
        });
        let is_old = self.last_begun.is_some_and(|last| epoch.0 + RETAINED_EPOCHS < last.0);
        let mut outputs = Vec::new();
        if is_known || is_old {
            return Ok(Step::new(Vec::new(), outputs));
        }
        self.note_begun(epoch);
        let changes = self.burn_open(&mut outputs, BurnReason::Restored, |_| true);
        Ok(Step::new(changes, outputs))
    }

    /// Burns all epochs that have begun, and the current one, which may have begun without a trace
    /// in the ledger.
    fn burn_begun(&mut self, now: Timestamp, outputs: &mut Vec<Output>) -> Vec<Change> {
        if let Some(now) = self.board.schedule.epoch_at(now) {
            self.note_begun(now);
        }
        self.burn_open(outputs, BurnReason::Restored, |_| true)
    }

    /// Burns the epochs in which this server is not bound to its share. Where it is bound, it can
    /// only send the same bytes again.
    fn burn_unbound(&mut self, outputs: &mut Vec<Output>) -> Vec<Change> {
        let party = self.party;
        let is_unbound = |state: &EpochState| state.transcript.latch(party).is_none();
        self.burn_open(outputs, BurnReason::Killed, is_unbound)
    }

    fn note_begun(&mut self, epoch: Epoch) {
        self.last_begun = self.last_begun.max(Some(epoch));
        let board = &self.board;
        self.epochs.entry(epoch).or_insert_with(|| EpochState::new(board, epoch));
    }

    fn burn_open(
        &mut self,
        outputs: &mut Vec<Output>,
        reason: BurnReason,
        which: impl Fn(&EpochState) -> bool,
    ) -> Vec<Change> {
        let party = self.party;
        let open = self.epochs.iter().filter(|(_, state)| !state.has_ended(party) && which(state));
        let open: Vec<Epoch> = open.map(|(epoch, _)| *epoch).collect();
        let made = open.into_iter().map(|epoch| (epoch, Body::Abort { reason }));
        made.flat_map(|(epoch, body)| self.make_statement(epoch, body, outputs)).collect()
    }
}
