//! One window in progress, as the service sees it.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::Tree;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::OwnerId;
use alpheus_policy::plan::Plan;
use alpheus_time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};

use super::blame::{BlameRound, StruckEdges};
use super::bounded_windows::CommittedShares;
use super::graph::Pickers;
use super::receipts::Shares;
use crate::counts::narrow;
use crate::error::{ExclusionError, ReleaseError, WindowRefusalError};
use crate::mask::set::RosterSet;
use crate::membership::FixedMembership;
use crate::messages::{MaskKey, Membership, OpeningSet, Presence, SummonedStream, Summons};

/// Maximum time before a controller that has not answered is asked again.
const MAX_RETRY: Span = Span::seconds(60);

/// What a member reported about its streams, as far as the service still needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberReport {
    /// Digest of the signed presence.
    pub digest: Digest,
    /// Streams that its token covers.
    pub accepted: Vec<u32>,
    /// Streams that it does not cover, and why.
    pub excluded: Vec<(u32, ExclusionError)>,
    /// Owners with data.
    pub owners: u32,
    /// In a verified plan, if it left out streams: the presence, for the receipt.
    pub signed: Option<Signed<Presence>>,
    /// In a verified plan: its key for the window's pads.
    pub mask_key: Option<Signed<MaskKey>>,
}

/// The summons sent to a controller.
pub(super) struct SentSummons {
    pub(super) signed: Signed<Summons>,
    pub(super) streams: Vec<SummonedStream>,
}

/// M with all that belongs to it.
pub(super) struct FixedRound {
    pub(super) signed: Signed<Membership>,
    pub(super) fixed: FixedMembership,
    pub(super) tree: Tree,
    pub(super) pickers: Pickers,
    /// In a bounded plan: the edges that its members leave out, and why.
    pub(super) struck: StruckEdges,
}

/// S with its digest.
pub(super) struct Opening {
    pub(super) signed: Signed<OpeningSet>,
    pub(super) set: RosterSet,
    pub(super) digest: Digest,
    /// Whether each token has an opening; false with a single controller.
    pub(super) masked: bool,
    /// In a bounded plan, once the row does not hold.
    pub(super) blaming: Option<Box<BlameRound>>,
}

/// How far a window has come.
pub(super) enum Phase {
    /// Waiting for presences.
    Summoned,
    /// M is fixed; waiting for tokens.
    Collecting(Box<FixedRound>),
    /// S is fixed; waiting for openings, and after a restart also for tokens.
    Opening(Box<FixedRound>, Box<Opening>),
}

/// One window in progress.
pub(super) struct Round {
    pub(super) window: Window,
    pub(super) phase: Phase,
    /// When the phase ends even if answers are missing.
    pub(super) deadline: Timestamp,
    /// When missing controllers are asked again, and the interval after that.
    pub(super) retry: Timestamp,
    pub(super) patience: Span,
    /// Streams that were not complete.
    pub(super) incomplete: Vec<(u32, ExclusionError)>,
    /// Complete streams of controllers that are not in M.
    pub(super) absent: u32,
    /// Streams that nothing was reported about.
    pub(super) unreported: u32,
    pub(super) summonses: BTreeMap<u32, SentSummons>,
    pub(super) reports: BTreeMap<u32, MemberReport>,
    pub(super) tokens: BTreeMap<u32, Vec<u64>>,
    pub(super) openings: BTreeMap<u32, Vec<u64>>,
    /// In a verified plan: the same as they were signed, for the receipt.
    pub(super) shares: Shares,
    /// In a bounded plan: what members have committed to. Tokens and openings are empty words then.
    pub(super) committed: CommittedShares,
    /// The adder has all answers.
    pub(super) waits_for_sums: bool,
    /// Sums of something else have come for it.
    pub(super) other_sums: bool,
    /// Why controllers refused this phase's request.
    pub(super) refusals: BTreeMap<u32, WindowRefusalError>,
    /// Tokens are lacking, and the set without them is one too many for others.
    pub(super) is_ruined: bool,
    /// With running totals: it would move on if an earlier window had.
    pub(super) waits_for_turn: bool,
    /// Whether a restart found its M in the store, which may be an older copy.
    pub(super) resumed: bool,
    /// With running totals: an upper bound for the variance of the shares that were made
    /// for it, in thousandths of a seed's; 0 before any may have been made.
    pub(super) over: u64,
}

