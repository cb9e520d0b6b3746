//! The minimum population of a plan is the largest that a member requires, and it is met.

use crate::planner::fixture::{SCHEMA, World, plain, policy, select};
use alpheus_policy::explain::explain;
use alpheus_policy::plan::Fraction;
use proptest::prelude::*;

const COUNT: &str = "SUM(hrv)";

fn third(min: u32) -> String {
    policy(&format!("{{ option: aggr, clients: {min}, window: 10s }}"))
}

#[test]
fn explain_counts_thirty_controllers_as_twenty() {
    let world = World::of(SCHEMA).with(30, &third(10), &[]);
    let planned = world.plan(&select(COUNT, "")).unwrap();
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let explanation = explain(&planned, known, 0.01, false);
    let [group] = explanation.groups.as_slice() else { panic!() };
    assert_eq!((group.controllers, group.tolerated, group.counted), (30, 10, 20));
    assert_eq!((group.controllers_needed, group.controllers_enough, group.quorum), (20, 14, 24));
    let text = explanation.to_string();
    assert!(
        text.contains("10 of the controllers may collude (alpha 1/3, colluders 1), so these owners count as 20"),
        "{text}"
    );
    assert!(text.contains("20 of these controllers, or 14 in a plan of their own"), "{text}");
    assert!(text.contains("sum of hrv\n") && text.contains("number of values of hrv\n"), "{text}");
    assert!(text.contains("one member joins or leaves"), "{text}");
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["groups"][0]["counted"], 20);
}

/// Under an option that names no number of colluders.
fn wary(min: u32) -> String {
    policy(&format!("{{ option: wary, clients: {min}, window: 10s }}"))
}

/// The cases of the note on bounds, from the policy to `EXPLAIN`: t, quorum, owners counted.
#[test]
fn small_rosters_open_as_they_should() {
    let hosts = |hosts: u32, owners: u32| {
        let mut world = World::of(SCHEMA).with(1, &third(10), &[]);
        let policy = world.catalog.streams().next().unwrap().policy.clone();
        for stream in 0..hosts * owners {
            world.put(100 + stream, 100 + stream, 1 + stream % hosts, policy.clone(), &[]);
        }
        world
    };
    let cases = [
        (World::of(SCHEMA).with(3, &third(2), &[]), (1, 3, 2)),
        (World::of(SCHEMA).with(36, &wary(10), &[]), (12, 29, 24)),
        (World::of(SCHEMA).with(40, &plain(10), &[]), (0, 39, 40)),
        (hosts(3, 100), (1, 3, 200)),
        (hosts(1, 300), (0, 1, 301)),
    ];
    for (world, expected) in cases {
        let planned = world.plan(&select(COUNT, "")).unwrap();
        let known = world.catalog.schema("MedicalSensor").unwrap();
        let group = &explain(&planned, known, 0.01, false).groups[0];
        assert_eq!((group.tolerated, group.quorum, group.counted), expected);
    }
}

#[test]
fn explain_says_how_many_colluders_read_one_owner() {
    let text = |world: World| {
        let planned = world.plan(&select(COUNT, "")).unwrap();
        let known = world.catalog.schema("MedicalSensor").unwrap();
        (explain(&planned, known, 0.01, true).to_string(), planned.plans[0].colluders)
    };
    let (few, colluders) = text(World::of(SCHEMA).with(20, &wary(10), &[]));
    assert_eq!(colluders, 8, "unless an option states another number");
    let said = "9 colluding controllers that invent owners can read one owner";
    assert!(few.contains(said) && few.contains("it takes c + min − 1 = 17"), "{few}");
    assert!(few.contains("count as 12"), "{few}");
    let (many, _) = text(World::of(SCHEMA).with(60, &wary(20), &[]));
    let said = "it takes 28, as alpha asks for more than c + min − 1 = 27";
    assert!(many.contains(said) && many.contains("9 colluding controllers"), "{many}");
    let (sure, colluders) = text(World::of(SCHEMA).with(20, &plain(10), &[]));
    assert_eq!(colluders, 0, "an option whose alpha is 0 thinks of nobody");
    assert!(!sure.contains("colluding controllers"), "{sure}");
}

