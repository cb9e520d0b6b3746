//! Queries with noise.

use crate::planner::fixture::{SCHEMA, World, plain, policy, select};
use alpheus_policy::budget::{Cost, Epsilon, Mechanism, RowNoise};
use alpheus_policy::comply::{self, Demand};
use alpheus_policy::explain::explain;
use alpheus_policy::plan::Plan;
use alpheus_policy::privacy::Privacy;
use alpheus_policy::schema::PrivacyUnit;

fn noisy(count: u32) -> World {
    World::of(SCHEMA).with(count, &policy("noisy"), &[])
}

fn planned(world: &World, text: &str) -> (Plan, Privacy, Option<u64>) {
    let mut planned = world.plan(text).unwrap();
    assert_eq!((planned.plans.len(), planned.budgets.len()), (1, 1));
    let plan = planned.plans.remove(0);
    let privacy = plan.privacy.clone().expect("noise");
    (plan, privacy, planned.budgets[0].map(|life| life.windows))
}

/// Two groups of rows, sum and count of optional values, share ε. A person has at most a
/// hundred events.
#[test]
fn noise_meets_the_policy_and_every_controller_agrees() {
    let world = noisy(40);
    let (plan, privacy, lasts) = planned(&world, &select("SUM(hrv)", "WITH (epsilon = 0.1)"));
    assert_eq!(privacy.mechanism, Mechanism::Laplace);
    assert_eq!((privacy.micro_epsilon, privacy.atto_delta, privacy.events), (100_000, 0, 100));
    assert_eq!((privacy.unit, privacy.streams_per_owner), (PrivacyUnit::PersonPerWindow, 1));
    // Δ₁ = 100·5000 tenths and 100·1, at ε/2 each.
    let laplace = |below| RowNoise::Laplace { above: 1, below };
    assert_eq!(privacy.noise, [laplace(10_000_000), laplace(2_000), RowNoise::None]);
    // 10 / 0.1 windows if ε adds up; as zCDP at δ = 10⁻⁹ a few more.
    assert!((100..300).contains(&lasts.unwrap()), "{lasts:?}");
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let demand = Demand::of(&plan, &known.schema, &known.layout).unwrap();
    for stream in world.catalog.streams() {
        comply::check(&plan, &known.schema, &known.layout, &stream.policy).unwrap();
        let charges = demand.charges(&stream.policy).unwrap();
        let [(1, budget, cost)] = charges.as_slice() else { panic!("{charges:?}") };
        assert_eq!(*cost, Cost::Pure(Epsilon::from_micro(100_000)));
        assert_eq!(budget.total_micro_epsilon, 10_000_000);
    }
}

