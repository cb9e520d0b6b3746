//! Over how many different sets of owners the data of a day is summed.
//!
//! A service chooses whom it calls, and says who is there. Sums over sets that it chose are equations
//! in the owners' values, and enough of them are solved. So owners may bound how many different
//! sets the sums of one UTC day are over, for each attribute, whatever plans ask. The day is that of
//! the data, and a window opens once. So neither a clock nor a restart gives a day another bound.
//!
//! What is compared is the set as this controller knows it: who is in S, how many owners of
//! each have data, and which streams of its own are in its token.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::labels;
use alpheus_policy::ids::SchemaId;
use alpheus_time::{Timestamp, Window};

use super::Controller;
use super::plan_state::PlanState;
use super::stream_state::StreamState;
use crate::error::WindowRefusalError;
use crate::keys::DAY;
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

    /// Notes a set. Returns the day that is forgotten for it, if any.
    fn note(&mut self, of: (SchemaId, u16), day: u64, set: SetId) -> Option<u64> {
        let days = self.0.entry(of).or_default();
        days.entry(day).or_default().insert(set);
        (days.len() > DAYS_KEPT).then(|| days.pop_first()).flatten().map(|(first, _)| first)
    }
}

/// The UTC day that a window begins on.
fn day_of(start: Timestamp) -> u64 {
    start.0 / DAY
}

impl Controller {
    /// The bound on a window's day, if an owner whom the day's sums could tell apart has one: of the
    /// streams that this plan has here, whether a token covers them or not. Sums with and without an owner
    /// differ by that owner. A plan that ended on that day may have summed others of these streams'
    /// neighbours, and an epoch lists whom the service calls. There the bounds of those count as well.
    fn sets_per_day(&self, joined: &PlanState, window: Window, now: Timestamp) -> Option<u32> {
        let (plan, begun) = (joined.plan(), Timestamp(day_of(window.start) * DAY));
        let bound = |state: &StreamState| state.sets_per_day(&plan.attributes, window, now);
        if plan.epoch.is_some() {
            let of_schema = |state: &StreamState| state.schema.id() == plan.schema;
            let held = self.streams.values();
            return held.filter_map(|own| bound(own).filter(|_| of_schema(own))).min();
        }
        let before = |other: &&PlanState| {
            let ended = other.ended.is_some_and(|ended| ended > begun);
            ended && other.plan().epoch.is_none() && other.plan().schema == plan.schema
        };
        let plans = self.plans.values().filter(before).chain([joined]);
        let streams = plans.flat_map(PlanState::own_streams).map(|(_, planned)| planned.stream);
        streams.filter_map(|stream| bound(self.streams.get(&stream)?)).min()
    }

    /// Checks the bound on sets for a sum over `set`, by the policies in force now. Returns the set's id,
    /// if there is a bound.
    ///
    /// # Errors
    /// [`WindowRefusalError::TooManySets`] if the day's sets are used up and this is none of them.
    pub(super) fn check_sets(
        &self,
        now: Timestamp,
        fixed: &FixedMembership,
        set: &RosterSet,
        accepted: &[u32],
    ) -> Result<Option<SetId>, WindowRefusalError> {
        let membership = fixed.membership();
        let (window, plan) = (membership.window, &membership.plan);
        let joined = self.plans.get(plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let Some(limit) = self.sets_per_day(joined, window, now) else { return Ok(None) };
        let day = day_of(window.start);
        // Which sets the rest of that day had may be lost.
        if self.restored_at.is_some_and(|restored| day <= day_of(restored)) {
            return Err(WindowRefusalError::TooManySets { limit });
        }
        let (id, schema) = (set_id(joined, fixed, set, accepted), joined.plan().schema);
        let mut attributes = joined.plan().attributes.iter();
        attributes.try_for_each(|at| self.sets.check((schema, *at), day, &id, limit))?;
        Ok(Some(id))
    }

    /// Notes the set of a sum that is opened, if there is a bound. The records go into the commit of the
    /// answer.
    pub(super) fn note_set(
        &mut self,
        now: Timestamp,
        fixed: &FixedMembership,
        id: Option<SetId>,
    ) -> Vec<Change> {
        let window = fixed.membership().window;
        let Some((id, joined)) = id.zip(self.plans.get(&fixed.membership().plan)) else {
            return Vec::new();
        };
        let schema = joined.plan().schema;
        let (attributes, day) = (joined.plan().attributes.clone(), day_of(window.start));
        let mut changes = Vec::new();
        for attribute in attributes {
            if let Some(day) = self.sets.note((schema, attribute), day, id) {
                let gone = Record::Sets { schema, attribute, day, sets: Vec::new() };
                changes.push(Change::remove(gone.key(self.id())));
            }
        }
        changes.extend(self.set_records(now, fixed));
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
