//! How an auditor comes back from its ledger.

use super::records::{self, Record};
use super::{Auditor, RETAINED_EPOCHS};
use crate::configuration::{Board, Epoch, Party};
use crate::error::RestoreError;
use crate::messages::{Body, BurnReason, PublishedStatement};
use crate::transcript::Effect;
use alpheus_crypto::ledger::{DamagedLedgerError, StateOrigin, Step};
use alpheus_crypto::sign::SigningKey;
use alpheus_time::Timestamp;
use std::collections::BTreeMap;

impl Auditor {
    /// Restores an auditor from its ledger. A new auditor has an empty one. Also returns the
    /// statements it had made and received, to be published again.
    ///
    /// After a log that may be an old copy, this burns all epochs that have not ended, and all that
    /// may have begun without a trace in the copy: they may be settled already.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(
        board: &Board,
        key: SigningKey,
        origin: StateOrigin,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        now: Timestamp,
    ) -> Result<(Self, Step<Vec<PublishedStatement>>), RestoreError> {
        if Some(&key.verifying_key()) != board.key(Party::Auditor) {
            return Err(RestoreError::OtherKey);
        }
        let mut auditor = Self { board: board.clone(), key, epochs: BTreeMap::new() };
        let (mut outputs, mut changes) = (Vec::new(), Vec::new());
        for (key, value) in records {
            let (epoch, by, record) = records::read(&key, &value)?;
            outputs.extend(auditor.replay(epoch, by, record)?);
        }
        if (origin == StateOrigin::New) != auditor.epochs.is_empty()
            && origin != StateOrigin::Restored
        {
            return Err(DamagedLedgerError.into());
        }
        let restored = origin == StateOrigin::Restored;
        for epoch in if restored { auditor.open_epochs(now) } else { Vec::new() } {
            let (statement, change) =
                auditor.make_statement(epoch, Body::Abort { reason: BurnReason::Restored });
            outputs.push(statement);
            changes.push(change);
        }
        Ok((auditor, Step::new(changes, outputs)))
    }

    /// Whether the record of this key holds secrets: once it is removed, no copy of the ledger should
    /// still show them.
    #[must_use]
    pub fn is_secret(key: &[u8]) -> bool {
        records::is_seed(key)
    }

    fn replay(
        &mut self,
        epoch: Epoch,
        by: Party,
        record: Record,
    ) -> Result<Option<PublishedStatement>, DamagedLedgerError> {
        let case = self.case(epoch);
        let (signed, conflicts) = match record {
            Record::Statement(signed) => (signed, false),
            Record::Conflict(signed) => (signed, true),
            Record::Seed(seed) => {
                case.seed = Some(seed);
                return Ok(None);
            }
            Record::Reveal(reveal) => {
                case.evidence.reveal = Some(reveal);
                return Ok(None);
            }
            Record::Judged(write) => {
                case.judged.insert(write);
                return Ok(None);
            }
        };
        match case.transcript.record(by, &signed).map_err(|_| DamagedLedgerError)? {
            Effect::New if !conflicts => {}
            Effect::Fault(fault) if conflicts => case.fault = Some((by, fault)),
            _ => return Err(DamagedLedgerError),
        }
        Ok(Some(PublishedStatement { epoch, by, conflicts, signed }))
    }

    /// Epochs that have begun by now and have not ended, as far as this auditor knows.
    fn open_epochs(&mut self, now: Timestamp) -> Vec<Epoch> {
        if let Some(current) = self.board.schedule.epoch_at(now) {
            for epoch in (current.0.saturating_sub(RETAINED_EPOCHS)..=current.0).map(Epoch) {
                if now < self.board.schedule.burn_time(epoch) {
                    self.case(epoch);
                }
            }
        }
        let open = self.epochs.iter().filter(|(_, case)| !case.has_ended());
        open.map(|(epoch, _)| *epoch).collect()
    }
}
