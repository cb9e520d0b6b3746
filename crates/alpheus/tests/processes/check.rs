//! `alpheus check`: valid files pass, and each problem is reported with its place.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use crate::init::written;
use serde_json::Value;
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
    let write = |name: &str, text: &str| written(&folder, name, text);
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

/// Metadata is public, so a user who groups by the owners' column would publish who they are.
#[test]
fn metadata_that_names_owners_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| written(&folder, name, text);
    let schema = "name: A\nmetadataAttributes:\n  - { name: region, type: string }\nstreamAttributes:\n  - { name: x, type: integer, min: 0, max: 9 }\n";
    let schema = write("schema.yaml", schema);
    for (column, noted) in [("meter", true), ("customer", true), ("area", false)] {
        let text = format!(
            "schema: A\ntime: {{ column: t }}\nstream: meter\nowner: customer\nattributes: {{ x: x }}\nmetadata: {{ region: {{ column: {column} }} }}\n"
        );
        let (code, said) = check(&[schema.clone(), write("source.yaml", &text)], &[]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(said.contains("note: `region` is public"), noted, "{said}");
    }
}

#[test]
fn every_problem_is_reported_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| written(&folder, name, text);
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

/// A query is checked against its schema, whatever policies allow.
#[test]
fn a_query_that_its_schema_does_not_support_is_not_valid() {
    let folder = tempfile::tempdir().unwrap();
    let (schema, file) = (folder.path().join("schema.yaml"), folder.path().join("query.sql"));
    std::fs::write(&schema, SCHEMA.replace("optional: true", "aggregations: [sum]")).unwrap();
    let query = |window: &str, from: &str| {
        let text = format!(
            "CREATE STREAM s AS SELECT SUM(x) WINDOW TUMBLING (SIZE {window}) FROM {from} BETWEEN 1 AND 9;"
        );
        std::fs::write(&file, text).unwrap();
    };
    for (window, from, problem) in [
        ("10 SECONDS", "M", None),
        ("15 SECONDS", "M", Some("is not a multiple of 10 SECONDS")),
        ("10 SECONDS", "N", Some("its schema `N` is not among the valid files")),
    ] {
        query(window, from);
        let (code, said) = check(&[file.clone(), schema.clone()], &[]);
        assert_eq!(code == 0, problem.is_none(), "{said}");
        assert!(problem.is_none_or(|problem| said.contains(problem)), "{said}");
    }
    let (code, said) = check(&[file], &[]);
    assert!(code == 0 && said.contains("names and windows were not checked"), "{said}");
}

/// Every kind of file that has a JSON Schema, with a valid file of it.
const KINDS: &[(&str, &str, &str, &str)] = &[
    ("schema", "schema", "schema.yaml", SCHEMA),
    ("policies", "policies", "policies.yaml", "schema: M\nservice: s\ndefault: { x: crowd }\n"),
    (
        "source",
        "source",
        "source.yaml",
        "schema: M\ntime: { column: t }\nstream: w\nattributes: { x: v }\n",
    ),
    ("profile", "profile", "profile.yaml", PROFILE),
    (
        "settings",
        "settings",
        "alpheus.toml",
        "state = \"run\"\nqueries-per-consumer = 3\n[windows]\nresults-days = 9\n",
    ),
    ("table", "table schema", "street.yaml", TABLE),
    ("plan", "statistics plan", "road.yaml", PLAN),
    ("plan", "statistics plan", "gate.yaml", COUNT),
    ("mapping", "OTLP mapping", "otlp.json", MAPPING),
];
const SCHEMA: &str = "name: M\nstreamAttributes:\n  - { name: x, type: integer, min: 0, max: 9, optional: true }\nstreamPolicyOptions:\n  - { name: crowd, option: aggregate, clients: [2], window: [10s] }\n";
const PROFILE: &str =
    "streams: 2\nminutes: 1\nintervalMs: 1000\nstart: 7\nattributes:\n  x: { uniform: [0, 9] }\n";
const TABLE: &str = "name: Street\ntime: { column: at }\ngroups: [side]\ncolumns:\n  - { name: cars, min: 0, max: 9, squares: true }\n  - { name: vans, min: 0, max: 9, optional: true }\npairs: [[vans, cars]]\n";
const PLAN: &str = "place: speed/road\nattribute: speed\ninterval: { lowest: 0, highest: 100, decimals: 1 }\ndeviation: true\nevery: 30s\nduring: 2\nquota: 4\naccounts: 2\nslots: 9\nexpected: 8\nclients: 3\nrelease: full\nafter: { turn: 10s, turns: 2, settling: 1s, patience: 1min }\n";
const COUNT: &str = "place: gate\nevery: 1hr\nrelease: count\nfewest: 2\nafter: { close: 5min }\n";
const MAPPING: &str =
    "{ \"metrics\": [\n  { \"name\": \"m\", \"shape\": \"gauge\", \"other\": \"x\" }\n] }\n";

/// All of them in one folder.
fn kinds() -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |(_, _, name, text): &(&str, &str, &str, &str)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let files = KINDS.iter().map(write).collect();
    (folder, files)
}

