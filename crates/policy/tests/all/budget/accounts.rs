//! Accounts: refusals, what is left of a budget, refunds, and stored records.

use alpheus_policy::budget::{
    Accounts, BudgetError, BudgetRecord, BudgetRecordError, Charge, Cost, Entry, Epsilon, Rho,
    Rule, Slack, max_rho,
};
use alpheus_policy::ids::{OwnerId, PlanId};
use alpheus_policy::schema::{Budget, PrivacyUnit};
use alpheus_time::{Span, Timestamp, Window};
use proptest::prelude::*;

const OWNER: OwnerId = OwnerId([7; 32]);

fn budget(window: u64, total: u64, atto_delta: u64) -> Budget {
    Budget {
        window_micro_epsilon: window,
        total_micro_epsilon: total,
        atto_delta,
        unit: PrivacyUnit::PersonPerWindow,
    }
}

fn window(from: u64, to: u64) -> Window {
    Window { start: Timestamp(from), end: Timestamp(to) }
}

fn pure(micro: u64) -> Cost {
    Cost::Pure(Epsilon::from_micro(micro))
}

fn charge(plan: u8, window: Window, cost: Cost) -> Charge {
    Charge { plan: PlanId([plan; 32]), window, cost, slack_bits: 90 }
}

fn spend(
    accounts: &mut Accounts,
    budget: &Budget,
    charge: &Charge,
) -> Result<(), Box<BudgetError>> {
    let record = accounts.check(OWNER, 0, budget, charge)?;
    record.iter().for_each(|record| accounts.apply(record));
    Ok(())
}

#[test]
fn releases_of_one_time_share_its_budget() {
    let (mut accounts, budget) = (Accounts::default(), budget(1000, 1_000_000, 0));
    let mut request = |plan, from, to, micro| {
        spend(&mut accounts, &budget, &charge(plan, window(from, to), pure(micro)))
    };
    request(1, 0, 10, 600).unwrap();
    request(1, 10, 20, 600).unwrap();
    // It overlaps both: 600 at each point in time, so 400 is left.
    let refused = request(2, 0, 20, 500).unwrap_err();
    assert_eq!((refused.rule, refused.nearest), (Rule::Window, Some(pure(400))));
    let message = "attribute 0: ε = 0.0005, with ε = 0.0006 already spent on the same time, exceeds the limit of ε = 0.001 per window; at most ε = 0.0004 is left";
    assert_eq!(refused.to_string(), message);
    request(2, 0, 20, 400).unwrap();
    let refused = request(3, 5, 6, 1).unwrap_err();
    assert_eq!((refused.rule, refused.nearest), (Rule::Window, None));
    request(3, 20, 30, 1000).unwrap();
}

#[test]
fn the_total_is_over_all_windows() {
    let (mut accounts, budget) = (Accounts::default(), budget(1000, 2500, 0));
    let mut request = |from, micro| {
        spend(&mut accounts, &budget, &charge(1, window(from, from + 10), pure(micro)))
    };
    request(0, 1000).unwrap();
    request(10, 1000).unwrap();
    let refused = request(20, 501).unwrap_err();
    assert_eq!((refused.rule, refused.rule()), (Rule::Total, "budget-total"));
    assert_eq!(refused.nearest, Some(pure(500)));
    request(20, 500).unwrap();
    assert_eq!(request(30, 1).unwrap_err().nearest, None);
}

#[test]
fn each_period_has_its_own_budget() {
    let unit = PrivacyUnit::PersonPerPeriod(Span(100));
    let budget = Budget { unit, ..budget(1000, 1500, 0) };
    let mut accounts = Accounts::default();
    let mut request =
        |from, to, micro| spend(&mut accounts, &budget, &charge(1, window(from, to), pure(micro)));
    request(0, 50, 1000).unwrap();
    assert_eq!(request(50, 100, 501).unwrap_err().rule, Rule::Period(Span(100)));
    request(100, 150, 1000).unwrap();
    // It overlaps two periods, and the limits of both apply.
    assert_eq!(request(150, 250, 501).unwrap_err().nearest, Some(pure(500)));
    request(200, 250, 1000).unwrap();
    assert_eq!(request(250, 310, 501).unwrap_err().nearest, Some(pure(500)));
    request(300, 310, 1000).unwrap();
}

