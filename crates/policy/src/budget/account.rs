//! An account for each owner and attribute: a privacy filter, which refuses
//! what would exceed the budget of the policy in force.
//!
//! Checking changes nothing: it returns the record to be made durable, and
//! only applying that record spends. Records may be applied in any order, so that
//! a store may give them back sorted by their keys; but a refund stands in place of
//! its charge. Losses may be chosen one after the other,
//! each knowing the results before it: both ways of adding up that
//! [`Spent::within`] knows stay valid then (Rogers, Roth, Ullman, Vadhan 2016;
//! Feldman, Zrnic 2021).

use super::calibrate::Cost;
use super::convert::{last, most_rho};
use super::record::{BudgetRecord, Charge, Entry};
use super::refusal::{Overspent, Rule};
use super::spent::{Slack, Spent};
use super::{Epsilon, Rho};
use crate::ids::{OwnerId, PlanId};
use crate::schema::{Budget, PrivacyUnit};
use crate::time::{Span, Timestamp, Window};
use std::collections::{BTreeMap, BTreeSet};

/// The accounts that one controller keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts(BTreeMap<(OwnerId, u16), Account>);

/// What was spent on one owner's attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Releases that may still be refunded or share time with another.
    live: BTreeMap<(Window, PlanId), (Cost, Slack)>,
    /// Releases that ended by then are no longer live.
    forgotten: Option<Timestamp>,
    /// What they cost together.
    base: Spent,
}

impl Accounts {
    /// The account of an owner's attribute; none where nothing was spent.
    #[must_use]
    pub fn account(&self, owner: OwnerId, attribute: u16) -> Option<&Account> {
        self.0.get(&(owner, attribute))
    }

    /// Whether a release may be charged, and the record that does it; none if
    /// it has been already. This budget must hold it either way: what was charged
    /// before may have been for another choice of the owner's.
    ///
    /// # Errors
    /// [`Overspent`] names the rule, the numbers, and the most that is left.
    pub fn check(
        &self,
        owner: OwnerId,
        attribute: u16,
        budget: &Budget,
        charge: &Charge,
    ) -> Result<Option<BudgetRecord>, Box<Overspent>> {
        let empty = Account::default();
        let account = self.account(owner, attribute).unwrap_or(&empty);
        let slack = Slack::of(charge.slack_bits, budget.window_micro_epsilon);
        let key = (charge.window, charge.plan);
        if let Some(known) = account.live.get(&key) {
            if known.0 != charge.cost {
                return Err(Box::new(Overspent::charged(attribute, charge.cost, known.0)));
            }
            let others = Counted { account, but: Some(key) };
            others.allows(attribute, budget, charge.window, charge.cost, slack)?;
            return Ok(None);
        }
        account.counted().allows(attribute, budget, charge.window, charge.cost, slack)?;
        let entry =
            Entry::Charged { plan: charge.plan, window: charge.window, cost: charge.cost, slack };
        Ok(Some(BudgetRecord { owner, attribute, entry }))
    }

    /// Charges a window that closed while this controller cannot tell whether it
    /// answered (a restored ledger): at the policy's highest rate, whatever the
    /// limit. With a δ that is the greater of what pure and concentrated noise
    /// could have cost.
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

    /// The same of at most so many windows within a stretch of time.
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
            delta => Cost::Concentrated(Rho(times(epsilon.rho().max(most_rho(epsilon, delta)).0))),
        };
        let entry = Entry::Charged { plan, window, cost, slack: Slack(0) };
        BudgetRecord { owner, attribute, entry }
    }

    /// Gives a charge back: only where the window is durably closed and the
    /// opening (a lone controller's token) never left. None if it is unknown.
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

    /// The record of a charge that stands, as it was written.
    #[must_use]
    pub fn charged(
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

    /// The keys under which charges stand that a mark at `before` sums up.
    #[must_use]
    pub fn summed_up(&self, owner: OwnerId, attribute: u16, before: Timestamp) -> Vec<Vec<u8>> {
        let live = self.account(owner, attribute).into_iter().flat_map(|own| own.live.keys());
        let ended = live.filter(|(window, _)| window.end <= before);
        let key = |(window, plan): &(Window, PlanId)| {
            let entry = Entry::Refunded { plan: *plan, window: *window };
            BudgetRecord { owner, attribute, entry }.key()
        };
        ended.map(key).collect()
    }

    /// Makes a durable record true; the same again changes nothing.
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

    /// The record that sums up an account's entries of windows that ended by
    /// `before`: they stay in its total, but can no longer be refunded, and no
    /// window that starts before is released again. Keep what a
    /// person-per-period budget's period reaches back to, or that period counts
    /// all that was ever spent. None unless the mark moves on: an earlier record
    /// would take the place of a later one.
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

    /// What was spent on one person, over all their attributes: losses add up.
    #[must_use]
    pub fn person(&self, owner: OwnerId) -> Spent {
        let own = self.0.range((owner, 0)..=(owner, u16::MAX));
        own.fold(Spent::default(), |sum, (_, account)| sum.and(account.total()))
    }
}

