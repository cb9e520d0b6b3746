//! Queries whose rows no owner moves by more than its bounds.

use crate::planner::fixture::{SCHEMA, World, plain, policy, select};
use alpheus_policy::bounded_terms::{BoundedRelation, MAX_OWNERS, NotBoundableError};
use alpheus_policy::budget::RowNoise;
use alpheus_policy::comply::{self, ComplianceError};
use alpheus_policy::explain::explain;
use alpheus_policy::plan::{Integrity, NotVerifiableError, Plan};
use alpheus_policy::planner::RuleError;
use alpheus_policy::policy::Policies;

const BOUNDED: &str = "WITH (integrity = 'bounded')";

fn aggregate() -> String {
    policy("{ option: aggr, clients: 5, window: 10s }")
}

fn world() -> World {
    World::of(SCHEMA).with(12, &aggregate(), &[])
}

fn planned(world: &World, items: &str, with: &str) -> Plan {
    let text = select(items, with);
    let planned = world.plan(&text).unwrap_or_else(|refusal| panic!("{}", refusal.render(&text)));
    planned.plans[0].clone()
}

/// The bounds of each cell, and how the cells depend on each other.
fn terms(world: &World, plan: &Plan) -> (Vec<(i128, i128)>, Vec<BoundedRelation>) {
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let terms = plan.bounded_terms(&known.schema, &known.layout).unwrap().unwrap();
    (terms.cells.iter().map(|cell| (cell.lowest, cell.highest)).collect(), terms.relations)
}

#[test]
fn bounds_follow_from_schema_events_and_streams() {
    let world = world();
    let plan = planned(&world, "VAR(altitude)", BOUNDED);
    assert_eq!(plan.integrity, Integrity::Bounded { events: 100 });
    // 100 events from −500 to 9000, in tenths.
    let (cells, relations) = terms(&world, &plan);
    assert_eq!(cells, [(0, 100), (-500_000, 9_000_000), (0, 810_000_000_000)]);
    let relation =
        BoundedRelation { count: 0, sum: 1, squares: Some(2), lowest: -5_000, highest: 90_000 };
    assert_eq!(relations, [relation]);
    // Fewer events, and two streams of one owner.
    let few = "WITH (integrity = 'bounded', events = 10)";
    let mut plan = planned(&world, "SUM(altitude)", few);
    assert_eq!(terms(&world, &plan).0, [(-50_000, 900_000)]);
    plan.streams[1].owner = plan.streams[0].owner;
    assert_eq!(terms(&world, &plan).0, [(-100_000, 1_800_000)]);
    // A sum alone has no count that it could be compared with; an optional one has its own.
    assert!(terms(&world, &plan).1.is_empty());
    let optional = terms(&world, &planned(&world, "SUM(hrv)", BOUNDED));
    assert_eq!((optional.0.len(), optional.1.len()), (2, 1));
}

