//! What windows with noise cost the owners of this controller's streams.
//!
//! A presence *promises*: it excludes an owner whose budget does not cover another window,
//! counting windows in progress. A token *spends*, in the same commit. A window that ends
//! without this controller's opening refunds its charge. After an untrusted restore,
//! everything that may have been lost counts as spent.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_policy::budget::{Accounts, BudgetRecord, BudgetStanding, Charge, Cost, Entry};
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::schema::{Budget, PrivacyUnit};
use alpheus_time::{Span, Timestamp, Window};

use super::plan_state::{PlanState, WindowState};
use super::{Controller, policies};
use crate::error::WindowRefusalError;
use crate::ledger::{Change, Record};

/// What a window charges one owner: attribute, budget, cost.
pub(super) type Charges = Vec<(u16, Budget, Cost)>;

/// The accounts of a controller's owners.
#[derive(Default)]
pub(super) struct Books {
    /// As in the ledger.
    spent: Accounts,
    /// Including what windows in progress will cost.
    promised: Accounts,
}

impl Books {
    /// Applies a record of the ledger.
    pub(super) fn take(&mut self, record: &BudgetRecord) {
        self.spent.apply(record);
        self.promised.apply(record);
    }

    /// Promises a window of an owner's data. Returns false, and promises nothing, if a
    /// budget does not cover it.
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

    /// Withdraws a promise, unless it was spent.
    fn withdraw(&mut self, owner: OwnerId, attribute: u16, (plan, window): (PlanId, Window)) {
        if self.spent.charge_record(owner, attribute, plan, window).is_none() {
            let entry = Entry::Refunded { plan, window };
            self.promised.apply(&BudgetRecord { owner, attribute, entry });
        }
    }

    /// Spends what was promised.
    pub(super) fn spend(&mut self, promised: &[BudgetRecord]) {
        promised.iter().for_each(|record| self.spent.apply(record));
    }

    /// Moves the charge for a span to a part of that span, and withdraws what was promised
    /// for the span but never spent. Returns the record of the charge, also when repeated;
    /// `None` if nothing was charged.
    pub(super) fn restate(
        &mut self,
        (owner, attribute): (OwnerId, u16),
        plan: PlanId,
        (span, part): (Window, Window),
    ) -> Option<BudgetRecord> {
        if let Some(known) = self.spent.charge_record(owner, attribute, plan, span) {
            let Entry::Charged { cost, slack, .. } = known.entry else { return None };
            let refunded = Entry::Refunded { plan, window: span };
            let charged = Entry::Charged { plan, window: part, cost, slack };
            for entry in [refunded, charged] {
                self.take(&BudgetRecord { owner, attribute, entry });
            }
        }
        self.withdraw(owner, attribute, (plan, span));
        self.spent.charge_record(owner, attribute, plan, part)
    }

    /// Everything that an owner was charged, with what windows in progress will cost.
    pub(super) fn carried(&self, owner: OwnerId) -> Vec<BudgetRecord> {
        self.promised.carried(owner)
    }

    /// Forgets an owner's accounts, and returns what they held.
    pub(super) fn forget_owner(&mut self, owner: OwnerId) -> Vec<BudgetRecord> {
        let gone = self.spent.carried(owner);
        [&mut self.spent, &mut self.promised].into_iter().for_each(|own| own.forget_owner(owner));
        gone
    }

    /// What has been charged, by owner and attribute.
    pub(super) fn accounts(&self) -> &Accounts {
        &self.spent
    }
}