impl Account {
    /// Everything that was spent, refunds apart.
    #[must_use]
    pub fn total(&self) -> Spent {
        self.counted().total()
    }

    /// Spent on data of a period; all that was ever spent if some of it is forgotten.
    pub(super) fn spent_in(&self, period: Window) -> Spent {
        self.counted().spent_in(period)
    }

    fn counted(&self) -> Counted<'_> {
        Counted { account: self, but: None }
    }
}

/// What counts of an account: all of it, but for one release that is asked about again.
struct Counted<'a> {
    account: &'a Account,
    but: Option<(Window, PlanId)>,
}

impl Counted<'_> {
    /// Whether one more release is within every rule of the budget.
    fn allows(
        &self,
        attribute: u16,
        budget: &Budget,
        window: Window,
        cost: Cost,
        slack: Slack,
    ) -> Result<(), Box<Overspent>> {
        if Some(window.start) < self.account.forgotten {
            return Err(Box::new(Overspent::settled(attribute, cost, self.total())));
        }
        for (rule, spent, limit) in self.limits(budget, window) {
            let allowed = |cost| spent.with(cost, slack).within(limit, budget.atto_delta);
            if !allowed(cost) {
                let nearest = nearest(cost, allowed);
                let refused = Overspent { rule, attribute, asked: cost, spent, limit, nearest };
                return Err(Box::new(refused));
            }
        }
        Ok(())
    }

    /// The sums that a release of the window would add to, with their limits: of each
    /// rule the greatest are among them, and equal ones that follow each other are one.
    fn limits(&self, budget: &Budget, window: Window) -> Vec<(Rule, Spent, Epsilon)> {
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

    /// What was spent on data of each of these spans, which ascend, as live releases do:
    /// a span is compared with those alone that may share time with it, so that many
    /// releases beside a long one take no time that grows with their square.
    fn sums(&self, spans: impl Iterator<Item = Window>) -> Vec<Spent> {
        let mut waiting = self.live().peekable();
        let mut begun: Vec<(Window, Cost, Slack)> = Vec::new();
        let mut sums: Vec<Spent> = Vec::new();
        for span in spans {
            while let Some(own) = waiting.next_if(|(window, ..)| window.start < span.end) {
                begun.push(own);
            }
            begun.retain(|(window, ..)| window.end > span.start);
            let add =
                |sum: Spent, (_, cost, slack): &(Window, Cost, Slack)| sum.with(*cost, *slack);
            let spent = begun.iter().fold(Spent::default(), add);
            if sums.last() != Some(&spent) {
                sums.push(spent);
            }
        }
        sums
    }

    fn total(&self) -> Spent {
        self.account.base.and(self.sum(|_| true))
    }

    fn spent_in(&self, period: Window) -> Spent {
        match Some(period.start) < self.account.forgotten {
            true => self.total(),
            false => self.sum(|window| window.overlaps(period)),
        }
    }

    fn sum(&self, counts: impl Fn(Window) -> bool) -> Spent {
        let own = self.live().filter(|(window, ..)| counts(*window));
        own.fold(Spent::default(), |sum, (_, cost, slack)| sum.with(cost, slack))
    }

    fn live(&self) -> impl Iterator<Item = (Window, Cost, Slack)> + '_ {
        let counts = |(key, _): &(&(Window, PlanId), _)| Some(**key) != self.but;
        let own = self.account.live.iter().filter(counts);
        own.map(|((window, _), (cost, slack))| (*window, *cost, *slack))
    }
}

/// Of the periods, counted from the Unix epoch, that share time with a window those on
/// which most can have been spent: the first, and any in which a release starts. What
/// reaches into another one reaches into the one before it too. So a window of many
/// periods costs no more than there are releases.
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

/// The greatest cost of the same kind that is allowed; none if not even the
/// least is.
fn nearest(asked: Cost, allowed: impl Fn(Cost) -> bool) -> Option<Cost> {
    let (most, of): (u128, fn(u128) -> Cost) = match asked {
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

    /// As many releases as a day has in steps of ten seconds, beside one over all of it.
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

    /// The sweep says what adding up all that share time says.
    #[test]
    fn sums_are_those_of_what_shares_time() {
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
