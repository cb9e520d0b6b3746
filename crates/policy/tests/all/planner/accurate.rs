//! Queries that say how exact their results have to be.

use crate::planner::fixture::{World, options};
use alpheus_policy::budget::{Mechanism, NoiseShares, row_spread};
use alpheus_policy::explain::explain;
use alpheus_policy::plan::Plan;
use alpheus_policy::planner::PlannedQuery;
use alpheus_policy::planner::suggest::{Advice, Owners, suggest};
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Create, Statement, parse};

const SCHEMA: &str = "
name: Homes
tick: 1h
capacity: { population: 1000, eventsPerSecond: 0.000277, window: 31d }
streamAttributes:
  - { name: energy, type: decimal, scale: 1, min: 0, max: 2000, aggregations: [var, { histogram: { lo: 0, width: 100, bins: 20 } }] }
  - { name: water, type: [integer, optional], min: 0, max: 100, aggregations: [mean] }
streamPolicyOptions:
  - { name: noisy, option: dp-aggregate, clients: [50], window: 1d, alpha: 0, budget: { perWindow: 5, total: 100, unit: person-per-window } }
  - { name: plain, option: aggregate, clients: [50], window: 1d, alpha: 0 }
";

fn homes(count: u32, option: &str) -> World {
    World::of(SCHEMA).with(count, &format!("default: {{ '*': {option} }}"), &[])
}

fn ask(items: &str, tail: &str) -> String {
    format!("CREATE STREAM s AS SELECT {items} WINDOW TUMBLING (SIZE 1 DAY) FROM Homes {tail}")
}

fn only(planned: &PlannedQuery) -> &Plan {
    let [plan] = planned.plans.as_slice() else { panic!("{planned:?}") };
    plan
}

/// The 95 % margin of the widest row's noise, in the smallest set that opens a window.
fn margin(plan: &Plan) -> f64 {
    let honest = plan.min_honest();
    let shared = NoiseShares { honest, members: honest, windows: 1, lost: 0 };
    let rows = plan.privacy.as_ref().unwrap().noise.iter();
    rows.map(|row| row_spread(row, shared).within).fold(0.0, f64::max)
}

#[test]
fn the_limit_on_events_follows_from_the_schemas_rate() {
    let events = |text: &str| {
        let planned = homes(60, "noisy").plan(text).unwrap();
        only(&planned).privacy.as_ref().unwrap().events
    };
    let day = ask("AVG(energy)", "WITH (epsilon = 1)");
    assert_eq!(events(&day), 24);
    assert_eq!(events(&day.replace("1 DAY", "7 DAYS")), 168);
    assert_eq!(events(&day.replace("1 DAY", "60 DAYS")), 742, "the capacity");
    assert_eq!(events(&ask("AVG(energy)", "WITH (epsilon = 1, events = 3)")), 3);
}

#[test]
fn the_least_epsilon_is_found() {
    let world = homes(200, "noisy");
    let tail = "WITH (error = 20 %, typical = 300, values = 24)";
    let planned = world.plan(&ask("AVG(energy)", tail)).unwrap();
    // Of at least fifty homes with 24 values each, a fifth of 300.
    let accepted = 0.2 * 300.0 * 50.0 * 24.0 * 10.0;
    let found = margin(only(&planned));
    assert!(found <= accepted && found > accepted * 0.98, "{found} {accepted}");
    assert!(planned.sql.contains("WITH (epsilon = ") && planned.sql.contains("error = 20 %"));
    assert!(
        planned.accuracy[0].starts_with("avg_energy: within ±")
            && planned.accuracy[0].contains("(asked: 20 %) in 95 of 100 windows of 50 owners with 24 values each, if their mean is 300"),
        "{:?}",
        planned.accuracy
    );
    let left_out = "a stream with more than 24 events in a window is left out of it, and the margins do not count";
    assert!(planned.accuracy[1].starts_with(left_out), "{:?}", planned.accuracy);
    // Planning the result again gives the same noise, and less is not enough.
    let again = world.plan(&planned.sql).unwrap();
    assert_eq!(only(&again).privacy, only(&planned).privacy);
    let epsilon = only(&planned).privacy.as_ref().unwrap().micro_epsilon;
    let less = format!("WITH (epsilon = {})", (epsilon / 10_000 - 1) as f64 / 100.0);
    assert!(margin(only(&world.plan(&ask("AVG(energy)", &less)).unwrap())) > accepted);
    let text = explain(&planned, world.catalog.schema("Homes").unwrap(), 0.01, true).to_string();
    for part in ["  exactness: ", "one person pays up to ε = ", " a day and ε = "] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // The cost alone says for how long, too.
    let lasts = text.lines().find(|line| line.contains("budget is used up after")).unwrap();
    let (lasts, _) = lasts.trim().split_once(';').unwrap();
    let cost = planned.cost().unwrap();
    assert!(cost.ends_with(&format!("; {lasts}")) && lasts.ends_with(" days)"), "{cost}");
}

