//! Queries whose rows the members of windows decide.

use crate::planner::fixture::{SCHEMA, World, plain, policy, select};
use alpheus_policy::comply::{self, ComplianceError, RequirementError};
use alpheus_policy::explain::explain;
use alpheus_policy::plan::{Integrity, NotVerifiableError};
use alpheus_policy::planner::RuleError;
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};

const VERIFIED: &str = "WITH (integrity = 'verified')";

fn aggregate() -> String {
    policy("{ option: aggr, clients: 5, window: 10s }")
}

#[test]
fn a_verified_query_says_so_in_its_plan_and_explanation() {
    let world = World::of(SCHEMA).with(12, &aggregate(), &[("region", "Texas")]);
    let text = select("SUM(hrv)", &format!("BETWEEN 5 AND 100 WHERE region = Texas {VERIFIED}"));
    let planned = world.plan(&text).unwrap_or_else(|refusal| panic!("{}", refusal.render(&text)));
    let plan = &planned.plans[0];
    assert_eq!(plan.integrity, Integrity::Verified);
    let of = |value: &'static str| move |name: &str| (name == "region").then_some(value);
    assert!(plan.selection.selects(of("Texas")) && !plan.selection.selects(of("Ohio")));
    // The first window begins at an anchor.
    let hour = Span::seconds(3600);
    assert_eq!(plan.from, Timestamp(1_700_000_003_000_000).floor(hour).plus(hour));
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let said = explain(&planned, known, 0.01, false).to_string();
    let signed =
        "verified: each row is signed by up to 12 controllers, any of which could change it";
    assert!(said.contains(signed) && said.contains("last multiple of 1 HOUR"), "{said}");
    // The query as SQL says the same.
    assert!(planned.sql.contains("WITH (integrity = 'verified')"), "{}", planned.sql);
    assert_eq!(world.plan(&planned.sql).unwrap().plans[0].integrity, Integrity::Verified);
}

#[test]
fn a_plain_query_states_no_conditions_and_begins_at_its_next_window() {
    let world = World::of(SCHEMA).with(12, &aggregate(), &[("region", "Texas")]);
    let text = select("SUM(hrv)", "BETWEEN 5 AND 100 WHERE region = Texas");
    let planned = world.plan(&text).unwrap();
    let plan = &planned.plans[0];
    assert_eq!((plan.integrity, plan.selection.steps.len()), (Integrity::Plain, 0));
    assert_eq!(plan.from, Timestamp(1_700_000_010_000_000));
    let known = world.catalog.schema("MedicalSensor").unwrap();
    assert_eq!(explain(&planned, known, 0.01, false).integrity, None);
}

/// What cannot be verified is refused with the reason, and with the same query without it.
fn refused(world: &World, text: &str) -> NotVerifiableError {
    let (refusal, nearest) = world.refuse(text);
    let nearest = nearest.unwrap_or_else(|| panic!("{refusal}"));
    assert!(!nearest.contains("verified"), "{nearest}");
    let reason = refusal.violations.iter().find_map(|violation| match violation.rule {
        RuleError::NotVerifiable { reason, .. } => Some(reason),
        _ => None,
    });
    reason.unwrap_or_else(|| panic!("{refusal}"))
}

#[test]
fn queries_that_cannot_be_verified_are_refused_with_the_reason() {
    let world = World::of(SCHEMA).with(12, &plain(5), &[]);
    let text = select("SUM(hrv)", VERIFIED);
    assert_eq!(refused(&world, &text), NotVerifiableError::NoColluders);
    let epochs = "WITH (integrity = 'verified', membership = 'epochs')";
    let text = select("SUM(hrv)", epochs);
    assert_eq!(refused(&world, &text), NotVerifiableError::Epochs);
    let events = World::of(&SCHEMA.replace("tick: 10s", "tick: 10s\nframes: events"));
    let events = events.with(12, &aggregate(), &[]);
    let text = select("SUM(hrv)", VERIFIED);
    assert_eq!(refused(&events, &text), NotVerifiableError::Frames);
    let noisy = World::of(SCHEMA).with(40, &policy("noisy"), &[]);
    let totals = "CREATE STREAM s AS SELECT SUM(hrv) WINDOW CUMULATING (STEP 10 SECONDS, SIZE 1 HOUR) FROM MedicalSensor WITH (epsilon = 0.1, integrity = 'verified')";
    assert_eq!(refused(&noisy, totals), NotVerifiableError::Totals);
}

/// One controller has nobody to collude with.
#[test]
fn a_query_of_one_controller_may_be_verified() {
    let mut world = World::of(SCHEMA);
    let policies = alpheus_policy::policy::Policies::from_yaml(&plain(5), &world.schema).unwrap();
    for owner in 1..=6 {
        world.put(owner, owner, 1, policies.of_owner("x").clone(), &[]);
    }
    let planned = world.plan(&select("SUM(hrv)", VERIFIED)).unwrap();
    assert_eq!(planned.plans[0].roster.len(), 1);
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let said = explain(&planned, known, 0.01, false).to_string();
    assert!(said.contains("signed by 1 controller, which could change it"), "{said}");
}

const NONE: &str = "{ name: aggr, integrity: none, option: aggregate,";

#[test]
fn owners_may_allow_everything_but_that() {
    let schema = SCHEMA.replace("{ name: aggr, option: aggregate,", NONE);
    let world = World::of(&schema).with(12, &aggregate(), &[]);
    let (refusal, nearest) = world.refuse(&select("SUM(hrv)", VERIFIED));
    let why = "the policy `aggr` of `hrv` does not allow `integrity = 'verified'`";
    assert!(refusal.to_string().contains(why), "{refusal}");
    assert!(!nearest.unwrap().contains("verified"));
    let planned = world.plan(&select("SUM(hrv)", "")).unwrap();
    let mut plan = planned.plans[0].clone();
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let policy = &world.catalog.streams().next().unwrap().policy;
    assert_eq!(comply::check(&plan, &known.schema, &known.layout, policy).map(|_| ()), Ok(()));
    plan.integrity = Integrity::Verified;
    let refused = comply::check(&plan, &known.schema, &known.layout, policy).unwrap_err();
    let ComplianceError::Policy { denials, .. } = refused else { panic!("{refused}") };
    assert_eq!(denials, [RequirementError::Integrity]);
}

/// Schemas that say nothing of it keep their ids; a schema that forbids it has another one.
#[test]
fn forbidding_it_is_part_of_the_schemas_id() {
    let id = |text: &str| Schema::from_yaml(text).unwrap().id();
    let allowed = SCHEMA.replace("{ name: aggr,", "{ name: aggr, integrity: allowed,");
    assert_eq!(id(SCHEMA), id(&allowed));
    let none = SCHEMA.replace("{ name: aggr, option: aggregate,", NONE);
    assert_ne!(id(SCHEMA), id(&none));
    let other = SCHEMA.replace("{ name: plain,", "{ name: plain, integrity: none,");
    assert_ne!(id(&other), id(&none));
    let mistaken = SCHEMA.replace("{ name: priv,", "{ name: priv, integrity: none,");
    assert!(Schema::from_yaml(&mistaken).is_err());
}
