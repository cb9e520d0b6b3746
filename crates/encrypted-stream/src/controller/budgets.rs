//! What windows with noise cost the owners of this controller's streams.
//!
//! A presence *promises*: an owner whose budget does not hold another window is left
//! out by name, windows under way counted. A token *spends*, in the same commit.
//! A window that ends without this controller's opening gives back what it was
//! charged. After an untrusted restore everything that may have been lost counts as
//! spent.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_policy::budget::{Accounts, BudgetRecord, Charge, Cost, Entry, Standing};
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::schema::{Budget, PrivacyUnit};
use alpheus_policy::time::{Span, Timestamp, Window};

use super::joined::{Joined, Round};
use super::{Controller, policies};
use crate::error::Refused;
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

    /// Spends what was promised.
    pub(super) fn spend(&mut self, promised: &[BudgetRecord]) {
        promised.iter().for_each(|record| self.spent.apply(record));
    }

    /// Has what was charged for a span stand under a part of it, and takes back what was
    /// promised for the span and never spent. The record of what stands now, also when
    /// asked again; none if nothing does.
    pub(super) fn restate(
        &mut self,
        (owner, attribute): (OwnerId, u16),
        plan: PlanId,
        (span, part): (Window, Window),
    ) -> Option<BudgetRecord> {
        if let Some(known) = self.spent.charged(owner, attribute, plan, span) {
            let Entry::Charged { cost, slack, .. } = known.entry else { return None };
            let refunded = Entry::Refunded { plan, window: span };
            let charged = Entry::Charged { plan, window: part, cost, slack };
            for entry in [refunded, charged] {
                self.take(&BudgetRecord { owner, attribute, entry });
            }
        }
        self.withdraw(owner, attribute, (plan, span));
        self.spent.charged(owner, attribute, plan, part)
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

    /// How the budgets stand that the owner of a stream has chosen there now; none if
    /// there is no such stream.
    #[must_use]
    pub fn standings(&self, now: Timestamp, stream: &StreamId) -> Option<Vec<Standing>> {
        let held = self.streams.get(stream)?;
        let policy = held.current().map(|taken| &taken.annotation.policy);
        let mut standings: Vec<Standing> = Vec::new();
        let attributes = policy.map(|policy| policy.attributes.as_slice()).unwrap_or_default();
        for (attribute, own) in (0..).zip(attributes) {
            for budget in own.alternatives.iter().filter_map(|option| option.budget) {
                let books = self.books.accounts();
                let standing = books.standing(held.owner, attribute, budget, now);
                if !standings.contains(&standing) {
                    standings.push(standing);
                }
            }
        }
        Some(standings)
    }

    /// What a token of this window is to be charged, all of it promised, by the
    /// policies in force now: where these are not the presence's any more, the window
    /// is promised anew.
    ///
    /// # Errors
    /// [`Refused::PolicyChanged`] where a budget does not hold it; the presence is
    /// void then.
    pub(super) fn due(
        &mut self,
        now: Timestamp,
        plan: PlanId,
        window: Window,
    ) -> Result<Vec<BudgetRecord>, Refused> {
        let due = self.try_due(now, plan, window);
        if due.is_err() {
            self.settle_budget(now, &plan, window);
            let round = self.plans.get_mut(&plan).and_then(|own| own.rounds.get_mut(&window.start));
            if let Some(round) = round {
                round.summoned = None;
            }
        }
        due
    }

    fn try_due(
        &mut self,
        now: Timestamp,
        plan: PlanId,
        window: Window,
    ) -> Result<Vec<BudgetRecord>, Refused> {
        let charges = self.charges_now(now, plan, window)?;
        let joined = self.plans.get(&plan).ok_or(Refused::UnknownPlan)?;
        let summoned = joined.rounds.get(&window.start).and_then(|round| round.summoned.as_ref());
        let charged = joined.charged_for(window);
        let (slack, same) = (joined.slack_bits, summoned.is_some_and(|own| own.charges == charges));
        let owner = |at: &u32| joined.own(*at).map(|own| own.owner).ok_or(Refused::PolicyChanged);
        let owners: Vec<_> = charges.iter().map(|(at, _)| owner(at)).collect::<Result<_, _>>()?;
        if !same {
            self.settle_budget(now, &plan, window);
        }
        for (owner, (_, own)) in owners.iter().zip(&charges) {
            if !same && !self.books.promise(*owner, (plan, charged), own, slack) {
                return Err(Refused::PolicyChanged);
            }
        }
        let each = owners
            .iter()
            .zip(&charges)
            .flat_map(|(owner, (_, own))| own.iter().map(|(attribute, ..)| (*owner, *attribute)));
        // Without a promise nothing leaves.
        let promised = |(owner, attribute)| {
            self.books
                .promised
                .charged(owner, attribute, plan, charged)
                .ok_or(Refused::PolicyChanged)
        };
        each.collect::<BTreeSet<_>>().into_iter().map(promised).collect()
    }

    /// What each stream with events of a summoned window is charged by the policies in
    /// force now.
    fn charges_now(
        &mut self,
        now: Timestamp,
        plan: PlanId,
        window: Window,
    ) -> Result<Vec<(u32, Charges)>, Refused> {
        let joined = self.plans.get_mut(&plan).ok_or(Refused::UnknownPlan)?;
        let round = joined.rounds.get(&window.start);
        let summoned =
            round.and_then(|round| round.summoned.as_ref()).ok_or(Refused::NotPresent)?;
        let positions: Vec<u32> = summoned.charges.iter().map(|(at, _)| *at).collect();
        let charges = |at: u32| {
            let stream = joined.own(at).ok_or(Refused::PolicyChanged)?.stream;
            let held = self.streams.get(&stream).ok_or(Refused::PolicyChanged)?;
            let own = policies::allow(joined, at, held, window, now);
            own.map(|own| (at, own)).map_err(|_| Refused::PolicyChanged)
        };
        positions.into_iter().map(charges).collect()
    }

    /// The records of what a window was charged: the same again for the same token.
    pub(super) fn budget_records(
        &mut self,
        now: Timestamp,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Vec<Change> {
        let Some((owners, attributes, window)) = self.charged(plan, window, accepted) else {
            return Vec::new();
        };
        let spent = &self.books.spent;
        let of = |owner: &OwnerId| {
            let own = attributes.iter();
            own.filter_map(|at| spent.charged(*owner, *at, *plan, window)).collect::<Vec<_>>()
        };
        let records: Vec<BudgetRecord> = owners.iter().flat_map(of).collect();
        records.into_iter().map(|record| self.put(now, Record::Budget(record))).collect()
    }

    /// Owners of these streams that something was charged to.
    pub(super) fn owners_charged(
        &self,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Vec<OwnerId> {
        let Some((owners, attributes, window)) = self.charged(plan, window, accepted) else {
            return Vec::new();
        };
        let spent = &self.books.spent;
        let stands = |owner: &OwnerId, at| spent.charged(*owner, at, *plan, window).is_some();
        owners.into_iter().filter(|own| attributes.iter().any(|at| stands(own, *at))).collect()
    }

    /// What a window costs by attribute.
    pub(super) fn costs(
        &self,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Vec<(u16, Cost)> {
        let Some((owners, attributes, window)) = self.charged(plan, window, accepted) else {
            return Vec::new();
        };
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

    /// Owners of own streams at these positions, the plan's attributes, and what is
    /// charged as one with the window; none where the plan adds no noise.
    fn charged(
        &self,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Option<(BTreeSet<OwnerId>, Vec<u16>, Window)> {
        let joined = self.plans.get(plan)?;
        joined.plan().privacy.as_ref()?;
        let owners = accepted.iter().filter_map(|at| Some(joined.own(*at)?.owner));
        let attributes = joined.plan().attributes.clone();
        Some((owners.collect(), attributes, joined.charged_for(window)))
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
        // Of running totals a later window may rest on the same promise.
        if joined.plan().horizon().is_some() {
            return Vec::new();
        }
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
        let Some((owners, attributes, window)) = self.charged(plan, window, &accepted) else {
            return Vec::new();
        };
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
        let Some(joined) = self.plans.get(plan).filter(|own| own.plan().privacy.is_some()) else {
            return Vec::new();
        };
        let mut changes = Vec::new();
        for ((owner, attribute), before) in self.marks(joined) {
            changes.extend(self.sum_up(now, owner, attribute, before));
        }
        changes
    }

    /// Up to when the accounts of a plan's owners are settled: by every running plan
    /// with their streams, which all spend from the same accounts.
    fn marks(&self, joined: &Joined) -> BTreeMap<(OwnerId, u16), Timestamp> {
        let of = |joined: &Joined| {
            let own = joined.own_streams().map(|(_, planned)| planned.owner);
            pairs(&own.collect(), &joined.plan().attributes)
        };
        let mut marks: BTreeMap<_, _> =
            of(joined).into_iter().map(|account| (account, joined.settled)).collect();
        let noisy = self.plans.values().filter(|joined| joined.plan().privacy.is_some());
        for other in noisy.filter(|joined| joined.ended.is_none()) {
            let open = other.first_unsettled();
            for account in of(other) {
                marks.entry(account).and_modify(|mark| *mark = open.min(*mark));
            }
        }
        // Of a period that goes on every window is still told apart.
        let (held, attributes) = (self.streams.values(), &joined.plan().attributes);
        for (held, attribute) in held.flat_map(|held| attributes.iter().map(move |at| (held, *at)))
        {
            let Some(mark) = marks.get_mut(&(held.owner, attribute)) else { continue };
            for (budget, _) in held.policies().flat_map(|policy| budgets(policy, attribute)) {
                if let PrivacyUnit::PersonPerPeriod(period @ Span(1..)) = budget.unit {
                    *mark = mark.floor(period);
                }
            }
        }
        marks
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

pub(super) fn pairs(owners: &BTreeSet<OwnerId>, attributes: &[u16]) -> Vec<(OwnerId, u16)> {
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