impl Round {
    pub(super) fn new(window: Window, phase: Phase, deadline: Timestamp) -> Self {
        Self {
            window,
            phase,
            deadline,
            retry: deadline,
            patience: Span(0),
            incomplete: Vec::new(),
            absent: 0,
            unreported: 0,
            summonses: BTreeMap::new(),
            reports: BTreeMap::new(),
            tokens: BTreeMap::new(),
            openings: BTreeMap::new(),
            shares: Shares::default(),
            committed: CommittedShares::default(),
            waits_for_sums: false,
            other_sums: false,
            refusals: BTreeMap::new(),
            is_ruined: false,
            waits_for_turn: false,
            resumed: false,
            over: 0,
        }
    }

    /// Enters a phase that lasts at most `most`, and asks again after `retry`.
    pub(super) fn wait(&mut self, now: Timestamp, most: Span, retry: Span) {
        self.deadline = now.plus(most);
        self.patience = retry;
        self.retry = now.plus(retry);
    }

    /// Doubles the interval before asking again.
    pub(super) fn back_off(&mut self, now: Timestamp) {
        self.patience = Span(self.patience.0.saturating_mul(2).clamp(1, MAX_RETRY.0));
        self.retry = now.plus(self.patience);
    }

    pub(super) fn due(&self) -> Timestamp {
        self.deadline.min(self.retry)
    }

    /// Whether the phase has made this request. A refusal of any other is out of date.
    pub(super) fn asks(&self, from: u32, about: &Digest) -> bool {
        let summons = || self.summonses.get(&from).is_some_and(|c| c.signed.digest() == *about);
        match &self.phase {
            Phase::Summoned => summons(),
            Phase::Collecting(fixing) => {
                fixing.fixed.members().contains(from) && fixing.fixed.digest() == *about
            }
            Phase::Opening(fixing, opening) => {
                if let Some(blaming) = &opening.blaming {
                    return opening.set.contains(from) && blaming.request.digest() == *about;
                }
                let again = !self.tokens.contains_key(&from) && fixing.fixed.digest() == *about;
                opening.set.contains(from) && (opening.digest == *about || again)
            }
        }
    }

    /// Whether the phase still waits for a controller. SentSummons after every message, so the
    /// cheap count comes before the search.
    pub(super) fn waits(&self) -> bool {
        let (held, wanted) = match &self.phase {
            Phase::Summoned => (self.reports.len() + self.refusals.len(), self.summonses.len()),
            Phase::Collecting(fixing) => {
                (self.tokens.len() + self.refusals.len(), fixing.fixed.size() as usize)
            }
            Phase::Opening(_, opening) => {
                if opening.blaming.is_some() {
                    return !self.missing().is_empty();
                }
                let held = if opening.masked { self.openings.len() } else { self.tokens.len() };
                (held, opening.set.count())
            }
        };
        held < wanted || !self.missing().is_empty()
    }

    /// Controllers that the phase still waits for, ascending.
    pub(super) fn missing(&self) -> Vec<u32> {
        let waits = |position: &u32| !self.refusals.contains_key(position);
        match &self.phase {
            Phase::Summoned => {
                let silent = self.summonses.keys().filter(|p| !self.reports.contains_key(*p));
                silent.copied().filter(waits).collect()
            }
            Phase::Collecting(fixing) => {
                let members = fixing.fixed.members().iter();
                members.filter(|p| !self.tokens.contains_key(p)).filter(waits).collect()
            }
            Phase::Opening(_, opening) => {
                if let Some(blaming) = &opening.blaming {
                    let lacks = |p: &u32| !blaming.statements.contains_key(p);
                    return opening.set.iter().filter(lacks).filter(waits).collect();
                }
                let lacks = |p: &u32| {
                    !self.tokens.contains_key(p)
                        || (opening.masked && !self.openings.contains_key(p))
                };
                opening.set.iter().filter(lacks).collect()
            }
        }
    }