/// The planned query states the chosen epsilon.
#[test]
fn a_query_without_epsilon_gets_the_largest_that_policies_allow() {
    let world = noisy(40);
    let text = select("AVG(altitude), HISTOGRAM(hrv, 0, 5, 2)", "");
    assert!(world.plan(&text).is_err(), "hrv has no histogram");
    let answered = world.plan(&select("AVG(altitude), SUM(hrv)", "")).unwrap();
    // altitude has one group of three, hrv two: ε·2/3 ≤ 0.1.
    assert!(answered.sql.contains("WITH (epsilon = 0.15)"), "{}", answered.sql);
    let explanation =
        explain(&answered, world.catalog.schema("MedicalSensor").unwrap(), 0.01, true);
    let text = explanation.to_string();
    for part in [
        "noise: laplace, ε = 0.15 per window, from the shares of any 27 honest controllers",
        "for at most 100 events per stream and window; streams with more events are excluded",
        "cost for each owner with data, per window: hrv ε = 0.1, altitude ε = 0.05",
        "the first budget is used up after",
        "plus 1e-18 for sampling, as with any other values of everything one person sends in a window of 10s",
        "at most 13 of 40 controllers collude",
        "or what follows from that alone: populations, exclusions, and which windows open",
        "sum_hrv: within ±",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

/// An owner's budget is a total. At short windows it ends soon, and is then all lost.
#[test]
fn an_explanation_states_the_loss_over_the_life_of_a_query_and_warns_of_a_large_one() {
    let world = noisy(40);
    let explained = |world: &World, text: &str| {
        let planned = world.plan(text).unwrap();
        explain(&planned, world.catalog.schema("MedicalSensor").unwrap(), 0.01, true).to_string()
    };
    let modest = explained(&world, &select("SUM(hrv)", "WITH (epsilon = 0.1)"));
    assert!(
        modest.contains("over the life of the query, one person may lose ε = 10 in total"),
        "{modest}"
    );
    assert!(modest.contains(" windows (about "), "{modest}");
    assert!(!modest.contains("while this query runs"), "{modest}");
    let generous = SCHEMA.replace("total: 10,", "total: 100,");
    let generous = World::of(&generous).with(40, &policy("noisy"), &[]);
    let text = explained(&generous, &select("SUM(hrv)", "WITH (epsilon = 0.1)"));
    assert!(
        text.contains("warning: One person may lose ε = 100 while this query runs. Above 10,"),
        "{text}"
    );
}

/// If some policies allow exact results, the query stays exact and the others are listed.
#[test]
fn a_query_without_epsilon_stays_exact_if_some_policies_allow_it() {
    let world = noisy(40).with(12, &plain(1), &[]);
    let exact = world.plan(&select("SUM(hrv)", "")).unwrap();
    assert_eq!((exact.plans[0].privacy.as_ref(), exact.plans[0].streams.len()), (None, 12));
    assert!(
        exact.excluded[0].reason.to_string().contains("only with noise; add WITH (epsilon = …)")
    );
    let (all, _, _) = planned(&world, &select("SUM(hrv)", "WITH (epsilon = 0.1)"));
    assert_eq!(all.streams.len(), 52);
    // Owners who allow it without noise are not charged.
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let demand = Demand::of(&all, &known.schema, &known.layout).unwrap();
    let charged =
        world.catalog.streams().filter(|s| !demand.charges(&s.policy).unwrap().is_empty());
    assert_eq!(charged.count(), 40);
}

#[test]
fn too_much_epsilon_is_refused_with_the_largest_allowed() {
    let (refusal, nearest) = noisy(40).refuse(&select("SUM(hrv)", "WITH (epsilon = 0.2)"));
    let text = refusal.to_string();
    assert!(
        text.contains("at most ε = 0.1 per window for `hrv`, but the query needs ε = 0.2"),
        "{text}"
    );
    assert!(nearest.unwrap().contains("epsilon = 0.1)"));
    let text =
        select("SUM(heart-rate)", "WITH (epsilon = 0.1, delta = 1e-6, mechanism = 'skellam')");
    let (refusal, nearest) = noisy(40).refuse(&text);
    assert!(
        refusal.to_string().contains("allows at most ε = 0.1 per window for `heart-rate`"),
        "{refusal}"
    );
    assert!(nearest.is_some(), "{refusal}");
}

#[test]
fn an_option_without_delta_allows_only_pure_noise() {
    let pure = SCHEMA.replace("total: 10, delta: 1e-9,", "total: 10,");
    let world = World::of(&pure).with(40, &policy("noisy"), &[]);
    let text = select("SUM(hrv)", "WITH (epsilon = 0.1, delta = 1e-9, mechanism = 'skellam')");
    let (refusal, nearest) = world.refuse(&text);
    assert!(
        refusal.to_string().contains("allows no delta for `hrv`; use mechanism = 'laplace'"),
        "{refusal}"
    );
    assert!(nearest.unwrap().contains("mechanism = 'laplace'"));
    let (_, _, lasts) = planned(&world, &select("SUM(hrv)", "WITH (epsilon = 0.1)"));
    assert_eq!(lasts, Some(100), "ε adds up and nothing else");
}

#[test]
fn with_a_delta_the_narrower_noise_is_used() {
    let (_, privacy, _) =
        planned(&noisy(40), &select("SUM(hrv)", "WITH (epsilon = 0.05, delta = 1e-9)"));
    assert_eq!(privacy.mechanism, Mechanism::Laplace);
    // At a δ so large, five groups of rows at once are cheaper as zCDP.
    let loose = SCHEMA.replace("delta: 1e-9", "delta: 0.01");
    let world = World::of(&loose).with(40, &policy("noisy"), &[]);
    let five = "HISTOGRAM(heart-rate), AVG(altitude), AVG(hrv), VAR(heart-rate)";
    let tail = "WITH (epsilon = 0.05, delta = 0.01)";
    let (_, privacy, _) = planned(&world, &select(five, tail));
    assert_eq!((privacy.mechanism, privacy.atto_delta), (Mechanism::Skellam, 10u64.pow(16)));
}

#[test]
fn noise_shrinks_with_fewer_events_and_is_smallest_for_single_events() {
    let below = |world: &World, tail: &str| {
        let (_, privacy, _) = planned(world, &select("SUM(heart-rate)", tail));
        match privacy.noise[0] {
            RowNoise::Laplace { above, below } => below / u128::from(above),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(below(&noisy(40), "WITH (epsilon = 0.1)"), 300 * 100 * 10);
    assert_eq!(below(&noisy(40), "WITH (epsilon = 0.1, events = 3)"), 300 * 3 * 10);
    let event = SCHEMA.replace("unit: person-per-window", "unit: event");
    let world = World::of(&event).with(40, &policy("noisy"), &[]);
    assert_eq!(below(&world, "WITH (epsilon = 0.1)"), 300 * 10);
}

/// Each controller detects any change that the service makes to the noise.
#[test]
fn misstated_noise_is_refused_with_a_specific_error() {
    let world = noisy(40);
    let (plan, _, _) = planned(&world, &select("SUM(hrv)", "WITH (epsilon = 0.1)"));
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let policy = &world.catalog.streams().next().unwrap().policy;
    let refused = |change: fn(&mut Privacy)| {
        let mut plan = plan.clone();
        change(plan.privacy.as_mut().unwrap());
        comply::check(&plan, &known.schema, &known.layout, policy).unwrap_err().rule()
    };
    assert_eq!(refused(|own| own.noise[0] = RowNoise::None), "noise");
    assert_eq!(
        refused(|own| own.noise[0] = RowNoise::Laplace { above: 1, below: 9_999_999 }),
        "noise"
    );
    assert_eq!(refused(|own| own.noise.truncate(1)), "noise");
    assert_eq!(refused(|own| own.noise[2] = RowNoise::Laplace { above: 1, below: 2 }), "noise");
    assert_eq!(refused(|own| own.unit = PrivacyUnit::Event), "noise");
    assert_eq!(refused(|own| own.events = 1), "noise");
    assert_eq!(refused(|own| own.events = 0), "noise");
    assert_eq!(refused(|own| own.events = 101), "noise");
    assert_eq!(refused(|own| own.micro_epsilon = 50_000), "noise");
    assert_eq!(refused(|own| own.micro_epsilon = 200_000), "noise");
    assert_eq!(refused(|own| own.streams_per_owner = 2), "noise");
    assert_eq!(refused(|own| own.mechanism = Mechanism::Gaussian), "noise");
    let mut without = plan.clone();
    without.privacy = None;
    let rule = comply::check(&without, &known.schema, &known.layout, policy).unwrap_err().rule();
    assert_eq!(rule, "needs-noise");
    // Everything is correct except the unit: one event instead of a person's window.
    let event = SCHEMA.replace("unit: person-per-window", "unit: event");
    let weak = World::of(&event).with(40, &crate::planner::fixture::policy("noisy"), &[]);
    let (weak, _, _) = planned(&weak, &select("SUM(hrv)", "WITH (epsilon = 0.1)"));
    let plan = Plan { schema: plan.schema, ..weak };
    let rule = comply::check(&plan, &known.schema, &known.layout, policy).unwrap_err().rule();
    assert_eq!(rule, "privacy-unit");
}
