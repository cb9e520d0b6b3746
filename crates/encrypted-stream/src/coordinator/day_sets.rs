//! Over which sets of owners members have opened the windows of a day, for those whose owners bound how
//! many these are (`setsPerDay`; `docs/protocol.md`, *Sets of a day*).
//!
//! A member that has had its sets refuses another one. If that is an opening, the window is lost, and each
//! opening that others gave has used up one of their sets. So a set is asked for only if, as far as is
//! known, all its members open it. Where members have had their sets, M is one of these.
//!
//! A controller states its bound when it refuses, and is held to it: it cannot refuse a set
//! that it has opened on that day, and is in no other one. So it gains nothing by a false one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alpheus_policy::ids::ControllerId;
use alpheus_time::Window;

use super::Coordinator;
use super::output::Opened;
use super::round::{FixedRound, Phase, Round};
use crate::error::{ReleaseError, WindowRefusalError};
use crate::keys::DAY;
use crate::mask::set::RosterSet;

/// Days of data whose sets are known: windows of the last one may still be under way.
const DAYS: usize = 3;
/// Sets of a day that are known, the last ones.
const SETS: usize = 64;
/// A bound that was stated is believed for so many days.
const BELIEVED: u64 = 7;

/// What the service knows of the sets of a query's days. Not durable: a restarted service learns it
/// again. Clones share it, as the epochs of one query do.
#[derive(Clone, Debug, Default)]
pub struct DaySets(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The bound that a controller stated last, and on which day.
    limits: BTreeMap<ControllerId, (u32, u64)>,
    days: BTreeMap<u64, Day>,
}

#[derive(Debug, Default)]
struct Day {
    /// Controllers that said that the day has had its sets.
    full: BTreeSet<ControllerId>,
    sets: VecDeque<OpenedSet>,
}

#[derive(Debug)]
struct OpenedSet {
    set: OwnerSet,
    /// Who has opened it.
    by: BTreeSet<ControllerId>,
}

/// The members of a set, with what each has in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnerSet(BTreeMap<ControllerId, Share>);

/// How many owners with data a member has, and which streams, by a hash that need not be strong: nothing
/// rests on it but whom the service asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    owners: u32,
    streams: u64,
}

impl OwnerSet {
    /// Whether a member cannot tell it from another one: it knows only its own streams.
    fn is_same_for(&self, member: &ControllerId, other: &OwnerSet) -> bool {
        let owners = |set: &OwnerSet| -> Vec<(ControllerId, u32)> {
            set.0.iter().map(|(id, share)| (*id, share.owners)).collect()
        };
        self.0.get(member) == other.0.get(member) && owners(self) == owners(other)
    }
}

impl Day {
    /// Whether a controller has opened a set on this day.
    fn has_opened(&self, member: &ControllerId, set: &OwnerSet) -> bool {
        self.opened_by(member).any(|own| own.set.is_same_for(member, set))
    }

    fn opened_by(&self, member: &ControllerId) -> impl Iterator<Item = &OpenedSet> {
        self.sets.iter().filter(|own| own.by.contains(member))
    }
}

impl Known {
    /// The bound of a controller on a day, as far as it is known.
    fn limit(&self, member: &ControllerId, day: u64) -> Option<u32> {
        let (limit, said) = self.limits.get(member)?;
        (day <= said.saturating_add(BELIEVED)).then_some(*limit)
    }

    /// Members that would refuse a set.
    fn refusing(&self, day: u64, set: &OwnerSet) -> BTreeMap<ControllerId, u32> {
        let of_day = self.days.get(&day);
        let refuses = |member: &ControllerId| {
            let limit = self.limit(member, day)?;
            let of_day = of_day?;
            let full =
                of_day.full.contains(member) || of_day.opened_by(member).count() >= limit as usize;
            (full && !of_day.has_opened(member, set)).then_some((*member, limit))
        };
        set.0.keys().filter_map(refuses).collect()
    }