/// A release over many periods is checked against at most as many of them as there are
/// releases. Checking all four thousand million million here would never end.
#[test]
fn a_long_release_is_checked_against_few_periods() {
    let unit = PrivacyUnit::PersonPerPeriod(Span(1));
    let budget = Budget { unit, ..budget(1000, 1500, 0) };
    let mut accounts = Accounts::default();
    let mut request =
        |plan, own, micro| spend(&mut accounts, &budget, &charge(plan, own, pure(micro)));
    request(1, window(7, Timestamp::LIMIT.0), 600).unwrap();
    request(2, window(1 << 40, (1 << 40) + 1), 400).unwrap();
    assert_eq!(request(3, window(0, Timestamp::LIMIT.0), 1).unwrap_err().rule, Rule::Window);
    request(3, window(1 << 41, Timestamp::LIMIT.0), 400).unwrap();
}

/// With a δ, many small pure releases cost less than their sum, by exact arithmetic.
#[test]
fn small_losses_add_up_by_their_squares_where_delta_allows() {
    let run = |atto_delta| {
        let budget = budget(10_000, 1_000_000, atto_delta);
        let mut accounts = Accounts::default();
        (0..10_000u64)
            .take_while(|n| {
                let own = charge(1, window(n * 10, n * 10 + 10), pure(10_000));
                spend(&mut accounts, &budget, &own).is_ok()
            })
            .count()
    };
    assert_eq!(run(0), 100);
    // 5·10^−5 each; ρ + 2√(ρ·20.72) ≤ 1 up to ρ = 0.01178…
    let most = max_rho(Epsilon::from_micro(1_000_000), 999_999_999).0 as f64 * 1e-24;
    assert_eq!(run(1_000_000_000), (most / 5e-5) as usize);
}

#[test]
fn concentrated_losses_need_a_delta() {
    let cost = Cost::Concentrated(Rho(1));
    let own = charge(1, window(0, 10), cost);
    let request = |delta| spend(&mut Accounts::default(), &budget(1000, 1000, delta), &own);
    assert_eq!(request(0).unwrap_err().nearest, None);
    // The smallest δ is all reserved for samplers.
    assert_eq!(request(1).unwrap_err().nearest, None);
    request(2).unwrap();
}

/// The part that samplers omit belongs to δ, or to the 10^−18 granted to pure budgets.
#[test]
fn the_slack_of_samplers_is_charged() {
    let rough = |bits, delta| {
        let own = Charge { slack_bits: bits, ..charge(1, window(0, 10), pure(10)) };
        spend(&mut Accounts::default(), &budget(1000, 1000, delta), &own)
    };
    rough(62, 0).unwrap();
    assert_eq!(rough(61, 0).unwrap_err().rule, Rule::Window);
    rough(40, 10_000_000).unwrap();
    assert_eq!(Slack::of(128, 0), Slack(2));
    assert_eq!(Slack::of(200, 1_000_000), Slack(1));
    assert_eq!(Slack::of(1, u64::MAX), Slack(u128::MAX));
    assert_eq!(Slack(u128::MAX).atto(), 1_000_000_000_000_000_000);
}

