//! The plans of accepted queries.

use crate::planner::fixture::{SCHEMA, World, plain, select};
use alpheus_policy::catalog::{RunningQuery, StartError};
use alpheus_policy::comply;
use alpheus_policy::ids::ConsumerId;
use alpheus_policy::locks::Locks;
use alpheus_policy::plan::{Fraction, MaskStrategy};
use alpheus_time::{Span, Timestamp};

#[test]
fn a_plan_contains_everything_that_controllers_check() {
    let world = World::of(SCHEMA).with(12, &plain(10), &[("region", "California")]);
    let planned =
        world.plan(&select("AVG(heart-rate)", "BETWEEN 1 AND 100 RELEASE TO hospital")).unwrap();
    let [plan] = planned.plans.as_slice() else { panic!() };
    assert_eq!((plan.population.min, plan.population.max), (10, 100));
    assert_eq!((plan.alpha, plan.dropout), (Fraction::ZERO, Fraction::ZERO));
    assert_eq!((plan.window, plan.grace), (Span::seconds(10), Span::seconds(5)));
    assert_eq!(plan.from, Timestamp(1_700_000_010_000_000), "no window that has already started");
    assert_eq!((plan.consumer.as_str(), plan.attributes.as_slice()), ("hospital", &[0][..]));
    assert_eq!(plan.sealed_to, Some(ConsumerId([4; 32])), "whose key opens results");
    assert_eq!((plan.roster.len(), plan.streams.len(), plan.masks), (12, 12, MaskStrategy::Clique));
    assert!(plan.roster.is_sorted() && plan.streams.is_sorted_by_key(|stream| stream.stream));
    assert_eq!(plan.release.outputs(), 3, "sum, count and the check word");
    let known = world.catalog.schema("MedicalSensor").unwrap();
    for stream in world.catalog.streams() {
        comply::check(plan, &known.schema, &known.layout, &stream.policy).unwrap();
    }
}

#[test]
fn planning_is_a_function_of_its_arguments() {
    let world = World::of(SCHEMA).with(12, &plain(1), &[("region", "California")]);
    let text = select("AVG(heart-rate), HISTOGRAM(altitude)", "GROUP BY region");
    let (one, same) = (world.plan(&text).unwrap(), world.plan(&text).unwrap());
    assert_eq!(one, same);
    let other = world.plan_with(&text, &[8; 32]).unwrap();
    assert_ne!(one.plans[0].id(), other.plans[0].id());
    assert_ne!(one.plans[0].nonce, other.plans[0].nonce);
}

#[test]
fn groups_come_in_order_and_each_has_its_own_population() {
    let world = World::of(SCHEMA)
        .with(4, &plain(3), &[("region", "Texas")])
        .with(2, &plain(3), &[("region", "Utah")])
        .with(3, &plain(3), &[("region", "California")])
        .with(1, &plain(3), &[]);
    let planned = world.plan(&select("SUM(hrv)", "GROUP BY region")).unwrap();
    let groups: Vec<_> =
        planned.plans.iter().map(|plan| (plan.group[0].1.as_str(), plan.streams.len())).collect();
    assert_eq!(groups, [("California", 3), ("Texas", 4)]);
    assert_ne!(planned.plans[0].nonce, planned.plans[1].nonce);
    let excluded: Vec<_> =
        planned.excluded.iter().map(|out| (out.streams, out.reason.to_string())).collect();
    assert_eq!(excluded.len(), 2);
    assert!(
        excluded[0].1.contains("no value of `region` to group by") && excluded[0].0 == 1,
        "{excluded:?}"
    );
    assert!(excluded[1].1.contains("and there are 2") && excluded[1].0 == 2, "{excluded:?}");
    assert_eq!(planned.fitting, 10);
}

#[test]
fn one_controller_needs_no_masks() {
    let world = World::of(SCHEMA).with(1, &plain(1), &[]);
    assert_eq!(world.plan(&select("SUM(hrv)", "")).unwrap().plans[0].masks, MaskStrategy::Single);
}

