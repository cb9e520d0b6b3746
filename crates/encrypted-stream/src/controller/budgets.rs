//! What windows with noise cost the owners of this controller's streams.
//!
//! A presence *promises*: an owner whose budget does not hold another window is left
//! out by name, windows under way counted. A token *spends*, in the same commit.
//! A window that ends without this controller's opening gives back what it was
//! charged. After an untrusted restore everything that may have been lost counts as
//! spent.

use std::collections::BTreeSet;

use alpheus_policy::budget::{Accounts, BudgetRecord, Charge, Cost, Entry};
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::schema::{Budget, PrivacyUnit};
use alpheus_policy::time::{Timestamp, Window};

use super::Controller;
use super::joined::{Joined, Round};
use crate::ledger::{Change, Record};

/// What a window charges one owner: attribute, budget, cost.
pub(super) type Charges = Vec<(u16, Budget, Cost)>;

/// The accounts of a controller's owners.
#[derive(Default)]
pub(super) struct Books {
    /// As the ledger has them.
    spent: Accounts,
    /// With what windows under way will cost.
    promised: Accounts,
}

impl Books {
    /// Takes what a ledger holds.
    pub(super) fn take(&mut self, record: &BudgetRecord) {
        self.spent.apply(record);
        self.promised.apply(record);
    }

    /// Promises a window of an owner's data; false if some budget does not hold it,
    /// and nothing is promised then.
    pub(super) fn promise(
        &mut self,
        owner: OwnerId,
        (plan, window): (PlanId, Window),
        charges: &Charges,
        slack_bits: u32,
    ) -> bool {
        let mut records = Vec::with_capacity(charges.len());
        for (attribute, budget, cost) in charges {
            let charge = Charge { plan, window, cost: *cost, slack_bits };
            match self.promised.check(owner, *attribute, budget, &charge) {
                Ok(record) => records.extend(record),
                Err(_) => return false,
            }
        }
        records.iter().for_each(|record| self.promised.apply(record));
        true
    }

    /// Takes a promise back, unless it was spent.
    fn withdraw(&mut self, owner: OwnerId, attribute: u16, (plan, window): (PlanId, Window)) {
        if self.spent.charged(owner, attribute, plan, window).is_none() {
            let entry = Entry::Refunded { plan, window };
            self.promised.apply(&BudgetRecord { owner, attribute, entry });
        }
    }

    /// Spends what was promised of a window.
    fn spend(&mut self, owner: OwnerId, attribute: u16, (plan, window): (PlanId, Window)) {
        let promised = self.promised.charged(owner, attribute, plan, window);
        promised.iter().for_each(|record| self.spent.apply(record));
    }

    /// What an owner's attribute has been charged in all.
    pub(super) fn accounts(&self) -> &Accounts {
        &self.spent
    }
}

