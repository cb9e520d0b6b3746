//! An account for each owner and attribute: a privacy filter that refuses a release
//! beyond the budget of the policy in force.
//!
//! Checking changes nothing. It returns the record to be made durable, and only applying
//! that record spends. Records may be applied in any order, so a store may return them
//! sorted by key. A refund replaces its charge. Losses may be chosen adaptively, each
//! after seeing earlier results: both ways of adding up in [`PrivacyLoss::within`] remain
//! valid (Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021).

use super::budget_error::{BudgetError, Rule};
use super::calibrate::Cost;
use super::convert::{last, max_rho};
use super::loss::{PrivacyLoss, Slack};
use super::record::{BudgetRecord, Charge, Entry};
use super::{Epsilon, Rho};
use crate::ids::{OwnerId, PlanId};
use crate::schema::{Budget, PrivacyUnit};
use alpheus_time::{Span, Timestamp, Window};
use std::collections::{BTreeMap, BTreeSet};

/// The accounts of one controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts(pub(super) BTreeMap<(OwnerId, u16), Account>);

/// The charges to one attribute of one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Releases that may still be refunded or share time with another.
    pub(super) live: BTreeMap<(Window, PlanId), (Cost, Slack)>,
    /// Releases that ended by this time are no longer live.
    pub(super) forgotten: Option<Timestamp>,
    /// Their total cost.
    pub(super) base: PrivacyLoss,
}

impl Accounts {
    /// The account of an owner's attribute, or `None` if nothing was spent.
    #[must_use]
    pub fn account(&self, owner: OwnerId, attribute: u16) -> Option<&Account> {
        self.0.get(&(owner, attribute))
    }

    /// Checks that a release may be charged, and returns the record of the charge, or `None`
    /// if it was charged already. It must be within this budget either way, since the
    /// earlier charge may have been under another choice of the owner.
    ///
    /// # Errors
    /// [`BudgetError`] has the rule, the numbers, and the largest cost that is still allowed.
    pub fn check(
        &self,
        owner: OwnerId,
        attribute: u16,
        budget: &Budget,
        charge: &Charge,
    ) -> Result<Option<BudgetRecord>, Box<BudgetError>> {
        let empty = Account::default();
        let account = self.account(owner, attribute).unwrap_or(&empty);
        let slack = Slack::of(charge.slack_bits, budget.window_micro_epsilon);
        let key = (charge.window, charge.plan);
        if let Some(known) = account.live.get(&key) {
            if known.0 != charge.cost {
                return Err(Box::new(BudgetError::charged(attribute, charge.cost, known.0)));
            }
            let others = CountedEntries { account, except: Some(key) };
            others.allows(attribute, budget, charge.window, charge.cost, slack)?;
            return Ok(None);
        }
        account.counted().allows(attribute, budget, charge.window, charge.cost, slack)?;
        let entry =
            Entry::Charged { plan: charge.plan, window: charge.window, cost: charge.cost, slack };
        Ok(Some(BudgetRecord { owner, attribute, entry }))
    }

    /// Charges a window that closed, if this controller cannot know whether it answered (its
    /// ledger was restored). The charge is the policy's maximum per window, regardless of
    /// the limit. With a δ, it is the larger of what pure and concentrated noise could
    /// have cost.
    #[must_use]
    pub fn forfeit(
        owner: OwnerId,
        attribute: u16,
        budget: &Budget,
        plan: PlanId,
        window: Window,
    ) -> BudgetRecord {
        Accounts::forfeit_all(owner, attribute, budget, plan, window, 1)
    }

    /// The same for up to `windows` windows within a span of time.
    #[must_use]
    pub fn forfeit_all(
        owner: OwnerId,
        attribute: u16,
        budget: &Budget,
        plan: PlanId,
        window: Window,
        windows: u64,
    ) -> BudgetRecord {
        let epsilon = Epsilon::from_micro(budget.window_micro_epsilon);
        let times = |units: u128| units.saturating_mul(windows.into());
        let cost = match budget.atto_delta {
            0 => Cost::Pure(Epsilon(times(epsilon.0))),
            delta => Cost::Concentrated(Rho(times(epsilon.rho().max(max_rho(epsilon, delta)).0))),
        };
        let entry = Entry::Charged { plan, window, cost, slack: Slack(0) };
        BudgetRecord { owner, attribute, entry }
    }

