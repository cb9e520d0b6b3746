//! Queries whose rows the members of windows decide.

use crate::planner::fixture::{SCHEMA, World, create, plain, policy, select};
use alpheus_policy::comply::{self, ComplianceError, RequirementError};
use alpheus_policy::explain::explain;
use alpheus_policy::ids::ConsumerId;
use alpheus_policy::plan::{Epoch, Fraction, Integrity, NotVerifiableError, Plan};
use alpheus_policy::planner::{OtherMeaningError, RuleError, check_meaning};
use alpheus_policy::query::Create;
use alpheus_policy::schema::Schema;
use alpheus_policy::select::Statistic;
use alpheus_policy::selection::Selection;
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
    assert_eq!(refused(&world, &text), NotVerifiableError::NoColluders);
    let events = World::of(&SCHEMA.replace("tick: 10s", "tick: 10s\nframes: events"));
    let events = events.with(12, &aggregate(), &[]);
    let text = select("SUM(hrv)", VERIFIED);
    assert_eq!(refused(&events, &text), NotVerifiableError::Frames);
    let noisy = World::of(SCHEMA).with(40, &policy("noisy"), &[]);
    let totals = "CREATE STREAM s AS SELECT SUM(hrv) WINDOW CUMULATING (STEP 10 SECONDS, SIZE 1 HOUR) FROM MedicalSensor WITH (epsilon = 0.1, integrity = 'verified')";
    assert_eq!(refused(&noisy, totals), NotVerifiableError::Totals);
}

/// By epochs, the terms are verified, and so is the plan of each list of more than one.
#[test]
fn a_query_by_epochs_may_be_verified_if_it_thinks_of_colluders() {
    let world = World::of(SCHEMA).with(12, &plain(5), &[]);
    let text =
        select("SUM(hrv)", "WITH (integrity = 'verified', membership = 'epochs', alpha = '1/3')");
    let planned = world.plan(&text).unwrap();
    let [terms] = <[Plan; 1]>::try_from(planned.to_run()).unwrap();
    assert_eq!((terms.integrity, terms.not_verifiable()), (Integrity::Verified, None));
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let said = explain(&planned, known, 0.01, false).to_string();
    assert!(said.contains("signed by up to 12 controllers"), "{said}");
    assert!(said.contains("and which owners took part in each window"), "{said}");
    let of = |members: usize| {
        let roster = planned.plans[0].roster[..members].to_vec();
        let epoch = Epoch { terms: terms.id(), list: [0; 32], windows: 1 };
        Plan { roster, epoch: Some(epoch), ..terms.clone() }
    };
    let listed = |members: usize| of(members).not_verifiable();
    assert_eq!([listed(2), listed(12)], [None, None]);
    // Who is alone in a list may have had others to collude with.
    assert_eq!(listed(1), Some(NotVerifiableError::NoColluders));
    let nobody = Plan { alpha: Fraction::ZERO, ..terms.clone() };
    assert_eq!(nobody.not_verifiable(), Some(NotVerifiableError::NoColluders));
    // A consumer compares the plan of each window's list with its statement.
    let check = |text: &str, plan: &Plan| check_meaning(&create(text), &world.schema, plan);
    assert_eq!(check(&text, &of(3)), Ok(()));
    let renamed = text.replace("SUM(hrv)", "SUM(hrv) AS other");
    assert_eq!(check(&renamed, &of(3)), Err(OtherMeaningError::Columns));
    // Who asked for fixed members has no list of the service's choice, nor the other way round.
    let fixed = text.replace("membership = 'epochs', ", "");
    assert_eq!(check(&fixed, &of(3)), Err(OtherMeaningError::Membership));
    let plan = &world.plan(&fixed).unwrap().plans[0];
    assert_eq!(check(&text, plan), Err(OtherMeaningError::Membership));
}

/// A service that gives devices less time than was asked for leaves those out that send late.
#[test]
fn a_plan_with_another_grace_period_than_the_statements_is_not_the_query() {
    let world = World::of(SCHEMA).with(12, &aggregate(), &[]);
    let text = select("SUM(hrv)", VERIFIED);
    let plan = &world.plan(&text).unwrap().plans[0];
    let asked = Create { grace: Some(plan.grace), ..create(&text) };
    let check = |asked: &Create, plan: &Plan| check_meaning(asked, &world.schema, plan);
    assert_eq!(check(&asked, plan), Ok(()));
    let shorter = Plan { grace: Span(0), ..plan.clone() };
    assert_ne!(shorter.grace, plan.grace);
    assert_eq!(check(&asked, &shorter), Err(OtherMeaningError::Window));
    // Who asks for none leaves it to the service.
    assert_eq!(check(&create(&text), &shorter), Ok(()));
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

/// A service could show an honest sum under another name. A consumer that has the statement sees it.
#[test]
fn a_plan_that_is_not_what_the_statement_asks_for_is_named_by_what_differs() {
    type Change = fn(&mut Plan);
    let world = World::of(SCHEMA).with(12, &aggregate(), &[("region", "Texas")]);
    let items = "SUM(hrv) AS total, COUNT(hrv) AS n, VAR(altitude)";
    let text = select(
        items,
        &format!("BETWEEN 5 AND 100 WHERE region = Texas GROUP BY region {VERIFIED}"),
    );
    let plan = world.plan(&text).unwrap().plans.remove(0);
    let check = |plan: &Plan| check_meaning(&create(&text), &world.schema, plan);
    assert_eq!(check(&plan), Ok(()));
    let changes: &[(Change, OtherMeaningError)] = &[
        (|plan| plan.schema.0[0] ^= 1, OtherMeaningError::Schema),
        (|plan| plan.select.items[0].alias = "n".into(), OtherMeaningError::Columns),
        (
            |plan| match &mut plan.select.items[0].statistic {
                Statistic::Sum { scale, .. } => *scale += 1,
                _ => unreachable!(),
            },
            OtherMeaningError::Columns,
        ),
        (
            |plan| {
                let first = plan.select.items[0].statistic.clone();
                plan.select.items[1].statistic = first;
            },
            OtherMeaningError::Columns,
        ),
        (|plan| plan.select.cells.reverse(), OtherMeaningError::Columns),
        (|plan| plan.window = Span::seconds(20), OtherMeaningError::Window),
        (|plan| plan.selection = Selection::default(), OtherMeaningError::Streams),
        (|plan| plan.group.clear(), OtherMeaningError::Streams),
        (|plan| plan.population.min = 4, OtherMeaningError::Population),
        (|plan| plan.sealed_to = Some(ConsumerId([4; 32])), OtherMeaningError::Reader),
        (|plan| plan.integrity = Integrity::Plain, OtherMeaningError::Integrity),
    ];
    for (change, other) in changes {
        let mut changed = plan.clone();
        change(&mut changed);
        assert_eq!(check(&changed), Err(*other));
    }
    let noisy = World::of(SCHEMA).with(40, &policy("noisy"), &[]);
    let text = select("SUM(hrv)", "WITH (epsilon = 0.05)");
    let mut plan = noisy.plan(&text).unwrap().plans.remove(0);
    plan.privacy = None;
    let checked = check_meaning(&create(&text), &noisy.schema, &plan);
    assert_eq!(checked, Err(OtherMeaningError::Noise));
}