#[test]
fn conditions_select_streams_and_a_missing_value_never_matches() {
    let world = World::of(SCHEMA)
        .with(3, &plain(1), &[("region", "California"), ("ageGroup", "senior")])
        .with(4, &plain(1), &[("region", "California"), ("ageGroup", "young")])
        .with(5, &plain(1), &[("region", "12")]);
    for (condition, streams) in [
        ("region = California", 7),
        ("region <> California", 5),
        ("ageGroup = 'senior'", 3),
        ("NOT ageGroup = 'senior'", 4),
        ("ageGroup <> 'senior' OR region = '12.0'", 9),
        ("ageGroup IN ('senior', 'young') AND region = California", 7),
        ("ageGroup NOT IN ('senior')", 4),
        ("region > 9", 12), // compared as text unless both are numbers
        ("region >= 12 AND region <= 12", 5),
    ] {
        let planned = world.plan(&select("SUM(hrv)", &format!("WHERE {condition}"))).unwrap();
        assert_eq!(planned.plans[0].streams.len(), streams, "{condition}");
    }
}

#[test]
fn an_attribute_of_a_stream_is_in_one_running_plan() {
    let mut world = World::of(SCHEMA).with(4, &plain(1), &[]);
    world.start(&select("SUM(hrv)", ""));
    let second = select("AVG(hrv), AVG(heart-rate)", "").replace("STREAM s", "STREAM t");
    let (refusal, nearest) = world.refuse(&second);
    assert!(
        refusal.to_string().contains(
            "4 of 4 streams cannot take part: their `hrv` is already released by the running query `s`, and only one query may release it; its consumer can end it with `DROP STREAM s`"
        ),
        "{refusal}"
    );
    assert!(nearest.unwrap().contains("SELECT AVG(heart-rate)\n"));
    let (refusal, nearest) = world.refuse(&select("SUM(altitude)", ""));
    assert!(refusal.to_string().contains("a query named `s` is already running"));
    assert!(nearest.unwrap().contains("STREAM s_2"));

    let other = second.replace("AVG(hrv), ", "");
    world.start(&other);
    let bytes = postcard::to_allocvec(world.catalog.locks()).unwrap();
    let restored: Locks = postcard::from_bytes(&bytes).unwrap();
    assert_eq!((&restored, restored.len()), (world.catalog.locks(), 8));
    world.catalog.stop("s").unwrap();
    assert_eq!(world.catalog.locks().len(), 4);
    assert!(world.plan(&select("SUM(hrv)", "")).is_ok());
}

#[test]
fn locks_are_taken_completely_or_not_at_all() {
    let mut world = World::of(SCHEMA).with(4, &plain(1), &[]);
    let both =
        world.plan(&select("SUM(hrv), SUM(altitude)", "").replace("STREAM s", "STREAM t")).unwrap();
    world.start(&select("SUM(altitude)", ""));
    let before = world.catalog.locks().clone();
    let query = RunningQuery { name: both.name, sql: both.sql, plans: both.plans };
    assert!(matches!(world.catalog.start(query.clone()), Err(StartError::Locked(_))));
    assert_eq!(world.catalog.locks(), &before);
    world.catalog.stop("s").unwrap();
    world.catalog.start(query.clone()).unwrap();
    assert!(matches!(world.catalog.start(query), Err(StartError::NameTaken(_))));
}

#[test]
fn an_owner_is_counted_at_one_controller_only() {
    let mut world = World::of(SCHEMA).with(4, &plain(1), &[]);
    let policy = world.catalog.streams().next().unwrap().policy.clone();
    world.put(100, 1, 9, policy, &[]);
    let planned = world.plan(&select("SUM(hrv)", "")).unwrap();
    assert_eq!(planned.plans[0].streams.len(), 4);
    assert!(planned.excluded[0].reason.to_string().contains("at another controller"));
}
