//! Recorded files through `alpheus table replay` equal the exact truth about them.
//! Without `ALPHEUS_REAL_DATA` these tests are skipped.

use crate::common::alpheus;
use alpheus_test_support::skip;
use std::path::Path;
use std::process::Command;

fn equals_truth(dataset: &str, file: &str) {
    let Some(data) = skip::real_data() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = root.join("examples/real").join(dataset).join("table");
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.json");
    let mut replay = alpheus(["table", "replay", "--schema"]);
    replay.arg(example.join("schema.yaml")).arg("--query").arg(example.join("stats.sql"));
    let ran = replay.arg("--input").arg(data.join(file)).arg("--output").arg(&output);
    let ran = ran.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let mut compare = Command::new("python3");
    compare.arg(root.join("examples/real/compare_table.py")).arg(data).arg(dataset).arg(&output);
    let compared = compare.output().unwrap();
    let said = String::from_utf8_lossy(&compared.stderr);
    assert!(compared.status.success(), "{said}");
}

#[test]
fn bicycles_over_a_bridge() {
    equals_truth("bike_counts", "bike_counts.csv");
}

#[test]
fn traffic_before_two_cameras() {
    equals_truth("traffic_counts", "traffic_counts.csv");
}

#[test]
fn electricity_of_households() {
    equals_truth("smartmeter", "smartmeter.csv.gz");
}
