//! What a replay says at its end, and `suggest` beforehand: which groups have no result, what more
//! owners would change, and what the margins of noise do not cover.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use crate::common::recording::BASE;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const SCHEMA: &str = "\
name: Meters
tick: 10s
capacity: { population: 100, events: 100 }
metadataAttributes:
  - { name: region, type: string }
streamAttributes:
  - name: reading
    type: integer
    min: 0
    max: 100
    aggregations: [sum, count, mean, histogram: { lo: 0, width: 5, bins: 20 }]
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [3], window: [10s] }
  - { name: noisy, option: dp-aggregate, clients: [3], window: [10s], budget: { perWindow: 5, total: 100, unit: person-per-window } }
";
const SOURCE: &str = "\
schema: Meters
time: { column: time }
stream: meter
metadata: { region: { column: region } }
attributes: { reading: reading }
";

/// The files of a replay. Each row is a window, a meter, its region and a reading.
fn folder(option: &str, rows: impl IntoIterator<Item = (u64, u64, String, u64)>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut data = "time,meter,region,reading\n".to_owned();
    for (window, meter, region, reading) in rows {
        data.push_str(&format!("{},m{meter},{region},{reading}\n", BASE + 10 * window));
    }
    let policies = format!("schema: Meters\ndefault: {{ '*': {option} }}\n");
    for (name, text) in [
        ("schema.yaml", SCHEMA),
        ("source.yaml", SOURCE),
        ("policies.yaml", &policies),
        ("query.sql", ""),
        ("data.csv", &data),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// One reading in each of three windows of so many owners of each region.
fn regions(owners: &[(String, u64)]) -> TempDir {
    let of_region = |(at, (name, owners)): (usize, &(String, u64))| {
        let meters = (0..*owners).map(move |own| 100 * at as u64 + own);
        let name = name.clone();
        meters.flat_map(move |own| {
            let name = name.clone();
            (0..3).map(move |window| (window, own, name.clone(), own % 100))
        })
    };
    let rows: Vec<_> = owners.iter().enumerate().flat_map(of_region).collect();
    folder("crowd", rows)
}

fn said(command: &mut Command) -> (i32, String) {
    let ran = command.output().unwrap();
    (ran.status.code().unwrap(), String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap())
}

fn replayed(folder: &Path, query: &str) -> (i32, String) {
    let mut command = alpheus(["replay", "--schema", "schema.yaml", "--source", "source.yaml"]);
    command.args(["--policies", "policies.yaml", "--input", "data.csv", "--output", "out.csv"]);
    said(command.args(["--max-refused", "100%", "--query", query]).current_dir(folder))
}

fn query(what: &str, rest: &str) -> String {
    format!("SELECT {what} WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters {rest}")
}

fn has(said: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(said.contains(part), "no {part:?} in:\n{said}"));
}

#[test]
fn values_from_bins_say_how_far_they_may_be_off() {
    let folder = regions(&[("north".to_owned(), 5)]);
    let query = query("MEDIAN(reading), MIN(reading), MAX(reading), SUM(reading)", "");
    let lines = [
        "median_reading: the lower edge of a bin 5 wide; the exact one is up to 5 above\n",
        "min_reading: the least that a bin 5 wide can hold; the exact one is up to 5 above\n",
        "max_reading: the most that a bin 5 wide can hold; the exact one is up to 5 below\n",
    ];
    let (code, text) = replayed(folder.path(), &query);
    assert_eq!(code, 0, "{text}");
    has(&text, &lines);
    assert!(!text.contains("sum_reading:"), "{text}");
    let mut explain = alpheus(["query", "--query", &query, "--schema", "schema.yaml"]);
    explain.args(["--policies", "policies.yaml"]).current_dir(folder.path());
    let (code, text) = said(&mut explain);
    assert_eq!(code, 0, "{text}");
    has(&text, &lines);
}
