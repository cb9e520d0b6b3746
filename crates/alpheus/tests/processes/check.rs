//! `alpheus check`: valid files pass, and each problem is reported with its place.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use std::path::{Path, PathBuf};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Exit code and all that was said.
fn check(files: &[PathBuf], more: &[&str]) -> (i32, String) {
    let ran = alpheus(["check"]).args(files).args(more).output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    (ran.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[test]
fn the_files_of_the_examples_are_valid() {
    for example in ["fitness", "web-analytics", "car-maintenance", "household"] {
        let folder = examples().join(example);
        let names = ["schema.yaml", "policies.yaml", "source.yaml", "profile.yaml"];
        let mut files: Vec<_> = names.map(|name| folder.join(name)).into();
        files.extend(
            std::fs::read_dir(folder.join("queries"))
                .into_iter()
                .flatten()
                .map(|f| f.unwrap().path()),
        );
        files.retain(|file| file.exists());
        let (code, said) = check(&files, &[]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(
            said.lines().filter(|line| line.ends_with(": valid")).count(),
            files.len(),
            "{said}"
        );
    }
}

/// A user who changes the line for all attributes to noise may forget that one has a line of its own.
#[test]
fn attributes_that_are_exact_beside_noise_are_noted() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let schema = "name: A\nstreamAttributes:\n  - { name: x, type: integer, min: 0, max: 9 }\n  - { name: y, type: integer, min: 0, max: 9 }\nstreamPolicyOptions:\n  - { name: crowd, option: aggregate, clients: [2], window: [10s] }\n  - { name: noisy, option: dp-aggregate, clients: [2], window: [10s], budget: { perWindow: 1, total: 10, unit: person-per-window } }\n";
    let schema = write("schema.yaml", schema);
    let line = |option: &str| format!("{{ option: {option}, clients: 2, window: 10s }}");
    for (own, noted) in [("crowd", true), ("noisy", false)] {
        let text = format!("schema: A\ndefault:\n  \"*\": {}\n  x: {}\n", line("noisy"), line(own));
        let (code, said) = check(&[schema.clone(), write("policies.yaml", &text)], &[]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(said.contains("note: `x` is released without noise"), noted, "{said}");
    }
}

#[test]
fn every_problem_is_reported_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let files = [
        write(
            "schema.yaml",
            "name: A\nstreamAttributes:\n  - { name: x, type: integer, colour: red }\n",
        ),
        write("policies.yaml", "schema: B\ndefault: {}\n"),
        write("query.sql", "CREATE STREAM q AS\nSELECT COUNT(x\n"),
        write("alpheus.toml", "listen = 5\n"),
        write("profile.yaml", "minutes: 3\nintervalMs: 0\n"),
        write("other.yaml", "a: 1\n"),
    ];
    let (code, said) = check(&files, &[]);
    assert_eq!(code, 4, "{said}");
    for part in [
        "schema: line 3, column 39 (streamAttributes[0].colour): unknown key `colour`",
        "policies: its schema `B` is not among the valid files",
        "query: line ",
        "alpheus.toml:1",
        "profile: no schema is among the valid files",
        "other.yaml: unknown: neither a schema",
        "6 of 6 files are not valid",
    ] {
        assert!(said.contains(part), "{part} is not in:\n{said}");
    }
    let (_, json) = check(&files[..1], &["--format", "json"]);
    assert!(json.contains("\"kind\": \"schema\""), "{json}");
}

/// Of a folder, all files of ours are checked, and no others.
#[test]
fn the_files_of_a_folder_are_checked() {
    let (code, said) = check(&[examples().join("fitness")], &[]);
    assert_eq!(code, 0, "{said}");
    for name in
        ["schema.yaml", "policies.yaml", "source.yaml", "profile.yaml", "queries/heart-rate.sql"]
    {
        assert!(said.contains(&format!("fitness/{name}: ")), "{name}:\n{said}");
    }
    assert!(!said.contains("README"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let nothing = [folder.path().to_owned()];
    let (code, said) = check(&nothing, &[]);
    assert!(code == 4 && said.contains("holds no schema"), "{said}");
    std::fs::write(folder.path().join("Cargo.toml"), "[package]\n").unwrap();
    std::fs::write(folder.path().join("schema.yaml"), "name: [\n").unwrap();
    let (code, said) = check(&nothing, &[]);
    assert!(code == 4 && said.contains("1 of 1 files are not valid"), "{said}");
}

#[test]
fn editors_get_a_json_schema() {
    for kind in ["schema", "policies", "source"] {
        let ran = alpheus(["check", "--json-schema", kind]).output().unwrap();
        assert!(ran.status.success());
        let schema: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{kind}");
    }
}