/// The bound of those who bound it least, and none if one member has none.
#[test]
fn explain_says_what_a_service_learns_that_lies_about_who_is_there() {
    let bounded = |sets| policy(&format!("{{ option: wary, clients: 10, setsPerDay: {sets} }}"));
    let said = |world: World| {
        let planned = world.plan(&select(COUNT, "WITH (membership = 'epochs')")).unwrap();
        let known = world.catalog.schema("MedicalSensor").unwrap();
        explain(&planned, known, 0.01, true).membership.unwrap()
    };
    let world = || World::of(SCHEMA).with(20, &bounded(2), &[]).with(5, &bounded(4), &[]);
    let text = said(world());
    assert!(text.contains("at most 4 different sets"), "{text}");
    assert!(text.contains("at most 4 of 10 owners' values"), "{text}");
    // Eighteen make a list: eight may collude.
    let text = said(world().with(1, &wary(10), &[]));
    assert!(text.contains("from 2 windows, and everybody's from about 19"), "{text}");
}

/// The sentence holds: the service lists an owner's controller among colluders alone.
#[test]
fn seventeen_colluders_and_one_owner_make_a_plan_and_sixteen_do_not() {
    assert!(World::of(SCHEMA).with(18, &wary(10), &[]).plan(&select(COUNT, "")).is_ok());
    let (refusal, _) = World::of(SCHEMA).with(17, &wary(10), &[]).refuse(&select(COUNT, ""));
    let text = refusal.to_string();
    assert!(text.contains("17 owners count as 9 if 8 of 17 controllers collude"), "{text}");
    assert!(text.contains("colluders 8); 18 controllers with one owner each"), "{text}");
}

#[test]
fn the_largest_number_of_colluders_is_adopted_unless_it_leaves_too_few() {
    let mixed = |wary_ones| {
        let world = World::of(SCHEMA).with(14, &third(10), &[]);
        let planned = world.with(wary_ones, &wary(10), &[]).plan(&select(COUNT, "")).unwrap();
        (planned.plans[0].streams.len(), planned.plans[0].colluders)
    };
    assert_eq!(mixed(4), (18, 8));
    assert_eq!(mixed(3), (14, 1), "with 8 of 17 only nine count");
}

#[test]
fn explain_does_not_count_neighbours_that_dropouts_may_cut_off() {
    let world = World::of(SCHEMA).with(30, &third(10), &[]);
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let masks = "WITH (masks = 'neighbours')";
    let planned = world.plan(&select(COUNT, masks)).unwrap();
    assert_eq!(planned.plans[0].dropout, Fraction::TENTH, "unless the query sets it");
    let explanation = explain(&planned, known, 0.05, false);
    let group = &explanation.groups[0];
    // 30 less t = 10 and r = 2; the quorum is above ⌊(30 + 10)/2⌋ + 1 + 2 = 23.
    assert_eq!((group.counted, group.controllers_needed, group.quorum), (18, 22, 27));
    let text = explanation.to_string();
    assert!(text.contains("masks: neighbours, m = 14, r = 2; 27 of 30 tokens"), "{text}");
    assert!(
        text.contains("each controller picks 14 others and needs 12 of them; 2 more"),
        "{text}"
    );
    assert!(text.contains("below 1e-9"), "{text}");
    let clique = explain(&world.plan(&select(COUNT, "")).unwrap(), known, 0.05, false);
    assert!(group.loss > 1e-4 && clique.groups[0].loss < group.loss, "{}", group.loss);
    let asked = "WITH (masks = 'neighbours', dropout = 0.2)";
    let planned = world.plan(&select(COUNT, asked)).unwrap();
    assert_eq!(planned.plans[0].dropout, Fraction::FIFTH);
}

#[test]
fn fourteen_are_enough_for_ten_and_thirteen_are_not() {
    assert!(World::of(SCHEMA).with(14, &third(10), &[]).plan(&select(COUNT, "")).is_ok());
    let (refusal, nearest) = World::of(SCHEMA).with(13, &third(10), &[]).refuse(&select(COUNT, ""));
    let text = refusal.to_string();
    assert!(
        text.contains(
            "at least 10 owners with data are required, but 13 owners count as 9 if 4 of 13"
        ),
        "{text}"
    );
    assert!(text.contains("14 controllers with one owner each would be enough"), "{text}");
    assert_eq!(nearest, None);
}

#[test]
fn the_largest_controllers_are_discounted() {
    let mut world = World::of(SCHEMA).with(3, &third(3), &[]);
    let policy = world.catalog.streams().next().unwrap().policy.clone();
    for stream in 10..20 {
        world.put(stream, stream, 99, policy.clone(), &[]);
    }
    // Thirteen owners, but ten of them at one controller, which may collude.
    let planned = world.plan(&select(COUNT, "")).unwrap();
    let known = world.catalog.schema("MedicalSensor").unwrap();
    assert_eq!(explain(&planned, known, 0.01, false).groups[0].counted, 3);
    assert!(world.plan(&select(COUNT, "BETWEEN 4 AND 100")).is_err());
}

