//! `alpheus stats replay` over a recording of 207 detectors equals the exact truth about it.
//!
//! The file is no part of the repository: `ALPHEUS_REAL_DATA` names its folder. Without it
//! these tests are skipped.

use crate::common::alpheus;
use alpheus_test_support::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/real")
}

/// Replays some hours of a file under the example's definition, changed; what comes out is held
/// to the truth.
fn equals_truth(input: &Path, span: [&str; 2], changes: &[(&str, &str)], compared: &[&str]) {
    let Some(data) = skip::real_data() else { return };
    let folder = tempfile::tempdir().unwrap();
    let files = examples().join("traffic_speed/statistics");
    let mut define = fs::read_to_string(files.join("define.yaml")).unwrap();
    for (from, to) in changes {
        assert!(define.contains(from), "{from}");
        define = define.replace(from, to);
    }
    fs::write(folder.path().join("define.yaml"), define).unwrap();
    let mut command =
        alpheus(["stats", "replay", "--output", "out.csv", "--define", "define.yaml"]);
    command.args(["--from", span[0], "--until", span[1], "--source"]);
    command.arg(files.join("source.yaml")).arg("--input").arg(input);
    let done = command.current_dir(folder.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut compare = Command::new("python3");
    compare.arg(examples().join("compare_statistics.py")).arg(&data).arg("traffic_speed");
    compare.args(compared).args(["--output"]).arg(folder.path().join("out.csv"));
    let done = compare.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// As the files are: four hours of 207 clients, 3,000 slots in each.
#[test]
#[ignore = "it takes minutes of a machine"]
fn four_hours_of_all_detectors_equal_the_truth() {
    let Some(data) = skip::real_data() else { return };
    let span = ["2012-03-01T06:00", "2012-03-01T10:00"];
    let compared = ["windows_1h", "--hours", "4", "--slots", "3000"];
    equals_truth(&data.join("traffic_speed.csv"), span, &[], &compared);
}

/// An hour of the first twelve detectors.
#[test]
fn an_hour_of_twelve_detectors_equals_the_truth() {
    let Some(data) = skip::real_data() else { return };
    let folder = tempfile::tempdir().unwrap();
    let all = fs::read_to_string(data.join("traffic_speed.csv")).unwrap();
    let first = |line: &str| line.split(',').take(13).collect::<Vec<_>>().join(",");
    let few = all.lines().map(first).collect::<Vec<_>>().join("\n") + "\n";
    let sensors = few.lines().next().unwrap().split_once(',').unwrap().1;
    let input = folder.path().join("few.csv");
    fs::write(&input, &few).unwrap();
    let changes = [
        ("accounts: 20", "accounts: 2"),
        ("slots: 3000", "slots: 180"),
        ("expected: 2500", "expected: 150"),
        ("clients: 207", "clients: 12"),
    ];
    let span = ["2012-03-04T17:00", "2012-03-04T18:00"];
    let compared = ["windows_1h_by_sensor", "--groups", sensors, "--hours", "1", "--slots", "180"];
    equals_truth(&input, span, &changes, &compared);
}
