//! What the service must not forget of a plan, and how it goes on after a
//! restart: with the same M and the same S.

use std::collections::BTreeMap;
use std::sync::Arc;

use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_policy::time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

use super::Coordinator;
use super::collecting::{asked, reopened};
use super::graph::tree;
use super::output::{Output, Timing};
use super::round::{Fixing, Phase, Present, Round};
use super::totals::Totals;
use crate::announced::Announced;
use crate::error::{Exclusion, RestoreError};
use crate::ledger::{Change, Scope, Step, UnreadableRecord};
use crate::membership::Fixed;
use crate::messages::{Membership, OpeningSet};

/// Version of the form below; another one is refused.
const VERSION: u8 = 1;

/// One fact that the service must not forget of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceRecord {
    /// M is fixed for a window.
    Fixed {
        /// The window.
        window: Window,
        /// M.
        signed: Signed<Membership>,
        /// What each member said.
        present: Vec<(u32, Present)>,
        /// Streams that were not complete.
        incomplete: Vec<(u32, Exclusion)>,
        /// Complete streams of controllers that are not in M.
        absent: u32,
    },
    /// S is fixed for a window.
    OpeningSet {
        /// The window.
        window: Window,
        /// S.
        signed: Signed<OpeningSet>,
    },
    /// A window has had its outcome.
    Ended {
        /// Its start.
        start: Timestamp,
    },
    /// Windows that start before this have had theirs.
    Mark {
        /// The low-water mark.
        settled: Timestamp,
    },
    /// The plan was retired.
    Retired,
    /// Whom a controller picks, of a plan with `Neighbours`.
    Picks {
        /// Its position in the roster.
        controller: u32,
        /// Positions, ascending.
        picks: Vec<u32>,
    },
    /// Of a plan whose results are running totals: what windows have opened to.
    Totals {
        /// One word for each row, in units of 2^−f.
        words: Vec<u64>,
        /// How many windows are in them.
        windows: u32,
        /// At most the variance of shares that are in none of them, in thousandths of a
        /// seed's.
        lost: u64,
    },
    /// Of a window whose M is fixed: how many streams nothing was told of, if any.
    Untold {
        /// Its start.
        start: Timestamp,
        /// How many.
        streams: u32,
    },
}

