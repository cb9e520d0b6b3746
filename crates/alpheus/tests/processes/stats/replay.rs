//! `alpheus stats replay`: what comes out is what the plaintext gives.

use crate::common::alpheus;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

const SOURCE: &str = "\
schema: Speed
time: { column: timestamp, unit: s }
wide: { attribute: speed, columns: streams }
";

const DEFINE: &str = "\
place: speed/road
attribute: speed
interval: { lowest: -5, highest: 100, decimals: 1 }
deviation: true
every: 1hr
during: 4
quota: 8
accounts: 2
slots: 24
expected: 20
clients: 6
release: full
after: { turn: 5min, turns: 3, settling: 1min, patience: 2hr }
";

/// Where the recording begins: an hour before midnight, so that it goes over two days.
pub(crate) const START: u64 = 1_330_642_800;

/// Readings in tenths, of six sensors, three in each of two hours; a few are missing.
fn readings() -> Vec<(u64, Vec<Option<i64>>)> {
    let row = |hour: u64, at: u64| {
        let cell = |sensor: u64| {
            let value = i64::try_from((hour * 211 + at * 97 + sensor * 53) % 1000).unwrap() - 40;
            (at != 1 || sensor != 4).then_some(value)
        };
        (START + hour * 3600 + at * 1200, (0..6).map(cell).collect())
    };
    (0..2).flat_map(|hour| (0..3).map(move |at| row(hour, at))).collect()
}

fn csv(readings: &[(u64, Vec<Option<i64>>)]) -> String {
    let mut text = "timestamp,a,b,c,d,e,f\n".to_owned();
    for (time, cells) in readings {
        write!(text, "{time}").unwrap();
        for cell in cells {
            let cell = cell.map(|v| format!("{}{}.{}", sign(v), v.abs() / 10, v.abs() % 10));
            write!(text, ",{}", cell.unwrap_or_default()).unwrap();
        }
        text += "\n";
    }
    text
}

fn sign(value: i64) -> &'static str {
    if value < 0 { "-" } else { "" }
}

/// The small recording, ready to be started.
pub(crate) fn small(folder: &Path) -> Command {
    recorded(folder, &csv(&readings()), DEFINE)
}

fn replay(folder: &Path, define: &str) -> Output {
    replay_part(folder, define, &[])
}

fn replay_part(folder: &Path, define: &str, part: &[&str]) -> Output {
    replay_of(folder, &csv(&readings()), define, part)
}

fn replay_of(folder: &Path, speeds: &str, define: &str, part: &[&str]) -> Output {
    recorded(folder, speeds, define).args(part).output().unwrap()
}

/// A recording, and what is made of it, ready to be started.
pub(crate) fn recorded(folder: &Path, speeds: &str, define: &str) -> Command {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("source.yaml", SOURCE);
    write("define.yaml", define);
    write("speed.csv", speeds);
    let mut command = alpheus(["stats", "replay", "--input", "speed.csv"]);
    command.args(["--source", "source.yaml", "--define", "define.yaml", "--output", "out.csv"]);
    command.current_dir(folder);
    command
}

#[test]
fn a_replay_gives_what_the_plaintext_gives() {
    let folder = tempfile::tempdir().unwrap();
    let done = replay(folder.path(), DEFINE);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    check_rows(&std::fs::read_to_string(folder.path().join("out.csv")).unwrap());
}

