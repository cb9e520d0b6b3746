//! Which plans have ended, and when they ran: what a statement about a time asks for.

use alpheus_policy::ids::PlanId;
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Places in the logs of rows and receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogPlaces {
    /// An offset of rows.
    pub rows: u64,
    /// An offset of receipts.
    pub receipts: u64,
}

/// When a plan ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRun {
    /// Its query.
    pub query: String,
    /// Its windows start from here on.
    pub from: Timestamp,
    /// By the service's clock.
    pub ended: Timestamp,
    /// Where the logs ended then: its rows and receipts are before.
    pub until: LogPlaces,
}

/// Plans that have ended, by query and by where the logs ended then.
#[derive(Debug, Default)]
pub struct EndedPlans {
    by_query: BTreeMap<String, BTreeMap<(Timestamp, PlanId), Timestamp>>,
    by_end: BTreeMap<(LogPlaces, PlanId), (String, Timestamp)>,
}

impl EndedPlans {
    /// Adds a plan, once.
    pub fn insert(&mut self, plan: PlanId, ran: PlanRun) {
        let PlanRun { query, from, ended, until } = ran;
        self.by_query.entry(query.clone()).or_default().insert((ended, plan), from);
        self.by_end.insert((until, plan), (query, ended));
    }

    /// Removes a plan that ended when the logs ended there.
    pub fn remove(&mut self, until: LogPlaces, plan: PlanId) {
        let Some((query, ended)) = self.by_end.remove(&(until, plan)) else { return };
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

    /// The plans of whose time no row and no receipt is left in logs that start here, the oldest
    /// first. Logs only grow, so all others ended later.
    pub fn old(&self, starts: LogPlaces) -> impl Iterator<Item = (LogPlaces, PlanId)> {
        let is_old = move |(until, _): &(LogPlaces, PlanId)| {
            until.rows <= starts.rows && until.receipts <= starts.receipts
        };
        self.by_end.keys().copied().take_while(is_old)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.by_end.len()
    }
}
