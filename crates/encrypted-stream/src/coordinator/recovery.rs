//! The service's records of a plan, and the restart from them: with the same M and the same
//! S.

use std::collections::BTreeMap;
use std::sync::Arc;

use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

use super::Coordinator;
use super::blame::StruckEdges;
use super::graph::tree;
use super::openings::{opening_phase, pending_requests};
use super::output::{Output, Timing};
use super::round::{FixedRound, MemberReport, Phase, Round};
use super::totals::Totals;
use crate::announced_plan::AnnouncedPlan;
use crate::error::{ExclusionError, RestoreError};
use crate::ledger::{Change, Scope, Step, read_record, write_record};
use crate::membership::FixedMembership;
use crate::messages::{EdgeStatement, Membership, OpeningSet};

/// Version of the format below. Any other version is refused.
const VERSION: u8 = 2;

/// A record of the service about a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceRecord {
    /// M is fixed for a window.
    Fixed {
        /// The window.
        window: Window,
        /// M.
        signed: Signed<Membership>,
        /// What each member reported.
        present: Vec<(u32, MemberReport)>,
        /// Streams that were not complete.
        incomplete: Vec<(u32, ExclusionError)>,
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
    /// Windows that start before this time have had their outcomes.
    Mark {
        /// The low-water mark.
        settled: Timestamp,
    },
    /// The plan was retired.
    Retired,
    /// A controller's picks, in a plan with `Neighbours`.
    Picks {
        /// Its position in the roster.
        controller: u32,
        /// Positions, ascending.
        picks: Vec<u32>,
    },
    /// The totals of a plan whose results are running totals.
    Totals {
        /// One word for each row, in units of 2^−f.
        words: Vec<u64>,
        /// How many windows they include.
        windows: u32,
        /// An upper bound for the variance of shares that are in none of them, in
        /// thousandths of a seed's.
        lost: u64,
    },
    /// For a window whose M is fixed: how many streams nothing was reported about, if any.
    Unreported {
        /// Its start.
        start: Timestamp,
        /// How many.
        streams: u32,
    },
    /// In a bounded plan: an edge about which its ends have signed different things.
    Struck {
        /// The lower position first.
        ends: (u32, u32),
        /// What they have signed, in that order.
        statements: Box<(Signed<EdgeStatement>, Signed<EdgeStatement>)>,
    },
    /// In a bounded plan, for a window whose M is fixed: the struck edges that its members leave out,
    /// if any.
    LeftOut {
        /// Its start.
        start: Timestamp,
        /// The edges.
        edges: Vec<(u32, u32)>,
    },
}

impl Coordinator {
    /// The coordinator as its store left it. The step asks the members of windows in
    /// progress again. A window of which nothing was fixed has to be reported again, with
    /// [`Coordinator::handle_window_report`].
    ///
    /// `values` are those under [`Scope::Service`] of the plan.
    ///
    /// # Errors
    /// [`RestoreError::BadRecord`] if a value cannot be read.
    pub fn restore<'a>(
        announced: Arc<AnnouncedPlan>,
        key: Arc<SigningKey>,
        timing: Timing,
        values: impl IntoIterator<Item = &'a [u8]>,
        now: Timestamp,
    ) -> Result<(Self, Step<Vec<Output>>), RestoreError> {
        let mut coordinator = Self::new(announced, key, timing);
        let (mut fixed, mut sets, mut unreported, mut left_out) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (position, value) in values.into_iter().enumerate() {
            let read = read_record(value, VERSION).map_err(|error| error.at(position));
            let record = read?;
            match record {
                ServiceRecord::Fixed { window, .. } => {
                    fixed.insert(window.start, (position, record));
                }
                ServiceRecord::OpeningSet { window, signed } => {
                    sets.insert(window.start, (position, signed));
                }
                ServiceRecord::Unreported { start, streams } => {
                    unreported.insert(start, streams);
                }
                ServiceRecord::LeftOut { start, edges } => {
                    left_out.insert(start, edges);
                }
                record => coordinator.recall(record),
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
            round.unreported = unreported.get(&start).copied().unwrap_or(0);
            coordinator.leave_out(&mut round, left_out.get(&start));
            messages.extend(pending_requests(&round));
            coordinator.rounds.insert(start, round);
            coordinator.note_shares(start);
        }
        Ok((coordinator, Step::new(Vec::new(), messages)))
    }

    /// Applies a record that is not about a window in progress.
    fn recall(&mut self, record: ServiceRecord) {
        match record {
            ServiceRecord::Ended { start } => {
                self.ended.insert(start);
            }
            ServiceRecord::Mark { settled } => self.settled = settled,
            ServiceRecord::Retired => self.retired = true,
            ServiceRecord::Totals { words, windows, lost } => {
                self.totals = Totals { words, windows, lost, ..Totals::default() };
            }
            ServiceRecord::Picks { controller, picks } => {
                self.graph.take(controller, picks);
            }
            ServiceRecord::Struck { ends, statements } => {
                self.bounded.struck.add(ends, *statements)
            }
            ServiceRecord::Fixed { .. }
            | ServiceRecord::OpeningSet { .. }
            | ServiceRecord::LeftOut { .. }
            | ServiceRecord::Unreported { .. } => {}
        }
    }

    /// A window whose M is fixed, and perhaps its S.
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
        let fixed = FixedMembership::new(&signed.open(&ours).ok()?).ok()?;
        let present: BTreeMap<u32, MemberReport> = present.into_iter().collect();
        let pickers = self.graph.pickers(fixed.members());
        let tree = tree(&pickers, present.iter().map(|(at, present)| (*at, present.digest)));
        let struck = StruckEdges::default();
        let fixing = FixedRound { signed, fixed, tree, pickers, struck };
        let (phase, most) = match set {
            None => (Phase::Collecting(Box::new(fixing)), self.token_wait()),
            Some(signed) => {
                let set = signed.open(&ours).ok()?.set.clone();
                let masked = !self.announced.is_single();
                (opening_phase(fixing, signed, set, masked), self.timing.openings)
            }
        };
        let mut round = Round::new(window, phase, now);
        round.wait(now, most, self.timing.retry);
        (round.incomplete, round.absent) = (incomplete, absent);
        (round.reports, round.resumed) = (present, true);
        Some(round)
    }

    /// The change that stores a record.
    pub(super) fn put(&self, record: &ServiceRecord) -> Change {
        Change::put(self.key_of(record), write_record(record, VERSION))
    }

    pub(super) fn key_of(&self, record: &ServiceRecord) -> Vec<u8> {
        let (kind, start) = match record {
            ServiceRecord::Fixed { window, .. } => (0, window.start),
            ServiceRecord::OpeningSet { window, .. } => (1, window.start),
            ServiceRecord::Ended { start } => (2, *start),
            ServiceRecord::Unreported { start, .. } => (7, *start),
            ServiceRecord::Struck { ends: (one, other), .. } => {
                (8, Timestamp(u64::from(*one) << 32 | u64::from(*other)))
            }
            ServiceRecord::LeftOut { start, .. } => (9, *start),
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

    /// Records of a window in progress are not needed once it has ended.
    pub(super) fn removals(&self, start: Timestamp) -> [Change; 4] {
        [0, 1, 7, 9].map(|kind| Change::remove(self.key_for(kind, start)))
    }
}
