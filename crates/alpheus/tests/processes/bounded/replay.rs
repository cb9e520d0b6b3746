//! A recording: a bounded query gives the same rows as the truth.

use crate::common::alpheus;
use crate::common::recording::{QUERY as RECORDED, Recording, read};
use serde_json::Value;

/// With three controllers, and with one for each owner, for every window that opens. One controller for
/// all is refused, with the query that is allowed.
#[test]
fn a_bounded_replay_equals_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::made(6, 12);
    recording.write(folder.path());
    let sql = format!("{RECORDED} WITH (integrity = 'bounded', alpha = '1/3')");
    std::fs::write(folder.path().join("bounded.sql"), sql).unwrap();
    let replay = |controllers: &str| {
        let args = ["replay", "--schema", "schema.yaml", "--source", "source.yaml"];
        let more = ["--policies", "policies.yaml", "--query", "bounded.sql", "--input", "data.csv"];
        let last = ["--controllers", controllers, "--output", "rows.json"];
        alpheus([&args[..], &more, &last].concat()).current_dir(folder.path()).output().unwrap()
    };
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
