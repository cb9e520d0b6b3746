//! One window under way, as the service knows it.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::Tree;
use alpheus_crypto::signed::Signed;
use alpheus_policy::ids::OwnerId;
use alpheus_policy::plan::Plan;
use alpheus_policy::time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};

use super::graph::Pickers;
use crate::announced::narrow;
use crate::error::{Exclusion, Failure, Refused};
use crate::mask::set::RosterSet;
use crate::membership::Fixed;
use crate::messages::{Membership, OpeningSet, SummonedStream, Summons};

/// Who does not answer is asked again at this distance at most.
const LONGEST_RETRY: Span = Span::seconds(60);

/// What a member said of its streams, as much as the service goes on to need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Present {
    /// Digest of the signed presence.
    pub digest: Digest,
    /// Streams that its token covers.
    pub accepted: Vec<u32>,
    /// Streams that it does not cover, and why.
    pub excluded: Vec<(u32, Exclusion)>,
    /// Owners with data.
    pub owners: u32,
}

/// What was sent to a controller.
pub(super) struct Called {
    pub(super) signed: Signed<Summons>,
    pub(super) streams: Vec<SummonedStream>,
}

/// M with all that belongs to it.
pub(super) struct Fixing {
    pub(super) signed: Signed<Membership>,
    pub(super) fixed: Fixed,
    pub(super) tree: Tree,
    pub(super) pickers: Pickers,
}

/// S with its digest.
pub(super) struct Opening {
    pub(super) signed: Signed<OpeningSet>,
    pub(super) set: RosterSet,
    pub(super) digest: Digest,
    /// Whether an opening belongs to each token; not so of a single controller.
    pub(super) masked: bool,
}

/// How far a window has come.
pub(super) enum Phase {
    /// Waiting for presences.
    Summoned,
    /// M is fixed; waiting for tokens.
    Collecting(Box<Fixing>),
    /// S is fixed; waiting for openings, and after a restart for tokens again.
    Opening(Box<Fixing>, Box<Opening>),
}