/// The same margin in the unit of the column.
#[test]
fn a_margin_is_the_same_as_its_share() {
    let world = homes(200, "noisy");
    let share = ask("AVG(energy)", "WITH (error = 20 %, typical = 300, values = 24)");
    let within = ask("AVG(energy)", "WITH (values = 24) WITHIN 60 OF 95 %");
    let noise = |text: &str| only(&world.plan(text).unwrap()).privacy.clone();
    assert_eq!(noise(&share), noise(&within));
}

#[test]
fn the_population_is_raised_if_epsilon_is_not_enough() {
    let world = homes(200, "noisy");
    let tail = "BETWEEN 50 AND 300 WITH (error = 3 %, typical = 300, values = 24)";
    let planned = world.plan(&ask("AVG(energy)", tail)).unwrap();
    let plan = only(&planned);
    assert!(plan.population.min > 50 && plan.population.min <= 180, "{:?}", plan.population);
    let accepted = |owners: u32| 0.03 * 300.0 * f64::from(owners) * 24.0 * 10.0;
    assert!(margin(plan) <= accepted(plan.population.min));
    // With one owner fewer, even the largest ε is too noisy.
    let tail = format!("BETWEEN {} AND 300 WITH (epsilon = 5)", plan.population.min - 1);
    let fewer = world.plan(&ask("AVG(energy)", &tail)).unwrap();
    assert!(margin(only(&fewer)) > accepted(plan.population.min - 1));
}

#[test]
fn an_error_that_is_not_possible_is_refused_with_the_smallest_that_is() {
    let world = homes(200, "noisy");
    let tail = "WITH (error = 0.1 %, typical = 300, values = 24)";
    let (refusal, nearest) = world.refuse(&ask("AVG(energy)", tail));
    let text = refusal.to_string();
    let lines: Vec<&str> = text.lines().collect();
    let [what, asked, best, allowed, possible, ..] = lines[..] else { panic!("{text}") };
    assert_eq!(what, "`avg_energy` cannot be as exact as the query asks.");
    assert_eq!(asked, "  asked: ±0.3 (0.1 %) in 95 of 100 windows");
    assert!(best.starts_with("  best: ±"), "{text}");
    assert!(best.ends_with(" %), in windows of 180 owners or more with 24 values each"), "{text}");
    assert_eq!(
        allowed,
        "  policies allow: laplace noise of ε = 5 for at most 24 events of a stream in a window"
    );
    assert!(!refusal.is_mistaken());
    assert!(nearest.unwrap().contains("error = "));
    // What stands there can be pasted, and less is not possible.
    let error =
        possible.strip_prefix("  possible with `error = ").unwrap_or_else(|| panic!("{text}"));
    let percent: f64 = error.strip_suffix(" %`").unwrap().parse().unwrap();
    let with = |percent: f64| ask("AVG(energy)", &tail.replace("0.1 %", &format!("{percent} %")));
    assert!(world.plan(&with(percent)).is_ok(), "{text}");
    assert!(world.plan(&with(percent * 0.9)).is_err(), "{text}");
    // Narrower bounds would do, if readings are small.
    let tail = "WITH (error = 1 %, typical = 100, values = 24)";
    let (refusal, _) = world.refuse(&ask("AVG(energy)", tail));
    assert!(refusal.to_string().contains("\n  possible with `energy` between 0"), "{refusal}");
    // A margin is said in the unit of the column.
    let (refusal, _) = world.refuse(&ask("AVG(energy)", "WITH (values = 24) WITHIN 0.1 OF 95 %"));
    let text = refusal.to_string();
    assert!(text.contains("\n  asked: ±0.1 in 95 of 100 windows\n"), "{text}");
    let margin = text.split("\n  possible with `").nth(1).unwrap().split('`').next().unwrap();
    assert!(
        world.plan(&ask("AVG(energy)", &format!("WITH (values = 24) {margin}"))).is_ok(),
        "{text}"
    );
}

