//! Queries for running totals.

use crate::planner::fixture::{SCHEMA, World, plain, policy};
use alpheus_policy::budget::{Cost, Horizon, Mechanism, RowNoise};
use alpheus_policy::comply::{self, Demand};
use alpheus_policy::explain::explain;
use alpheus_policy::plan::Plan;
use alpheus_policy::planner::PlannedQuery;
use alpheus_policy::privacy::NoiseError;
use alpheus_policy::schema::PrivacyUnit;
use alpheus_time::Timestamp;

fn noisy(count: u32) -> World {
    World::of(SCHEMA).with(count, &policy("noisy"), &[])
}

fn select(items: &str, size: &str, tail: &str) -> String {
    format!(
        "CREATE STREAM s AS SELECT {items} WINDOW CUMULATING (STEP 10 SECONDS, SIZE {size}) FROM MedicalSensor {tail}"
    )
}

fn planned(world: &World, text: &str) -> (Plan, PlannedQuery) {
    let planned = world.plan(text).unwrap_or_else(|refusal| panic!("{}", refusal.render(text)));
    (planned.plans[0].clone(), planned)
}

fn horizon(plan: &Plan) -> Horizon {
    plan.horizon().expect("running totals")
}

#[test]
fn totals_are_sized_once_and_every_controller_agrees() {
    let world = noisy(40);
    let (plan, _) = planned(&world, &select("SUM(hrv)", "1 HOUR", "WITH (epsilon = 0.1)"));
    let privacy = plan.privacy.as_ref().unwrap();
    assert_eq!(horizon(&plan), Horizon { windows: 360, touched: 1 });
    // The policy's δ, since the query has none.
    assert_eq!((privacy.micro_epsilon, privacy.atto_delta), (100_000, 1_000_000_000));
    assert!(matches!(privacy.noise[0], RowNoise::Running(_)));
    assert_eq!(privacy.noise.last(), Some(&RowNoise::None));
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let demand = Demand::of(&plan, &known.schema, &known.layout).unwrap();
    for stream in world.catalog.streams() {
        comply::check(&plan, &known.schema, &known.layout, &stream.policy).unwrap();
        let charges = demand.charges(&stream.policy).unwrap();
        let [(1, budget, Cost::Concentrated(rho))] = charges.as_slice() else {
            panic!("{charges:?}")
        };
        assert!(rho.0 > 0 && budget.window_micro_epsilon == 100_000);
    }
    // The index of each window, wherever the totals start.
    let first = plan.totals_window().unwrap().start;
    let place = |windows: u64| {
        plan.index_in_totals(plan.window_at(Timestamp(first.0 + windows * plan.window.0)))
    };
    assert_eq!((place(0), place(359), place(360)), (Some(0), Some(359), None));
    assert_eq!(plan.index_in_totals(plan.window_at(Timestamp(first.0 - plan.window.0))), None);
}

