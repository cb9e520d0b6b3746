//! A made-up recording: a bounded query gives the same rows as the truth. `real_data` does so with real ones.

use crate::common::alpheus;
use crate::common::recording::{QUERY as RECORDED, Recording, SCHEMA, WINDOW, read};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn replay(folder: &Path, controllers: &str) -> Output {
    let args = ["replay", "--schema", "schema.yaml", "--source", "source.yaml"];
    let more = ["--policies", "policies.yaml", "--query", "bounded.sql", "--input", "data.csv"];
    let last = ["--controllers", controllers, "--output", "rows.json"];
    alpheus([&args[..], &more, &last].concat()).current_dir(folder).output().unwrap()
}

/// With three controllers, and with one for each owner, for every window that opens. One controller for
/// all is refused, with the query that is allowed.
#[test]
fn a_bounded_replay_equals_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::made(6, 12);
    recording.write(folder.path());
    let sql = format!("{RECORDED} WITH (integrity = 'bounded', alpha = '1/3')");
    std::fs::write(folder.path().join("bounded.sql"), sql).unwrap();
    let replay = |controllers: &str| replay(folder.path(), controllers);
    let truth = recording.truth();
    for controllers in ["3", "per-owner"] {
        let output = replay(controllers);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = folder.path().join("rows.json");
        let rows: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert!(rows.iter().all(|row| row["integrity"] == "bounded"), "{rows:?}");
        let all = read(&path);
        let opened: Vec<_> = all.iter().filter(|row| row.status == "ok").collect();
        assert!(opened.len() > 3, "{controllers}: {all:?}");
        for row in opened {
            let known = &truth[&row.start];
            let total: i64 = known.iter().map(|(_, sum)| sum).sum();
            let count: u64 = known.iter().map(|(count, _)| count).sum();
            assert_eq!((row.sum, row.count), (Some(total), Some(count)), "{row:?}");
        }
    }
    let refused = replay("1");
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{why}");
    assert!(why.contains("one controller") && why.contains("integrity = 'verified'"), "{why}");
}

/// Two cells are in the other test. Of three, the variance needs all.
#[test]
fn bounded_replays_of_one_cell_and_of_three_equal_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::made(6, 12);
    recording.write(folder.path());
    let schema = SCHEMA.replace("[sum, count]", "[sum, count, var]");
    std::fs::write(folder.path().join("schema.yaml"), schema).unwrap();
    for select in ["SUM(reading)", "VAR(reading)"] {
        let sql = format!(
            "CREATE STREAM Readings AS SELECT {select} WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters \
             WITH (integrity = 'bounded', alpha = '1/3')"
        );
        std::fs::write(folder.path().join("bounded.sql"), sql).unwrap();
        let output = replay(folder.path(), "3");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read(folder.path().join("rows.json")).unwrap();
        let rows: Vec<Value> = serde_json::from_slice(&text).unwrap();
        let opened: Vec<_> = rows.iter().filter(|row| row["status"] == "ok").collect();
        assert!(opened.len() > 3, "{select}: {rows:?}");
        for row in opened {
            assert_eq!(row["integrity"], "bounded");
            let start = row["window_start"].as_u64().unwrap() / 1000;
            let within = |time: &u64| (start..start + WINDOW).contains(time);
            let own = recording.rows.iter().filter(|(time, ..)| within(time));
            let values: Vec<i64> = own.map(|(.., value)| *value).collect();
            let (count, sum): (i64, i64) = (values.len() as i64, values.iter().sum());
            let squares: i64 = values.iter().map(|value| value * value).sum();
            match select {
                "SUM(reading)" => assert_eq!(row["sum_reading"], sum.to_string(), "{row}"),
                _ => {
                    let exact = (count * squares - sum * sum) as f64 / (count * count) as f64;
                    assert_eq!(row["var_reading"].as_f64(), Some(exact), "{row}");
                }
            }
        }
    }
}
