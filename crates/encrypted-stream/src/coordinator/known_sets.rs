//! What is known about the sets of a query's days: which sets there were, who has opened them, and which bounds
//! controllers have stated.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use alpheus_policy::ids::ControllerId;

/// Days of data whose sets are known: windows of the last one may still be under way.
const DAYS: usize = 3;
/// Sets of a day that are known, the last ones.
const SETS: usize = 64;
/// Members of all known sets of a query together, 48 bytes each. Beyond that, sets of the oldest day are forgotten
/// first; one set stays however large it is.
const MEMBERS: usize = 1 << 17;
/// A bound that was stated is believed for so many days, although an owner may have raised it since.
const BELIEVED: u64 = 7;

#[derive(Debug, Default)]
pub(super) struct SetHistory {
    /// The bound that a controller stated last, and on which day.
    pub(super) limits: BTreeMap<ControllerId, (u32, u64)>,
    pub(super) days: BTreeMap<u64, Day>,
}

#[derive(Debug, Default)]
pub(super) struct Day {
    /// Controllers that said that the day has had its sets.
    full: BTreeSet<ControllerId>,
    pub(super) sets: VecDeque<OpenedSet>,
}

#[derive(Debug)]
pub(super) struct OpenedSet {
    pub(super) set: OwnerSet,
    /// Which of its members have opened it, in their order.
    opened: Vec<bool>,
}

/// The members of a set, ascending, with what each has in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerSet(pub(super) Vec<(ControllerId, Share)>);

/// How many owners with data a member has, and which streams, by a hash that need not be strong: nothing
/// rests on it but whom the service asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) owners: u32,
    pub(super) streams: u64,
}

impl OwnerSet {
    fn position(&self, member: &ControllerId) -> Option<usize> {
        self.0.binary_search_by(|(id, _)| id.cmp(member)).ok()
    }

    /// Whether it has the same members as another one, with as many owners. That is all that a member can tell
    /// of the others.
    fn has_same_counts(&self, other: &OwnerSet) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        let same = |((a, own), (b, of)): (&(ControllerId, Share), &(ControllerId, Share))| {
            a == b && own.owners == of.owners
        };
        self.0.len() == other.0.len() && pairs.all(same)
    }
}

impl OpenedSet {
    fn note(&mut self, by: &BTreeSet<ControllerId>) {
        for (opened, (id, _)) in self.opened.iter_mut().zip(&self.set.0) {
            *opened |= by.contains(id);
        }
    }

    fn is_by(&self, member: &ControllerId) -> bool {
        let at = self.set.position(member);
        at.and_then(|at| self.opened.get(at)).is_some_and(|opened| *opened)
    }

    /// Whether the member at a place has opened it and cannot tell it from another one, which has the same counts.
    fn is_for(&self, at: usize, share: Share) -> bool {
        let own = self.set.0.get(at).zip(self.opened.get(at));
        own.is_some_and(|((_, own), opened)| *opened && *own == share)
    }
}

impl Day {
    /// The known sets that a member may take for this one.
    fn like(&self, set: &OwnerSet) -> Vec<&OpenedSet> {
        self.sets.iter().filter(|own| own.set.has_same_counts(set)).collect()
    }

    /// Whether a controller has opened a set on this day.
    pub(super) fn has_opened(&self, member: &ControllerId, set: &OwnerSet) -> bool {
        let Some(at) = set.position(member) else { return false };
        let share = set.0.get(at).map(|(_, share)| *share);
        share.is_some_and(|share| self.like(set).iter().any(|own| own.is_for(at, share)))
    }

    /// How many sets a controller is known to have opened.
    pub(super) fn opened_by(&self, member: &ControllerId) -> usize {
        self.sets.iter().filter(|own| own.is_by(member)).count()
    }
}

impl SetHistory {
    /// The bound of a controller on a day, as far as it is known.
    fn limit(&self, member: &ControllerId, day: u64) -> Option<u32> {
        let (limit, said) = self.limits.get(member)?;
        (day <= said.saturating_add(BELIEVED)).then_some(*limit)
    }

    /// Members that would refuse a set.
    pub(super) fn refusing(&self, day: u64, set: &OwnerSet) -> BTreeMap<ControllerId, u32> {
        let Some(of_day) = self.days.get(&day) else { return BTreeMap::new() };
        let like = of_day.like(set);
        let refuses = |(at, (member, share)): (usize, &(ControllerId, Share))| {
            let limit = self.limit(member, day)?;
            let full = of_day.full.contains(member) || of_day.opened_by(member) >= limit as usize;
            let known = like.iter().any(|own| own.is_for(at, *share));
            (full && !known).then_some((*member, limit))
        };
        set.0.iter().enumerate().filter_map(refuses).collect()
    }

    /// A day, unless it is older than all that are known.
    fn day(&mut self, day: u64) -> Option<&mut Day> {
        if self.days.len() >= DAYS && !self.days.contains_key(&day) {
            if self.days.first_key_value().is_some_and(|(first, _)| day < *first) {
                return None;
            }
            self.days.pop_first();
        }
        Some(self.days.entry(day).or_default())
    }

    /// A controller says that it has had as many sets on a day. Its statement about a later day stays.
    pub(super) fn state(&mut self, member: ControllerId, limit: u32, day: u64) {
        if self.limits.get(&member).is_none_or(|(_, said)| *said <= day) {
            self.limits.insert(member, (limit, day));
        }
        if let Some(of_day) = self.day(day) {
            of_day.full.insert(member);
        }
    }

