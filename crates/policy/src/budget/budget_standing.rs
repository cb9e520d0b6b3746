//! How much of a budget is used up, for display to its owner.

use super::account::{Account, Accounts};
use super::amount::Epsilon;
use crate::ids::OwnerId;
use crate::schema::{Budget, PrivacyUnit};
use alpheus_time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};

/// A budget of an owner, and the charges that count towards it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetStanding {
    /// The attribute, by position in the schema.
    pub attribute: u16,
    /// The budget.
    pub budget: Budget,
    /// The current period, or `None` if all time counts.
    pub period: Option<Window>,
    /// The smallest ε at which all charges together are private, with the budget's δ. `None`
    /// if no ε is enough: they were charged under a policy with a δ, and this budget has
    /// none.
    pub spent: Option<Epsilon>,
    /// The same for the last 365 days, or for longer where older releases are summed up.
    #[serde(default)]
    pub year: Option<Epsilon>,
}

/// The last year.
const YEAR: Span = Span::seconds(365 * 86_400);

impl Accounts {
    /// The standing of an owner's budget for an attribute.
    #[must_use]
    pub fn standing(
        &self,
        owner: OwnerId,
        attribute: u16,
        budget: Budget,
        now: Timestamp,
    ) -> BudgetStanding {
        let period = match budget.unit {
            PrivacyUnit::Event | PrivacyUnit::PersonPerWindow => None,
            PrivacyUnit::PersonPerPeriod(length) => {
                let length = Span(length.0.max(1));
                let start = now.floor(length);
                Some(Window { start, end: start.plus(length) })
            }
        };
        let empty = Account::default();
        let account = self.account(owner, attribute).unwrap_or(&empty);
        let spent = period.map_or_else(|| account.total(), |period| account.spent_in(period));
        let last = Window { start: Timestamp(now.0.saturating_sub(YEAR.0)), end: now };
        let year = account.spent_in(last).min_epsilon(budget.atto_delta);
        let spent = spent.min_epsilon(budget.atto_delta);
        BudgetStanding { attribute, budget, period, spent, year }
    }
}

impl BudgetStanding {
    /// The fraction of the budget that is used up, at most 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        let total = Epsilon::from_micro(self.budget.total_micro_epsilon);
        match self.spent {
            Some(spent) if spent < total => spent.0 as f64 / total.0 as f64,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{BudgetRecord, Cost, Entry, Rho, Slack};
    use crate::ids::PlanId;

    const OWNER: OwnerId = OwnerId([1; 32]);

    fn charged(records: &[(u64, Cost)]) -> Accounts {
        let mut accounts = Accounts::default();
        for (second, cost) in records {
            let start = Timestamp(0).plus(Span::seconds(*second));
            let window = Window { start, end: start.plus(Span::seconds(10)) };
            let entry =
                Entry::Charged { plan: PlanId([2; 32]), window, cost: *cost, slack: Slack(0) };
            accounts.apply(&BudgetRecord { owner: OWNER, attribute: 3, entry });
        }
        accounts
    }

    fn budget(atto_delta: u64, unit: PrivacyUnit) -> Budget {
        Budget { window_micro_epsilon: 100_000, total_micro_epsilon: 1_000_000, atto_delta, unit }
    }

    #[test]
    fn only_the_current_period_counts() {
        let cost = Cost::Pure(Epsilon::from_micro(100_000));
        let accounts = charged(&[(0, cost), (60, cost), (70, cost)]);
        let minute = budget(0, PrivacyUnit::PersonPerPeriod(Span::seconds(60)));
        let at = |second| Timestamp(0).plus(Span::seconds(second));
        let standing = accounts.standing(OWNER, 3, minute, at(65));
        assert_eq!(standing.spent, Some(Epsilon::from_micro(200_000)));
        assert_eq!(standing.period, Some(Window { start: at(60), end: at(120) }));
        assert!((standing.share() - 0.2).abs() < 1e-9);
        let ever = accounts.standing(OWNER, 3, budget(0, PrivacyUnit::Event), at(65));
        assert_eq!((ever.spent, ever.period), (Some(Epsilon::from_micro(300_000)), None));
        assert_eq!(ever.year, Some(Epsilon::from_micro(200_000)), "what has begun");
        let later = accounts.standing(OWNER, 3, budget(0, PrivacyUnit::Event), at(366 * 86_400));
        assert_eq!((later.spent, later.year), (ever.spent, Some(Epsilon(0))), "a year ago");
        let nobody = accounts.standing(OWNER, 4, minute, at(65));
        assert_eq!((nobody.spent, nobody.share()), (Some(Epsilon(0)), 0.0));
    }

    #[test]
    fn the_reported_loss_is_the_smallest_that_the_account_allows() {
        let rho = |micro: u128| Cost::Concentrated(Rho(micro * 1_000_000_000_000_000_000));
        for costs in [vec![rho(5)], vec![rho(5), rho(70)], vec![rho(900); 3]] {
            let costs: Vec<_> = (0..).map(|at| at * 10).zip(costs).collect();
            let accounts = charged(&costs);
            let total = accounts.account(OWNER, 3).unwrap().total();
            for delta in [1_000, 1_000_000_000_000] {
                let least = total.min_epsilon(delta).unwrap();
                assert!(total.within(least, delta) && !total.within(Epsilon(least.0 - 1), delta));
            }
            assert_eq!(total.min_epsilon(0), None);
            let standing = accounts.standing(OWNER, 3, budget(0, PrivacyUnit::Event), Timestamp(0));
            assert_eq!(standing.share(), 1.0);
        }
    }
}