    fn day(&mut self, day: u64) -> &mut Day {
        while self.days.len() >= DAYS && !self.days.contains_key(&day) {
            self.days.pop_first();
        }
        self.days.entry(day).or_default()
    }
}

impl DaySets {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The UTC day that a window begins on, as controllers count it.
fn day_of(window: Window) -> u64 {
    window.start.0 / DAY
}

impl Coordinator {
    /// Shares what is known of the sets of days, as coordinators of one query's epochs do.
    pub fn share_sets(&mut self, sets: &DaySets) {
        self.day_sets = sets.clone();
    }

    /// Notes that a controller has had the sets of a day.
    pub(super) fn note_bound(&mut self, from: u32, window: Window, reason: WindowRefusalError) {
        let WindowRefusalError::TooManySets { limit } = reason else { return };
        let Some(id) = self.plan().roster.get(from as usize).copied() else { return };
        let (mut known, day) = (self.day_sets.known(), day_of(window));
        known.limits.insert(id, (limit, day));
        known.day(day).full.insert(id);
    }

    /// Notes who has opened the set of a window that ends.
    pub(super) fn note_opened(&self, round: &Round) {
        let Phase::Opening(_, opening) = &round.phase else { return };
        if !opening.masked || round.openings.is_empty() {
            return;
        }
        let set = self.owners_of(round, &opening.set);
        let roster = &self.plan().roster;
        let by = round.openings.keys().filter_map(|at| roster.get(*at as usize).copied());
        let (by, mut known): (BTreeSet<ControllerId>, _) = (by.collect(), self.day_sets.known());
        let day = known.day(day_of(round.window));
        if let Some(own) = day.sets.iter_mut().find(|own| own.set == set) {
            own.by.extend(by);
            return;
        }
        if day.sets.len() >= SETS {
            day.sets.pop_front();
        }
        day.sets.push_back(OpenedSet { set, by });
    }

    /// Members of a window's set that would refuse it, with the bound of one of them.
    fn refusing(&self, round: &Round, set: &RosterSet) -> (BTreeSet<u32>, Option<u32>) {
        if self.day_sets.known().limits.is_empty() {
            return (BTreeSet::new(), None);
        }
        let owners = self.owners_of(round, set);
        let refusing = self.day_sets.known().refusing(day_of(round.window), &owners);
        let limit = refusing.values().min().copied();
        (refusing.keys().filter_map(|id| self.position(id)).collect(), limit)
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
        let sets = known.days.get(&day_of(round.window)).into_iter().flat_map(|day| &day.sets);
        let here = |own: &OpenedSet| {
            own.set
                .0
                .iter()
                .map(|(id, share)| {
                    let position = self.position(id).filter(|at| !left_out.contains(at))?;
                    (self.share(round, position)? == *share).then_some(position)
                })
                .collect()
        };
        sets.filter_map(here).collect()
    }

    /// S over members that, as far as is known, all open it.
    ///
    /// # Errors
    /// That one of the members refuses, if no set without those who do can open.
    pub(super) fn openable(
        &self,
        round: &Round,
        fixing: &FixedRound,
        set: RosterSet,
    ) -> Result<RosterSet, ReleaseError> {
        let (mut set, mut refused) = (set, None);
        loop {
            let (refusing, limit) = self.refusing(round, &set);
            refused = refused.or(limit);
            if refusing.is_empty() {
                return Ok(set);
            }
            let left = set.iter().filter(|at| !refusing.contains(at));
            set = self.graph.peel(RosterSet::of(set.roster(), left));
            if self.forbids(&fixing.fixed, &set).is_some() {
                let reason = WindowRefusalError::TooManySets { limit: refused.unwrap_or(0) };
                return Err(ReleaseError::ControllerRefused(reason));
            }
        }
    }

