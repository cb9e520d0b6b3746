//! Every failure of a command has an id, and every id is explained: by the command and by the
//! page of the reference.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod beside;
mod cases;
mod elsewhere;
mod queries;
mod walk;

use crate::common::alpheus;
use alpheus_node::errors::ErrorId;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use walk::Ground;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder with a script's files, beside the examples and guides.
fn prepared(script: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["examples", "docs"] {
        std::os::unix::fs::symlink(root().join(name), folder.path().join(name)).unwrap();
    }
    Ground { folder: folder.path(), variables: &[] }.prepare(script);
    folder
}

#[test]
fn failures_over_files_and_keys_print_their_ids() {
    let folder = prepared(cases::FILES);
    Ground { folder: folder.path(), variables: &[] }.walk(cases::CASES);
}

#[test]
fn queries_that_are_refused_print_their_ids() {
    let folder = prepared(queries::FILES);
    Ground { folder: folder.path(), variables: &[] }.walk(queries::CASES);
}

/// An id that nothing provokes is one that nobody has seen printed.
#[test]
fn every_id_is_provoked_here_or_by_the_test_that_is_named() {
    let walked = [cases::CASES, queries::CASES, beside::CASES].into_iter().flatten();
    let mut provoked: BTreeSet<&str> = walked.map(|walk::Case(id, ..)| *id).collect();
    for (id, file, test) in elsewhere::TESTS {
        assert!(provoked.insert(id), "{id} is provoked twice");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/processes").join(file);
        let code = fs::read_to_string(path).unwrap();
        let (_, body) = code.split_once(&format!("fn {test}()")).expect(test);
        let (_, rest) = body.split_once('{').unwrap();
        // The tests of a module end with less than those of a file.
        let body = rest.split("\n}").next().unwrap();
        let held = [format!("alpheus errors {id}"), format!("\"{id}\"")];
        assert!(held.iter().any(|held| body.contains(held)), "{test} of {file} does not see {id}");
    }
    let ids: BTreeSet<&str> = ErrorId::ALL.iter().map(|known| known.id()).collect();
    assert_eq!(provoked, ids);
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
