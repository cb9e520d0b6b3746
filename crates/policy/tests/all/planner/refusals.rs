//! Refusals have the rule, the numbers and the location. [`World::refuse`] checks that the
//! suggested query is accepted.

use crate::planner::fixture::{SCHEMA, World, plain, policy, select};

/// A query, a part of the refusal and a part of the suggestion.
fn check(world: &World, text: &str, message: &str, suggestion: Option<&str>) {
    let (refusal, nearest) = world.refuse(text);
    assert!(refusal.to_string().contains(message), "{text}\n{refusal}");
    match (suggestion, &nearest) {
        (None, None) => {}
        (Some(part), Some(nearest)) => assert!(nearest.contains(part), "{text}\n{nearest}"),
        _ => panic!("{text}\n{nearest:?}\n{refusal}"),
    }
}

/// Items, the text after the schema, a part of the refusal, a part of the suggestion.
const WRONG: &[(&str, &str, &str, Option<&str>)] = &[
    (
        "SUM(hart-rate)",
        "",
        "has no attribute `hart-rate`; it has heart-rate, hrv, altitude, town: did you mean `heart-rate`?",
        Some("SUM(heart-rate)"),
    ),
    ("SUM(pulse), SUM(hrv)", "", "it has heart-rate, hrv, altitude", Some("SELECT SUM(hrv)\n")),
    ("SUM(region), SUM(hrv)", "", "public metadata", Some("SELECT SUM(hrv)\n")),
    (
        "VAR(hrv), AVG(hrv)",
        "",
        "does not support VAR of `hrv`; it supports SUM(hrv), COUNT(hrv), AVG(hrv)",
        Some("SELECT AVG(hrv)\n"),
    ),
    (
        "HISTOGRAM(heart-rate, 0, 7, 5)",
        "",
        "7 is not an edge of the bins",
        Some("HISTOGRAM(heart-rate, 0, 5, 5)"),
    ),
    (
        "HISTOGRAM(heart-rate, 3, 10, 5)",
        "",
        "13 is not an edge",
        Some("HISTOGRAM(heart-rate, 5, 10, 5)"),
    ),
    ("HISTOGRAM(heart-rate, EDGES(0, 12, 50))", "", "12 is not an edge", Some("EDGES(0, 10, 50)")),
    (
        "HISTOGRAM(altitude, 0, 2.55, 5)",
        "",
        "2.55 has more decimal places than `altitude`, which has 1",
        Some("HISTOGRAM(altitude, 0, 5, 5)"),
    ),
    ("COUNT(*)", "", "names no attribute", None),
    (
        "SUM(hrv)",
        "WHERE regoin = 'x'",
        "no metadata `regoin`; it has region, ageGroup: did you mean `region`?",
        None,
    ),
    ("SUM(hrv)", "WHERE ageGroup = 'senoir'", "did you mean `senior`?", None),
    ("SUM(hrv)", "GROUP BY twon", "no metadata `twon`; it has region, ageGroup", None),
    // What makes it metadata would make the readings public.
    (
        "SUM(hrv)",
        "WHERE hrv > 3",
        "`hrv` is data, which stays encrypted; WHERE and GROUP BY take only public metadata: region, ageGroup",
        None,
    ),
    ("SUM(hrv)", "GROUP BY town", "`town` is data, which stays encrypted", None),
    (
        "SUM(hrv)",
        "WHERE region = Texas",
        "no stream of MedicalSensor matches",
        Some("FROM MedicalSensor"),
    ),
    ("SUM(hrv)", "BETWEEN 2000 AND 3000", "capacity of 1000", Some("BETWEEN 4 AND 1000")),
    (
        "SUM(hrv)",
        "WITH (mechanism = 'skellam')",
        "does not say how much noise to add; set epsilon",
        Some("FROM MedicalSensor"),
    ),
    (
        "SUM(hrv), APPROX_DISTINCT(town)",
        "WITH (epsilon = 0.5)",
        "APPROX_DISTINCT has no meaning with noise",
        Some("SELECT SUM(hrv)\n"),
    ),
    (
        "SUM(hrv)",
        "WITH (epsilon = 0.5, events = 101)",
        "use 1 to 100, the schema's capacity",
        Some("WITH (epsilon = 0.5, events = 100)"),
    ),
    (
        "SUM(hrv)",
        "GROUP BY ageGroup",
        "4 of 4 streams cannot take part: they have no value of `ageGroup`",
        Some("FROM MedicalSensor"),
    ),
];