#[test]
fn a_bounded_query_explains_bounds_and_costs() {
    let world = world();
    let text = select("AVG(altitude)", &format!("BETWEEN 5 AND 100 {BOUNDED}"));
    let planned = world.plan(&text).unwrap();
    assert!(planned.sql.contains("WITH (integrity = 'bounded')"), "{}", planned.sql);
    assert_eq!(world.plan(&planned.sql).unwrap().plans[0].integrity, planned.plans[0].integrity);
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let said = explain(&planned, known, 0.01, false).integrity.unwrap();
    for part in [
        "bounded: ",
        "between 0 and 100,",
        "between -50000 and 900000.",
        "how many owners with data each controller has",
        // Two sides of the count and two of the relation, of 32 bits.
        "about 9 ms at its controller, 0.20 ms at the service and at each reader, who check them, and 704 bytes",
        "for 12 owners they take 9 kB per window",
        "One that lied and answers is named",
        "One that does not answer is not named, since that proves nothing",
        "verified: each row is signed by up to 12 controllers, each of which could change it by its owners' bounds",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // What limits say of owners, and whose bounds hold for all.
    assert!(said.contains("Receipts name streams whose owner is out of bounds."), "{said}");
    let mut shared = planned.clone();
    shared.plans[0].streams[1].owner = shared.plans[0].streams[0].owner;
    let said = explain(&shared, known, 0.01, false).integrity.unwrap();
    assert!(said.contains("those of an owner with 2 streams, the most that one has"), "{said}");
}

fn refused(world: &World, items: &str, with: &str) -> (NotBoundableError, String) {
    let (refusal, nearest) = world.refuse(&select(items, with));
    let nearest = nearest.unwrap_or_else(|| panic!("{refusal}"));
    let reason = refusal.violations.iter().find_map(|violation| match &violation.rule {
        RuleError::NotBoundable { reason } => Some(reason.clone()),
        _ => None,
    });
    (reason.unwrap_or_else(|| panic!("{refusal}")), nearest)
}

#[test]
fn what_proofs_do_not_cover_is_refused_with_the_nearest_query() {
    let world = world();
    let (reason, nearest) = refused(&world, "HISTOGRAM(altitude) AS h", BOUNDED);
    assert_eq!(reason, NotBoundableError::Column { column: "h".into() });
    assert!(nearest.contains("integrity = 'verified'"), "{nearest}");
    let (reason, nearest) = refused(&world, "VAR(altitude), SUM(heart-rate)", BOUNDED);
    assert_eq!(reason, NotBoundableError::Cells { found: 4 });
    assert!(nearest.contains("integrity = 'verified'"), "{nearest}");
    let (reason, nearest) =
        refused(&world, "SUM(altitude)", "WITH (integrity = 'bounded', events = 101)");
    assert_eq!(reason, NotBoundableError::Events { requested: 101, most: 100 });
    assert!(nearest.contains("events = 100"), "{nearest}");
}

/// Each function that is no count or sum of an attribute's own values.
#[test]
fn functions_without_proofs_are_refused() {
    let more = "  - name: ok
    type: boolean
    aggregations: [any, all]
  - name: x
    type: integer
    min: 0
    max: 1000
    aggregations: [{ threshold: 500 }, { regression: { x: heart-rate, r2: false } }]
streamPolicyOptions:";
    let schema = SCHEMA.replace("streamPolicyOptions:", more);
    let world = World::of(&schema).with(12, &aggregate(), &[]);
    let functions = [
        "ANY(ok)",
        "ALL(ok)",
        "SUM_ABOVE(x)",
        "COUNT_ABOVE(x)",
        "REGR_SLOPE(x, heart-rate)",
        "COVAR_POP(x, heart-rate)",
        "MEDIAN(altitude)",
        "APPROX_DISTINCT(town)",
    ];
    for function in functions {
        let (reason, nearest) = refused(&world, &format!("{function} AS it"), BOUNDED);
        assert_eq!(reason, NotBoundableError::Column { column: "it".into() }, "{function}");
        assert!(nearest.contains("integrity = 'verified'"), "{function}: {nearest}");
    }
}

/// At 2^40 and 100 events squares take 88 bits, and with no event fewer than 64.
#[test]
fn wide_bounds_are_refused_with_the_events_that_fit() {
    let wide = |max: &str| {
        let schema = SCHEMA.replace("max: 9000", &format!("max: {max}")).replace("-500", "0");
        World::of(&schema).with(12, &aggregate(), &[])
    };
    let (reason, nearest) = refused(&wide("300000000"), "VAR(altitude)", BOUNDED);
    // 3·10^9 in tenths: squares are 9·10^18 an event, of which two fit 64 bits.
    let column = "VAR_altitude".to_owned();
    let NotBoundableError::TooWide { column: found, bits: 128, most: 2 } = reason else {
        panic!("{reason:?}")
    };
    assert_eq!(found.to_lowercase(), column.to_lowercase());
    assert!(nearest.contains("events = 2"), "{nearest}");
    let (reason, nearest) = refused(&wide("3000000000"), "VAR(altitude)", BOUNDED);
    assert!(matches!(reason, NotBoundableError::TooWide { most: 0, .. }), "{reason:?}");
    assert!(nearest.contains("integrity = 'verified'"), "{nearest}");
}

#[test]
fn what_cannot_be_verified_cannot_be_bounded() {
    let world = world();
    let text = select("SUM(altitude)", "WITH (integrity = 'bounded', membership = 'epochs')");
    let (refusal, nearest) = world.refuse(&text);
    let epochs = RuleError::NotVerifiable { word: "bounded", reason: NotVerifiableError::Epochs };
    assert!(refusal.violations.iter().any(|violation| violation.rule == epochs), "{refusal}");
    // By epochs it can be verified.
    let nearest = nearest.unwrap();
    assert!(nearest.contains("'verified'") && nearest.contains("'epochs'"), "{nearest}");
    let noisy = World::of(SCHEMA).with(40, &policy("noisy"), &[]);
    let totals = "CREATE STREAM s AS SELECT SUM(altitude) WINDOW CUMULATING (STEP 10 SECONDS, SIZE 1 HOUR) FROM MedicalSensor WITH (epsilon = 0.1, integrity = 'bounded')";
    let (refusal, _) = noisy.refuse(totals);
    let reason = NotVerifiableError::Totals;
    let totals = RuleError::NotVerifiable { word: "bounded", reason };
    assert!(refusal.violations.iter().any(|violation| violation.rule == totals), "{refusal}");
    let none = "{ name: aggr, integrity: none, option: aggregate,";
    let schema = SCHEMA.replace("{ name: aggr, option: aggregate,", none);
    let unwilling = World::of(&schema).with(12, &aggregate(), &[]);
    let (refusal, _) = unwilling.refuse(&select("SUM(altitude)", BOUNDED));
    assert!(refusal.to_string().contains("does not allow `integrity = 'bounded'`"), "{refusal}");
}

/// Noise has a range, and the chance of more than that is a part of δ.
#[test]
fn noise_is_cut_to_a_range_that_delta_pays_for() {
    let world = World::of(SCHEMA).with(40, &policy("noisy"), &[]);
    let with = "WITH (epsilon = 0.1, delta = 1e-9, mechanism = 'skellam', integrity = 'bounded', alpha = '1/3')";
    let plan = planned(&world, "SUM(altitude)", with);
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let bounded = plan.bounded_terms(&known.schema, &known.layout).unwrap().unwrap();
    let tail = plan.privacy.as_ref().unwrap().noise[0].tail(1, 1);
    assert_eq!(u128::from(bounded.cells[0].noise), 2 * tail);
    let verified = Plan { integrity: Integrity::Verified, ..plan.clone() };
    assert_eq!(plan.slack_bits() + 1, verified.slack_bits());
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        let policy = &world.catalog.streams().next().unwrap().policy;
        match comply::check(&plan, &known.schema, &known.layout, policy).map(|_| ()) {
            Err(ComplianceError::NotBoundable(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    // The limit on events is that of the noise.
    let fewer = refused(&|plan| plan.integrity = Integrity::Bounded { events: 99 });
    assert_eq!(fewer, NotBoundableError::Events { requested: 99, most: 100 });
    // A service may state any noise.
    let huge = refused(&|plan| {
        plan.privacy.as_mut().unwrap().noise[0] = RowNoise::Laplace { above: 1, below: u128::MAX };
    });
    assert!(matches!(huge, NotBoundableError::TooWide { bits: 65, most: 0, .. }), "{huge:?}");
}

/// A pure ε has no δ of its own. The chance of a cut is in the 10^-18 that the guarantee states for sampling.
#[test]
fn noise_of_a_pure_epsilon_is_cut_too_and_the_guarantee_says_so() {
    let world = World::of(SCHEMA).with(40, &policy("noisy"), &[]);
    let with = "WITH (epsilon = 0.1, integrity = 'bounded', alpha = '1/3')";
    let planned = world.plan(&select("SUM(altitude)", with)).unwrap();
    let plan = &planned.plans[0];
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let bounded = plan.bounded_terms(&known.schema, &known.layout).unwrap().unwrap();
    let row = &plan.privacy.as_ref().unwrap().noise[0];
    assert!(matches!(row, RowNoise::Laplace { .. }), "{row:?}");
    assert_eq!(u128::from(bounded.cells[0].noise), 2 * row.tail(1, 1));
    let verified = Plan { integrity: Integrity::Verified, ..plan.clone() };
    assert_eq!(plan.slack_bits() + 1, verified.slack_bits());
    assert!(plan.slack_bits() >= 60, "10^-18 is 2^-60");
    let said = explain(&planned, known, 0.01, true).to_string();
    assert!(said.contains("plus 1e-18 for sampling"), "{said}");
}

/// Controllers compute bounds from the plan's own rows.
#[test]
fn cells_that_are_not_the_plans_rows_are_refused() {
    let world = world();
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let plan = planned(&world, "AVG(altitude)", BOUNDED);
    let policy = &world.catalog.streams().next().unwrap().policy;
    let check = |plan: &Plan| comply::check(plan, &known.schema, &known.layout, policy).map(|_| ());
    assert_eq!(check(&plan), Ok(()));
    let mut joined = plan.clone();
    let word = joined.release.rows[1][0];
    joined.release.rows[0].push(word);
    assert_eq!(check(&joined), Err(ComplianceError::NotBoundable(NotBoundableError::Rows)));
    let mut check_word = plan;
    check_word.release.rows[1] = vec![known.layout.check_word()];
    assert_eq!(check(&check_word), Err(ComplianceError::NotBoundable(NotBoundableError::Rows)));
}

/// So many owners, each at the controller that its number says.
fn placed(owners: u32, controller: impl Fn(u32) -> u32) -> World {
    let mut world = World::of(SCHEMA);
    let policies = Policies::from_yaml(&plain(5), &world.schema).unwrap();
    for n in 1..=owners {
        world.put(n, n, controller(n), policies.of_owner(&n.to_string()).clone(), &[]);
    }
    world
}

/// Refused are queries that members cannot serve, though their numbers can be proven.
#[test]
fn forms_that_members_cannot_serve_are_refused_with_the_nearest_query() {
    let with = "WITH (integrity = 'bounded', alpha = '1/3')";
    let verified = |nearest: &str| assert!(nearest.contains("'verified'"), "{nearest}");
    let (reason, nearest) = refused(&placed(12, |_| 1), "SUM(altitude)", with);
    assert_eq!(reason, NotBoundableError::Alone);
    verified(&nearest);
    let crowded = |owners: u32| {
        let world = placed(owners + 6, |n| if n > 6 { 1 } else { 2 + n % 3 });
        (world.plan(&select("SUM(altitude)", with)).is_ok(), world)
    };
    assert!(crowded(MAX_OWNERS).0);
    let (reason, nearest) = refused(&crowded(MAX_OWNERS + 1).1, "SUM(altitude)", with);
    assert_eq!(reason, NotBoundableError::Owners { found: MAX_OWNERS + 1 });
    assert!(reason.to_string().contains("257 owners") && reason.to_string().contains("most 256"));
    verified(&nearest);
    let world = world();
    let sealed = format!("{BOUNDED} RELEASE TO hospital");
    let (reason, nearest) = refused(&world, "SUM(altitude)", &sealed);
    assert_eq!(reason, NotBoundableError::Sealed);
    assert!(nearest.contains("'verified'") && nearest.contains("RELEASE TO"), "{nearest}");
    let picks = "WITH (integrity = 'bounded', masks = 'neighbours')";
    let (reason, nearest) = refused(&world, "SUM(altitude)", picks);
    assert_eq!(reason, NotBoundableError::Picks);
    assert!(nearest.contains("'bounded'") && !nearest.contains("neighbours"), "{nearest}");
}

/// A row whose owners are all at the bounds of the owner with most streams has to fit its words: else it could open,
/// and have no result.
#[test]
fn bounds_of_many_streams_have_to_fit_words() {
    let schema = SCHEMA.replace("max: 9000", "max: 50000000000");
    let world = World::of(&schema).with(12, &aggregate(), &[]);
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let plan = planned(&world, "SUM(altitude)", BOUNDED);
    // A thousand streams, of which one owner has so many. An event is 5·10^11 at most, in tenths.
    let of_one_owner = |most: u32| {
        let mut plan = plan.clone();
        let first = plan.streams[0];
        let stream = |number: u32| {
            let mut stream = first;
            stream.stream.0[..4].copy_from_slice(&number.to_be_bytes());
            stream.owner.0[..4].copy_from_slice(&number.max(most).to_be_bytes());
            stream
        };
        plan.streams = (1..=1_000).map(stream).collect();
        plan.bounded_terms(&known.schema, &known.layout).map(|_| ())
    };
    assert_eq!(of_one_owner(1), Ok(()));
    assert_eq!(of_one_owner(100), Ok(()));
    assert_eq!(of_one_owner(500), Err(NotBoundableError::Capacity { owners: 501 }));
}
