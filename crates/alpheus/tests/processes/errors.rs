//! Every failure of a command has an id, and every id is explained: by the command and by the
//! page of the reference.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use alpheus_node::errors::ErrorId;
use alpheus_policy::query::parse;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a command that fails: its exit code and the id that it printed. After it there is nothing but
/// a query to paste.
fn fails(args: &[&str]) -> (i32, String) {
    let output = alpheus(args.iter().copied()).current_dir(root()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let found = said.split_once("more: alpheus errors ");
    assert!(found.is_some(), "{args:?} printed no id:\n{said}");
    let (id, after) = found.unwrap().1.split_once('\n').unwrap();
    match after.strip_prefix("The nearest query that would be allowed:\n") {
        Some(query) => assert!(parse(query).is_ok(), "it cannot be pasted:\n{query}"),
        None => assert_eq!(after, "", "{said}"),
    }
    (output.status.code().unwrap(), id.to_owned())
}

const SCHEMA: &str = "examples/fitness/schema.yaml";

/// The mean heart rate in windows of a length, over so many people.
fn asked(size: &str, crowd: &str, rest: &str) -> String {
    format!(
        "SELECT AVG(heart_rate) WINDOW TUMBLING (SIZE {size}) FROM FitnessTracker BETWEEN {crowd} {rest}"
    )
}

#[test]
fn failures_print_their_ids() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("schema.yaml"), "name: 5\n").unwrap();
    fs::write(path("latin"), b"name: caf\xe9").unwrap();
    let (window, most, whom) = (
        asked("7 SECONDS", "10 AND 100", ""),
        asked("10 SECONDS", "1 AND 5", ""),
        asked("10 SECONDS", "10 AND 100", "WHERE region = 'Atlantis'"),
    );
    let query = |sql| ["query", "--schema", SCHEMA, "--policies", POLICIES, "--query", sql];
    const POLICIES: &str = "examples/fitness/policies.yaml";
    let forbidden = "examples/fitness/queries/forbidden.sql";
    let (missing, broken, latin) = (path("none.yaml"), path("schema.yaml"), path("latin"));
    all_fail(&[
        (&["query", "--wrong"], 2, "command-line"),
        (&["server"], 2, "setting-missing"),
        (&["query", "--schema", &missing, "--query", "SHOW SCHEMAS"], 5, "file-missing"),
        (&["query", "--schema", &broken, "--query", "SHOW SCHEMAS"], 4, "schema-invalid"),
        (&["query", "--schema", &latin, "--query", "SHOW SCHEMAS"], 4, "file-not-text"),
        (&query("SELECT nothing"), 4, "query-syntax"),
        (&query("DESCRIBE Nobody"), 4, "query-unknown-name"),
        (&query(forbidden), 3, "policy-forbids-precision"),
        (
            &["console", "--identity", &missing, "--server", "https://localhost:1"],
            5,
            "file-missing",
        ),
        (&["errors", "no-such-id"], 2, "command-line"),
        (&["controller", "run"], 2, "setting-missing"),
        (&["table", "serve"], 2, "setting-missing"),
        (
            &["query", "--config", &broken, "--schema", SCHEMA, "--query", "SHOW SCHEMAS"],
            4,
            "setting-wrong",
        ),
        (&["check", &broken], 4, "file-invalid"),
        (
            &["query", "--schema", SCHEMA, "--policies", &broken, "--query", "SHOW SCHEMAS"],
            4,
            "policies-invalid",
        ),
        (&query(&window), 4, "query-window"),
        (&query(&most), 3, "policy-forbids-maximum"),
        (&query(&whom), 4, "query-no-streams"),
    ]);
}

/// Each of these commands ends so.
fn all_fail(cases: &[(&[&str], i32, &str)]) {
    for (args, code, id) in cases {
        assert_eq!(fails(args), (*code, (*id).to_owned()), "{args:?}");
    }
}

#[test]
fn failures_over_files_of_readings_print_their_ids() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut steps = "person,time,steps\n".to_owned();
    for n in 0..48 {
        steps += &format!("p{},2024-03-04 {:02}:00,{}\n", n % 12, n / 12, n * 7 % 31);
    }
    let open = "shop,day,orders\nnorth,03/04/2024,10\nsouth,03/04/2024,20\n";
    for (name, text) in [("steps.csv", &*steps), ("open.csv", open), ("empty", ""), ("x", "x\n")] {
        fs::write(path(name), text).unwrap();
    }
    let (steps, open, empty, x) = (path("steps.csv"), path("open.csv"), path("empty"), path("x"));
    let (out, none, here) = (path("out"), path("none"), path(""));
    let done = alpheus(["init", &steps, "--yes", "--output", &out]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let own = |name: &str| format!("{out}/{name}");
    let (schema, source) = (own("schema.yaml"), own("source.yaml"));
    let (policies, query) = (own("policies.yaml"), own("query.sql"));
    let replay = |source, input| {
        let files = ["replay", "--schema", &schema, "--policies", &policies, "--query", &query];
        [&files[..], &["--source", source, "--input", input, "--output", "-"]].concat()
    };
    all_fail(&[
        (&["init", &empty, "--yes", "--output", &none], 4, "file-invalid"),
        (&["init", &here, "--yes", "--output", &none], 4, "file-invalid"),
        (&["init", &none, "--yes"], 5, "file-missing"),
        (&["init", &open, "--yes", "--output", &path("open")], 6, "must-guess"),
        (&["init", &open, "--yes", "--zone", "Nowhere/Land"], 2, "command-line"),
        (&["init", &steps, "--yes", "--output", &out], 5, "file-exists"),
        (&["init", &steps, "--yes", "--error", "1 %", "--output", &none], 3, "request-refused"),
        (&replay(&query, &steps), 4, "source-invalid"),
        (&replay(&source, &x), 4, "recording-invalid"),
        (&["suggest", &none], 5, "file-missing"),
        (&["up", &none], 5, "file-missing"),
        (&["table", "query", "SELECT COUNT(*)", "--state", &none], 5, "file-missing"),
    ]);
}

/// The text of all files of Rust below a folder, with their paths.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push((path.clone(), fs::read_to_string(path).unwrap()));
        }
    }
}

#[test]
fn all_ids_are_explained_and_none_is_left_over() {
    let mut all = Vec::new();
    for crate_ in fs::read_dir(root().join("crates")).unwrap() {
        sources(&crate_.unwrap().path().join("src"), &mut all);
    }
    let list = Path::new("node/src/errors");
    all.retain(|(path, _)| !path.display().to_string().contains(&list.display().to_string()));
    let used =
        |known: &ErrorId| all.iter().any(|(_, text)| text.contains(&format!("ErrorId::{known:?}")));
    let unused: Vec<&ErrorId> = ErrorId::ALL.iter().filter(|known| !used(known)).collect();
    assert!(unused.is_empty(), "no failure has these ids: {unused:?}");

    let page = fs::read_to_string(root().join("docs/reference/errors.md")).unwrap();
    let headings: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let ids: BTreeSet<&str> = ErrorId::ALL.iter().map(|known| known.id()).collect();
    assert_eq!(headings, ids, "the page explains each id, and no other");
    assert_eq!(ids.len(), ErrorId::ALL.len(), "no two ids are the same");

    let output = alpheus(["errors", "--format", "json"]).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for one in listed.as_array().unwrap() {
        assert!(
            ["what", "why", "fix"].iter().all(|key| one[key].as_str().unwrap().len() > 15),
            "{one}"
        );
    }
    assert_eq!(listed.as_array().unwrap().len(), ids.len());
}