#[test]
fn mistakes_are_reported_with_names_and_numbers_of_the_schema() {
    let world = World::of(SCHEMA).with(4, &plain(1), &[("region", "Utah")]);
    for (items, tail, message, suggestion) in WRONG {
        check(&world, &select(items, tail), message, *suggestion);
    }
    let text = select("SUM(hrv)", "");
    check(
        &world,
        &text.replace("MedicalSensor", "MedicSensor"),
        "did you mean `MedicalSensor`?",
        Some("FROM MedicalSensor"),
    );
    check(
        &world,
        &text.replace("10 SECONDS", "15 SECONDS"),
        "15 SECONDS is not a multiple of 10 SECONDS, the tick of the schema; write `SIZE 10 SECONDS` or `SIZE 20 SECONDS`",
        Some("SIZE 20 SECONDS"),
    );
}

#[test]
fn windows_must_be_multiples_of_the_policys() {
    let hourly = policy("{ option: plain, clients: 1, window: 1hr }");
    let world = World::of(SCHEMA).with(4, &hourly, &[]);
    check(
        &world,
        &select("SUM(hrv)", ""),
        "their policy `plain` releases `hrv` only in windows that are multiples of 1 HOUR; write `SIZE 1 HOUR`",
        Some("SIZE 1 HOUR"),
    );
    let text = select("SUM(hrv)", "").replace("10 SECONDS", "90 MINUTES");
    let message = "multiples of 1 HOUR; write `SIZE 1 HOUR` or `SIZE 2 HOURS`";
    check(&world, &text, message, Some("SIZE 2 HOURS"));
}

#[test]
fn what_several_attributes_do_not_support_is_said_once() {
    let schema = SCHEMA.replace(
        "streamPolicyOptions:",
        "  - { name: lit, type: boolean, aggregations: [count] }\n  - { name: open, type: boolean, aggregations: [count] }\nstreamPolicyOptions:",
    );
    let world = World::of(&schema).with(4, &plain(1), &[]);
    let (refusal, _) =
        world.refuse(&select("SUM(lit), AVG(lit), SUM(open), AVG(open), SUM(hrv)", ""));
    assert_eq!(refusal.violations.len(), 4);
    let said = refusal.to_string();
    let once =
        "the schema does not support SUM or AVG of `lit` and `open`; of each it supports COUNT(…)";
    assert!(said.starts_with(once) && said.matches("does not support").count() == 1, "{said}");
}

#[test]
fn attributes_that_are_private_or_need_noise_are_refused() {
    let mixed = "schema: MedicalSensor\nservice: a\ndefault: { hrv: priv, altitude: noisy, heart-rate: { option: plain, clients: 1, window: 10s } }\n";
    let world = World::of(SCHEMA).with(4, mixed, &[]);
    check(
        &world,
        &select("AVG(hrv)", ""),
        "4 of 4 streams cannot take part: their owners keep `hrv` private",
        None,
    );
    check(
        &world,
        &select("AVG(altitude)", ""),
        "their policy `noisy` (dp-aggregate) releases `altitude` only with noise",
        None,
    );
    let all = select("AVG(hrv), AVG(altitude), SUM(hrv), AVG(heart-rate)", "");
    let (refusal, nearest) = world.refuse(&all);
    // With noise, ten owners would be needed.
    assert_eq!(refusal.violations.len(), 3, "{refusal}");
    assert!(nearest.unwrap().contains("SELECT AVG(heart-rate)\n"));
    let rendered = refusal.render(&all);
    assert!(
        rendered.contains("1 | CREATE STREAM s AS SELECT AVG(hrv)") && rendered.contains("^^^"),
        "{rendered}"
    );
}

#[test]
fn finer_buckets_than_the_policys_are_refused() {
    let world = World::of(SCHEMA).with(4, &policy("{ option: coarse, clients: 1 }"), &[]);
    let finer = "their policy `coarse` releases `altitude` only in buckets of width 25.0";
    check(
        &world,
        &select("HISTOGRAM(altitude)", ""),
        finer,
        Some("HISTOGRAM(altitude, 0, 25, 12)"),
    );
    check(
        &world,
        &select("HISTOGRAM(altitude, 10, 25, 3)", ""),
        finer,
        Some("HISTOGRAM(altitude, 0, 25, 12)"),
    );
    check(
        &world,
        &select("AVG(altitude) AS a, AVG(hrv)", ""),
        finer,
        Some("HISTOGRAM(altitude, 0, 25, 12) AS a, AVG(hrv)"),
    );
    check(
        &world,
        &select("MEDIAN(altitude)", ""),
        finer,
        Some("SELECT HISTOGRAM(altitude, 0, 25, 12)\n"),
    );
    for allowed in [
        "HISTOGRAM(altitude, 0, 25, 12)",
        "HISTOGRAM(altitude, 50, 100, 2)",
        "HISTOGRAM(altitude, EDGES(-10, 25, 200))",
    ] {
        assert!(world.plan(&select(allowed, "")).is_ok(), "{allowed}");
    }
}