    /// Controllers have opened a set.
    pub(super) fn note(&mut self, day: u64, set: OwnerSet, by: &BTreeSet<ControllerId>) {
        let Some(day) = self.day(day) else { return };
        if let Some(own) = day.sets.iter_mut().find(|own| own.set == set) {
            own.note(by);
            return;
        }
        if day.sets.len() >= SETS {
            day.sets.pop_front();
        }
        let mut own = OpenedSet { opened: vec![false; set.0.len()], set };
        own.note(by);
        day.sets.push_back(own);
        self.forget();
    }

    /// How many sets are known, and how many members they have.
    fn size(&self) -> (usize, usize) {
        let sets = self.days.values().flat_map(|day| &day.sets);
        sets.fold((0, 0), |(sets, members), own| (sets + 1, members + own.set.0.len()))
    }

    /// Drops the oldest sets while they have too many members together.
    fn forget(&mut self) {
        let (mut sets, mut members) = self.size();
        for day in self.days.values_mut() {
            while members > MEMBERS && sets > 1 {
                let Some(gone) = day.sets.pop_front() else { break };
                (sets, members) = (sets - 1, members.saturating_sub(gone.set.0.len()));
            }
        }
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

    fn all(members: &[u8]) -> BTreeSet<ControllerId> {
        members.iter().map(|number| id(*number)).collect()
    }

    #[test]
    fn a_member_tells_sets_apart_by_members_counts_and_its_own_streams() {
        let mut known = SetHistory::default();
        known.note(5, set(&[(1, 2, 7), (2, 1, 8)]), &all(&[1, 2]));
        let has = |member: u8, other: &[(u8, u32, u64)]| {
            known.days[&5].has_opened(&id(member), &set(other))
        };
        assert!(has(1, &[(1, 2, 7), (2, 1, 9)]));
        assert!(!has(2, &[(1, 2, 7), (2, 1, 9)]));
        assert!(!has(1, &[(1, 2, 7), (2, 2, 8)]));
        assert!(!has(1, &[(1, 2, 7)]));
        assert!(!has(3, &[(1, 2, 7), (2, 1, 8)]));
    }

    #[test]
    fn who_has_not_opened_a_known_set_would_refuse_it_once_full() {
        let (mut known, one) = (SetHistory::default(), set(&[(1, 1, 1), (2, 1, 1)]));
        known.note(5, one.clone(), &all(&[1]));
        (1..=2).for_each(|member| known.state(id(member), 1, 5));
        assert_eq!(known.refusing(5, &one), BTreeMap::from([(id(2), 1)]));
        known.note(5, one.clone(), &all(&[2]));
        assert_eq!((known.refusing(5, &one), known.size()), (BTreeMap::new(), (1, 2)));
    }

    /// However many members windows have, and however they change.
    #[test]
    fn known_sets_have_a_bounded_number_of_members_and_the_last_one_is_known() {
        let large = |members: u32, seed: u64| {
            let member = |at: u32| {
                let mut id = [0; 32];
                id[..4].copy_from_slice(&at.to_be_bytes());
                (ControllerId(id), Share { owners: 1, streams: seed })
            };
            OwnerSet((0..members).map(member).collect())
        };
        let mut known = SetHistory::default();
        for (number, noted) in (0..60).zip(1_usize..) {
            let (day, set) = (number / 20, large(10_000, number));
            known.note(day, set.clone(), &BTreeSet::new());
            let (sets, members) = known.size();
            assert!(members <= MEMBERS && sets == noted.min(13), "{sets}");
            assert_eq!(known.days[&day].sets.back().map(|own| &own.set), Some(&set));
        }
        known.note(2, large(200_000, 0), &BTreeSet::new());
        assert_eq!(known.size(), (1, 200_000));
        (0..200).for_each(|number| known.note(2, large(2, number), &BTreeSet::new()));
        assert_eq!(known.size(), (SETS, 2 * SETS));
    }

    /// A refusal of an older day may come late.
    #[test]
    fn what_is_said_of_an_older_day_replaces_nothing_of_a_later_one() {
        let mut known = SetHistory::default();
        known.state(id(1), 3, 9);
        known.state(id(1), 1, 8);
        assert_eq!(known.limits[&id(1)], (3, 9));
        known.state(id(2), 1, 7);
        known.state(id(2), 2, 6);
        assert_eq!(known.days.keys().copied().collect::<Vec<_>>(), [7, 8, 9]);
        known.note(6, set(&[(1, 1, 1)]), &all(&[1]));
        assert_eq!(known.size(), (0, 0));
        known.state(id(2), 2, 10);
        assert_eq!(known.days.keys().copied().collect::<Vec<_>>(), [8, 9, 10]);
    }

    #[test]
    fn a_controller_is_held_to_its_bound_for_a_week_and_days_are_few() {
        let mut known = SetHistory::default();
        let (one, other) = (set(&[(1, 1, 1)]), set(&[(1, 2, 1)]));
        assert!(known.refusing(5, &one).is_empty());
        known.state(id(1), 1, 5);
        assert_eq!(known.refusing(5, &one), BTreeMap::from([(id(1), 1)]));
        for day in [6, 5 + BELIEVED, 6 + BELIEVED] {
            known.note(day, one.clone(), &all(&[1]));
            assert!(known.refusing(day, &one).is_empty());
            let believed = day <= 5 + BELIEVED;
            assert_eq!(known.refusing(day, &other).is_empty(), !believed);
        }
        assert_eq!(known.days.len(), DAYS);
    }
}