/// The same readings as JSON lines.
#[test]
fn a_replay_reads_json_lines() {
    let object = |(time, cells): &(u64, Vec<Option<i64>>)| {
        let mut line = format!("{{\"timestamp\":{time}");
        for (name, cell) in ('a'..).zip(cells) {
            let cell = cell.map(|v| format!("{}{}.{}", sign(v), v.abs() / 10, v.abs() % 10));
            write!(line, ",\"{name}\":{}", cell.as_deref().unwrap_or("null")).unwrap();
        }
        line + "}\n"
    };
    let folder = tempfile::tempdir().unwrap();
    let lines: String = readings().iter().map(object).collect();
    let done = replay_of(folder.path(), &lines, DEFINE, &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    check_rows(&std::fs::read_to_string(folder.path().join("out.csv")).unwrap());
}

/// Each hour has what the plaintext gives.
pub(crate) fn check_rows(out: &str) {
    let mut lines = out.lines();
    let header = "aggregate,interval_start,interval_end,count,sum,mean,stddev,slots,dummies";
    assert_eq!(lines.next(), Some(header));
    for hour in 0..2 {
        let (from, to) = (START + hour * 3600, START + (hour + 1) * 3600);
        let of_hour = readings().into_iter().filter(|(time, _)| (from..to).contains(time));
        let values: Vec<i64> = of_hour.flat_map(|(_, cells)| cells).flatten().collect();
        let (n, sum) = (values.len(), values.iter().sum::<i64>());
        let line: Vec<&str> = lines.next().unwrap().split(',').collect();
        assert_eq!(line[0], "speed/road");
        assert_eq!(line[1..3], [from, to].map(|time| (time * 1000).to_string()));
        assert_eq!(line[3], n.to_string());
        let said = format!("{}{}.{}", sign(sum), sum.abs() / 10, sum.abs() % 10);
        assert_eq!(line[4], said);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (n, sum) = (n as f64, sum as f64);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let spread = values.iter().map(|v| (*v as f64 - sum / n).powi(2)).sum::<f64>();
        let number = |at: usize| line[at].parse::<f64>().unwrap();
        assert!((number(5) - sum / n / 10.0).abs() < 1e-9, "{out}");
        assert!((number(6) - (spread / n).sqrt() / 10.0).abs() < 1e-9, "{out}");
        assert_eq!((line[7], number(8)), ("24", 24.0 - n));
    }
    assert_eq!(lines.next(), None);
}

/// Fewer clients come than the definition says there are, and they have no more to give.
#[test]
fn an_aggregate_that_cannot_be_filled_ends_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let done = replay(
        folder.path(),
        &DEFINE.replace("clients: 6", "clients: 9").replace("slots: 24", "slots: 57"),
    );
    let log = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{log}");
    assert!(log.contains("speed/road from 1330642800000: not all slots were filled"), "{log}");
    assert!(log.contains("2 aggregates have no result"), "{log}");
    let out = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    assert!(out.lines().skip(1).all(|line| line.ends_with(",,,,,57,")), "{out}");
}

/// More samples than slots: what comes out is not all of the recording, and this is said.
#[test]
fn samples_that_find_no_slot_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let cells = vec![Some(123); 6];
    let rows: Vec<_> = (0..5).map(|at| (START + at * 600, cells.clone())).collect();
    let done = replay_of(folder.path(), &csv(&rows), DEFINE, &[]);
    let log = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{log}");
    assert!(log.contains("from 1330642800000: 24 of 30 samples are counted"), "{log}");
    assert!(log.contains("6 samples are not counted"), "{log}");
    assert!(log.contains("alpheus errors stats-not-counted"), "{log}");
    let out = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    assert!(out.lines().nth(1).is_some_and(|line| line.contains(",24,295.2,")), "{out}");
}

/// A part of the recording, as its time is written.
#[test]
fn a_part_of_a_recording_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let done = replay_part(folder.path(), DEFINE, &["--from", "2012-03-02T00:00"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let out = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(out.lines().nth(1).unwrap().starts_with("speed/road,1330646400000,"), "{out}");
    let folder = tempfile::tempdir().unwrap();
    let done = replay_part(folder.path(), DEFINE, &["--until", "2012-03-01"]);
    let log = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(4) && log.contains("--until"), "{log}");
}

#[test]
fn a_definition_that_cannot_be_read_is_refused_with_the_rule() {
    for (from, to, said) in [
        ("slots: 24", "slots: 400", "8/10 of quota times clients"),
        ("expected: 20", "expected: 25", "slots must hold all expected samples"),
        ("accounts: 2", "accounts: 20", "at least as many accounts"),
        ("highest: 100", "highest: -5", "fewer than two values"),
        ("every: 1hr", "every: often", "`every` must be a duration"),
        ("place: speed/road", "place: Speed/Road", "lower-case letters"),
        ("quota: 8", "quotas: 8", "quotas"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let done = replay(folder.path(), &DEFINE.replace(from, to));
        let log = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(4), "{to}: {log}");
        assert!(log.contains(said), "{to}: {log}");
        assert!(!folder.path().join("out.csv").exists());
    }
}
