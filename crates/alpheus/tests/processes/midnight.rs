//! Days end while devices run: a replay over two midnights, in windows that lie over both,
//! says what the recording says.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

const SCHEMA: &str = "\
name: Meters
version: 1
tick: 5min
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: -1000, max: 1000, aggregations: [sum, count] }
streamPolicyOptions:
  - { name: open, option: aggregate, clients: [1], window: 5min, alpha: 0, dropout: 0 }
";
const SOURCE: &str = "\
schema: Meters
time: { column: time }
stream: meter
attributes: { reading: reading }
";
const POLICIES: &str = "\
schema: Meters
service: statistics.example
default: { reading: { option: open, clients: 1 } }
";
const QUERY: &str = "\
CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading)
WINDOW TUMBLING (SIZE 35 MINUTES) FROM Meters
";
const DAY: u64 = 86_400;
/// Minutes that do not divide a day.
const WINDOW: u64 = 35 * 60;
/// 2023-11-13, and the window that holds 23:00 of it.
const FROM: u64 = (19_674 * DAY + 23 * 3600) / WINDOW * WINDOW;

/// Three meters' readings over 26 hours, one every seven minutes or so: seconds, meter, value.
fn readings() -> Vec<(u64, u64, i64)> {
    let each = |meter: u64| {
        (0..26 * 9).map(move |k| {
            let at = FROM + k * 400 + meter * 7 + 1;
            (at, meter, i64::try_from((k * 37 + meter * 11) % 401).unwrap() - 200)
        })
    };
    let mut all: Vec<_> = (0..3).flat_map(each).collect();
    all.sort_unstable();
    all
}

#[test]
fn sums_over_midnight_are_the_recordings() {
    let (readings, folder) = (readings(), tempfile::tempdir().unwrap());
    let mut csv = "time,meter,reading\n".to_owned();
    readings.iter().for_each(|(at, meter, value)| writeln!(csv, "{at},m{meter},{value}").unwrap());
    for (name, text) in [
        ("schema.yaml", SCHEMA),
        ("source.yaml", SOURCE),
        ("policies.yaml", POLICIES),
        ("query.sql", QUERY),
        ("meters.csv", &csv),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let arguments = "replay --schema schema.yaml --source source.yaml --policies policies.yaml --input meters.csv --query query.sql --controllers 2 --output rows.json";
    let mut command = Command::new(env!("CARGO_BIN_EXE_alpheus"));
    let ran = command.args(arguments.split(' ')).current_dir(folder.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let mut truth: BTreeMap<u64, (i64, i64)> = BTreeMap::new();
    for (at, _, value) in &readings {
        let own = truth.entry(at / WINDOW * WINDOW).or_default();
        *own = (own.0 + value, own.1 + 1);
    }
    let text = std::fs::read_to_string(folder.path().join("rows.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().unwrap(),
        other => other.as_i64().unwrap(),
    };
    let opened: BTreeMap<u64, (i64, i64)> = rows
        .iter()
        .inspect(|row| assert_eq!((&row["status"], &row["excluded"]), (&"ok".into(), &0.into())))
        .map(|row| {
            let start = row["window_start"].as_u64().unwrap() / 1000;
            (start, (number(&row["sum_reading"]), number(&row["count_reading"])))
        })
        .collect();
    assert_eq!(opened, truth);
    let over = |midnight| {
        opened
            .keys()
            .any(|at| at % DAY != 0 && at / DAY + 1 == midnight && at + WINDOW > midnight * DAY)
    };
    assert!(over(19_675) && over(19_676), "windows lie over both midnights");
}
