//! Over how many different sets of owners the data of a day is summed.
//!
//! A service chooses whom it calls, and says who is there. Sums over sets that it chose are equations
//! in the owners' values, and enough of them are solved. So owners may bound how many different
//! sets the sums of one UTC day are over, for each attribute, whatever plans ask. The day is that of
//! the data, and a window opens once. So neither a clock nor a restart gives a day another bound.
//!
//! Sets are compared as this controller knows them: who is in S, how many owners of
//! each have data, and which streams of its own are in its token.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::labels;
use alpheus_policy::ids::SchemaId;
use alpheus_policy::plan::Plan;
use alpheus_policy::policy::MAX_SETS_PER_DAY;
use alpheus_time::{Span, Timestamp, Window};

use super::plan_state::PlanState;
use super::{Controller, stream_state};
use crate::error::WindowRefusalError;
use crate::keys::{DAY, day_of};
use crate::ledger::{Change, Record};
use crate::mask::set::RosterSet;
use crate::membership::FixedMembership;

/// A set of owners, as a controller knows it.
pub(super) type SetId = [u8; 16];

/// Days of an attribute whose sets are remembered. Of earlier ones none is summed any more.
const DAYS_KEPT: usize = 400;

/// The sets that sums were opened over.
#[derive(Default)]
pub(super) struct Sets(BTreeMap<(SchemaId, u16), Days>);

/// The same of an attribute, by day.
type Days = BTreeMap<u64, BTreeSet<SetId>>;

impl Sets {
    /// Takes a day's sets from the ledger.
    pub(super) fn take(&mut self, record: Record) {
        if let Record::Sets { schema, attribute, day, sets } = record {
            let days = self.0.entry((schema, attribute)).or_default();
            days.insert(day, sets.into_iter().collect());
        }
    }

    /// Checks that a sum over a set is one of `limit` on its day.
    fn check(
        &self,
        of: (SchemaId, u16),
        day: u64,
        set: &SetId,
        limit: u32,
    ) -> Result<(), WindowRefusalError> {
        let Some(days) = self.0.get(&of) else { return Ok(()) };
        let is_gone = days.len() >= DAYS_KEPT
            && days.first_key_value().is_some_and(|(first, _)| day < *first);
        let of_day = days.get(&day);
        let is_known = of_day.is_some_and(|sets| sets.contains(set));
        let is_full = of_day.is_some_and(|sets| sets.len() >= limit as usize);
        match !is_known && (is_full || is_gone) {
            true => Err(WindowRefusalError::TooManySets { limit }),
            false => Ok(()),
        }
    }

    fn has(&self, of: (SchemaId, u16), day: u64, set: &SetId) -> bool {
        let of_day = self.0.get(&of).and_then(|days| days.get(&day));
        of_day.is_some_and(|sets| sets.contains(set))
    }

    /// Notes a set, unless the day has had as many as anybody may allow. Returns the day that is forgotten for
    /// it, if any.
    fn note(&mut self, of: (SchemaId, u16), day: u64, set: SetId) -> Option<u64> {
        let days = self.0.entry(of).or_default();
        let of_day = days.entry(day).or_default();
        if of_day.len() < MAX_SETS_PER_DAY as usize {
            of_day.insert(set);
        }
        (days.len() > DAYS_KEPT).then(|| days.pop_first()).flatten().map(|(first, _)| first)
    }
}

impl Controller {
    /// The bound on a window's day, if an owner here whom the day's sums could tell apart has one: the least of
    /// all streams under the schema, whether a token covers them or not. Sums with and without an owner differ by
    /// that owner, and the service chooses what it plans and whom it calls.
    pub(super) fn sets_per_day(&self, plan: &Plan, window: Window) -> Option<u32> {
        let start = Timestamp(day_of(window.start).saturating_mul(DAY));
        let day = Window { start, end: start.plus(Span(DAY)) };
        let of = (plan.schema, plan.attributes.as_slice());
        let held = self.streams.values().filter_map(|own| own.sets_per_day(of, day));
        // Streams that the host was not handed again may have been in the day's sums.
        let pending = self.pending_records.values();
        let pending = pending.filter_map(|records| stream_state::sets_per_day(records, of, day));
        held.chain(pending).min()
    }

    /// Checks that the sets of a window's day are known, if there is a bound. After an untrusted restore, which
    /// sets the rest of that day had may be lost.
    ///
    /// # Errors
    /// [`WindowRefusalError::CountsAsReleased`] if they may be lost.
    pub(super) fn check_day(&self, plan: &Plan, window: Window) -> Result<(), WindowRefusalError> {
        let day = day_of(window.start);
        let may_lack = self.restored_at.is_some_and(|restored| day <= day_of(restored));
        match may_lack && self.sets_per_day(plan, window).is_some() {
            true => Err(WindowRefusalError::CountsAsReleased),
            false => Ok(()),
        }
    }

