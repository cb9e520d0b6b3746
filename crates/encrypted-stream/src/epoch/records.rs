//! What the service's store has of epochs, and the restart from it: with the same list.

use std::collections::BTreeMap;
use std::sync::Arc;

use alpheus_policy::ids::ControllerId;
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

use super::caller::{Caller, EpochOutput};
use crate::announced_plan::AnnouncedPlan;
use crate::error::{ReleaseError, RestoreError, WindowRefusalError};
use crate::ledger::{Change, Scope, Step, read_record, write_record};
use crate::messages::{Listing, shared};

/// Version of the record below. Any other version is refused.
const VERSION: u8 = 2;
/// The record's kind among those of a plan in the service's store.
const EPOCH: u8 = 8;

/// How far an epoch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochProgress {
    /// It has no list, and may get one.
    Open,
    /// It has a list, and its windows are not over.
    Listed,
    /// It is over. It never gets a list, or another one.
    Over,
}

/// An epoch in the service's store. The last one stays, so that no earlier one begins again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EpochRecord {
    pub(super) window: Window,
    pub(super) windows: u32,
    /// Those who are listed, or were.
    pub(super) members: Vec<ControllerId>,
    pub(super) outcome: EpochOutcome,
}

/// What was fixed for an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EpochOutcome {
    Listed(#[serde(with = "shared")] Arc<Listing>),
    NotListed(ReleaseError),
    /// Its windows are over.
    Over,
}

impl Caller {
    /// The caller as its store left it: `values` are those under [`Scope::Service`] of the
    /// plan. An epoch that has a list has the same one.
    ///
    /// # Errors
    /// [`RestoreError::BadRecord`] if a value cannot be read.
    pub fn restore<'a>(
        mut self,
        values: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, RestoreError> {
        for (position, value) in values.into_iter().enumerate() {
            let read = read_record(value, VERSION).map_err(|error| error.at(position));
            let record: EpochRecord = read?;
            self.epochs.insert(record.window.start, record);
        }
        Ok(self)
    }

    /// The plans of epochs that have a list and are not over, as after a restart. One that cannot
    /// be opened any more is left out.
    #[must_use]
    pub fn listed(&self) -> Vec<Arc<AnnouncedPlan>> {
        let open = |record: &EpochRecord| match &record.outcome {
            EpochOutcome::Listed(listing) => {
                AnnouncedPlan::open_list(listing, &self.deployment).ok()
            }
            _ => None,
        };
        self.epochs.values().filter_map(open).map(Arc::new).collect()
    }

    /// How far the epoch that begins with a window has come.
    #[must_use]
    pub fn progress(&self, start: Timestamp) -> EpochProgress {
        let known = self.epochs.get(&start).map(|record| &record.outcome);
        match known {
            Some(EpochOutcome::Listed(_)) => EpochProgress::Listed,
            Some(_) => EpochProgress::Over,
            None if self.last().is_some_and(|last| last.window.start >= start) => {
                EpochProgress::Over
            }
            None => EpochProgress::Open,
        }
    }

    /// Whether an epoch waits for attendances.
    #[must_use]
    pub fn is_calling(&self) -> bool {
        self.calling.is_some()
    }

    /// Those who were in the last list.
    #[must_use]
    pub fn last_members(&self) -> &[ControllerId] {
        self.last().map_or(&[], |last| &last.members)
    }

    /// The windows of an epoch are over: its list is not needed any more.
    pub fn end(&mut self, start: Timestamp) -> Vec<Change> {
        let Some(mut record) = self.epochs.remove(&start) else { return Vec::new() };
        if self.last().is_some_and(|last| last.window.start > start) {
            return vec![Change::remove(self.key_of(start))];
        }
        record.outcome = EpochOutcome::Over;
        let change = self.put(&record);
        self.epochs.insert(start, record);
        vec![change]
    }

    fn last(&self) -> Option<&EpochRecord> {
        self.epochs.last_key_value().map(|(_, last)| last)
    }

    /// What follows from a record; nothing if the epoch is over.
    pub(super) fn outcome(
        &self,
        record: &EpochRecord,
        refused: BTreeMap<WindowRefusalError, u32>,
    ) -> Step<Vec<EpochOutput>> {
        let window = record.window;
        let reason = match &record.outcome {
            EpochOutcome::Over => return Step::default(),
            EpochOutcome::NotListed(reason) => *reason,
            EpochOutcome::Listed(listing) => {
                if let Ok(announced) = AnnouncedPlan::open_list(listing, &self.deployment) {
                    let listed = EpochOutput::Listed(Arc::new(announced));
                    return Step::new(Vec::new(), vec![listed]);
                }
                ReleaseError::NotListed
            }
        };
        Step::new(Vec::new(), vec![EpochOutput::NotListed { window, reason, refused }])
    }

    pub(super) fn put(&self, record: &EpochRecord) -> Change {
        Change::put(self.key_of(record.window.start), write_record(record, VERSION))
    }

    pub(super) fn key_of(&self, start: Timestamp) -> Vec<u8> {
        let mut key = Scope::Service(self.id).prefix();
        key.push(EPOCH);
        key.extend(start.0.to_be_bytes());
        key
    }

    /// All that the service's store has of the plan's epochs, to be removed with the plan.
    #[must_use]
    pub fn removals(&self) -> Vec<Change> {
        self.epochs.keys().map(|start| Change::remove(self.key_of(*start))).collect()
    }
}
