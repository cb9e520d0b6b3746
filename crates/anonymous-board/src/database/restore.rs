//! How a database comes back from its ledger.

use super::epoch::EpochState;
use super::records::{self, Record};
use super::secrets::Secrets;
use super::{Database, Output, released_share};
use crate::configuration::{Board, Epoch, Party};
use crate::error::RestoreError;
use crate::messages::{
    Body, BurnReason, PublishedStatement, Statement, Submission, Tag, WriteName,
};
use crate::transcript::Effect;
use alpheus_crypto::ledger::{Change, DamagedLedgerError, StateOrigin, Step};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
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
    /// After a log that may be an old copy, all epochs that may have begun are burnt.
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
        for (key, value) in records {
            let (epoch, record) = records::read(board, &key, &value)?;
            database.replay(epoch, record, &mut deferred, &mut outputs)?;
        }
        if (origin == StateOrigin::New) != database.epochs.is_empty()
            && origin != StateOrigin::Restored
        {
            return Err(DamagedLedgerError.into());
        }
        for (name, (tag, submission)) in deferred.writes {
            let state = database.epochs.get_mut(&submission.epoch).ok_or(DamagedLedgerError)?;
            state.accept(board, party, name, tag, submission).map_err(|_| DamagedLedgerError)?;
        }
        database.epochs.values_mut().for_each(|state| state.note_missing_writes(board, party));
        for (epoch, by, signed) in deferred.conflicts {
            let state = database.epochs.get_mut(&epoch).ok_or(DamagedLedgerError)?;
            let effect = state.transcript.record(by, &signed).map_err(|_| DamagedLedgerError)?;
            let Effect::Fault(fault) = effect else { return Err(DamagedLedgerError.into()) };
            state.fault = Some((by, fault));
            outputs.push(Output::Statement(PublishedStatement {
                epoch,
                by,
                conflicts: true,
                signed,
            }));
        }
        outputs.extend(database.epochs.values().filter_map(released_share));
        let changes = if origin == StateOrigin::Restored {
            database.burn_all(now, &mut outputs)
        } else {
            Vec::new()
        };
        Ok((database, Step::new(changes, outputs)))
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
            Record::RefusedQuota(tag) => state.refused_quotas.replay(tag),
            Record::Masked(share) => state.masked = Some(Arc::new(share)),
            Record::Table(table) => outputs.push(Output::Table(epoch, Arc::new(table))),
        }
        Ok(())
    }

    /// Burns all epochs that have begun, and the current one, which may have begun without a trace
    /// in the ledger.
    fn burn_all(&mut self, now: Timestamp, outputs: &mut Vec<Output>) -> Vec<Change> {
        let mut changes = Vec::new();
        let party = self.party;
        if let Some(now) = self.board.schedule.epoch_at(now) {
            self.last_begun = self.last_begun.max(Some(now));
            let board = &self.board;
            self.epochs.entry(now).or_insert_with(|| EpochState::new(board, now));
        }
        let open: Vec<Epoch> =
            self.epochs.iter().filter(|(_, r)| !r.has_ended(party)).map(|(e, _)| *e).collect();
        for epoch in open {
            changes.extend(self.make_statement(
                epoch,
                Body::Abort { reason: BurnReason::Restored },
                outputs,
            ));
        }
        changes
    }
}