impl Controller {
    /// What owners have been charged, by owner and attribute: for them to read.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        self.books.accounts()
    }

    /// Spends what the presence promised; the records that must be durable with the
    /// token.
    pub(super) fn spend_budget(&mut self, plan: &PlanId, window: Window, accepted: &[u32]) {
        let Some((owners, attributes)) = self.charged(plan, accepted) else { return };
        for owner in owners {
            for attribute in &attributes {
                self.books.spend(owner, *attribute, (*plan, window));
            }
        }
    }

    /// The records of what a window was charged: the same again for the same token.
    pub(super) fn budget_records(
        &mut self,
        now: Timestamp,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Vec<Change> {
        let Some((owners, attributes)) = self.charged(plan, accepted) else { return Vec::new() };
        let spent = &self.books.spent;
        let of = |owner: &OwnerId| {
            let own = attributes.iter();
            own.filter_map(|at| spent.charged(*owner, *at, *plan, window)).collect::<Vec<_>>()
        };
        let records: Vec<BudgetRecord> = owners.iter().flat_map(of).collect();
        records.into_iter().map(|record| self.put(now, Record::Budget(record))).collect()
    }

    /// What a window costs by attribute, for the owners' log.
    pub(super) fn costs(
        &self,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Vec<(u16, Cost)> {
        let Some((owners, attributes)) = self.charged(plan, accepted) else { return Vec::new() };
        let of = |attribute: u16| {
            let charged = |owner: &OwnerId| match self
                .books
                .spent
                .charged(*owner, attribute, *plan, window)?
                .entry
            {
                Entry::Charged { cost, .. } => Some((attribute, cost)),
                Entry::Refunded { .. } | Entry::Forgotten { .. } => None,
            };
            owners.iter().find_map(charged)
        };
        attributes.into_iter().filter_map(of).collect()
    }

    /// Owners of own streams at these positions, and the plan's attributes; none
    /// where the plan adds no noise.
    fn charged(&self, plan: &PlanId, accepted: &[u32]) -> Option<(BTreeSet<OwnerId>, Vec<u16>)> {
        let joined = self.plans.get(plan)?;
        joined.plan().privacy.as_ref()?;
        let owners = accepted.iter().filter_map(|at| Some(joined.own(*at)?.owner));
        Some((owners.collect(), joined.plan().attributes.clone()))
    }

    /// What becomes of a window's charges once nothing more is answered about it:
    /// given back where its opening never left, which only a ledger that lacks
    /// nothing can tell.
    pub(super) fn settle_budget(
        &mut self,
        now: Timestamp,
        plan: &PlanId,
        window: Window,
    ) -> Vec<Change> {
        let Some(joined) = self.plans.get(plan) else { return Vec::new() };
        let Some(round) = joined.rounds.get(&window.start) else { return Vec::new() };
        let restored = self.restored.is_some_and(|restored| window.start < restored);
        let single = joined.announced.is_single();
        let (refunds, accepted) = match (&round.spent, &round.summoned) {
            (Some((spent, _)), _) => {
                (round.opened.is_none() && !single && !restored, spent.accepted.clone())
            }
            (None, Some(summoned)) => (false, summoned.presence.accepted.clone()),
            (None, None) => return Vec::new(),
        };
        let unspent = round.spent.is_none();
        let Some((owners, attributes)) = self.charged(plan, &accepted) else { return Vec::new() };
        let mut records = Vec::new();
        for (owner, attribute) in pairs(&owners, &attributes) {
            if unspent {
                self.books.withdraw(owner, attribute, (*plan, window));
            } else if refunds {
                records.extend(self.books.spent.refund(owner, attribute, *plan, window));
            }
        }
        records.iter().for_each(|record| self.books.take(record));
        records.into_iter().map(|record| self.put(now, Record::Budget(record))).collect()
    }

    /// Sums up what the plan's settled windows have cost, so that accounts stay
    /// small: what is summed up can no longer be told apart, nor given back.
    pub(super) fn sum_up_budgets(&mut self, now: Timestamp, plan: &PlanId) -> Vec<Change> {
        let Some(joined) = self.plans.get(plan) else { return Vec::new() };
        if joined.plan().privacy.is_none() {
            return Vec::new();
        }
        let (settled, attributes) = (joined.settled, joined.plan().attributes.clone());
        let own: Vec<_> =
            joined.own_streams().map(|(_, planned)| (planned.stream, planned.owner)).collect();
        let mut changes = Vec::new();
        for (stream, owner) in own {
            for attribute in &attributes {
                let before = self.streams.get(&stream).map_or(settled, |held| {
                    held.policies().fold(settled, |mark, policy| {
                        budgets(policy, *attribute).fold(mark, |mark, (budget, _)| {
                            match budget.unit {
                                // Of a period that goes on every window is still told apart.
                                PrivacyUnit::PersonPerPeriod(period) if period.0 > 0 => {
                                    mark.min(settled.floor(period))
                                }
                                _ => mark,
                            }
                        })
                    })
                });
                changes.extend(self.sum_up(now, owner, *attribute, before));
            }
        }
        changes
    }

    fn sum_up(
        &mut self,
        now: Timestamp,
        owner: OwnerId,
        attribute: u16,
        before: Timestamp,
    ) -> Vec<Change> {
        let Some(record) = self.books.spent.forget(owner, attribute, before) else {
            return Vec::new();
        };
        let gone = self.books.spent.summed_up(owner, attribute, before);
        self.books.take(&record);
        let id = self.id();
        let gone =
            gone.into_iter().map(|key| Change { key: Record::budget_key(id, &key), value: None });
        let gone: Vec<Change> = gone.collect();
        std::iter::once(self.put(now, Record::Budget(record))).chain(gone).collect()
    }

    /// Since when this ledger, which is not known as the latest, may lack spends:
    /// its own clock, or an earlier window of a running plan that it has not settled.
    /// Plans that it does not know were accepted later, and a plan with noise releases
    /// nothing of windows that ended before that.
    pub(super) fn lost_since(&self) -> Timestamp {
        let noisy = self.plans.values().filter(|joined| joined.plan().privacy.is_some());
        let running = noisy.filter(|joined| joined.ended.is_none());
        running.filter_map(|joined| first_open(joined, self.clock)).fold(self.clock, Timestamp::min)
    }

    /// Charges what may have been spent on a stream between these times at the
    /// highest rate of each of these policies.
    pub(super) fn forfeit(
        &mut self,
        now: Timestamp,
        (stream, owner): (StreamId, OwnerId),
        policies: &[ResolvedPolicy],
        lost: Window,
        mark: u8,
    ) -> Vec<Change> {
        let attributes = policies.iter().map(|policy| policy.attributes.len()).max().unwrap_or(0);
        let mut records = Vec::new();
        for attribute in 0..u16::try_from(attributes).unwrap_or(u16::MAX) {
            let each = policies.iter().flat_map(|policy| budgets(policy, attribute));
            let charge = |(budget, window): (Budget, u64)| {
                let windows = (lost.end.0.saturating_sub(lost.start.0) / window.max(1)) + 2;
                let plan = marker(stream, mark);
                Accounts::forfeit_all(owner, attribute, &budget, plan, lost, windows)
            };
            let dearest = each.map(charge).max_by_key(|record| match record.entry {
                Entry::Charged { cost, .. } => cost.rho(),
                _ => alpheus_policy::budget::Rho(0),
            });
            records.extend(dearest);
        }
        records.iter().for_each(|record| self.books.take(record));
        records.into_iter().map(|record| self.put(now, Record::Budget(record))).collect()
    }
}

/// Budgets of an attribute with the least windows that are charged to them.
fn budgets(policy: &ResolvedPolicy, attribute: u16) -> impl Iterator<Item = (Budget, u64)> {
    let own = policy.attribute(attribute).into_iter().flat_map(|own| &own.alternatives);
    own.filter_map(|option| Some((option.budget?, option.window.0)))
}

fn pairs(owners: &BTreeSet<OwnerId>, attributes: &[u16]) -> Vec<(OwnerId, u16)> {
    owners.iter().flat_map(|owner| attributes.iter().map(|at| (*owner, *at))).collect()
}

/// The start of a plan's first window before `now` that may still be released.
fn first_open(joined: &Joined, now: Timestamp) -> Option<Timestamp> {
    let window = joined.plan().window;
    let from = joined.plan().from.max(joined.settled.floor(window));
    let done = |round: &Round| round.closed || round.spent.is_some();
    let mut start = from.floor(window);
    while start < now {
        let settled = start.plus(window) <= joined.settled || start < joined.plan().from;
        if !settled && !joined.rounds.get(&start).is_some_and(done) {
            return Some(start);
        }
        start = start.plus(window);
    }
    None
}

/// Stands for the plans that a lost part of the ledger knew.
fn marker(stream: StreamId, mark: u8) -> PlanId {
    let mut id = [mark; 32];
    id[..16].copy_from_slice(&stream.0);
    PlanId(id)
}
