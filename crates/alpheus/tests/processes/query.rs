//! `alpheus query` as a process: what is allowed is explained, what is not is
//! refused with the nearest query that would be.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use std::path::Path;
use std::process::Output;

const HEART_RATE: &str = "CREATE STREAM hr AS SELECT AVG(heart_rate) \
    WINDOW TUMBLING (SIZE 10 SECONDS) FROM FitnessTracker BETWEEN 10 AND 1000";
const ALTITUDE: &str = "CREATE STREAM alt AS SELECT AVG(altitude) \
    WINDOW TUMBLING (SIZE 10 SECONDS) FROM FitnessTracker BETWEEN 10 AND 10000";

/// Asks the fitness example, with more arguments after the query.
fn ask(query: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fitness");
    let mut command = alpheus(["query", "--query", query]);
    command.arg("--schema").arg(example.join("schema.yaml"));
    command.arg("--policies").arg(example.join("policies.yaml"));
    let Output { status, stdout, stderr } = command.args(more).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn an_allowed_query_is_explained() {
    let (code, out, err) =
        ask(HEART_RATE, &["--owners", "300", "--controllers", "per-owner", "--format", "json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let explanation: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(explanation["fitting"], 300);
    let group = &explanation["groups"][0];
    assert_eq!(group["controllers"], group["owners"]);
    assert!(group["counted"].as_u64() < group["owners"].as_u64(), "colluders do not count");
    let excluded = explanation["excluded"].as_array().unwrap();
    assert!(!excluded.is_empty(), "some owners of the example allow less");
}

/// Nobody counted them, so a plan and a refusal say for whom they hold.
#[test]
fn an_answer_says_for_which_owners_it_holds() {
    let (_, explained, _) = ask(HEART_RATE, &["--owners", "300", "--controllers", "per-owner"]);
    let planned = "planned for 300 owners with one stream each, each with a controller; --owners ";
    assert!(explained.contains(planned), "{explained}");
    let many = HEART_RATE.replace("BETWEEN 10", "BETWEEN 200");
    let (code, _, refused) = ask(&many, &[]);
    let planned = "planned for 100 owners with one stream each, at one controller; --owners ";
    assert!(code == Some(3) && refused.contains(planned), "{code:?} {refused}");
}

#[test]
fn a_forbidden_query_ends_with_the_nearest_that_is_not() {
    let (code, out, err) = ask(ALTITUDE, &[]);
    assert_eq!((code, out.as_str()), (Some(3), ""));
    assert!(err.starts_with("error: --query: "), "{err}");
    let (_, nearest) = err.split_once("nearest query that would be allowed:\n").unwrap();
    let (code, _, err) = ask(nearest, &[]);
    assert_eq!(code, Some(0), "{err}");
}

#[test]
fn a_misspelt_query_is_pointed_at() {
    let (code, _, err) = ask("CREATE STREEM x AS SELECT 1", &[]);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("CREATE STREEM x") && err.contains("^^^^^^"), "{err}");
}

#[test]
fn tables_come_in_every_format() {
    let (code, table, _) = ask("DESCRIBE FitnessTracker", &[]);
    assert_eq!(code, Some(0));
    assert!(table.contains("heart_rate") && table.contains("generalised"), "{table}");
    let (_, csv, _) = ask("SHOW SCHEMAS", &["--format", "csv"]);
    assert_eq!(csv.lines().count(), 2, "{csv}");
    let (_, json, _) = ask("SHOW SCHEMAS", &["--format", "json"]);
    let tables: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(tables[0]["rows"][0][0], "FitnessTracker");
}

#[test]
fn metadata_spread_over_the_owners() {
    let grouped = HEART_RATE.to_owned() + " GROUP BY region";
    let more = ["--metadata", "region=California,Texas", "--format", "json"];
    let (code, out, err) = ask(&grouped, &more);
    assert_eq!(code, Some(0), "{err}");
    let explanation: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(explanation["groups"].as_array().unwrap().len(), 2);
}

#[test]
fn each_mistake_has_its_exit_code_and_remedy() {
    let cases: [(&str, &[&str], i32, &str); 5] = [
        ("DROP STREAM hr", &[], 2, "only plans and explains"),
        (HEART_RATE, &["--metadata", "colour=red"], 2, "it has region"),
        (HEART_RATE, &["--owners", "0"], 2, "1..=1000000"),
        ("DESCRIBE FitnessTraker", &[], 4, "FitnessTracker"),
        ("no-such-file.sql", &[], 5, "no-such-file.sql"),
    ];
    for (query, more, expected, said) in cases {
        let (code, _, err) = ask(query, more);
        assert_eq!(code, Some(expected), "{query}: {err}");
        assert!(err.contains(said), "{query}: {err}");
    }
}