/// One window under way.
pub(super) struct Round {
    pub(super) window: Window,
    pub(super) phase: Phase,
    /// When the phase is over whoever is missing.
    pub(super) deadline: Timestamp,
    /// When who is missing is asked again, and how long after that once more.
    pub(super) retry: Timestamp,
    pub(super) patience: Span,
    /// Streams that were not complete.
    pub(super) incomplete: Vec<(u32, Exclusion)>,
    /// Complete streams of controllers that are not in M.
    pub(super) absent: u32,
    /// Streams that nothing was told of.
    pub(super) untold: u32,
    pub(super) called: BTreeMap<u32, Called>,
    pub(super) present: BTreeMap<u32, Present>,
    pub(super) tokens: BTreeMap<u32, Vec<u64>>,
    pub(super) openings: BTreeMap<u32, Vec<u64>>,
    /// Whoever adds up in the coordinator's place has all answers.
    pub(super) waits_for_sums: bool,
    /// Sums of something else have come for it.
    pub(super) other_sums: bool,
    /// Why controllers declined what the phase asks.
    pub(super) declined: BTreeMap<u32, Refused>,
    /// Of running totals: it would go on if an earlier window had.
    pub(super) waits_for_turn: bool,
    /// Of the same: at most the variance of the shares that were made for it, in thousandths
    /// of a seed's; 0 before any may have been.
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
            untold: 0,
            called: BTreeMap::new(),
            present: BTreeMap::new(),
            tokens: BTreeMap::new(),
            openings: BTreeMap::new(),
            waits_for_sums: false,
            other_sums: false,
            declined: BTreeMap::new(),
            waits_for_turn: false,
            over: 0,
        }
    }

    /// Enters a phase: until when, and how soon to ask again.
    pub(super) fn wait(&mut self, now: Timestamp, most: Span, retry: Span) {
        self.deadline = now.plus(most);
        self.patience = retry;
        self.retry = now.plus(retry);
    }

    /// Puts the next asking off, twice as long each time.
    pub(super) fn back_off(&mut self, now: Timestamp) {
        self.patience = Span(self.patience.0.saturating_mul(2).clamp(1, LONGEST_RETRY.0));
        self.retry = now.plus(self.patience);
    }

    pub(super) fn due(&self) -> Timestamp {
        self.deadline.min(self.retry)
    }

    /// What the phase asks for: a refusal of anything else is out of date.
    pub(super) fn asks(&self, from: u32, about: &Digest) -> bool {
        let summons = || self.called.get(&from).is_some_and(|c| c.signed.digest() == *about);
        match &self.phase {
            Phase::Summoned => summons(),
            Phase::Collecting(fixing) => {
                fixing.fixed.members().contains(from) && fixing.fixed.digest() == *about
            }
            Phase::Opening(fixing, opening) => {
                let again = !self.tokens.contains_key(&from) && fixing.fixed.digest() == *about;
                opening.set.contains(from) && (opening.digest == *about || again)
            }
        }
    }

    /// Whether the phase still waits for anybody. Asked after every message, so
    /// that what is held is counted before anybody is looked for.
    pub(super) fn waits(&self) -> bool {
        let (held, wanted) = match &self.phase {
            Phase::Summoned => (self.present.len() + self.declined.len(), self.called.len()),
            Phase::Collecting(fixing) => {
                (self.tokens.len() + self.declined.len(), fixing.fixed.size() as usize)
            }
            Phase::Opening(_, opening) => {
                let held = if opening.masked { self.openings.len() } else { self.tokens.len() };
                (held, opening.set.count())
            }
        };
        held < wanted || !self.missing().is_empty()
    }

    /// Controllers that the phase still waits for, ascending.
    pub(super) fn missing(&self) -> Vec<u32> {
        let waits = |position: &u32| !self.declined.contains_key(position);
        match &self.phase {
            Phase::Summoned => {
                let silent = self.called.keys().filter(|p| !self.present.contains_key(*p));
                silent.copied().filter(waits).collect()
            }
            Phase::Collecting(fixing) => {
                let members = fixing.fixed.members().iter();
                members.filter(|p| !self.tokens.contains_key(p)).filter(waits).collect()
            }
            Phase::Opening(_, opening) => {
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
        let streams = self.accepted(set);
        let owner = |at: &u32| plan.streams.get(*at as usize).map(|planned| planned.owner);
        narrow(streams.iter().filter_map(owner).collect::<BTreeSet<OwnerId>>().len())
    }

    /// Streams accepted by the members of a set, ascending.
    pub(super) fn accepted(&self, set: &RosterSet) -> Vec<u32> {
        let present = self.present.iter().filter(|(position, _)| set.contains(**position));
        let mut streams: Vec<u32> =
            present.flat_map(|(_, present)| present.accepted.iter().copied()).collect();
        streams.sort_unstable();
        streams
    }

    /// Streams that were online and are not in a result, counted by reason.
    pub(super) fn excluded(&self) -> BTreeMap<Exclusion, u32> {
        let mut counts = BTreeMap::new();
        let named = self.incomplete.iter().chain(self.present.values().flat_map(|p| &p.excluded));
        for (_, reason) in named {
            *counts.entry(*reason).or_insert(0) += 1;
        }
        let left_out = match &self.phase {
            Phase::Summoned => self.uncounted(),
            Phase::Collecting(_) => self.absent,
            Phase::Opening(_, opening) => {
                let outside = self.present.iter().filter(|(p, _)| !opening.set.contains(**p));
                let streams: u32 = outside.map(|(_, p)| narrow(p.accepted.len())).sum();
                self.absent.saturating_add(streams)
            }
        };
        if left_out > 0 {
            counts.insert(Exclusion::ControllerAbsent, left_out);
        }
        counts
    }

    /// Complete streams of controllers that have not answered the summons.
    pub(super) fn uncounted(&self) -> u32 {
        let silent = self.called.iter().filter(|(p, _)| !self.present.contains_key(*p));
        silent.map(|(_, called)| narrow(called.streams.len())).sum()
    }

    /// Who was not there by refusal says more than that they were not: the
    /// commonest reason takes the place of a quorum that was lost.
    pub(super) fn blame(&self, failure: Failure) -> Failure {
        let refused = self.refused().into_iter().max_by_key(|(_, many)| *many);
        match (failure, refused) {
            (Failure::QuorumLost { .. }, Some((reason, _))) => Failure::ControllerRefused(reason),
            (failure, _) => failure,
        }
    }

    /// Controllers that declined, counted by reason.
    pub(super) fn refused(&self) -> BTreeMap<Refused, u32> {
        let mut counts = BTreeMap::new();
        for reason in self.declined.values() {
            *counts.entry(*reason).or_insert(0) += 1;
        }
        counts
    }
}