#[test]
fn repeating_a_charge_is_free_and_another_cost_is_refused() {
    let (mut accounts, budget) = (Accounts::default(), budget(1000, 1000, 0));
    let own = charge(1, window(0, 10), pure(1000));
    let first = accounts.check(OWNER, 0, &budget, &own).unwrap().unwrap();
    accounts.apply(&first);
    accounts.apply(&first);
    assert_eq!(accounts.check(OWNER, 0, &budget, &own), Ok(None));
    let other = charge(1, window(0, 10), pure(999));
    let refused = accounts.check(OWNER, 0, &budget, &other).unwrap_err();
    assert_eq!((refused.rule, refused.nearest), (Rule::Charged, Some(pure(1000))));
    assert_eq!(accounts.person(OWNER).epsilon, Epsilon::from_micro(1000));
}

/// Charges under one choice of an owner count against the budget of another.
#[test]
fn earlier_charges_are_checked_against_every_budget() {
    let (mut accounts, wide, narrow) =
        (Accounts::default(), budget(1000, 9000, 0), budget(1000, 1000, 0));
    let at = |from| charge(1, window(from, from + 10), pure(1000));
    spend(&mut accounts, &wide, &at(0)).unwrap();
    assert_eq!(accounts.check(OWNER, 0, &narrow, &at(0)), Ok(None));
    spend(&mut accounts, &wide, &at(10)).unwrap();
    assert_eq!(accounts.check(OWNER, 0, &wide, &at(10)), Ok(None));
    let refused = accounts.check(OWNER, 0, &narrow, &at(10)).unwrap_err();
    assert_eq!((refused.rule, refused.nearest), (Rule::Total, None));
}

#[test]
fn a_refund_restores_exactly_the_charge() {
    let (mut accounts, budget) = (Accounts::default(), budget(1000, 1000, 0));
    let own = charge(1, window(0, 10), pure(1000));
    assert_eq!(accounts.refund(OWNER, 0, own.plan, own.window), None);
    spend(&mut accounts, &budget, &own).unwrap();
    let refund = accounts.refund(OWNER, 0, own.plan, own.window).unwrap();
    accounts.apply(&refund);
    accounts.apply(&refund);
    assert_eq!(accounts.person(OWNER).epsilon, Epsilon(0));
    spend(&mut accounts, &budget, &own).unwrap();
}

#[test]
fn a_persons_losses_add_up_over_attributes() {
    let (mut accounts, budget) = (Accounts::default(), budget(1000, 1000, 0));
    for attribute in [0, 3, 9] {
        let own = charge(1, window(0, 10), pure(400));
        let record = accounts.check(OWNER, attribute, &budget, &own).unwrap().unwrap();
        accounts.apply(&record);
    }
    assert_eq!(accounts.person(OWNER).epsilon, Epsilon::from_micro(1200));
    assert_eq!(accounts.person(OwnerId([8; 32])).epsilon, Epsilon(0));
}

#[test]
fn unknown_windows_are_charged_at_the_maximum_rate() {
    let (mut accounts, budget) = (Accounts::default(), budget(1000, 1500, 0));
    for from in [0, 10] {
        let own = window(from, from + 10);
        accounts.apply(&Accounts::forfeit(OWNER, 0, &budget, PlanId([1; 32]), own));
    }
    assert_eq!(accounts.person(OWNER).epsilon, Epsilon::from_micro(2000));
    let refused = spend(&mut accounts, &budget, &charge(1, window(20, 30), pure(1)));
    assert_eq!(refused.unwrap_err().rule, Rule::Total);
}

/// If δ allows concentrated noise, an unknown window may have had either kind.
#[test]
fn an_unknown_window_costs_as_much_as_any_noise_could_have() {
    let budget = budget(500_000, 10_000_000, 1_000_000_000);
    let record = Accounts::forfeit(OWNER, 0, &budget, PlanId([1; 32]), window(0, 10));
    let Entry::Charged { cost: Cost::Concentrated(rho), .. } = record.entry else {
        panic!("{record:?}");
    };
    let epsilon = Epsilon::from_micro(500_000);
    assert!(rho >= epsilon.rho() && rho >= max_rho(epsilon, 1_000_000_000));
}