    /// Refunds a charge. This is allowed only if the window is durably closed and the opening
    /// (or a lone controller's token) was never sent. `None` if there is no such charge.
    #[must_use]
    pub fn refund(
        &self,
        owner: OwnerId,
        attribute: u16,
        plan: PlanId,
        window: Window,
    ) -> Option<BudgetRecord> {
        let known = self.account(owner, attribute)?.live.contains_key(&(window, plan));
        let entry = Entry::Refunded { plan, window };
        known.then_some(BudgetRecord { owner, attribute, entry })
    }

    /// The record of an existing charge, as it was written.
    #[must_use]
    pub fn charge_record(
        &self,
        owner: OwnerId,
        attribute: u16,
        plan: PlanId,
        window: Window,
    ) -> Option<BudgetRecord> {
        let (cost, slack) = *self.account(owner, attribute)?.live.get(&(window, plan))?;
        let entry = Entry::Charged { plan, window, cost, slack };
        Some(BudgetRecord { owner, attribute, entry })
    }

    /// The keys of the charges that a mark at `before` sums up.
    #[must_use]
    pub fn keys_before(&self, owner: OwnerId, attribute: u16, before: Timestamp) -> Vec<Vec<u8>> {
        let live = self.account(owner, attribute).into_iter().flat_map(|own| own.live.keys());
        let ended = live.filter(|(window, _)| window.end <= before);
        let key = |(window, plan): &(Window, PlanId)| {
            let entry = Entry::Refunded { plan: *plan, window: *window };
            BudgetRecord { owner, attribute, entry }.key()
        };
        ended.map(key).collect()
    }

    /// Applies a durable record. Applying it again changes nothing.
    pub fn apply(&mut self, record: &BudgetRecord) {
        let account = self.0.entry((record.owner, record.attribute)).or_default();
        match record.entry {
            Entry::Charged { plan, window, cost, slack } => {
                if Some(window.end) > account.forgotten {
                    account.live.entry((window, plan)).or_insert((cost, slack));
                }
            }
            Entry::Refunded { plan, window } => {
                account.live.remove(&(window, plan));
            }
            Entry::Forgotten { before, sum } => {
                if Some(before) > account.forgotten {
                    account.live.retain(|(window, _), _| window.end > before);
                    account.forgotten = Some(before);
                    account.base = sum;
                }
            }
        }
    }

    /// The record that sums up an account's entries of windows that ended by `before`. They
    /// stay in the total, but can no longer be refunded, and windows that start before the
    /// mark are refused from then on. Keep the entries of the current period of a
    /// person-per-period budget, or that period counts everything ever spent. `None` unless
    /// the mark advances, since an earlier record would replace a later one.
    #[must_use]
    pub fn forget(
        &self,
        owner: OwnerId,
        attribute: u16,
        before: Timestamp,
    ) -> Option<BudgetRecord> {
        let account = self.account(owner, attribute)?;
        if Some(before) <= account.forgotten {
            return None;
        }
        let sum = account.base.and(account.counted().sum(|window| window.end <= before));
        let entry = Entry::Forgotten { before, sum };
        Some(BudgetRecord { owner, attribute, entry })
    }

    /// The total spent on one person over all attributes. Losses add up.
    #[must_use]
    pub fn person(&self, owner: OwnerId) -> PrivacyLoss {
        let own = self.0.range((owner, 0)..=(owner, u16::MAX));
        own.fold(PrivacyLoss::default(), |sum, (_, account)| sum.and(account.total()))
    }
}

impl Account {
    /// Everything that was spent, without refunds.
    #[must_use]
    pub fn total(&self) -> PrivacyLoss {
        self.counted().total()
    }

