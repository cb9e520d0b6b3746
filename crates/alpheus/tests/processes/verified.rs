//! `integrity = 'verified'` over processes: a service that cheats is caught, as
//! `docs/integrity.md` shows. The cheating is done here, in the store of a service that is down.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use crate::common::deployment::{QUERY, Running, Site, until};
use crate::common::recording::{QUERY as RECORDED, Recording, read};
use alpheus_stream_runtime::results::Row;
use alpheus_stream_runtime::storage::Topics;
use alpheus_transport::{Batch, Limits, NewRecord, Offset, local};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

const SIGNED: &str = "signed by 3 controllers, any of which could have changed it";
const DIFFERS: &str = "the row differs from what the controllers have signed";

/// The commands of the guide, without their prompts.
fn commands() -> Vec<String> {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/integrity.md");
    let text = std::fs::read_to_string(guide).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("$ alpheus "));
    lines.map(str::to_owned).collect()
}

/// Runs a command of the guide in the place of a deployment.
fn run(running: &Running, command: &str) -> Output {
    let command = command.replace("https://localhost:7400", &running.server);
    let mut args: Vec<String> = Vec::new();
    // What stands between quotes is one argument.
    for (place, part) in command.split('"').enumerate() {
        match place % 2 {
            0 => args.extend(part.split_whitespace().map(str::to_owned)),
            _ => args.push(part.to_owned()),
        }
    }
    alpheus(args.iter().map(String::as_str)).current_dir(running.place.path(".")).output().unwrap()
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn rows(running: &Running, more: &[&str]) -> Vec<Value> {
    let results = ["--results", "Readings", "--format", "json"];
    let reach = ["query", "--server", &running.server, "--identity", "pki/analyst"];
    let said = running.place.done(&[&reach[..], &results[..], more].concat());
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_service_that_cheats_is_caught() {
    let mut running = Running::start_in(Site::with_ticks(), |_, api| api.to_owned());
    let [ask, read, verify, offline, bounded] = <[String; 5]>::try_from(commands()).unwrap();
    assert!(ask.contains(QUERY), "the guide asks for {QUERY}");
    let explained = run(&running, &ask.replace("--query \"", "--query \"EXPLAIN "));
    let (text, errors) = said(&explained);
    assert!(text.contains("verified: each row is signed by up to 3 controllers"), "{text}{errors}");
    let noted = running.place.path("pki/analyst/verified.known");
    assert!(!noted.exists(), "nothing was asked for yet");
    not_served(&running, &bounded);
    let (_, errors) = said(&run(&running, &ask));
    let devices = running.feed();
    let row = until("a verified window", || {
        let (text, _) = said(&run(&running, &read));
        let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.into_iter().find(|row| row["population"] == 3 && row["status"] == "ok")
    });
    assert_eq!(row["integrity"], SIGNED, "{row} {errors}");
    assert_eq!((row["sum_reading"].as_str(), row["count_reading"].as_u64()), (Some("12"), Some(6)));
    drop(devices);
    let verified = run(&running, &verify);
    let (text, errors) = said(&verified);
    assert!(verified.status.success() && text.contains(SIGNED), "{text}{errors}");
    assert!(run(&running, &offline).status.success());
    let log = running.owner(0, "log");
    assert!(log.contains("its rows are signed by the controllers"), "{log}");
    tampered_file(&running, &offline);
    tampered_store(&mut running, &row, &verify);
}

/// A bounded query is explained, and refused when it would start. So no row is called bounded that
/// nobody has proven.
fn not_served(running: &Running, explain: &str) {
    let (text, errors) = said(&run(running, explain));
    assert!(text.contains("bounded: controllers prove of each owner's window: "), "{text}{errors}");
    let started = run(running, &explain.replace("EXPLAIN ", ""));
    let (_, errors) = said(&started);
    assert!(!started.status.success() && errors.contains("is not served yet"), "{errors}");
}

/// Somebody changes a number in the file that is verified elsewhere.
fn tampered_file(running: &Running, offline: &str) {
    let path = running.place.path("readings.receipts.json");
    let honest = std::fs::read_to_string(&path).unwrap();
    let changed = honest.replacen("\"sum_reading\":\"12\"", "\"sum_reading\":\"13\"", 1);
    assert_ne!(changed, honest);
    std::fs::write(&path, changed).unwrap();
    let refused = run(running, offline);
    let (text, errors) = said(&refused);
    assert!(!refused.status.success() && text.contains(DIFFERS), "{text}{errors}");
    assert!(errors.contains("rows do not hold"), "{errors}");
}

/// Writes two rows more for an honest one's window into the stopped service's store: another number, and
/// the same without receipts.
fn publish_unsigned(running: &mut Running, honest: &Value) {
    let api = running.server.trim_start_matches("https://").to_owned();
    running.service.kill();
    {
        let topics = Topics::new(4).unwrap();
        let folder = running.place.path("run/service");
        let store = local::open(&folder, &local::Options::default()).unwrap();
        let partition = topics.results.partition(0);
        let fetched = store.read(&partition, Offset(0), Limits::default()).unwrap();
        let stored: Vec<Row> =
            fetched.map(|record| serde_json::from_slice(&record.value).unwrap()).collect();
        let same = |row: &&Row| Some(row.window_start) == honest["window_start"].as_u64();
        let row = stored.iter().find(same).unwrap();
        let mut other = row.clone();
        other.outputs[0].1 = "999".into();
        let plain = Row { verified: None, ..other.clone() };
        let mut batch = Batch::new();
        for row in [&other, &plain] {
            let value = serde_json::to_vec(row).unwrap();
            let record = NewRecord { value: &value, ..Default::default() };
            batch.append(&partition, &record).unwrap();
        }
        store.commit(batch).unwrap();
    }
    running.service = running.place.server(&api);
}

/// The service publishes rows that nobody has signed: another number, and one that it says is not
/// verified.
fn tampered_store(running: &mut Running, honest: &Value, verify: &str) {
    publish_unsigned(running, honest);
    // Windows without data follow.
    let of_window = |more: &[&str]| {
        let all = rows(running, more).into_iter();
        let found = all.filter(|row| row["window_start"] == honest["window_start"]);
        <[Value; 3]>::try_from(found.collect::<Vec<_>>()).unwrap()
    };
    // The consumer has noted that it asked for verified rows, so it refuses what the service calls
    // plain. Without the note it does if `--verified` says so.
    let noted = running.place.path("pki/analyst/verified.known");
    assert!(std::fs::read_to_string(&noted).unwrap().contains("Readings"));
    for (notes, more) in [(true, &[][..]), (false, &["--verified"])] {
        if !notes {
            std::fs::remove_file(&noted).unwrap();
        }
        let [first, other, plain] = of_window(more);
        assert_eq!(other["status"], format!("refused: {DIFFERS}"));
        assert!(other["sum_reading"].is_null() && other["integrity"] == "refused", "{other}");
        assert_eq!(plain["status"], "refused: the service says that the row is not verified");
        assert!(plain["sum_reading"].is_null(), "{plain}");
        // The honest row holds as before.
        assert!(first["integrity"] == SIGNED && first["sum_reading"] == "12", "{first}");
    }
    let [.., plain] = of_window(&[]);
    assert!(plain["sum_reading"] == "999" && plain.get("integrity").is_none(), "{plain}");
    let refused = run(running, verify);
    let (text, errors) = said(&refused);
    assert!(!refused.status.success() && text.contains(DIFFERS), "{text}{errors}");
}

/// A recording gives the same rows, no matter who decides them: with one controller for all, and for
/// every window that opens with one for each owner.
#[test]
fn a_verified_replay_equals_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::made(6, 12);
    recording.write(folder.path());
    let sql = format!("{RECORDED} WITH (integrity = 'verified', alpha = '1/3')");
    std::fs::write(folder.path().join("verified.sql"), sql).unwrap();
    let replay = |query: &str, controllers: &str| {
        let args = ["replay", "--schema", "schema.yaml", "--source", "source.yaml"];
        let more = ["--policies", "policies.yaml", "--query", query, "--input", "data.csv"];
        let last = ["--controllers", controllers, "--output", "rows.json"];
        let all = [&args[..], &more, &last].concat();
        let output = alpheus(all).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = folder.path().join("rows.json");
        let rows: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        (read(&path), rows)
    };
    let (plain, _) = replay("sum.sql", "1");
    let (verified, rows) = replay("verified.sql", "1");
    assert_eq!(verified, plain);
    assert!(rows.iter().all(|row| row["integrity"] == "verified"), "{rows:?}");
    let truth = recording.truth();
    let (each, _) = replay("verified.sql", "per-owner");
    let opened: Vec<_> = each.iter().filter(|row| row.status == "ok").collect();
    assert!(opened.len() > 3, "{each:?}");
    for row in opened {
        let known = &truth[&row.start];
        let total: i64 = known.iter().map(|(_, sum)| sum).sum();
        let count: u64 = known.iter().map(|(count, _)| count).sum();
        assert_eq!((row.sum, row.count), (Some(total), Some(count)), "{row:?}");
    }
}