    /// Members that a window has failed for: those of S whose openings it lacked. A member that has had its
    /// sets is not at fault that S is another one, but members of M are that gave no token.
    pub(super) fn at_fault(
        &self,
        round: &Round,
        result: &Result<Opened, ReleaseError>,
    ) -> BTreeSet<u32> {
        if round.is_ruined {
            return self.without_token(round);
        }
        let Some(set) = round.opening_set() else { return BTreeSet::new() };
        match result {
            Err(ReleaseError::ControllerRefused(_)) => {
                let refused = set.iter().filter(|at| round.refusals.contains_key(at));
                let (bounded, mut at_fault): (BTreeSet<u32>, BTreeSet<u32>) =
                    refused.partition(|at| self.is_bounded(round, *at, &set));
                if !bounded.is_empty() {
                    at_fault.append(&mut self.without_token(round));
                }
                at_fault
            }
            Err(ReleaseError::OpeningLost) => round.missing().into_iter().collect(),
            _ => BTreeSet::new(),
        }
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

    /// Whether a member has refused a set because it has had others, and is not known to lie: it has
    /// not opened this one before.
    fn is_bounded(&self, round: &Round, position: u32, set: &RosterSet) -> bool {
        let refused = round.refusals.get(&position);
        if !matches!(refused, Some(WindowRefusalError::TooManySets { .. })) {
            return false;
        }
        let (set, known) = (self.owners_of(round, set), self.day_sets.known());
        let day = known.days.get(&day_of(round.window));
        let id = self.plan().roster.get(position as usize);
        !id.zip(day).is_some_and(|(id, day)| day.has_opened(id, &set))
    }

    /// A set of members, with what each has in the window.
    fn owners_of(&self, round: &Round, set: &RosterSet) -> OwnerSet {
        let member = |at: u32| {
            let id = self.plan().roster.get(at as usize).copied()?;
            Some((id, self.share(round, at)?))
        };
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

    fn position(&self, id: &ControllerId) -> Option<u32> {
        let position = self.plan().roster.binary_search(id).ok()?;
        u32::try_from(position).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> ControllerId {
        ControllerId([number; 32])
    }

    fn set(members: &[(u8, u32, u64)]) -> OwnerSet {
        let share = |(at, owners, streams): &(u8, u32, u64)| {
            (id(*at), Share { owners: *owners, streams: *streams })
        };
        OwnerSet(members.iter().map(share).collect())
    }

    #[test]
    fn a_member_tells_sets_apart_by_members_counts_and_its_own_streams() {
        let one = set(&[(1, 2, 7), (2, 1, 8)]);
        assert!(one.is_same_for(&id(1), &set(&[(1, 2, 7), (2, 1, 9)])));
        assert!(!one.is_same_for(&id(2), &set(&[(1, 2, 7), (2, 1, 9)])));
        assert!(!one.is_same_for(&id(1), &set(&[(1, 2, 7), (2, 2, 8)])));
        assert!(!one.is_same_for(&id(1), &set(&[(1, 2, 7)])));
    }

    #[test]
    fn a_controller_is_held_to_its_bound_for_a_week_and_days_are_few() {
        let mut known = Known::default();
        let (one, other) = (set(&[(1, 1, 1)]), set(&[(1, 2, 1)]));
        assert!(known.refusing(5, &one).is_empty());
        known.limits.insert(id(1), (1, 5));
        known.day(5).full.insert(id(1));
        assert_eq!(known.refusing(5, &one), BTreeMap::from([(id(1), 1)]));
        for day in [6, 5 + BELIEVED, 6 + BELIEVED] {
            let by = BTreeSet::from([id(1)]);
            known.day(day).sets.push_back(OpenedSet { set: one.clone(), by });
            assert!(known.refusing(day, &one).is_empty());
            let believed = day <= 5 + BELIEVED;
            assert_eq!(known.refusing(day, &other).is_empty(), !believed);
        }
        assert_eq!(known.days.len(), DAYS);
    }
}
