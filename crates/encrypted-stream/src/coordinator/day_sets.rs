//! Over which sets of owners members have opened the windows of a day, for those whose owners bound how
//! many these are (`setsPerDay`; `docs/protocol.md`, *Sets of a day*).
//!
//! A member that has had its sets refuses another one. If that is an opening, the window is lost, and each
//! opening that others gave has used up one of their sets. So a set is asked for only if, as far as is
//! known, all its members open it. Where members have had their sets, M is one of these.
//!
//! A controller states its bound when it refuses, and is held to it: it cannot refuse a set
//! that it has opened on that day, and is in no other one. So it gains nothing by a false one.
//!
//! All of this is what the service knows. It may have forgotten sets, or never have heard of them. So where all
//! members of M have given tokens, which they do only if they would open M, it asks for M whatever it knows.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alpheus_policy::ids::ControllerId;
use alpheus_time::Window;

use super::Coordinator;
use super::known_sets::{OpenedSet, OwnerSet, SetHistory, Share};
use super::output::WindowResult;
use super::round::{FixedRound, Phase, Round};
use crate::error::{ReleaseError, WindowRefusalError};
use crate::keys::day_of;
use crate::mask::set::RosterSet;

/// What the service knows of the sets of a query's days. Not durable: a restarted service learns it
/// again. Clones share it, as the epochs of one query do.
#[derive(Clone, Debug, Default)]
pub struct DaySets(Arc<Mutex<SetHistory>>);

/// Why a window cannot open with the tokens that it has.
pub(super) struct Ruin {
    pub(super) failure: ReleaseError,
    /// Whether one of those who would refuse is known to have had a set on that day.
    pub(super) is_believed: bool,
}

impl DaySets {
    fn known(&self) -> MutexGuard<'_, SetHistory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Coordinator {
    /// Shares what is known about the sets of days, as coordinators of one query's epochs do.
    pub fn share_sets(&mut self, sets: &DaySets) {
        self.day_sets = sets.clone();
    }

    /// Notes that a controller has had the sets of a day.
    pub(super) fn note_bound(&mut self, from: u32, window: Window, reason: WindowRefusalError) {
        let WindowRefusalError::TooManySets { limit } = reason else { return };
        let Some(id) = self.controller_at(from) else { return };
        self.day_sets.known().state(id, limit, day_of(window.start));
    }

    /// Notes who has opened the set of a window that ends.
    pub(super) fn note_opened(&self, round: &Round) {
        let Phase::Opening(_, opening) = &round.phase else { return };
        if !opening.masked || round.openings.is_empty() {
            return;
        }
        let set = self.owners_of(round, &opening.set);
        let by = round.openings.keys().filter_map(|at| self.controller_at(*at));
        let by: BTreeSet<ControllerId> = by.collect();
        self.day_sets.known().note(day_of(round.window.start), set, &by);
    }

    /// Members of a window's set that would refuse it, with the bound of one of them.
    fn refusing(&self, round: &Round, set: &RosterSet) -> (BTreeSet<u32>, Option<u32>) {
        if self.day_sets.known().limits.is_empty() {
            return (BTreeSet::new(), None);
        }
        let owners = self.owners_of(round, set);
        let refusing = self.day_sets.known().refusing(day_of(round.window.start), &owners);
        let limit = refusing.values().min().copied();
        (refusing.keys().filter_map(|id| self.announced.position(id)).collect(), limit)
    }

    /// M that none of its members refuses for its set, if there is one: a set that the day has had, or one
    /// without those who have had theirs. If not, M stays.
    pub(super) fn of_known_sets(
        &self,
        round: &Round,
        fixing: FixedRound,
        left_out: &BTreeSet<u32>,
    ) -> FixedRound {
        let (mut refusing, _) = self.refusing(round, fixing.fixed.members());
        if refusing.is_empty() {
            return fixing;
        }
        if let Some(known) = self.known_set(round, left_out) {
            return known;
        }
        let mut without = left_out.clone();
        while !refusing.is_empty() {
            without.append(&mut refusing);
            let Ok(smaller) = self.acceptable(round, &without) else { break };
            refusing = self.refusing(round, smaller.fixed.members()).0;
            if refusing.is_empty() {
                return smaller;
            }
        }
        // Nothing is lost by including those who have ruined windows.
        self.known_set(round, &BTreeSet::new()).unwrap_or(fixing)
    }

