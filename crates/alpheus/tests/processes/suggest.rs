//! `alpheus suggest` as a process: what it prints can be used as it is.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use std::path::{Path, PathBuf};
use std::process::Output;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn said(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const HEART_RATE: &str = "CREATE STREAM hr AS SELECT AVG(heart_rate) \
    WINDOW TUMBLING (SIZE 10 SECONDS) FROM FitnessTracker BETWEEN 13 AND 10000";
const ALTITUDE: &str = "CREATE STREAM alt AS SELECT AVG(altitude) \
    WINDOW TUMBLING (SIZE 10 SECONDS) FROM FitnessTracker BETWEEN 10 AND 10000";

fn fitness(
    command: &str,
    policies: &Path,
    query: &str,
    more: &[&str],
) -> (Option<i32>, String, String) {
    let mut run = alpheus([command, "--query", query]);
    run.arg("--schema").arg(example("fitness/schema.yaml")).arg("--policies").arg(policies);
    said(run.args(more).output().unwrap())
}

#[test]
fn the_suggested_files_are_accepted() {
    let policies = example("fitness/policies.yaml");
    let (code, ..) = fitness("query", &policies, ALTITUDE, &[]);
    assert_eq!(code, Some(3));
    let (code, out, err) = fitness("suggest", &policies, ALTITUDE, &["--format", "json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let reply: serde_json::Value = serde_json::from_str(&out).unwrap();
    let change = &reply["change"];
    let sentences = change["sentences"].as_array().unwrap();
    assert_eq!(sentences.len(), change["changes"].as_array().unwrap().len());
    assert!(!sentences.is_empty() && !reply["because"].as_array().unwrap().is_empty(), "{out}");
    let folder = tempfile::tempdir().unwrap();
    let changed = folder.path().join("policies.yaml");
    let original = std::fs::read_to_string(&policies).unwrap();
    std::fs::write(&changed, change["policies"].as_str().unwrap_or(&original)).unwrap();
    let query = change["query"].as_str().unwrap();
    let (code, _, err) = fitness("query", &changed, query, &[]);
    assert_eq!(code, Some(0), "{query}\n{err}");
    // The text says the same.
    let (code, text, _) = fitness("suggest", &policies, ALTITUDE, &[]);
    assert_eq!(code, Some(0));
    assert!(text.contains(sentences[0].as_str().unwrap()), "{text}");
    // What is suggested needs no change.
    let (code, text, _) = fitness("suggest", &changed, query, &[]);
    assert_eq!(code, Some(0));
    assert!(text.starts_with("Nothing needs to change"), "{text}");
}

/// The owners are those of the folder's recording, and what was assumed is said.
#[test]
fn the_owners_of_a_recording_are_planned_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["schema.yaml", "policies.yaml", "source.yaml"] {
        std::fs::copy(example("fitness").join(name), path(name)).unwrap();
    }
    std::fs::write(path("query.sql"), HEART_RATE).unwrap();
    let generated = alpheus(["generate", "--streams", "12", "--minutes", "1"])
        .arg("--schema")
        .arg(path("schema.yaml"))
        .arg("--profile")
        .arg(example("fitness/profile.yaml"))
        .arg("--output")
        .arg(path("riders.csv"))
        .output()
        .unwrap();
    assert!(generated.status.success());
    let dir = folder.path().to_str().unwrap();
    let ask = |more: &[&str]| said(alpheus(["suggest", dir]).args(more).output().unwrap());
    // Too few of the twelve allow it, and enough of a hundred.
    let (code, text, err) = ask(&[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(text.contains("Assumed: the 12 owners of ") && text.contains("riders.csv"), "{text}");
    assert!(text.starts_with("The query is refused:"), "{text}");
    let (_, text, _) = ask(&["--owners", "100"]);
    assert!(text.starts_with("Nothing needs to change"), "{text}");
    assert!(text.contains("Assumed: 100 owners with one stream each, at one controller."));
    let (_, json, _) = ask(&["--format", "json"]);
    let reply: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(reply["assumed"].as_str().unwrap().starts_with("the 12 owners"), "{json}");
    // Without a recording, the number is said to be made up.
    std::fs::remove_file(path("riders.csv")).unwrap();
    let (_, text, _) = ask(&[]);
    assert!(text.contains("100 owners with one stream each, at one controller; --input takes"));
}

#[test]
fn a_query_that_cannot_be_parsed_is_bad_input() {
    let policies = example("fitness/policies.yaml");
    let (code, _, err) = fitness("suggest", &policies, "CREATE STREEM x", &[]);
    assert_eq!(code, Some(4), "{err}");
}

/// The output says how the error that a query asks for can be reached, and the price for a person.
#[test]
fn an_error_is_solved_for_and_its_price_is_said() {
    let file = |name: &str| example("household/with-noise").join(name);
    let query = std::fs::read_to_string(file("mean.sql")).unwrap();
    let ask = |query: &str, more: &[&str]| {
        // The text begins with a comment, which looks like a flag.
        let query = format!("--query={query}");
        let mut run = alpheus(["suggest", &query, "--owners", "200"]);
        run.arg("--schema").arg(file("schema.yaml")).arg("--policies").arg(file("policies.yaml"));
        said(run.args(more).output().unwrap())
    };
    let (code, text, err) = ask(&query, &[]);
    assert_eq!(code, Some(0), "{err}");
    let price = "one person pays up to ε = 2.23 for a window and ε = 98.12 a year; the first budget is used up after 44 windows (308 days)";
    assert!(text.starts_with("Nothing needs to change") && text.contains(price), "{text}");
    let (_, json, _) = ask(&query, &["--format", "json"]);
    let reply: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(reply["budget"]["year_micro_epsilon"], 98_120_000, "{json}");
    assert_eq!(reply["cost"], price, "{json}");
    // Half of that error takes narrower bounds.
    let exact = query.replace("error = 5 %", "error = 2 %");
    let (code, text, err) = ask(&exact, &[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(text.contains("the schema bounds `energy` by 0 and "), "{text}");
    assert!(text.contains("error = 2 %") && text.contains("one person pays up to ε = "), "{text}");
    // Nothing but a larger error helps.
    let (code, text, err) = ask(&query.replace("error = 5 %", "error = 0.01 %"), &[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(text.contains("The nearest one that was found follows."), "{text}");
    assert!(
        text.contains("the error of the query becomes ") && text.contains(" for a window and ε = "),
        "{text}"
    );
}

/// Twelve owners with one or two readings on each of two days, but only seven on the second.
fn two_days() -> tempfile::TempDir {
    const SCHEMA: &str = "name: Steps\ntick: 1hr\nstreamAttributes:\n  - { name: steps, type: integer, min: 0, max: 5000, aggregations: [count, sum, mean] }\nstreamPolicyOptions:\n  - { name: crowd, option: aggregate, clients: [5, 12, 13], window: [1hr] }\n  - { name: noisy, option: dp-aggregate, clients: [5], window: [1hr], budget: { perWindow: 5, total: 100, unit: person-per-window } }\n";
    let mut rows = "who,at,steps\n".to_owned();
    for day in 1..=2 {
        for owner in (0..12).filter(|owner| day == 1 || *owner < 7) {
            for hour in 0..=owner % 2 {
                rows +=
                    &format!("p{owner},2024-03-0{day}T{:02}:10:00Z,{}\n", 8 + hour, 100 * owner);
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("schema.yaml", SCHEMA);
    write(
        "source.yaml",
        "schema: Steps\ntime: { column: at, format: \"%Y-%m-%dT%H:%M:%SZ\" }\nstream: who\nattributes: { steps: steps }\n",
    );
    write("steps.csv", &rows);
    folder
}

fn suggested(folder: &Path, clients: u32, query: &str) -> (Option<i32>, String, String) {
    let option = if query.contains("error") { "noisy" } else { "crowd" };
    let policies = format!(
        "schema: Steps\ndefault:\n  \"*\": {{ option: {option}, clients: {clients}, window: 1hr }}\n"
    );
    std::fs::write(folder.join("policies.yaml"), policies).unwrap();
    std::fs::write(folder.join("query.sql"), query).unwrap();
    said(alpheus(["suggest"]).arg(folder).output().unwrap())
}

const DAILY: &str =
    "CREATE STREAM daily AS SELECT AVG(steps) WINDOW TUMBLING (SIZE 1 DAY) FROM Steps";

/// A query that policies allow is of no use if no window has enough owners.
#[test]
fn a_query_without_windows_that_open_fails_with_the_numbers() {
    let folder = two_days();
    let ask = |clients, population: &str| {
        suggested(folder.path(), clients, &format!("{DAILY} BETWEEN {population}"))
    };
    let (code, text, err) = ask(12, "12 AND 100");
    assert_eq!(code, Some(0), "{err}");
    assert!(text.contains("1 of 2 windows of this recording have data of enough"), "{text}");
    // Hours of the first day have data of all twelve in the first hour only.
    let hourly = DAILY.replace("1 DAY", "1 HOUR");
    let (code, text, err) = suggested(folder.path(), 5, &format!("{hourly} BETWEEN 5 AND 100"));
    assert_eq!(code, Some(0), "{err}");
    assert!(text.contains("3 of 4 windows"), "{text}");
    let late = format!("{DAILY} BETWEEN 12 AND 100");
    let rows = std::fs::read_to_string(folder.path().join("steps.csv")).unwrap();
    let second: Vec<&str> = rows.lines().filter(|row| !row.contains("-01T")).collect();
    let first =
        rows.lines().filter(|row| row.starts_with("p9,")).map(|row| row.replace("p9", "p11"));
    let few = [second.join("\n"), first.collect::<Vec<_>>().join("\n")].join("\n");
    let few = few
        + "\n"
        + &["p7", "p8", "p9", "p10"].map(|own| format!("{own},2024-03-05T08:00:00Z,1")).join("\n");
    std::fs::write(folder.path().join("steps.csv"), few + "\n").unwrap();
    let (code, text, err) = suggested(folder.path(), 12, &late);
    assert_eq!(code, Some(1), "{text}{err}");
    assert!(
        text.contains("each needs data of 12 owners, and none has data of more than 7"),
        "{text}"
    );
    assert!(
        err.contains("no window of this recording would open") && err.contains("help: "),
        "{err}"
    );
}

/// `BETWEEN` is a wish: a policy may demand more owners, which is said.
#[test]
fn a_larger_population_than_asked_for_is_said() {
    let folder = two_days();
    let query = format!("{DAILY} BETWEEN 2 AND 100");
    let raised = "The query asks for at least 2 owners. Windows open with 5 or more";
    let (code, text, err) = suggested(folder.path(), 5, &query);
    assert_eq!(code, Some(0), "{err}");
    assert!(text.contains(raised), "{text}");
    let file = |name: &str| folder.path().join(name);
    let mut explained = alpheus(["query", "--query", &query]);
    explained.arg("--schema").arg(file("schema.yaml")).arg("--policies").arg(file("policies.yaml"));
    let (_, text, _) = said(explained.output().unwrap());
    assert!(text.contains(raised), "{text}");
    let (_, text, _) = suggested(folder.path(), 5, &format!("{DAILY} BETWEEN 5 AND 100"));
    assert!(!text.contains("The query asks for"), "{text}");
}

/// Margins of noise do not count what bounds and limits on events leave out, so a recording does.
#[test]
fn what_narrower_bounds_and_limits_leave_out_of_a_recording_is_said() {
    let folder = two_days();
    let ask = |with: &str| {
        suggested(folder.path(), 5, &format!("{DAILY} BETWEEN 5 AND 100 WITH ({with})"))
    };
    // Half of the owners have two readings a day.
    let (code, text, err) = ask("error = 99 %, typical = 5000, values = 1, events = 1");
    assert_eq!(code, Some(0), "{err}");
    let lacks = "64.3 % of the recording's readings belong to streams with more than 1 in a window";
    assert!(text.contains(lacks), "{text}");
    let (code, text, err) = ask("error = 60 %, typical = 200, values = 1, events = 2");
    assert_eq!(code, Some(0), "{err}");
    assert!(text.contains("the schema bounds `steps` by 0 and "), "{text}");
    assert!(
        text.contains(" of the recording's readings of `steps` are beyond these bounds"),
        "{text}"
    );
    assert!(text.contains("windows of this recording then have data of enough owners."), "{text}");
}