impl Controller {
    /// What owners have been charged, by owner and attribute, for them to read.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        self.books.accounts()
    }

    /// The state of the budgets that the owner of a stream has chosen; `None` if the stream
    /// is not held.
    #[must_use]
    pub fn standings(&self, stream: &StreamId, now: Timestamp) -> Option<Vec<BudgetStanding>> {
        let state = self.streams.get(stream)?;
        let policy = state.current().map(|taken| &taken.annotation.policy);
        let mut standings: Vec<BudgetStanding> = Vec::new();
        let attributes = policy.map(|policy| policy.attributes.as_slice()).unwrap_or_default();
        for (attribute, own) in (0..).zip(attributes) {
            for budget in own.alternatives.iter().filter_map(|option| option.budget) {
                let books = self.books.accounts();
                let standing = books.standing(state.owner, attribute, budget, now);
                if !standings.contains(&standing) {
                    standings.push(standing);
                }
            }
        }
        Some(standings)
    }

    /// What a token of this window will be charged under the policies in force now, all of
    /// it promised. If the policies have changed since the presence, the window is promised
    /// again.
    ///
    /// # Errors
    /// [`WindowRefusalError::PolicyChanged`] if a budget does not cover it; the presence is then void.
    pub(super) fn due(
        &mut self,
        now: Timestamp,
        plan: PlanId,
        window: Window,
    ) -> Result<Vec<BudgetRecord>, WindowRefusalError> {
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
    ) -> Result<Vec<BudgetRecord>, WindowRefusalError> {
        let charges = self.charges_now(now, plan, window)?;
        let joined = self.plans.get(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let summoned = joined.rounds.get(&window.start).and_then(|round| round.summoned.as_ref());
        let charged = joined.charged_for(window);
        let (slack, same) = (joined.slack_bits, summoned.is_some_and(|own| own.charges == charges));
        let owner = |at: &u32| {
            joined.own(*at).map(|own| own.owner).ok_or(WindowRefusalError::PolicyChanged)
        };
        let owners: Vec<_> = charges.iter().map(|(at, _)| owner(at)).collect::<Result<_, _>>()?;
        if !same {
            self.settle_budget(now, &plan, window);
        }
        for (owner, (_, own)) in owners.iter().zip(&charges) {
            if !same && !self.books.promise(*owner, (plan, charged), own, slack) {
                return Err(WindowRefusalError::PolicyChanged);
            }
        }
        let each = owners
            .iter()
            .zip(&charges)
            .flat_map(|(owner, (_, own))| own.iter().map(|(attribute, ..)| (*owner, *attribute)));
        // Nothing is sent without a promise.
        let promised = |(owner, attribute)| {
            self.books
                .promised
                .charge_record(owner, attribute, plan, charged)
                .ok_or(WindowRefusalError::PolicyChanged)
        };
        each.collect::<BTreeSet<_>>().into_iter().map(promised).collect()
    }

    /// What each stream with events of a summoned window is charged under the policies in
    /// force now.
    fn charges_now(
        &mut self,
        now: Timestamp,
        plan: PlanId,
        window: Window,
    ) -> Result<Vec<(u32, Charges)>, WindowRefusalError> {
        let joined = self.plans.get_mut(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let round = joined.rounds.get(&window.start);
        let summoned = round
            .and_then(|round| round.summoned.as_ref())
            .ok_or(WindowRefusalError::NotPresent)?;
        let positions: Vec<u32> = summoned.charges.iter().map(|(at, _)| *at).collect();
        let charges = |at: u32| {
            let stream = joined.own(at).ok_or(WindowRefusalError::PolicyChanged)?.stream;
            let state = self.streams.get(&stream).ok_or(WindowRefusalError::PolicyChanged)?;
            let own = policies::allow(joined, at, state, window, now);
            own.map(|own| (at, own)).map_err(|_| WindowRefusalError::PolicyChanged)
        };
        positions.into_iter().map(charges).collect()
    }

    /// Records of what a window was charged: the same again for the same token.
    pub(super) fn budget_records(
        &mut self,
        now: Timestamp,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Vec<Change> {
        let Some((owners, attributes, window)) = self.charged_accounts(plan, window, accepted)
        else {
            return Vec::new();
        };
        let spent = &self.books.spent;
        let of = |owner: &OwnerId| {
            let own = attributes.iter();
            own.filter_map(|at| spent.charge_record(*owner, *at, *plan, window)).collect::<Vec<_>>()
        };
        let records: Vec<BudgetRecord> = owners.iter().flat_map(of).collect();
        records.into_iter().map(|record| self.put(now, Record::Budget(record))).collect()
    }

    /// Owners of these streams that were charged something.
    pub(super) fn owners_charged(
        &self,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Vec<OwnerId> {
        let Some((owners, attributes, window)) = self.charged_accounts(plan, window, accepted)
        else {
            return Vec::new();
        };
        let spent = &self.books.spent;
        let stands = |owner: &OwnerId, at| spent.charge_record(*owner, at, *plan, window).is_some();
        owners.into_iter().filter(|own| attributes.iter().any(|at| stands(own, *at))).collect()
    }

    /// The cost of a window, by attribute.
    pub(super) fn costs(
        &self,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Vec<(u16, Cost)> {
        let Some((owners, attributes, window)) = self.charged_accounts(plan, window, accepted)
        else {
            return Vec::new();
        };
        let of = |attribute: u16| {
            let charged = |owner: &OwnerId| match self
                .books
                .spent
                .charge_record(*owner, attribute, *plan, window)?
                .entry
            {
                Entry::Charged { cost, .. } => Some((attribute, cost)),
                Entry::Refunded { .. } | Entry::Forgotten { .. } => None,
            };
            owners.iter().find_map(charged)
        };
        attributes.into_iter().filter_map(of).collect()
    }

    /// Owners of this controller's streams at these positions, the plan's attributes, and
    /// the window that is charged as one with this one; `None` if the plan adds no noise.
    fn charged_accounts(
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

    /// Settles a window's charges once no more requests about it are answered. A charge is
    /// refunded if the opening was never sent, which only a complete ledger can show.
    pub(super) fn settle_budget(
        &mut self,
        now: Timestamp,
        plan: &PlanId,
        window: Window,
    ) -> Vec<Change> {
        let Some(joined) = self.plans.get(plan) else { return Vec::new() };
        // In running totals, a later window may depend on the same promise.
        if joined.plan().horizon().is_some() {
            return Vec::new();
        }
        let Some(round) = joined.rounds.get(&window.start) else { return Vec::new() };
        let restored = self.restored_at.is_some_and(|restored| window.start < restored);
        let single = joined.announced.is_single();
        let (refunds, accepted) = match (&round.spent, &round.summoned) {
            (Some((spent, _)), _) => {
                (round.opened.is_none() && !single && !restored, spent.accepted.clone())
            }
            (None, Some(summoned)) => (false, summoned.presence.accepted.clone()),
            (None, None) => return Vec::new(),
        };
        let unspent = round.spent.is_none();
        let Some((owners, attributes, window)) = self.charged_accounts(plan, window, &accepted)
        else {
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

    /// Adds up what the plan's settled windows have cost, to keep the accounts small.
    /// Charges that were added up can no longer be distinguished or refunded.
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

    /// The time up to which the accounts of a plan's owners are settled, considering every
    /// running plan with their streams, since all spend from the same accounts.
    fn marks(&self, joined: &PlanState) -> BTreeMap<(OwnerId, u16), Timestamp> {
        let of = |joined: &PlanState| {
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
        // Windows of a period that has not ended stay separate.
        let (states, attributes) = (self.streams.values(), &joined.plan().attributes);
        for (state, attribute) in
            states.flat_map(|state| attributes.iter().map(move |at| (state, *at)))
        {
            let Some(mark) = marks.get_mut(&(state.owner, attribute)) else { continue };
            for (budget, _) in state.policies().flat_map(|policy| budgets(policy, attribute)) {
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
        let gone = self.books.spent.keys_before(owner, attribute, before);
        self.books.take(&record);
        let id = self.id();
        let gone = gone.into_iter().map(|key| Change::remove(Record::budget_key(id, &key)));
        let gone: Vec<Change> = gone.collect();
        std::iter::once(self.put(now, Record::Budget(record))).chain(gone).collect()
    }

    /// The time since which this ledger may lack spends, if it is not known to be the
    /// latest: its own clock, or the start of an earlier window of a running plan that it
    /// has not settled. Plans that it does not know were accepted later. A plan with noise
    /// releases no window that ended before its acceptance.
    pub(super) fn lost_since(&self) -> Timestamp {
        let noisy = self.plans.values().filter(|joined| joined.plan().privacy.is_some());
        let running = noisy.filter(|joined| joined.ended.is_none());
        running.filter_map(|joined| first_open(joined, self.clock)).fold(self.clock, Timestamp::min)
    }

    /// Charges what may have been spent on a stream between these times, at the highest
    /// rate of each of these policies.
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

/// Budgets of an attribute, each with the shortest window that is charged to it.
fn budgets(policy: &ResolvedPolicy, attribute: u16) -> impl Iterator<Item = (Budget, u64)> {
    let own = policy.attribute(attribute).into_iter().flat_map(|own| &own.alternatives);
    own.filter_map(|option| Some((option.budget?, option.window.0)))
}

pub(super) fn pairs(owners: &BTreeSet<OwnerId>, attributes: &[u16]) -> Vec<(OwnerId, u16)> {
    owners.iter().flat_map(|owner| attributes.iter().map(|at| (*owner, *at))).collect()
}

/// The start of a plan's first window before `now` that may still be released.
fn first_open(joined: &PlanState, now: Timestamp) -> Option<Timestamp> {
    let window = joined.plan().window;
    let from = joined.plan().from.max(joined.settled.floor(window));
    let done = |round: &WindowState| round.closed || round.spent.is_some();
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

/// Represents the plans in the lost part of a ledger.
fn marker(stream: StreamId, mark: u8) -> PlanId {
    let mut id = [mark; 32];
    id[..16].copy_from_slice(&stream.0);
    PlanId(id)
}