    /// Owners with an accepted stream in the set.
    pub(super) fn owners(&self, plan: &Plan, set: &RosterSet) -> u32 {
        let streams = self.accepted_streams(set);
        let owner = |at: &u32| plan.streams.get(*at as usize).map(|planned| planned.owner);
        narrow(streams.iter().filter_map(owner).collect::<BTreeSet<OwnerId>>().len())
    }

    /// Streams accepted by the members of a set, ascending.
    pub(super) fn accepted_streams(&self, set: &RosterSet) -> Vec<u32> {
        let present = self.reports.iter().filter(|(position, _)| set.contains(**position));
        let mut streams: Vec<u32> =
            present.flat_map(|(_, present)| present.accepted.iter().copied()).collect();
        streams.sort_unstable();
        streams
    }

    /// Streams that were online and are not in a result, counted by reason.
    pub(super) fn exclusion_counts(&self) -> BTreeMap<ExclusionError, u32> {
        let mut counts = BTreeMap::new();
        let named = self.incomplete.iter().chain(self.reports.values().flat_map(|p| &p.excluded));
        for (_, reason) in named {
            *counts.entry(*reason).or_insert(0) += 1;
        }
        let left_out = match &self.phase {
            Phase::Summoned => self.absent_streams(),
            Phase::Collecting(_) => self.absent,
            Phase::Opening(_, opening) => {
                let outside = self.reports.iter().filter(|(p, _)| !opening.set.contains(**p));
                let streams: u32 = outside.map(|(_, p)| narrow(p.accepted.len())).sum();
                self.absent.saturating_add(streams)
            }
        };
        if left_out > 0 {
            counts.insert(ExclusionError::ControllerAbsent, left_out);
        }
        counts
    }

    /// Complete streams of controllers that have not answered the summons.
    pub(super) fn absent_streams(&self) -> u32 {
        let silent = self.summonses.iter().filter(|(p, _)| !self.reports.contains_key(*p));
        silent.map(|(_, called)| narrow(called.streams.len())).sum()
    }

    /// A refusal explains more than an absence: the most frequent reason replaces a lost
    /// quorum.
    pub(super) fn blame(&self, failure: ReleaseError) -> ReleaseError {
        let refused = self.refusal_counts().into_iter().max_by_key(|(_, many)| *many);
        match (failure, refused) {
            (ReleaseError::QuorumLost { .. }, Some((reason, _))) => {
                ReleaseError::ControllerRefused(reason)
            }
            (failure, _) => failure,
        }
    }

    /// Whether more than t controllers know the window from a state of the service that was
    /// lost: one of them at least does not lie. That is so before M, and for an M that a
    /// restart has found. In any other case the answers are to this state's own requests.
    pub(super) fn is_of_lost_state(&self, tolerated: u32) -> bool {
        let says_so = |reason: &&WindowRefusalError| knows_more(**reason);
        let unknown = matches!(self.phase, Phase::Summoned) || self.resumed;
        unknown && self.refusals.values().filter(says_so).count() > tolerated as usize
    }

    /// The refusal of a member of S that ends the window. After a restart, those that others
    /// must confirm wait for them.
    pub(super) fn fatal_refusal(&self, set: &RosterSet) -> Option<WindowRefusalError> {
        let silent = |position: &u32| !self.refusals.contains_key(position);
        let waits = self.resumed && self.missing().iter().any(silent);
        let inside = self.refusals.iter().filter(|(position, _)| set.contains(**position));
        let mut reasons = inside.map(|(_, reason)| *reason);
        reasons.find(|reason| !waits || !knows_more(*reason))
    }

    /// The opening set, if there is one and its members mask.
    pub(super) fn opening_set(&self) -> Option<RosterSet> {
        match &self.phase {
            Phase::Opening(_, opening) if opening.masked => Some(opening.set.clone()),
            _ => None,
        }
    }

    /// Controllers that refused, counted by reason.
    pub(super) fn refusal_counts(&self) -> BTreeMap<WindowRefusalError, u32> {
        let mut counts = BTreeMap::new();
        for reason in self.refusals.values() {
            *counts.entry(*reason).or_insert(0) += 1;
        }
        counts
    }
}

/// Whether a controller says that the window went further than the request does.
fn knows_more(reason: WindowRefusalError) -> bool {
    matches!(reason, WindowRefusalError::Settled | WindowRefusalError::AlreadySpent)
}