#[test]
fn summed_up_charges_still_count_and_cannot_be_refunded() {
    let (mut accounts, budget) = (Accounts::default(), budget(1000, 2500, 0));
    let at = |from| charge(1, window(from, from + 10), pure(1000));
    spend(&mut accounts, &budget, &at(0)).unwrap();
    let old = accounts.check(OWNER, 0, &budget, &at(10)).unwrap().unwrap();
    accounts.apply(&old);
    let forget = accounts.forget(OWNER, 0, Timestamp(20)).unwrap();
    accounts.apply(&forget);
    accounts.apply(&forget);
    accounts.apply(&old);
    assert_eq!(accounts.person(OWNER).epsilon, Epsilon::from_micro(2000));
    assert_eq!(accounts.refund(OWNER, 0, PlanId([1; 32]), window(0, 10)), None);
    assert_eq!(spend(&mut accounts, &budget, &at(10)).unwrap_err().rule, Rule::Settled);
    assert_eq!(spend(&mut accounts, &budget, &at(20)).unwrap_err().rule, Rule::Total);
    // A period that began before the mark counts everything.
    let unit = PrivacyUnit::PersonPerPeriod(Span(1000));
    let period = Budget { unit, ..budget };
    assert_eq!(spend(&mut accounts, &period, &at(20)).unwrap_err().nearest, Some(pure(500)));
}

#[test]
fn records_are_read_back_and_other_bytes_are_refused() {
    let entry = Entry::Charged {
        plan: PlanId([1; 32]),
        window: window(3, 9),
        cost: Cost::Concentrated(Rho(1 << 100)),
        slack: Slack(5),
    };
    let record = BudgetRecord { owner: OWNER, attribute: 300, entry };
    let bytes = record.to_bytes();
    assert_eq!(BudgetRecord::from_bytes(&bytes), Ok(record));
    let refund = Entry::Refunded { plan: PlanId([1; 32]), window: window(3, 9) };
    assert_eq!(BudgetRecord { entry: refund, ..record }.key(), record.key());
    let mark = Entry::Forgotten { before: Timestamp(1), sum: Default::default() };
    assert_ne!(BudgetRecord { entry: mark, ..record }.key(), record.key());
    for cut in 0..bytes.len() {
        assert_eq!(BudgetRecord::from_bytes(&bytes[..cut]), Err(BudgetRecordError));
    }
    let long: Vec<u8> = bytes.iter().copied().chain([0]).collect();
    assert_eq!(BudgetRecord::from_bytes(&long), Err(BudgetRecordError));
    let newer: Vec<u8> = std::iter::once(2).chain(bytes[1..].iter().copied()).collect();
    assert_eq!(BudgetRecord::from_bytes(&newer), Err(BudgetRecordError));
}