#[test]
fn an_error_that_depends_on_the_data_cannot_be_asked_for() {
    let world = homes(200, "noisy");
    let (refusal, nearest) =
        world.refuse(&ask("VAR(energy), AVG(energy)", "WITH (error = 30 %, values = 24)"));
    assert!(refusal.to_string().contains("the error of `var_energy` depends on the data"));
    assert!(nearest.unwrap().contains("SELECT AVG(energy)"));
    let two = "WITH (error = 30 %, typical = 9, values = 24)";
    let (refusal, _) = world.refuse(&ask("AVG(water), AVG(energy)", two));
    assert!(refusal.to_string().contains("`typical` is the mean of one attribute"), "{refusal}");
}

/// Variances have bounds, and quantiles have ranks.
#[test]
fn every_output_with_a_known_error_can_be_asked_for() {
    let world = homes(800, "noisy");
    for (items, tail) in [
        ("COUNT(water), SUM(water)", "WITH (error = 50 %, values = 24)"),
        ("AVG(water)", "WITH (error = 50 %, values = 24)"),
        ("HISTOGRAM(energy)", "WITH (error = 20 %, values = 24)"),
        ("MEDIAN(energy)", "WITH (error = 30 %, values = 24)"),
        ("VAR(energy)", "WITH (values = 24) WITHIN 900000 OF 95 %"),
    ] {
        let planned =
            world.plan(&ask(items, tail)).unwrap_or_else(|error| panic!("{items}: {error}"));
        assert!(only(&planned).privacy.as_ref().unwrap().mechanism == Mechanism::Laplace);
        assert!(!planned.accuracy.is_empty(), "{items}");
    }
}

#[test]
fn exact_results_are_exact_enough() {
    let planned = homes(60, "plain").plan(&ask("AVG(energy)", "WITH (error = 1 %)")).unwrap();
    assert_eq!(only(&planned).privacy, None);
    let said = "avg_energy: exact, since no policy asks for noise; so it is as exact as asked (asked: 1 %)";
    assert_eq!(planned.accuracy, [said]);
    assert!(planned.sql.contains("error = 1 %"), "{}", planned.sql);
}

/// Values may be missing, and the noise of their count hides it: fewer events of a stream would do.
#[test]
fn a_mean_over_a_noisy_count_names_the_limit_on_events_with_which_it_is_possible() {
    let gaps = SCHEMA
        .replace("eventsPerSecond: 0.000277, window: 31d", "events: 100000")
        .replace("tick: 1h", "tick: 1s");
    let world = World::of(&gaps).with(200, "default: { '*': noisy }", &[]);
    for tail in ["WITH (error = 50 %)", "WITHIN 25 OF 95 %"] {
        let (refusal, nearest) = world.refuse(&ask("AVG(water)", tail));
        let (refusal, nearest) = (refusal.to_string(), nearest.unwrap());
        let after = refusal
            .split("\n  possible with `events = ")
            .nth(1)
            .unwrap_or_else(|| panic!("{refusal}"));
        let events: u64 = after.split('`').next().unwrap().parse().unwrap();
        assert!(
            refusal
                .contains("\n  one value each is assumed: `values = 24` says that there are 24\n"),
            "{refusal}"
        );
        assert!(nearest.contains(&format!("events = {events}")), "{nearest}");
        let with = |events: u64| match tail.strip_prefix("WITH (") {
            Some(rest) => ask("AVG(water)", &format!("WITH (events = {events}, {rest}")),
            None => ask("AVG(water)", &format!("WITH (events = {events}) {tail}")),
        };
        // With more, windows of fifty owners are not enough.
        let least = |events| only(&world.plan(&with(events)).unwrap()).population.min;
        assert_eq!(least(events), 50, "{refusal}");
        assert!(least(events + 1) > 50, "{refusal}");
        let Advice::Change { change, .. } = suggested(&world, &ask("AVG(water)", tail)) else {
            panic!("{refusal}");
        };
        let said: Vec<String> = change.changes.iter().map(ToString::to_string).collect();
        assert_eq!(said, [format!("the query gets events {events}")]);
        assert!(world.plan(&change.query).is_ok(), "{}", change.query);
    }
    let exact = ask("AVG(energy)", "WITH (error = 1 %)");
    let Advice::Nothing(planned) = suggested(&homes(60, "plain"), &exact) else { panic!() };
    assert!(planned.accuracy[0].contains("exact, since no policy asks for noise"));
}