    /// Spent on data of a period, or everything ever spent if part of the period is summed up.
    pub(super) fn spent_in(&self, period: Window) -> PrivacyLoss {
        self.counted().spent_in(period)
    }

    fn counted(&self) -> CountedEntries<'_> {
        CountedEntries { account: self, except: None }
    }
}

/// The entries of an account that count: all but a release that is checked again.
struct CountedEntries<'a> {
    account: &'a Account,
    except: Option<(Window, PlanId)>,
}

impl CountedEntries<'_> {
    /// Checks one more release against every rule of the budget.
    fn allows(
        &self,
        attribute: u16,
        budget: &Budget,
        window: Window,
        cost: Cost,
        slack: Slack,
    ) -> Result<(), Box<BudgetError>> {
        if Some(window.start) < self.account.forgotten {
            return Err(Box::new(BudgetError::settled(attribute, cost, self.total())));
        }
        for (rule, spent, limit) in self.limits(budget, window) {
            let allowed = |cost| spent.with(cost, slack).within(limit, budget.atto_delta);
            if !allowed(cost) {
                let nearest = nearest(cost, allowed);
                let refused =
                    BudgetError { rule, attribute, requested: cost, spent, limit, nearest };
                return Err(Box::new(refused));
            }
        }
        Ok(())
    }

    /// The sums to which a release of the window would add, with their limits. They include
    /// the largest of each rule, and consecutive equal sums appear once.
    fn limits(&self, budget: &Budget, window: Window) -> Vec<(Rule, PrivacyLoss, Epsilon)> {
        let per_window = Epsilon::from_micro(budget.window_micro_epsilon);
        let total = Epsilon::from_micro(budget.total_micro_epsilon);
        let starts = || self.live().map(|(other, ..)| other.start);
        let inside = starts().filter(|start| *start > window.start && *start < window.end);
        let moments = std::iter::once(window.start).chain(inside);
        let moments = moments.map(|at| Window { start: at, end: at.plus(Span(1)) });
        let sums = self.sums(moments).into_iter();
        let mut limits: Vec<_> = sums.map(|spent| (Rule::Window, spent, per_window)).collect();
        match budget.unit {
            PrivacyUnit::Event | PrivacyUnit::PersonPerWindow => {
                limits.push((Rule::Total, self.total(), total));
            }
            PrivacyUnit::PersonPerPeriod(period) => {
                let all = |own: &Window| Some(own.start) < self.account.forgotten;
                let (before, since): (Vec<_>, Vec<_>) =
                    periods(window, period, starts()).partition(all);
                let before = before.first().map(|_| self.total());
                let sums = before.into_iter().chain(self.sums(since.into_iter()));
                limits.extend(sums.map(|spent| (Rule::Period(period), spent, total)));
            }
        }
        limits
    }

    /// The amount spent on data of each of these spans. Spans and live releases ascend, so a
    /// span is compared only with releases that may overlap it. So the time is not
    /// quadratic in the number of releases beside a long one.
    fn sums(&self, spans: impl Iterator<Item = Window>) -> Vec<PrivacyLoss> {
        let mut waiting = self.live().peekable();
        let mut begun: Vec<(Window, Cost, Slack)> = Vec::new();
        let mut sums: Vec<PrivacyLoss> = Vec::new();
        for span in spans {
            while let Some(own) = waiting.next_if(|(window, ..)| window.start < span.end) {
                begun.push(own);
            }
            begun.retain(|(window, ..)| window.end > span.start);
            let add = |sum: PrivacyLoss, (_, cost, slack): &(Window, Cost, Slack)| {
                sum.with(*cost, *slack)
            };
            let spent = begun.iter().fold(PrivacyLoss::default(), add);
            if sums.last() != Some(&spent) {
                sums.push(spent);
            }
        }
        sums
    }

    fn total(&self) -> PrivacyLoss {
        self.account.base.and(self.sum(|_| true))
    }

    fn spent_in(&self, period: Window) -> PrivacyLoss {
        match Some(period.start) < self.account.forgotten {
            true => self.total(),
            false => self.sum(|window| window.overlaps(period)),
        }
    }

    fn sum(&self, counts: impl Fn(Window) -> bool) -> PrivacyLoss {
        let own = self.live().filter(|(window, ..)| counts(*window));
        own.fold(PrivacyLoss::default(), |sum, (_, cost, slack)| sum.with(cost, slack))
    }

    fn live(&self) -> impl Iterator<Item = (Window, Cost, Slack)> + '_ {
        let counts = |(key, _): &(&(Window, PlanId), _)| Some(**key) != self.except;
        let own = self.account.live.iter().filter(counts);
        own.map(|((window, _), (cost, slack))| (*window, *cost, *slack))
    }
}