    /// M over the largest set of the day that is present as it was.
    fn known_set(&self, round: &Round, left_out: &BTreeSet<u32>) -> Option<FixedRound> {
        let present: BTreeSet<u32> = round.reports.keys().copied().collect();
        let known = self.sets_of_day(round, left_out).into_iter().filter_map(|set| {
            let without = present.iter().filter(|at| !set.contains(at)).copied().collect();
            let fixing = self.acceptable(round, &without).ok()?;
            let whole = fixing.fixed.members().iter().eq(set.iter().copied());
            let opens = self.refusing(round, fixing.fixed.members()).0.is_empty();
            (whole && opens).then_some(fixing)
        });
        known.max_by_key(|own| own.fixed.population(own.fixed.members()))
    }

    /// The sets of the window's day that are present as they were, by position, without those left out.
    fn sets_of_day(&self, round: &Round, left_out: &BTreeSet<u32>) -> Vec<BTreeSet<u32>> {
        let known = self.day_sets.known();
        let sets =
            known.days.get(&day_of(round.window.start)).into_iter().flat_map(|day| &day.sets);
        let here = |own: &OpenedSet| {
            let members = own.set.0.iter();
            members
                .map(|(id, share)| {
                    let position =
                        self.announced.position(id).filter(|at| !left_out.contains(at))?;
                    (self.share(round, position)? == *share).then_some(position)
                })
                .collect()
        };
        sets.filter_map(here).collect()
    }

    /// S over members that, as far as is known, all open it. All of M do if all have given tokens.
    ///
    /// # Errors
    /// That one of the members refuses, if no set without those who do can open.
    pub(super) fn openable(
        &self,
        round: &Round,
        fixing: &FixedRound,
        set: RosterSet,
    ) -> Result<RosterSet, Ruin> {
        if set == *fixing.fixed.members() {
            return Ok(set);
        }
        let (mut set, mut refused, mut is_believed) = (set, None, false);
        loop {
            let (refusing, limit) = self.refusing(round, &set);
            refused = refused.or(limit);
            is_believed |= refusing.iter().any(|at| self.is_believed(round, *at));
            if refusing.is_empty() {
                return Ok(set);
            }
            let left = set.iter().filter(|at| !refusing.contains(at));
            set = self.graph.peel(RosterSet::of(set.roster(), left));
            if self.forbids(&fixing.fixed, &set).is_some() {
                let reason = WindowRefusalError::TooManySets { limit: refused.unwrap_or(0) };
                let failure = ReleaseError::ControllerRefused(reason);
                return Err(Ruin { failure, is_believed });
            }
        }
    }

    /// Members that a window has failed for: those of S whose openings it lacked, or if there was no S, those
    /// of M whose tokens it lacked. A member that has had its
    /// sets is not at fault that S is another one, but members of M are that gave no token. If it is not known
    /// to have had any set on that day, nobody is: it may lie, so that others pay.
    pub(super) fn at_fault(
        &self,
        round: &Round,
        result: &Result<WindowResult, ReleaseError>,
    ) -> BTreeSet<u32> {
        if round.is_ruined {
            return self.without_token(round);
        }
        let Some(set) = round.opening_set() else {
            return self.at_fault_before_set(round, result);
        };
        match result {
            Err(ReleaseError::ControllerRefused(_)) => {
                let refused = set.iter().filter(|at| round.refusals.contains_key(at));
                let (bounded, mut at_fault): (BTreeSet<u32>, BTreeSet<u32>) =
                    refused.partition(|at| self.is_bounded(round, *at, &set));
                if bounded.iter().any(|at| self.is_believed(round, *at)) {
                    at_fault.append(&mut self.without_token(round));
                }
                at_fault
            }
            Err(ReleaseError::OpeningLost) => round.missing().into_iter().collect(),
            Err(ReleaseError::FaultyOpening | ReleaseError::NotTheRow) => {
                let faults = round.committed.faults.iter().map(|(at, _)| *at);
                let silent = round.committed.silent.iter().map(|(at, _)| *at);
                faults.chain(silent).filter(|at| set.contains(*at)).collect()
            }
            _ => BTreeSet::new(),
        }
    }