/// A query that limits events asks for noise. Where no policy does, it loses all that it says of noise
/// and error.
#[test]
fn an_exact_answer_is_suggested_without_an_error() {
    let world = homes(60, "plain");
    let asked = ask("AVG(energy)", "WITH (error = 10 %, typical = 27, values = 24, events = 24)");
    let Advice::Change { change, .. } = suggested(&world, &asked) else { panic!() };
    let said: Vec<String> = change.changes.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["the query loses its settings of noise and error"]);
    assert!(!change.query.contains("WITH"), "{}", change.query);
    assert!(change.accuracy[0].contains("exact, since no policy asks for noise"));
}

/// What is suggested to everybody alike.
fn suggested(world: &World, text: &str) -> Advice {
    let policies = Policies::from_yaml("default: { '*': noisy }", &world.schema).unwrap();
    let section = policies.section_of("1");
    let sections = world.catalog.streams().map(|stream| (stream.stream, section)).collect();
    let owners = Owners { catalog: &world.catalog, policies: &policies, sections: &sections };
    suggest(&parsed(text), owners, &options(&[7; 32]))
}

#[test]
fn errors_are_read_and_written() {
    let read = |tail: &str| match parse(&ask("AVG(energy)", tail)) {
        Ok(Statement::Create(create)) => Ok(create),
        Ok(other) => panic!("{other}"),
        Err(error) => Err(error.to_string()),
    };
    let percent = read("WITH (error = 2.5 %, typical = -3, values = 4) WITHIN 5 OF 95 %").unwrap();
    for same in ["WITH (error = '2.5 %'", "WITH (error = 0.025"] {
        let tail = format!("{same}, typical = -3, values = 4) WITHIN 5 OF 95 %");
        assert_eq!(read(&tail).unwrap(), percent);
    }
    let text = percent.to_string();
    assert!(
        text.contains("WITH (error = 2.5 %, typical = -3, values = 4)\nWITHIN 5 OF 95 %"),
        "{text}"
    );
    assert_eq!(parse(&text), Ok(Statement::Create(percent)));
    for (bad, message) in [
        ("WITH (error = 0 %)", "above 0 and below 100 %"),
        ("WITH (error = 2)", "above 0 and below 100 %"),
        ("WITH (typical = 0)", "a number other than 0"),
        ("WITH (values = 0)", "at least 1"),
        ("WITHIN 5 OF 90 %", "95 %, the share of results"),
        ("WITHIN 5", "expected OF"),
        ("WITHIN -5 OF 95 %", "above 0"),
        ("WITHIN 5 OF 95 % WITHIN 5 OF 95 %", "a second WITHIN"),
    ] {
        let error = read(bad).unwrap_err();
        assert!(error.contains(message), "{bad}: {error}");
    }
}

/// The figures of `docs/noise.md`: 200 homes at one controller, whose policies allow ε = 5 a window
/// and 100 in all.
#[test]
fn two_hundred_homes_have_a_mean_within_five_percent_for_308_days() {
    let read = |name: &str| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/household/with-noise/");
        std::fs::read_to_string(format!("{root}{name}")).unwrap()
    };
    let mut world = World::of(&read("schema.yaml"));
    let policies = Policies::from_yaml(&read("policies.yaml"), &world.schema).unwrap();
    (1..=200).for_each(|n| world.put(n, n, 1, policies.of_owner("home").clone(), &[]));
    let query = read("mean.sql");
    for (query, days) in [
        (query.clone(), 308),
        (query.replace("7 DAYS", "1 DAY").replace("values = 168", "values = 24"), 44),
    ] {
        let planned = world.plan(&query).unwrap();
        let said = &planned.accuracy[0];
        assert!(
            said.contains("(4.98 %) (asked: 5 %) in 95 of 100 windows of 180 owners"),
            "{said}"
        );
        let plan = only(&planned);
        assert_eq!(plan.privacy.as_ref().unwrap().micro_epsilon, 2_230_000);
        let life = planned.budgets[0].unwrap();
        assert_eq!((life.windows, life.windows * plan.window.0 / 86_400_000_000), (44, days));
        assert_eq!((life.day_micro_epsilon, life.year_micro_epsilon), (2_230_000, 98_120_000));
    }
}

fn parsed(text: &str) -> Create {
    match parse(text) {
        Ok(Statement::Create(create)) => create,
        other => panic!("{other:?}"),
    }
}