/// The periods, counted from the Unix epoch, that overlap a window and can have the largest
/// sums: the first, and any in which a release starts. A release that extends into another
/// period also overlaps the one before it. So the work is bounded by the number of
/// releases, even if a window spans many periods.
fn periods(
    window: Window,
    period: Span,
    starts: impl Iterator<Item = Timestamp>,
) -> impl Iterator<Item = Window> {
    let length = period.0.max(1);
    let first = window.start.0 / length;
    let last = (window.end.0.saturating_sub(1) / length).max(first);
    let shared = starts.map(|at| at.0 / length).filter(|number| (first..=last).contains(number));
    let numbers: BTreeSet<u64> = std::iter::once(first).chain(shared).collect();
    numbers.into_iter().map(move |number| Window {
        start: Timestamp(number.saturating_mul(length)),
        end: Timestamp(number.saturating_add(1).saturating_mul(length)),
    })
}

/// The largest cost of the same kind that is allowed, if any is.
fn nearest(requested: Cost, allowed: impl Fn(Cost) -> bool) -> Option<Cost> {
    let (most, of): (u128, fn(u128) -> Cost) = match requested {
        Cost::Pure(epsilon) => (epsilon.0, |units| Cost::Pure(Epsilon(units))),
        Cost::Concentrated(rho) => (rho.0, |units| Cost::Concentrated(Rho(units))),
    };
    let most = last(most, |units| allowed(of(units)));
    (most > 0).then(|| of(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: u64, end: u64) -> Window {
        Window { start: Timestamp(start), end: Timestamp(end) }
    }

    fn account(live: impl IntoIterator<Item = Window>) -> Account {
        let plan = |number: u8| PlanId([number; 32]);
        let cost = |own: Window| (Cost::Pure(Epsilon(u128::from(own.end.0 % 7 + 1))), Slack(1));
        let live = live.into_iter().zip((0..=255).cycle());
        let live = live.map(|(own, number)| ((own, plan(number)), cost(own))).collect();
        Account { live, ..Account::default() }
    }

    /// One release per ten seconds of a day, beside one over the whole day.
    #[test]
    fn many_equal_releases_make_few_sums() {
        let many = account((0..8640).map(|at| window(70 * at, 70 * (at + 1))));
        let budget =
            |unit| Budget { window_micro_epsilon: 1, total_micro_epsilon: 1, atto_delta: 0, unit };
        for unit in [PrivacyUnit::PersonPerWindow, PrivacyUnit::PersonPerPeriod(Span(70))] {
            let limits = many.counted().limits(&budget(unit), window(0, 1 << 30));
            assert_eq!(limits.len(), 2, "{unit:?}");
        }
    }

    /// The sweep agrees with adding up all overlapping releases.
    #[test]
    fn sums_are_those_of_overlapping_releases() {
        let mut state = 7u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let own: Vec<_> = (0..draw(12)).map(|_| (draw(40), draw(20) + 1)).collect();
            let account = account(own.iter().map(|(start, length)| window(*start, start + length)));
            for length in [1, 5] {
                let spans = || (0..60 / length).map(|n| window(length * n, length * (n + 1)));
                let shares = |span| account.counted().sum(|own: Window| own.overlaps(span));
                let mut expected: Vec<_> = spans().map(shares).collect();
                expected.dedup();
                assert_eq!(account.counted().sums(spans()), expected);
            }
        }
    }
}
