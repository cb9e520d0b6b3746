//! What the releases of a statement add up to for one owner.

use super::Statement;
use super::lines::{AccountCharge, Line};
use alpheus_policy::budget::{PrivacyLoss, Slack};
use alpheus_policy::ids::{OwnerId, PlanId};
use alpheus_policy::schema::Budget;
use std::collections::{BTreeMap, BTreeSet};

impl Statement {
    /// The most that one owner's account was charged, for each budget in force.
    /// Nothing may be added after it.
    pub fn spent(&mut self) {
        let sets = self.sets();
        let budgets = std::mem::take(&mut self.budgets);
        for (attribute, budget) in
            budgets.iter().flat_map(|(at, all)| all.iter().map(move |one| (*at, one)))
        {
            let losses = sets.iter().map(|plans| self.loss(attribute, budget, plans));
            let most = losses.max_by_key(|(loss, releases)| {
                let PrivacyLoss { epsilon, rho_of_pure, rho, slack } = *loss;
                (rho.plus(rho_of_pure), epsilon, slack, rho, rho_of_pure, *releases)
            });
            let (loss, releases) = most.unwrap_or_default();
            let least = loss.min_epsilon(budget.atto_delta);
            self.add(&Line::Spent(AccountCharge {
                attribute,
                budget: *budget,
                releases,
                epsilon: loss.epsilon.0.to_string(),
                rho_of_pure: loss.rho_of_pure.0.to_string(),
                rho: loss.rho.0.to_string(),
                slack: loss.slack.0.to_string(),
                epsilon_at_delta: least.map(|least| least.0.to_string()),
            }));
        }
    }

    /// The sets of charged plans that owners are in, each once.
    fn sets(&self) -> BTreeSet<Vec<PlanId>> {
        let (mut by_owner, mut anybody) = (BTreeMap::<OwnerId, Vec<PlanId>>::new(), Vec::new());
        for plan in self.charged.keys() {
            match self.plans.get(plan).and_then(|known| known.owners.as_ref()) {
                None => anybody.push(*plan),
                Some(owners) => {
                    owners.iter().for_each(|own| by_owner.entry(*own).or_default().push(*plan));
                }
            }
        }
        let with_all = |plans: Vec<PlanId>| [plans, anybody.clone()].concat();
        by_owner.into_values().chain([Vec::new()]).map(with_all).collect()
    }

    /// What an owner in these plans was charged, and by how many releases.
    fn loss(&self, attribute: u16, budget: &Budget, plans: &[PlanId]) -> (PrivacyLoss, u64) {
        let (mut sum, mut releases) = (PrivacyLoss::default(), 0);
        for plan in plans {
            let (Some(known), Some(times)) = (self.plans.get(plan), self.charged.get(plan)) else {
                continue;
            };
            for (_, cost) in known.charges.iter().filter(|(own, _)| *own == attribute) {
                let slack = Slack::of(known.slack_bits, budget.window_micro_epsilon);
                sum = sum.and(PrivacyLoss::of_many(*cost, slack, *times));
                releases += times;
            }
        }
        (sum, releases)
    }
}