#[test]
fn results_are_released_only_to_the_policys_consumers() {
    let world = World::of(SCHEMA).with(1, &policy("coach"), &[]);
    check(
        &world,
        &select("SUM(hrv)", ""),
        "releases `hrv` only to coach.example",
        Some("RELEASE TO 'coach.example'"),
    );
    assert!(world.plan(&select("SUM(hrv)", "RELEASE TO 'coach.example'")).is_ok());
}

/// Results are sealed to a key. Without it, or for another consumer, nothing is planned.
#[test]
fn release_to_needs_the_consumers_certificate() {
    let world = World::of(SCHEMA).with(1, &plain(1), &[]);
    let text = select("SUM(hrv)", "RELEASE TO stranger");
    check(&world, &text, "only `stranger` itself can request results that are sealed to it", None);
    assert!(world.plan(&select("SUM(hrv)", "")).unwrap().plans[0].sealed_to.is_none());
}

#[test]
fn several_violations_are_reported_at_once_and_fixed_together() {
    let hourly = policy("{ option: plain, clients: 5, window: 1hr }");
    let world = World::of(SCHEMA).with(4, &hourly, &[("region", "Utah")]).with(
        2,
        &hourly,
        &[("region", "Texas")],
    );
    let text =
        select("SUM(hart-rate), HISTOGRAM(altitude, 1, 3, 4)", "BETWEEN 1 AND 3 GROUP BY region");
    let (refusal, nearest) = world.refuse(&text);
    let message = refusal.to_string();
    for part in ["hart-rate", "is not an edge", "multiples of 1 HOUR", "at least 5 owners"] {
        assert!(message.contains(part), "{part}\n{message}");
    }
    let nearest = nearest.unwrap();
    for part in ["SUM(heart-rate)", "SIZE 1 HOUR", "BETWEEN 1 AND 5"] {
        assert!(nearest.contains(part), "{nearest}");
    }
    assert!(!nearest.contains("GROUP BY"), "{nearest}");
}

#[test]
fn a_query_runs_with_the_streams_that_may_take_part_and_counts_the_others() {
    let world = World::of(SCHEMA).with(3, &plain(1), &[]).with(2, &policy("priv"), &[]).with(
        4,
        &policy("noisy"),
        &[],
    );
    let planned = world.plan(&select("SUM(hrv)", "")).unwrap();
    let excluded: Vec<_> =
        planned.excluded.iter().map(|out| (out.streams, out.reason.to_string())).collect();
    assert_eq!(planned.plans[0].streams.len(), 3);
    assert!(excluded[0].1.contains("private") && excluded[0].0 == 2, "{excluded:?}");
    assert!(excluded[1].1.contains("dp-aggregate") && excluded[1].0 == 4, "{excluded:?}");
}

/// A function of a number is refused with the name of an aggregation, and with that one it no longer is.
#[test]
fn the_aggregation_that_a_refusal_names_supports_the_function() {
    let schema = |aggregation: &str| {
        format!(
            "name: S\ntick: 10s\ncapacity: {{ population: 100, events: 10 }}\nstreamAttributes:\n  - {{ name: x, type: integer, min: 0, max: 99, aggregations: [{aggregation}] }}\nstreamPolicyOptions:\n  - {{ name: all, option: public }}\n"
        )
    };
    let all = "schema: S\ndefault: { '*': all }\n";
    for call in [
        "SUM(x)",
        "AVG(x)",
        "VAR(x)",
        "STDDEV(x)",
        "HISTOGRAM(x)",
        "MEDIAN(x)",
        "PERCENTILE(x, 0.9)",
        "MAX(x)",
        "TOPK(x, 2)",
    ] {
        let text =
            format!("CREATE STREAM s AS SELECT {call} WINDOW TUMBLING (SIZE 10 SECONDS) FROM S");
        let (refusal, _) = World::of(&schema("count")).with(4, all, &[]).refuse(&text);
        let said = refusal.to_string();
        let named = said.split(" needs `").nth(1).unwrap_or_else(|| panic!("{call}: {said}"));
        let aggregation = match named.split('`').next().unwrap() {
            "histogram" => "histogram: { lo: 0, width: 10, bins: 10 }",
            plain => plain,
        };
        let better = World::of(&schema(aggregation)).with(4, all, &[]);
        assert!(better.plan(&text).is_ok(), "{call} with {aggregation}");
    }
}