    /// Who is at fault for a window without S: members of M without a token, or those whom the epoch's list
    /// names and who were not present. They attended, so the list, and with it the quorum, is as long as they
    /// made it.
    fn at_fault_before_set(
        &self,
        round: &Round,
        result: &Result<WindowResult, ReleaseError>,
    ) -> BTreeSet<u32> {
        let is_waiting = matches!(round.phase, Phase::Summoned);
        match result {
            // What a refusal says takes the place of a quorum that is lost.
            Err(ReleaseError::ControllerRefused(WindowRefusalError::TooManySets { .. })) => {
                BTreeSet::new()
            }
            Err(ReleaseError::QuorumLost { .. } | ReleaseError::ControllerRefused(_)) => {
                if is_waiting {
                    self.listed_and_absent(round)
                } else {
                    self.without_token(round)
                }
            }
            Err(ReleaseError::PopulationTooSmall { .. })
                if is_waiting && self.would_suffice(round) =>
            {
                self.listed_and_absent(round)
            }
            _ => BTreeSet::new(),
        }
    }

    /// Members of an epoch's list that were not present in its window.
    fn listed_and_absent(&self, round: &Round) -> BTreeSet<u32> {
        if self.plan().epoch.is_none() {
            return BTreeSet::new();
        }
        let listed = 0..self.announced.controllers();
        listed.filter(|at| !round.reports.contains_key(at)).collect()
    }

    /// Whether enough owners had data if all of those had who were not present.
    fn would_suffice(&self, round: &Round) -> bool {
        let owners = |at: u32| {
            let report = round.reports.get(&at);
            report.map_or_else(|| self.announced.owners(at), |report| report.owners)
        };
        let mut owners: Vec<u32> = (0..self.announced.controllers()).map(owners).collect();
        owners.sort_unstable();
        // The largest do not count, as they may be invented.
        let discounted = usize::try_from(self.announced.discounted()).unwrap_or(usize::MAX);
        let counted = owners.iter().rev().skip(discounted).map(|many| u64::from(*many));
        counted.sum::<u64>() >= u64::from(self.plan().population.min)
    }

    /// Members of M that gave no token, but for those that have had their sets.
    fn without_token(&self, round: &Round) -> BTreeSet<u32> {
        let (Phase::Collecting(fixing) | Phase::Opening(fixing, _)) = &round.phase else {
            return BTreeSet::new();
        };
        let members = fixing.fixed.members();
        let lacking = members.iter().filter(|at| !round.tokens.contains_key(at));
        lacking.filter(|at| !self.is_bounded(round, *at, members)).collect()
    }

    /// Whether a member is known to have opened a set on the window's day, so that it may have had its sets.
    fn is_believed(&self, round: &Round, position: u32) -> bool {
        let known = self.day_sets.known();
        let day = known.days.get(&day_of(round.window.start));
        let id = self.controller_at(position);
        id.zip(day).is_some_and(|(id, day)| day.opened_by(&id) > 0)
    }

    /// Whether a member has refused a set because it has had others, and is not known to lie: it has
    /// not opened this one before.
    fn is_bounded(&self, round: &Round, position: u32, set: &RosterSet) -> bool {
        let refused = round.refusals.get(&position);
        if !matches!(refused, Some(WindowRefusalError::TooManySets { .. })) {
            return false;
        }
        let (set, known) = (self.owners_of(round, set), self.day_sets.known());
        let day = known.days.get(&day_of(round.window.start));
        let id = self.controller_at(position);
        !id.zip(day).is_some_and(|(id, day)| day.has_opened(&id, &set))
    }

    /// A set of members, with what each has in the window.
    fn owners_of(&self, round: &Round, set: &RosterSet) -> OwnerSet {
        let member = |at: u32| Some((self.controller_at(at)?, self.share(round, at)?));
        OwnerSet(set.iter().filter_map(member).collect())
    }

    fn share(&self, round: &Round, position: u32) -> Option<Share> {
        let report = round.reports.get(&position)?;
        let mut hasher = DefaultHasher::new();
        let streams = report.accepted.iter();
        streams
            .filter_map(|at| self.plan().streams.get(*at as usize))
            .for_each(|planned| planned.stream.hash(&mut hasher));
        Some(Share { owners: report.owners, streams: hasher.finish() })
    }
}
