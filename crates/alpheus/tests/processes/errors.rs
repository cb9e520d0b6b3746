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

#[test]
fn failures_print_their_ids() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("schema.yaml"), "name: 5\n").unwrap();
    fs::write(path("latin"), b"name: caf\xe9").unwrap();
    let query = |sql| ["query", "--schema", SCHEMA, "--policies", POLICIES, "--query", sql];
    const POLICIES: &str = "examples/fitness/policies.yaml";
    let forbidden = "examples/fitness/queries/forbidden.sql";
    let (missing, broken, latin) = (path("none.yaml"), path("schema.yaml"), path("latin"));
    let cases: [(&[&str], i32, &str); 10] = [
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
    ];
    for (args, code, id) in cases {
        assert_eq!(fails(args), (code, id.to_owned()), "{args:?}");
    }
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