#[test]
fn every_kind_of_file_is_known_by_its_keys() {
    let (folder, files) = kinds();
    let (code, said) = check(&files, &[]);
    assert_eq!(code, 0, "{said}");
    for ((_, kind, name, _), file) in KINDS.iter().zip(&files) {
        assert!(said.contains(&format!("{}: {kind}: valid", file.display())), "{name}:\n{said}");
    }
    let (code, whole) = check(&[folder.path().to_owned()], &[]);
    assert_eq!((code, whole.lines().count()), (0, KINDS.len()), "{whole}");
}

/// One thing in a file is wrong, which is reported with its place.
#[test]
fn a_mistake_in_every_kind_of_file_has_its_place() {
    for (name, from, to, said) in [
        ("schema.yaml", "max: 9", "max: -9", "line 3, column"),
        ("policies.yaml", "x: crowd", "x: crow", "line 3, column"),
        ("source.yaml", "stream: w", "stram: w", "line 3 column 1: unknown field `stram`"),
        ("source.yaml", "x: v", "y: v", "line 4, column"),
        ("profile.yaml", "minutes: 1", "minutes: x", "line 2 column 10"),
        ("profile.yaml", "uniform: [0, 9]", "chance: 0.5", "line 6, column 6"),
        ("alpheus.toml", "= 3", "= \"x\"", "alpheus.toml:2"),
        ("alpheus.toml", "results-days", "results-day", "alpheus.toml:"),
        (
            "street.yaml",
            "min: 0, max: 9, o",
            "min: 0, max: 9.55, o",
            "line 6, column 13 (columns[1].name): column `vans`: `max`",
        ),
        ("street.yaml", "[[vans", "[[vens", "line 7, column 10"),
        ("road.yaml", "quota: 4", "qota: 4", "line 7 column 1: unknown field `qota`"),
        ("road.yaml", "turn: 10s", "turn: often", "line 13, column"),
        ("gate.yaml", "close: 5min", "close: 5", "line 5, column"),
        ("otlp.json", "\"gauge\"", "\"gouge\"", "at line 2 column"),
        ("otlp.json", "\"other\": \"x\"", "\"other\": \"y\"", "line 2, column"),
    ] {
        let (_folder, files) = kinds();
        let file = files.iter().find(|file| file.ends_with(name)).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        std::fs::write(file, text.replacen(from, to, 1)).unwrap();
        let (code, all) = check(&files, &[]);
        let own = format!("{}: ", file.display());
        let line = all.lines().find(|line| line.starts_with(&own)).unwrap();
        assert!(code == 4 && line.contains(said), "{name}, {to}: {line}");
    }
}

/// A copy of a document with a key more in each of its maps, one after the other.
fn with_a_key_more(whole: &Value) -> Vec<Value> {
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.push(at.to_owned());
                map.iter().for_each(|(key, own)| places(own, &format!("{at}/{key}"), found));
            }
            Value::Array(list) => {
                let each = list.iter().enumerate();
                each.for_each(|(number, own)| places(own, &format!("{at}/{number}"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    places(whole, "", &mut found);
    let change = |place: &String| {
        let mut other = whole.clone();
        other.pointer_mut(place).unwrap()["surprise"] = serde_json::json!({"a": [1]});
        other
    };
    found.iter().map(change).collect()
}

/// A file that the command finds valid is valid in an editor. A key that the command does not know is
/// refused by both.
#[test]
fn json_schemas_agree_with_the_command() {
    for (kind, _, name, text) in KINDS {
        let ran = alpheus(["check", "--json-schema", kind]).output().unwrap();
        assert!(ran.status.success(), "{kind}");
        let editor = jsonschema::validator_for(&serde_json::from_slice(&ran.stdout).unwrap());
        let editor = editor.unwrap();
        let whole: Value = match name.ends_with(".toml") {
            true => serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap(),
            false => serde_saphyr::from_str(text).unwrap(),
        };
        assert!(editor.is_valid(&whole), "{kind}: {whole}");
        for other in with_a_key_more(&whole) {
            // Names of attributes are keys that are their owner's choice.
            let is_free = *kind == "policies" || other.pointer("/attributes/surprise").is_some();
            assert!(!editor.is_valid(&other) || is_free, "{kind}: {other}");
        }
        // Every key that is required is required in an editor.
        for key in whole.as_object().into_iter().flat_map(serde_json::Map::keys) {
            let mut less = whole.clone();
            less.as_object_mut().unwrap().remove(key);
            let (_folder, mut files) = kinds();
            let file = files.iter().position(|file| file.ends_with(name)).unwrap();
            if name.ends_with(".toml") || *name == "schema.yaml" {
                continue;
            }
            std::fs::write(&files[file], less.to_string()).unwrap();
            files.retain(|other| other.ends_with(name) || other.ends_with("schema.yaml"));
            let is_missing = check(&files, &[]).1.contains("missing field");
            assert!(!is_missing || !editor.is_valid(&less), "{kind}: only the command needs {key}");
        }
    }
}
