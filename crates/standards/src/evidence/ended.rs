//! Which plans have ended, and when they ran: what a statement about a time asks for.

use alpheus_policy::ids::PlanId;
use alpheus_time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// When a plan ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Its query.
    pub query: String,
    /// Its windows start from here on.
    pub from: Timestamp,
    /// By the service's clock.
    pub ended: Timestamp,
}

/// Plans that have ended, by query and by when they ended.
#[derive(Debug, Default)]
pub struct EndedPlans {
    by_query: BTreeMap<String, BTreeMap<(Timestamp, PlanId), Timestamp>>,
    by_end: BTreeMap<(Timestamp, PlanId), String>,
}

impl EndedPlans {
    /// Adds a plan, once.
    pub fn insert(&mut self, plan: PlanId, ran: Ran) {
        let Ran { query, from, ended } = ran;
        self.by_query.entry(query.clone()).or_default().insert((ended, plan), from);
        self.by_end.insert((ended, plan), query);
    }

    /// Removes a plan that ended then.
    pub fn remove(&mut self, ended: Timestamp, plan: PlanId) {
        let Some(query) = self.by_end.remove(&(ended, plan)) else { return };
        if let Some(plans) = self.by_query.get_mut(&query) {
            plans.remove(&(ended, plan));
            if plans.is_empty() {
                self.by_query.remove(&query);
            }
        }
    }

    /// Plans of these queries that may have windows which start in a span of time, by query and in
    /// the order in which they ended.
    #[must_use]
    pub fn of(&self, queries: &BTreeSet<String>, span: Window) -> Vec<PlanId> {
        let own = queries.iter().filter_map(|query| self.by_query.get(query)).flatten();
        let own = own.filter(|((ended, _), from)| **from < span.end && *ended >= span.start);
        own.map(|((_, plan), _)| *plan).collect()
    }

    /// The plans that ended this long ago, the oldest first.
    pub fn old(&self, now: Timestamp, keep: Span) -> impl Iterator<Item = (Timestamp, PlanId)> {
        let is_old = move |(ended, _): &(Timestamp, PlanId)| ended.plus(keep) <= now;
        self.by_end.keys().copied().take_while(is_old)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.by_end.len()
    }
}