impl Coordinator {
    /// The coordinator as its store left it. The step asks the members of
    /// windows under way again; a window of which nothing was fixed comes anew
    /// with [`Coordinator::window_closed`].
    ///
    /// `values` stand under [`Scope::Service`] of the plan.
    ///
    /// # Errors
    /// [`RestoreError::BadRecord`] if one cannot be read.
    pub fn restore<'a>(
        announced: Arc<Announced>,
        key: Arc<SigningKey>,
        timing: Timing,
        values: impl IntoIterator<Item = &'a [u8]>,
        now: Timestamp,
    ) -> Result<(Self, Step<Output>), RestoreError> {
        let mut coordinator = Self::new(announced, key, timing);
        let (mut fixed, mut sets, mut untold) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (position, value) in values.into_iter().enumerate() {
            let read = read(value).map_err(|error| RestoreError::of(position, error));
            let record = read?;
            match record {
                ServiceRecord::Fixed { window, .. } => {
                    fixed.insert(window.start, (position, record));
                }
                ServiceRecord::OpeningSet { window, signed } => {
                    sets.insert(window.start, (position, signed));
                }
                ServiceRecord::Ended { start } => {
                    coordinator.ended.insert(start);
                }
                ServiceRecord::Untold { start, streams } => {
                    untold.insert(start, streams);
                }
                ServiceRecord::Mark { settled } => coordinator.settled = settled,
                ServiceRecord::Retired => coordinator.retired = true,
                ServiceRecord::Totals { words, windows, lost } => {
                    coordinator.totals = Totals { words, windows, lost, ..Totals::default() };
                }
                ServiceRecord::Picks { controller, picks } => {
                    coordinator.graph.take(controller, picks);
                }
            }
        }
        coordinator.totals.restarted = true;
        let mut messages = Vec::new();
        for (start, (position, record)) in fixed {
            let set = sets.remove(&start);
            if coordinator.retired || coordinator.has_ended(start) {
                continue;
            }
            let bad = RestoreError::BadRecord { position };
            let round = coordinator.resume(record, set.map(|(_, set)| set), now);
            let mut round = round.ok_or(bad)?;
            round.untold = untold.get(&start).copied().unwrap_or(0);
            messages.extend(asked(&round));
            coordinator.rounds.insert(start, round);
            coordinator.note_shares(start);
        }
        Ok((coordinator, Step::new(Vec::new(), messages)))
    }

    /// A window whose M, and perhaps S, is fixed.
    fn resume(
        &self,
        record: ServiceRecord,
        set: Option<Signed<OpeningSet>>,
        now: Timestamp,
    ) -> Option<Round> {
        let ServiceRecord::Fixed { window, signed, present, incomplete, absent } = record else {
            return None;
        };
        let ours = self.key.verifying_key();
        let fixed = Fixed::new(&signed.open(&ours).ok()?).ok()?;
        let present: BTreeMap<u32, Present> = present.into_iter().collect();
        let pickers = self.graph.pickers(fixed.members());
        let tree = tree(&pickers, present.iter().map(|(at, present)| (*at, present.digest)));
        let fixing = Fixing { signed, fixed, tree, pickers };
        let (phase, most) = match set {
            None => (Phase::Collecting(Box::new(fixing)), self.timing.tokens),
            Some(signed) => {
                let set = signed.open(&ours).ok()?.set.clone();
                let masked = !self.announced.is_single();
                (reopened(fixing, signed, set, masked), self.timing.openings)
            }
        };
        let mut round = Round::new(window, phase, now);
        round.wait(now, most, self.timing.retry);
        (round.incomplete, round.absent) = (incomplete, absent);
        round.present = present;
        Some(round)
    }

    /// The change that stores a record.
    pub(super) fn put(&self, record: &ServiceRecord) -> Change {
        // Records are plain data, whose serialisation cannot fail.
        let bytes = postcard::to_allocvec(record).unwrap_or_default();
        let value = std::iter::once(VERSION).chain(bytes).collect();
        Change { key: self.key_of(record), value: Some(value) }
    }

    pub(super) fn key_of(&self, record: &ServiceRecord) -> Vec<u8> {
        let (kind, start) = match record {
            ServiceRecord::Fixed { window, .. } => (0, window.start),
            ServiceRecord::OpeningSet { window, .. } => (1, window.start),
            ServiceRecord::Ended { start } => (2, *start),
            ServiceRecord::Untold { start, .. } => (7, *start),
            ServiceRecord::Mark { .. } => (3, Timestamp(0)),
            ServiceRecord::Retired => (4, Timestamp(0)),
            ServiceRecord::Totals { .. } => (6, Timestamp(0)),
            ServiceRecord::Picks { controller, .. } => (5, Timestamp(u64::from(*controller))),
        };
        self.key_for(kind, start)
    }

    fn key_for(&self, kind: u8, start: Timestamp) -> Vec<u8> {
        let mut key = Scope::Service(self.id()).prefix();
        key.push(kind);
        key.extend(start.0.to_be_bytes());
        key
    }

    /// What is kept of a window under way is of no use once it has ended.
    pub(super) fn removals(&self, start: Timestamp) -> [Change; 3] {
        [0, 1, 7].map(|kind| Change { key: self.key_for(kind, start), value: None })
    }
}

fn read(value: &[u8]) -> Result<ServiceRecord, UnreadableRecord> {
    let (version, record) = value.split_first().ok_or(UnreadableRecord::Damaged)?;
    if *version != VERSION {
        return Err(UnreadableRecord::Version(*version));
    }
    match postcard::take_from_bytes(record) {
        Ok((record, [])) => Ok(record),
        _ => Err(UnreadableRecord::Damaged),
    }
}
