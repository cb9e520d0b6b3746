//! Refusals name the rule, the numbers and the word, and what they suggest is
//! accepted (which [`World::refuse`] tries).

use crate::fixture::{SCHEMA, World, plain, policy, select};

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

/// Items, what follows the schema, a part of the refusal, a part of what is
/// suggested.
const WRONG: &[(&str, &str, &str, Option<&str>)] = &[
    (
        "SUM(hart-rate)",
        "",
        "has no attribute `hart-rate`: did you mean `heart-rate`?",
        Some("SUM(heart-rate)"),
    ),
    ("SUM(pulse), SUM(hrv)", "", "it has heart-rate, hrv, altitude", Some("SELECT SUM(hrv)\n")),
    ("SUM(region), SUM(hrv)", "", "public metadata", Some("SELECT SUM(hrv)\n")),
    (
        "VAR(hrv), AVG(hrv)",
        "",
        "what VAR of `hrv` needs; it offers SUM(hrv), COUNT(hrv), AVG(hrv)",
        Some("SELECT AVG(hrv)\n"),
    ),
    (
        "HISTOGRAM(heart-rate, 0, 7, 5)",
        "",
        "7 is no edge of the bins",
        Some("HISTOGRAM(heart-rate, 0, 5, 5)"),
    ),
    (
        "HISTOGRAM(heart-rate, 3, 10, 5)",
        "",
        "13 is no edge",
        Some("HISTOGRAM(heart-rate, 5, 10, 5)"),
    ),
    ("HISTOGRAM(heart-rate, EDGES(0, 12, 50))", "", "12 is no edge", Some("EDGES(0, 10, 50)")),
    (
        "HISTOGRAM(altitude, 0, 2.55, 5)",
        "",
        "2.55 is finer than `altitude`, which has 1 decimal",
        Some("HISTOGRAM(altitude, 0, 5, 5)"),
    ),
    ("COUNT(*)", "", "names no attribute", None),
    ("SUM(hrv)", "WHERE regoin = 'x'", "no metadata `regoin`: did you mean `region`?", None),
    ("SUM(hrv)", "WHERE ageGroup = 'senoir'", "did you mean `senior`?", None),
    ("SUM(hrv)", "GROUP BY town", "no metadata `town`; it has region, ageGroup", None),
    (
        "SUM(hrv)",
        "WHERE region = Texas",
        "no stream of MedicalSensor fits",
        Some("FROM MedicalSensor"),
    ),
    ("SUM(hrv)", "BETWEEN 2000 AND 3000", "capacity of 1000", Some("BETWEEN 4 AND 1000")),
    (
        "SUM(hrv)",
        "WITH (mechanism = 'skellam')",
        "how much noise is asked for? Say epsilon",
        Some("FROM MedicalSensor"),
    ),
    (
        "SUM(hrv), APPROX_DISTINCT(town)",
        "WITH (epsilon = 0.5)",
        "noise leaves no meaning in APPROX_DISTINCT",
        Some("SELECT SUM(hrv)\n"),
    ),
    (
        "SUM(hrv)",
        "WITH (epsilon = 0.5, events = 101)",
        "say 1 to 100, which is the schema's capacity",
        Some("WITH (epsilon = 0.5, events = 100)"),
    ),
    (
        "SUM(hrv)",
        "GROUP BY ageGroup",
        "4 of 4 streams cannot take part: they have no `ageGroup`",
        Some("FROM MedicalSensor"),
    ),
];

#[test]
fn names_and_numbers_of_the_schema() {
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
        "15 SECONDS is no multiple of the tick of 10 SECONDS",
        Some("SIZE 20 SECONDS"),
    );
}

#[test]
fn windows_of_the_policy() {
    let hourly = policy("{ option: plain, clients: 1, window: 1hr }");
    let world = World::of(SCHEMA).with(4, &hourly, &[]);
    check(
        &world,
        &select("SUM(hrv)", ""),
        "the policy `plain` releases `hrv` in windows of multiples of 1 HOUR",
        Some("SIZE 1 HOUR"),
    );
    let text = select("SUM(hrv)", "").replace("10 SECONDS", "90 MINUTES");
    check(&world, &text, "multiples of 1 HOUR", Some("SIZE 2 HOURS"));
}

#[test]
fn what_owners_keep_or_give_with_noise_only() {
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
        "`altitude` is offered as `noisy` (dp-aggregate) only",
        None,
    );
    let all = select("AVG(hrv), AVG(altitude), SUM(hrv), AVG(heart-rate)", "");
    let (refusal, nearest) = world.refuse(&all);
    // With noise, ten would be needed.
    assert_eq!(refusal.violations.len(), 3, "{refusal}");
    assert!(nearest.unwrap().contains("SELECT AVG(heart-rate)\n"));
    let rendered = refusal.render(&all);
    assert!(
        rendered.contains("1 | CREATE STREAM s AS SELECT AVG(hrv)") && rendered.contains("^^^"),
        "{rendered}"
    );
}

#[test]
fn buckets_of_the_policy() {
    let world = World::of(SCHEMA).with(4, &policy("{ option: coarse, clients: 1 }"), &[]);
    let finer = "the policy `coarse` shows `altitude` in buckets of width 25.0 only";
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
fn consumers_of_the_policy() {
    let world = World::of(SCHEMA).with(1, &policy("coach"), &[]);
    check(
        &world,
        &select("SUM(hrv)", ""),
        "releases `hrv` to coach.example only",
        Some("RELEASE TO 'coach.example'"),
    );
    assert!(world.plan(&select("SUM(hrv)", "RELEASE TO 'coach.example'")).is_ok());
}

/// Results are sealed to a key: without one, or for somebody else, nothing is planned.
#[test]
fn release_to_somebody_whose_key_is_not_shown() {
    let world = World::of(SCHEMA).with(1, &plain(1), &[]);
    let asked = select("SUM(hrv)", "RELEASE TO stranger");
    check(&world, &asked, "asked for by `stranger` itself, which shows its certificate", None);
    assert!(world.plan(&select("SUM(hrv)", "")).unwrap().plans[0].sealed_to.is_none());
}

#[test]
fn several_wrongs_are_told_at_once_and_mended_together() {
    let hourly = policy("{ option: plain, clients: 5, window: 1hr }");
    let world = World::of(SCHEMA).with(4, &hourly, &[("region", "Utah")]).with(
        2,
        &hourly,
        &[("region", "Texas")],
    );
    let text =
        select("SUM(hart-rate), HISTOGRAM(altitude, 1, 3, 4)", "BETWEEN 1 AND 3 GROUP BY region");
    let (refusal, nearest) = world.refuse(&text);
    let told = refusal.to_string();
    for part in ["hart-rate", "is no edge", "multiples of 1 HOUR", "at least 5 owners"] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let nearest = nearest.unwrap();
    for part in ["SUM(heart-rate)", "SIZE 1 HOUR", "BETWEEN 1 AND 5"] {
        assert!(nearest.contains(part), "{nearest}");
    }
    assert!(!nearest.contains("GROUP BY"), "{nearest}");
}

#[test]
fn one_stream_that_may_take_part_is_enough_and_the_others_are_counted() {
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