/// The purpose of the mechanism: 360 windows cost the error of about three, not of nineteen.
#[test]
fn the_expected_error_of_totals_grows_with_the_logarithm() {
    let world = noisy(40);
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let explanation = |size| {
        let (_, planned) = planned(&world, &select("SUM(hrv)", size, "WITH (epsilon = 0.1)"));
        explain(&planned, known, 0.01, true)
    };
    let deviation = |size| {
        let explained = explanation(size);
        let privacy = explained.groups[0].privacy.as_ref().unwrap();
        privacy.guarantee.errors[0].spread.unwrap().deviation
    };
    let (one, many) = (deviation("10 SECONDS"), deviation("1 HOUR"));
    // ‖b‖² of 360 windows is 2.94.
    assert!((many / one - 2.94).abs() < 0.02, "{one} {many}");
    let text = explanation("1 HOUR").to_string();
    for part in [
        "noise: square-root matrix, ε = 0.1, δ = 1e-9 for all 360 totals together",
        "cost for each owner with data, once for all windows: hrv ρ = ",
        "Any conclusion drawn from all results is at most",
        "everything one person sends in a window of 10s",
        "expected error of the last running total, with 40 controllers",
        "of such a query; each controller keeps its own accounts",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

/// A person's data of an hour may be in every window of that hour.
#[test]
fn noise_covers_all_windows_of_a_unit() {
    let unit = "unit: person-per-period, period: 1hr";
    let period = SCHEMA.replace("unit: person-per-window", unit);
    let world = World::of(&period).with(40, &policy("noisy"), &[]);
    let (plan, _) = planned(&world, &select("SUM(hrv)", "2 HOURS", "WITH (epsilon = 0.1)"));
    assert_eq!(horizon(&plan), Horizon { windows: 720, touched: 360 });
    let scale = |plan: &Plan| match plan.privacy.as_ref().unwrap().noise[0] {
        RowNoise::Running(noise) => noise.seed_scale as f64 / 2f64.powi(noise.fine_bits.into()),
        other => panic!("{other:?}"),
    };
    let (window, _) = planned(&noisy(40), &select("SUM(hrv)", "2 HOURS", "WITH (epsilon = 0.1)"));
    assert!((scale(&plan) / scale(&window) / 360.0 - 1.0).abs() < 1e-6);
    // A plan that hides one window is refused by a policy that protects an hour.
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let strict = &world.catalog.streams().next().unwrap().policy;
    let weak = Plan { schema: plan.schema, ..window };
    let rule = comply::check(&weak, &known.schema, &known.layout, strict).unwrap_err().rule();
    assert_eq!(rule, "privacy-unit");
    let mut misstated = plan.clone();
    let privacy = misstated.privacy.as_mut().unwrap();
    privacy.mechanism = Mechanism::Matrix(Horizon { windows: 720, touched: 1 });
    assert!(matches!(privacy.unit, PrivacyUnit::PersonPerPeriod(_)));
    let rule = comply::check(&misstated, &known.schema, &known.layout, strict).unwrap_err().rule();
    assert_eq!(rule, "noise");
}

#[test]
fn clauses_that_totals_do_not_support_are_refused_with_a_suggestion() {
    let world = noisy(40);
    for (tail, message) in [
        ("WITH (epsilon = 0.1, mechanism = 'laplace')", "do not support mechanism"),
        ("WITH (epsilon = 0.1) RELEASE TO analyst", "do not support RELEASE TO"),
    ] {
        let (refusal, nearest) = world.refuse(&select("SUM(hrv)", "1 HOUR", tail));
        assert!(refusal.to_string().contains(message), "{refusal}");
        assert!(nearest.unwrap().contains("TUMBLING"));
    }
    // More seeds than controllers can hold.
    let text = select("HISTOGRAM(altitude)", "12 DAYS", "WITH (epsilon = 0.1)");
    let (refusal, nearest) = world.refuse(&text);
    assert!(refusal.to_string().contains("use a shorter SIZE"), "{refusal}");
    assert!(nearest.unwrap().contains("TUMBLING"));
    // If no policy requires noise, running totals have no benefit.
    let exact = World::of(SCHEMA).with(40, &plain(1), &[]);
    let (refusal, nearest) = exact.refuse(&select("SUM(hrv)", "1 HOUR", ""));
    assert!(refusal.to_string().contains("remove delta, mechanism, events and CUMULATING"));
    assert!(nearest.unwrap().contains("TUMBLING"));
    // A policy without δ allows windows, but no totals.
    let pure = SCHEMA.replace("total: 10, delta: 1e-9,", "total: 10,");
    let pure = World::of(&pure).with(40, &policy("noisy"), &[]);
    for tail in ["WITH (epsilon = 0.1)", "WITH (epsilon = 0.1, delta = 1e-9)"] {
        let (_, nearest) = pure.refuse(&select("SUM(hrv)", "1 HOUR", tail));
        assert!(nearest.unwrap().contains("TUMBLING"));
    }
}

#[test]
fn totals_without_epsilon_get_the_largest_that_policies_allow() {
    let (plan, planned) = planned(&noisy(40), &select("SUM(hrv)", "1 HOUR", ""));
    // A 1024th of δ is reserved for grids, so this is slightly above the charged ε.
    let micro = plan.privacy.unwrap().micro_epsilon;
    assert!((100_000..100_100).contains(&micro), "{micro}");
    assert!(planned.sql.contains("CUMULATING") && planned.sql.contains("epsilon = 0.100"));
    // 10 in total and 0.1 each: more than a hundred as zCDP.
    assert!(planned.budgets[0].unwrap().windows > 100, "{:?}", planned.budgets);
}

/// Totals that run for a thousand years would stay in their owners' accounts for as long.
#[test]
fn totals_end_within_the_range_of_times() {
    let world = noisy(40);
    let (plan, _) = planned(&world, &select("SUM(hrv)", "1 HOUR", "WITH (epsilon = 0.1)"));
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let starting = |windows: u64| {
        let from = Timestamp(Timestamp::LIMIT.floor(plan.window).0 - windows * plan.window.0);
        let late = Plan { from, ..plan.clone() };
        late.calibration(&known.schema, &known.layout).err()
    };
    assert_eq!((starting(360), starting(359)), (None, Some(NoiseError::Beyond { max: 359 })));
    let endless = Plan { window: alpheus_time::Span(1 << 50), ..plan.clone() };
    let error = endless.calibration(&known.schema, &known.layout).err();
    assert!(matches!(error, Some(NoiseError::Beyond { .. })), "{error:?}");
}