proptest! {
    /// In any order of requests, granted releases are within every limit, and the order in
    /// which a store returns records does not matter.
    #[test]
    fn granted_releases_never_exceed_a_limit(
        requests in prop::collection::vec((0u8..3, 0u64..20, 1u64..6, 1u64..700), 1..60),
    ) {
        let (mut accounts, budget) = (Accounts::default(), budget(1000, 5000, 0));
        let (mut records, mut granted) = (Vec::new(), Vec::new());
        for (plan, from, length, micro) in requests {
            let own = charge(plan, window(from, from + length), pure(micro));
            if let Ok(Some(record)) = accounts.check(OWNER, 0, &budget, &own) {
                accounts.apply(&record);
                records.push(record);
                granted.push((from, from + length, micro));
            }
        }
        for at in 0..26 {
            let spent: u64 =
                granted.iter().filter(|(from, to, _)| *from <= at && at < *to).map(|own| own.2).sum();
            prop_assert!(spent <= 1000);
        }
        prop_assert!(granted.iter().map(|own| own.2).sum::<u64>() <= 5000);
        let mut again = Accounts::default();
        records.iter().rev().for_each(|record| again.apply(record));
        prop_assert_eq!(again, accounts);
    }

    /// A release is granted exactly if every point in time and every period that it overlaps
    /// has enough left, checked one by one.
    #[test]
    fn a_release_is_granted_if_every_period_allows_it(
        requests in prop::collection::vec((0u8..3, 0u64..30, 1u64..25, 1u64..900), 1..40),
        length in 1u64..8,
    ) {
        let unit = PrivacyUnit::PersonPerPeriod(Span(length));
        let budget = Budget { unit, ..budget(1000, 1700, 0) };
        let mut accounts = Accounts::default();
        let mut granted: Vec<(u8, u64, u64, u64)> = Vec::new();
        for (plan, from, span, micro) in requests {
            let to = from + span;
            if granted.iter().any(|own| (own.0, own.1, own.2) == (plan, from, to)) {
                continue;
            }
            let spent = |start: u64, end: u64| -> u64 {
                let inside = granted.iter().filter(|(_, from, to, _)| *from < end && start < *to);
                inside.map(|own| own.3).sum()
            };
            let moments = (from..to).all(|at| spent(at, at + 1) + micro <= 1000);
            let periods = (from / length..=(to - 1) / length)
                .all(|own| spent(own * length, (own + 1) * length) + micro <= 1700);
            let own = charge(plan, window(from, to), pure(micro));
            let got = accounts.check(OWNER, 0, &budget, &own);
            prop_assert_eq!(got.is_ok(), moments && periods);
            if let Ok(Some(record)) = got {
                accounts.apply(&record);
                granted.push((plan, from, to, micro));
            }
        }
    }

    /// After any charges, refunds and sums, the records in a store restore the same accounts,
    /// and their total is everything that was not refunded.
    #[test]
    fn a_store_restores_the_same_accounts(
        steps in prop::collection::vec((0u8..4, 0u8..2, 0u64..12, 1u64..400), 1..80),
    ) {
        let (mut accounts, budget) = (Accounts::default(), budget(1000, 1_000_000, 0));
        let mut store = std::collections::BTreeMap::new();
        let mut sum = 0;
        for (step, plan, from, micro) in steps {
            let (plan, own) = (PlanId([plan; 32]), window(from, from + 1));
            let record = match step {
                0 | 1 => {
                    let own = charge(plan.0[0], own, pure(micro));
                    let record = accounts.check(OWNER, 0, &budget, &own).unwrap_or(None);
                    sum += record.map_or(0, |_| micro);
                    record
                }
                2 => {
                    let before = accounts.person(OWNER).epsilon;
                    let record = accounts.refund(OWNER, 0, plan, own);
                    record.iter().for_each(|record| accounts.apply(record));
                    sum -= (before.0 - accounts.person(OWNER).epsilon.0) as u64 / 1_000_000_000_000;
                    record
                }
                _ => accounts.forget(OWNER, 0, Timestamp(from / 2)),
            };
            if let Some(record) = record {
                accounts.apply(&record);
                store.insert(record.key(), record.to_bytes());
            }
        }
        let mut again = Accounts::default();
        for bytes in store.values() {
            again.apply(&BudgetRecord::from_bytes(bytes).unwrap());
        }
        prop_assert_eq!(again.person(OWNER), accounts.person(OWNER));
        prop_assert_eq!(again, accounts.clone());
        prop_assert_eq!(accounts.person(OWNER).epsilon, Epsilon::from_micro(sum));
    }

    /// Costs are never underestimated: the sum of parts is at least the whole.
    #[test]
    fn rounding_is_always_upwards(micro in 1u64..10_000_000, parts in 1u32..100) {
        let part = Epsilon::at_least(&micro.into(), &(1_000_000u64 * u64::from(parts)).into());
        let whole = (0..parts).fold(Epsilon(0), |sum, _| sum.plus(part));
        prop_assert!(whole >= Epsilon::from_micro(micro));
        prop_assert!(whole.0 - Epsilon::from_micro(micro).0 < u128::from(parts));
    }
}
