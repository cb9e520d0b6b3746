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
    let price = "one person pays up to ε = 2.23 for a window and ε = 98.12 a year";
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