    /// Checks the bound on sets for a sum over `set`, by the choices of the day and those in force now. Returns the
    /// set's id.
    ///
    /// # Errors
    /// [`WindowRefusalError::TooManySets`] if the day's sets are used up and this is none of them, and
    /// those of [`Self::check_day`].
    pub(super) fn check_sets(
        &self,
        fixed: &FixedMembership,
        set: &RosterSet,
        accepted: &[u32],
    ) -> Result<SetId, WindowRefusalError> {
        let membership = fixed.membership();
        let (window, plan) = (membership.window, &membership.plan);
        let joined = self.plans.get(plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let id = set_id(joined, fixed, set, accepted);
        let Some(limit) = self.sets_per_day(joined.plan(), window) else { return Ok(id) };
        self.check_day(joined.plan(), window)?;
        let (day, schema) = (day_of(window.start), joined.plan().schema);
        let mut attributes = joined.plan().attributes.iter();
        attributes.try_for_each(|at| self.sets.check((schema, *at), day, &id, limit))?;
        Ok(id)
    }

    /// Notes the set of a sum that is opened, also where nobody bounds them: an owner may choose a bound later on
    /// that day. The records go into the commit of the answer.
    pub(super) fn note_set(
        &mut self,
        now: Timestamp,
        fixed: &FixedMembership,
        id: SetId,
    ) -> Vec<Change> {
        let window = fixed.membership().window;
        let Some(joined) = self.plans.get(&fixed.membership().plan) else { return Vec::new() };
        let schema = joined.plan().schema;
        let (attributes, day) = (joined.plan().attributes.clone(), day_of(window.start));
        let mut changes = Vec::new();
        let mut is_noted = false;
        for attribute in attributes {
            let of = (schema, attribute);
            if let Some(day) = self.sets.note(of, day, id) {
                let gone = Record::Sets { schema, attribute, day, sets: Vec::new() };
                changes.push(Change::remove(gone.key(self.id())));
            }
            is_noted |= self.sets.has(of, day, &id);
        }
        // A day with as many sets as anybody may allow is full for everybody.
        changes.extend(if is_noted { self.set_records(now, fixed) } else { Vec::new() });
        changes
    }

    /// The records of a window's day, also when its answer is repeated.
    pub(super) fn set_records(&mut self, now: Timestamp, fixed: &FixedMembership) -> Vec<Change> {
        let membership = fixed.membership();
        let Some(joined) = self.plans.get(&membership.plan) else { return Vec::new() };
        let (schema, day) = (joined.plan().schema, day_of(membership.window.start));
        let of = |attribute: &u16| {
            let sets = self.sets.0.get(&(schema, *attribute))?.get(&day)?.iter().copied().collect();
            Some(Record::Sets { schema, attribute: *attribute, day, sets })
        };
        let records: Vec<Record> = joined.plan().attributes.iter().filter_map(of).collect();
        records.into_iter().map(|record| self.put(now, record)).collect()
    }
}

/// S with the owners of each member that have data, and the own streams.
fn set_id(joined: &PlanState, fixed: &FixedMembership, set: &RosterSet, accepted: &[u32]) -> SetId {
    let roster = &joined.plan().roster;
    let mut members: Vec<u8> = Vec::new();
    for position in set.iter() {
        let id = usize::try_from(position).ok().and_then(|at| roster.get(at));
        members.extend(id.map_or([0; 32], |id| id.0));
        members.extend(fixed.owners_at(position).to_be_bytes());
    }
    let own = accepted.iter().filter_map(|at| joined.own(*at)).flat_map(|own| own.stream.0);
    let own: Vec<u8> = own.collect();
    let mut id = [0; 16];
    id.copy_from_slice(labelled_hash(labels::OWNER_SET, &[&members, &own]).0.split_at(16).0);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of a day is bounded, and complete for any bound that an owner may choose.
    #[test]
    fn a_day_keeps_as_many_sets_as_a_bound_may_allow() {
        let (of, mut sets) = ((SchemaId([1; 32]), 0), Sets::default());
        let id = |number: u32| {
            let mut id = [0; 16];
            id[..4].copy_from_slice(&number.to_be_bytes());
            id
        };
        for number in 0..2 * MAX_SETS_PER_DAY {
            assert_eq!(sets.note(of, 7, id(number)), None);
            assert_eq!(sets.has(of, 7, &id(number)), number < MAX_SETS_PER_DAY);
        }
        let limit = MAX_SETS_PER_DAY;
        let full = Err(WindowRefusalError::TooManySets { limit });
        assert_eq!(sets.check(of, 7, &id(limit - 1), limit), Ok(()));
        assert_eq!(sets.check(of, 7, &id(limit), limit), full);
    }

    /// Of a day that is forgotten nobody knows which sets it had.
    #[test]
    fn days_that_are_forgotten_have_had_their_sets() {
        let (of, mut sets, set) = ((SchemaId([1; 32]), 0), Sets::default(), [7; 16]);
        let days = DAYS_KEPT as u64;
        for day in 0..days {
            assert_eq!(sets.note(of, day, set), None);
        }
        assert_eq!(sets.check(of, 0, &[8; 16], 2), Ok(()), "of two sets it has had one");
        assert_eq!(sets.note(of, days, set), Some(0));
        for other in [set, [8; 16]] {
            let gone = Err(WindowRefusalError::TooManySets { limit: 1_024 });
            assert_eq!(sets.check(of, 0, &other, 1_024), gone);
        }
        assert_eq!(sets.check(of, 1, &set, 1), Ok(()));
        // A set of a day before all of them is not noted.
        assert_eq!(sets.note(of, 0, set), Some(0));
        assert!(!sets.has(of, 0, &set));
    }
}
