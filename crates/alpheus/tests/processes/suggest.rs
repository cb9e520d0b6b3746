//! `alpheus suggest` as a process: what it prints can be used as it is.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::{alpheus, path};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn said(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

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

#[test]
fn a_query_that_cannot_be_parsed_is_bad_input() {
    let policies = example("fitness/policies.yaml");
    let (code, _, err) = fitness("suggest", &policies, "CREATE STREEM x", &[]);
    assert_eq!(code, Some(4), "{err}");
}

#[test]
fn every_example_of_the_help_can_be_pasted() {
    let help = String::from_utf8(alpheus(["suggest", "--help"]).output().unwrap().stdout).unwrap();
    let examples = help.split_once("Examples:\n").unwrap().1.split("\n\n").next().unwrap();
    let commands: Vec<String> =
        examples.replace("\\\n", "").split("\n  alpheus ").map(str::to_owned).collect();
    assert_eq!(commands.len(), 3, "{help}");
    let folder = tempfile::tempdir().unwrap();
    for name in ["schema.yaml", "policies.yaml"] {
        std::fs::copy(example("fitness").join(name), folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("stats.sql"), ALTITUDE).unwrap();
    for command in commands {
        let command = format!("alpheus {}", command.trim().trim_start_matches("alpheus "));
        let mut run = Command::new("sh");
        run.args(["-c", &command]).current_dir(folder.path()).env("PATH", path());
        let (code, out, err) = said(run.output().unwrap());
        assert_eq!(code, Some(0), "{command}\n{out}{err}");
    }
}