#[test]
fn a_query_has_at_most_its_maximum_and_at_least_what_policies_require() {
    let world = World::of(SCHEMA).with(20, &plain(10), &[]);
    let planned = world.plan(&select(COUNT, "BETWEEN 1 AND 15")).unwrap();
    assert_eq!(planned.plans[0].streams.len(), 15);
    assert!(planned.excluded[0].reason.to_string().contains("maximum of 15 owners"));
    let (refusal, nearest) = world.refuse(&select(COUNT, "BETWEEN 1 AND 5"));
    assert!(refusal.to_string().contains("at least 10 owners, but the query allows at most 5"));
    assert!(nearest.unwrap().contains("BETWEEN 1 AND 10"));
    let (_, nearest) = world.refuse(&select(COUNT, "BETWEEN 50 AND 100"));
    assert!(nearest.unwrap().contains("BETWEEN 20 AND 100"));
}

#[test]
fn excluded_streams_make_room_for_those_beyond_the_maximum() {
    // The first ten require fifty, which is too many. The others are enough for ten.
    let world = World::of(SCHEMA).with(10, &plain(50), &[]).with(12, &plain(5), &[]);
    let planned = world.plan(&select(COUNT, "BETWEEN 1 AND 60")).unwrap();
    assert_eq!((planned.plans[0].streams.len(), planned.plans[0].population.min), (12, 5));
    let planned = world.plan(&select(COUNT, "BETWEEN 1 AND 10")).unwrap();
    assert_eq!((planned.plans[0].streams.len(), planned.plans[0].population.max), (10, 10));
    let world = World::of(SCHEMA).with(10, &third(10), &[]).with(12, &third(5), &[]);
    let planned = world.plan(&select(COUNT, "BETWEEN 1 AND 12")).unwrap();
    assert_eq!((planned.plans[0].streams.len(), planned.plans[0].population.min), (12, 5));
}

#[test]
fn a_plan_never_exceeds_the_capacity_of_the_digits() {
    let schema = SCHEMA.replace("population: 1000", "population: 8");
    let world = World::of(&schema).with(20, &plain(2), &[]);
    let planned = world.plan(&select(COUNT, "")).unwrap();
    assert_eq!((planned.plans[0].streams.len(), planned.plans[0].population.max), (8, 8));
    let [left] = planned.excluded.as_slice() else { panic!("{:?}", planned.excluded) };
    assert_eq!(left.streams, 12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With α = 0, the members are all streams that require at most m, for the largest m for
    /// which there are enough of them; or a smaller m, if a few with a larger one would lose
    /// everybody's windows.
    #[test]
    fn the_members_are_the_largest_population_that_agrees(choices in proptest::collection::vec(0usize..7, 1..60)) {
        const MINIMA: [u32; 7] = [1, 2, 3, 5, 10, 50, 100];
        let mut world = World::of(SCHEMA);
        for choice in &choices {
            world = world.with(1, &plain(MINIMA[*choice]), &[]);
        }
        let within = |m: u32| choices.iter().filter(|choice| MINIMA[**choice] <= m).count();
        let strictest = |m: u32| choices.iter().map(|choice| MINIMA[*choice]).filter(|min| *min <= m).max();
        let expected = MINIMA.into_iter().rev().find_map(|m| {
            let (size, min) = (within(m), strictest(m)?);
            (size >= min as usize).then_some((size, min))
        });
        let planned = world.plan(&select(COUNT, "")).ok();
        let got = planned.as_ref().map(|planned| (planned.plans[0].streams.len(), planned.plans[0].population.min));
        let brittle = planned.as_ref().is_some_and(|planned| {
            let said = |reason: String| reason.contains("1000 windows would be lost for everybody");
            planned.excluded.iter().any(|excluded| said(excluded.reason.to_string()))
        });
        if brittle {
            let (size, min) = got.unwrap();
            let (most, largest) = expected.unwrap();
            prop_assert_eq!((size, Some(min)), (within(min), strictest(min)));
            prop_assert!(min < largest && size * 2 > most, "{:?} and {:?}", got, expected);
        } else {
            prop_assert_eq!(got, expected);
        }
        if let Some(planned) = planned {
            let out: u32 = planned.excluded.iter().map(|excluded| excluded.streams).sum();
            prop_assert_eq!(out as usize + planned.plans[0].streams.len(), choices.len());
        }
    }
}
