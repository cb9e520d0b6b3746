//! An owner's accounts at one controller, carried to another one.

use super::account::{Account, Accounts};
use super::calibrate::Cost;
use super::loss::{PrivacyLoss, Slack};
use super::record::{BudgetRecord, Entry};
use crate::ids::{OwnerId, PlanId};
use alpheus_time::{Timestamp, Window};

impl Accounts {
    /// Everything that an owner was charged, as records. Applied to empty accounts they give the same.
    #[must_use]
    pub fn carried(&self, owner: OwnerId) -> Vec<BudgetRecord> {
        let own = self.0.range((owner, 0)..=(owner, u16::MAX));
        own.flat_map(|((owner, attribute), account)| {
            let record = |entry| BudgetRecord { owner: *owner, attribute: *attribute, entry };
            account.entries().map(record).collect::<Vec<_>>()
        })
        .collect()
    }

    /// Forgets an owner's accounts, because later ones that hold all of them come back.
    pub fn forget_owner(&mut self, owner: OwnerId) {
        self.0.retain(|(of, _), _| *of != owner);
    }

    /// The records that add accounts from elsewhere to those here. Where there is no account yet, they are the same.
    /// Otherwise what can no longer be distinguished counts as one charge, named by `marker`, for all time
    /// before `until`: nothing that was charged is lost.
    #[must_use]
    pub fn joined(
        &self,
        elsewhere: &[BudgetRecord],
        marker: PlanId,
        until: Timestamp,
    ) -> Vec<BudgetRecord> {
        let mut theirs = Accounts::default();
        elsewhere.iter().for_each(|record| theirs.apply(record));
        let mut records = Vec::new();
        for ((owner, attribute), account) in &theirs.0 {
            let record = |entry| BudgetRecord { owner: *owner, attribute: *attribute, entry };
            match self.account(*owner, *attribute) {
                None => records.extend(account.entries().map(record)),
                Some(own) => {
                    records.extend(account.joined_to(own, marker, until).into_iter().map(record));
                }
            }
        }
        records
    }
}

impl Account {
    fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let sum = self.forgotten.map(|before| Entry::Forgotten { before, sum: self.base });
        let live = self.live.iter().map(|((window, plan), (cost, slack))| Entry::Charged {
            plan: *plan,
            window: *window,
            cost: *cost,
            slack: *slack,
        });
        sum.into_iter().chain(live)
    }

    /// The entries that add this account to another one.
    fn joined_to(&self, own: &Account, marker: PlanId, until: Timestamp) -> Vec<Entry> {
        let is_live = |window: &Window| Some(window.end) > own.forgotten;
        let (kept, past): (Vec<_>, Vec<_>) =
            self.live.iter().partition(|((window, _), _)| is_live(window));
        let past =
            past.into_iter().fold(self.base, |sum, (_, (cost, slack))| sum.with(*cost, *slack));
        let mut entries: Vec<Entry> = kept
            .into_iter()
            .map(|((window, plan), (cost, slack))| Entry::Charged {
                plan: *plan,
                window: *window,
                cost: *cost,
                slack: *slack,
            })
            .collect();
        // It must end after what is forgotten here, or it would not count.
        let after = own.forgotten.map_or(Timestamp(1), |before| Timestamp(before.0 + 1));
        let window = Window { start: Timestamp(0), end: until.max(after) };
        entries.extend(charges_of(past, marker, window));
        entries
    }
}

/// A loss as charges of its two kinds, no smaller than it.
fn charges_of(loss: PrivacyLoss, marker: PlanId, window: Window) -> Vec<Entry> {
    let charge = |kind: u8, cost| {
        let mut plan = marker;
        plan.0[31] ^= kind;
        Entry::Charged { plan, window, cost, slack: loss.slack }
    };
    let mut entries = Vec::new();
    if loss.epsilon.0 > 0 {
        entries.push(charge(0, Cost::Pure(loss.epsilon)));
    }
    if loss.rho.0 > 0 || (loss.epsilon.0 == 0 && loss.slack > Slack(0)) {
        entries.push(charge(1, Cost::Concentrated(loss.rho)));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Epsilon, Rho};

    const OWNER: OwnerId = OwnerId([1; 32]);

    fn charged(start: u64, end: u64, units: u128) -> BudgetRecord {
        let window = Window { start: Timestamp(start), end: Timestamp(end) };
        let (plan, cost) = (PlanId([9; 32]), Cost::Pure(Epsilon(units)));
        let entry = Entry::Charged { plan, window, cost, slack: Slack(1) };
        BudgetRecord { owner: OWNER, attribute: 0, entry }
    }

    fn of(records: &[BudgetRecord]) -> Accounts {
        let mut accounts = Accounts::default();
        records.iter().for_each(|record| accounts.apply(record));
        accounts
    }

    fn summed_up(accounts: &Accounts, before: u64) -> Accounts {
        let mut accounts = accounts.clone();
        let record = accounts.forget(OWNER, 0, Timestamp(before)).unwrap();
        accounts.apply(&record);
        accounts
    }

    #[test]
    fn accounts_come_to_an_empty_controller_as_they_were() {
        let before = of(&[charged(0, 10, 5), charged(10, 20, 7), charged(20, 30, 1)]);
        let before = summed_up(&before, 20);
        let records =
            Accounts::default().joined(&before.carried(OWNER), PlanId([4; 32]), Timestamp(40));
        assert_eq!(of(&records), before);
        assert_eq!(before.carried(OwnerId([2; 32])), []);
    }

    /// Whatever either side has summed up.
    #[test]
    fn joined_accounts_hold_no_less_than_both() {
        let theirs = of(&[charged(0, 10, 5), charged(10, 20, 7), charged(30, 40, 11)]);
        let own = of(&[charged(1, 9, 100), charged(12, 22, 200)]);
        for (they_forgot, we_forgot) in [(0, 0), (10, 0), (0, 9), (20, 22), (40, 9), (10, 35)] {
            let theirs =
                if they_forgot > 0 { summed_up(&theirs, they_forgot) } else { theirs.clone() };
            let mut joined = if we_forgot > 0 { summed_up(&own, we_forgot) } else { own.clone() };
            let records = joined.joined(&theirs.carried(OWNER), PlanId([4; 32]), Timestamp(40));
            records.iter().for_each(|record| joined.apply(record));
            let total = joined.account(OWNER, 0).unwrap().total();
            assert_eq!(total.epsilon, Epsilon(323), "{they_forgot} {we_forgot}");
            // Once more changes nothing.
            let again = joined.clone();
            records.iter().for_each(|record| joined.apply(record));
            assert_eq!(joined, again);
        }
    }

    #[test]
    fn both_kinds_of_loss_are_carried() {
        let loss = PrivacyLoss { epsilon: Epsilon(3), rho: Rho(8), ..PrivacyLoss::default() };
        let window = Window { start: Timestamp(0), end: Timestamp(9) };
        let entries = charges_of(loss, PlanId([4; 32]), window);
        let records =
            entries.iter().map(|entry| BudgetRecord { owner: OWNER, attribute: 0, entry: *entry });
        let total = of(&records.collect::<Vec<_>>()).person(OWNER);
        assert_eq!((total.epsilon, total.rho), (loss.epsilon, loss.rho));
    }
}
