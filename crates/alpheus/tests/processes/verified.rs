//! `integrity = 'verified'` over processes: a service that cheats is caught, as
//! `docs/integrity.md` shows. The cheating is done here: in the store of a service that is down, and between one that
//! runs and those whom it talks to.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod consumers;
mod controllers;
mod readers;
mod unasked_windows;

use crate::common::alpheus;
use crate::common::deployment::{QUERY, RunningSite, Site, until};
use crate::common::published_rows::of_window;
use crate::common::recording::{QUERY as RECORDED, Recording, read};
use crate::revocations::certificate_of;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::receipt::Receipt;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_stream_runtime::results::Row;
use alpheus_streams::deployment;
use alpheus_streams::query::receipts::{open_plan, window_of};
use data_encoding::HEXLOWER;
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

const SIGNED: &str = "signed by 3 controllers, any of which could have changed it";
const DIFFERS: &str = "the row differs from what the controllers have signed";

/// The commands of the guide, without their prompts.
pub(crate) fn commands() -> Vec<String> {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/integrity.md");
    let text = std::fs::read_to_string(guide).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("$ alpheus "));
    lines.map(str::to_owned).collect()
}

/// Runs a command of the guide in the place of a deployment.
pub(crate) fn run(running: &RunningSite, command: &str) -> Output {
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

pub(crate) fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// A deployment with the query of the guide, verified.
fn asked() -> RunningSite {
    let running = RunningSite::start_in(Site::with_ticks(), |_, api| api.to_owned());
    let verified = format!("{QUERY} WITH (integrity = 'verified', alpha = '1/3')");
    let asked = running.place.ask(&running.server, &verified);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    running
}

fn rows(running: &RunningSite, more: &[&str]) -> Vec<Value> {
    let results = ["--results", "Readings", "--format", "json"];
    let reach = ["query", "--server", &running.server, "--identity", "pki/analyst"];
    let said = running.place.done(&[&reach[..], &results[..], more].concat());
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The row of a window as programs without a key read it, and whether it was checked.
fn released(running: &RunningSite, of: &Value) -> (bool, Value) {
    let reach = ["query", "--server", &running.server, "--identity", "pki/analyst"];
    let said = running.place.done(&[&reach[..], &["--released"]].concat());
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let place = |wanted: &dyn Fn(&Value) -> bool| lines.iter().position(wanted);
    let query = place(&|line| line["query"]["name"] == "Readings").unwrap();
    assert_eq!(lines[query]["query"]["verified"], true);
    let same = |line: &Value| line["row"]["row"]["window_start"] == of["window_start"];
    let row = place(&same).unwrap();
    assert!(query < row && lines.last().unwrap()["read"] == true, "{said}");
    let row = &lines[row]["row"];
    assert_eq!(row["query"], "Readings");
    (row["checked"].as_bool().unwrap(), row["row"].clone())
}

#[test]
fn a_service_that_cheats_is_caught() {
    let mut running = RunningSite::start_in(Site::with_ticks(), |_, api| api.to_owned());
    // The others are those of bounded queries.
    let verified = commands().into_iter().take(4).collect::<Vec<_>>();
    let [ask, read, verify, offline] = <[String; 4]>::try_from(verified).unwrap();
    assert!(ask.contains(QUERY), "the guide asks for {QUERY}");
    let explained = run(&running, &ask.replace("--query \"", "--query \"EXPLAIN "));
    let (text, errors) = said(&explained);
    assert!(text.contains("verified: each row is signed by up to 3 controllers"), "{text}{errors}");
    let noted = running.place.path("pki/analyst/verified.known");
    assert!(!noted.exists(), "nothing was asked for yet");
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
    assert_eq!(released(&running, &row), (true, row.clone()));
    let verified = run(&running, &verify);
    let (text, errors) = said(&verified);
    assert!(verified.status.success() && text.contains(SIGNED), "{text}{errors}");
    assert!(run(&running, &offline).status.success());
    let log = running.owner(0, "log");
    assert!(log.contains("its rows are signed by the controllers"), "{log}");
    tampered_file(&running, &offline);
    another_statement(&running, [&verify, &offline]);
    without_schema(&running, &offline);
    another_plan_than_asked(&running);
    another_plan_than_begun(&running, [&verify, &offline]);
    tampered_store(&mut running, &row, &verify);
    revoked_signer(&running, &row, &offline);
}

/// The key of a controller that signed is stolen. Once the reader has the authority's list, the row does
/// not hold, here or in a file that was written before.
fn revoked_signer(running: &RunningSite, honest: &Value, offline: &str) {
    let held = |text: &str| text.contains(SIGNED);
    assert!(held(&said(&run(running, offline)).0));
    certificate_of(running, 2, "host-c.txt");
    running.place.done(&["ca", "revoke", "pki", "host-c.txt"]);
    let list = |folder: &str| running.place.path(&format!("{folder}/revoked.txt"));
    std::fs::copy(list("pki"), list("pki/analyst")).unwrap();
    let refused = run(running, offline);
    let (text, errors) = said(&refused);
    let why = ", which signed the row, is revoked";
    assert!(!refused.status.success() && text.contains(why) && !held(&text), "{text}{errors}");
    let all = rows(running, &["--verified"]).into_iter();
    let mut own = all.filter(|row| row["window_start"] == honest["window_start"]);
    let row = own.next().unwrap();
    let says_why = row["status"].as_str().is_some_and(|status| status.ends_with(why));
    assert!(says_why && row["sum_reading"].is_null(), "{row}");
    assert_eq!(released(running, honest), (false, row));
}

/// Somebody changes a row in the file that is verified elsewhere.
fn tampered_file(running: &RunningSite, offline: &str) {
    let path = running.place.path("readings.receipts.json");
    let honest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let rows = honest["rows"].as_array().unwrap();
    let at = rows.iter().position(|row| row["sum_reading"] == "12").unwrap();
    let refuse = |change: &dyn Fn(&mut Value), why: &str| {
        let mut changed = honest.clone();
        change(&mut changed["rows"][at]);
        std::fs::write(&path, changed.to_string()).unwrap();
        let refused = run(running, offline);
        let (text, errors) = said(&refused);
        assert!(!refused.status.success() && text.contains(why), "{why}: {text}{errors}");
        assert!(errors.contains("rows do not hold"), "{errors}");
    };
    refuse(&|row| row["sum_reading"] = "13".into(), DIFFERS);
    // A sealed sum that is right does not speak for numbers beside it.
    let sealed = sealed_sum(running, &honest, &rows[at]);
    let beside = |row: &mut Value| {
        (row["sum_reading"], row["sealed"]) = ("999".into(), sealed.clone());
    };
    refuse(&beside, "the row has `sealed`, which its plan does not know");
    refuse(
        &|row| row["windows"] = 999.into(),
        "the row has `windows`, which its plan does not know",
    );
    refuse(&|row| row["status"] = "ok ".into(), "the row cannot be read");
    refuse(&|row| row["status"] = "nobody had data".into(), "the row cannot be read");
    // The receipt shows that the window opened.
    let closed = |row: &mut Value| {
        (row["sum_reading"], row["count_reading"]) = (Value::Null, Value::Null);
        row["status"] = "too few owners".into();
    };
    refuse(&closed, DIFFERS);
    std::fs::write(&path, honest.to_string()).unwrap();
    tampered_rows(running, offline, at);
    // Without rows nothing is verified.
    let none = serde_json::json!({ "rows": [] });
    let mut changed = honest.clone();
    changed["rows"] = none["rows"].clone();
    std::fs::write(&path, changed.to_string()).unwrap();
    let (_, errors) = said(&run(running, offline));
    assert!(errors.contains("nothing was checked"), "{errors}");
    std::fs::write(&path, honest.to_string()).unwrap();
}

/// The same of all rows of the file together.
fn tampered_rows(running: &RunningSite, offline: &str, at: usize) {
    let path = running.place.path("readings.receipts.json");
    let honest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let refuse_all = |change: &dyn Fn(&mut Vec<Value>), why: &str| {
        let mut changed = honest.clone();
        change(changed["rows"].as_array_mut().unwrap());
        std::fs::write(&path, changed.to_string()).unwrap();
        let refused = run(running, offline);
        let (text, errors) = said(&refused);
        assert!(!refused.status.success() && text.contains(why), "{why}: {text}{errors}");
    };
    let signed = "there is a receipt of this window, and ";
    refuse_all(&|rows| drop(rows.remove(at)), signed);
    refuse_all(&|rows| rows.push(rows[at].clone()), "another row of this window");
    // A receipt that cannot be read shows as much.
    unreadable_receipt(&mut honest.clone(), at, &path);
    let (text, errors) = said(&run(running, offline));
    assert!(
        text.contains(signed) && errors.contains("the receipts of 1 windows"),
        "{text}{errors}"
    );
    std::fs::write(&path, honest.to_string()).unwrap();
}

/// The file has neither a row of a window nor a receipt of it that can be read.
fn unreadable_receipt(evidence: &mut Value, at: usize, path: &Path) {
    let row = evidence["rows"].as_array_mut().unwrap().remove(at);
    let start = row["window_start"].as_u64().unwrap();
    let of_row = |digits: &Value| {
        let bytes = HEXLOWER.decode(digits.as_str().unwrap().as_bytes()).unwrap();
        let membership = Receipt::from_bytes(&bytes).unwrap().membership;
        let own = membership.dangerous_unverified().unwrap();
        (own.plan.to_string(), own.window.start.0 / 1000) == (text_of(&row["plan"]), start)
    };
    let receipts = evidence["receipts"].as_array_mut().unwrap();
    let before = receipts.len();
    receipts.retain(|digits| !of_row(digits));
    assert_eq!(receipts.len(), before - 1);
    evidence["unreadable"] = serde_json::json!([[row["plan"], start]]);
    std::fs::write(path, evidence.to_string()).unwrap();
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Who gives the file away has left the schema out. There is a note, and nothing to compare it with.
fn without_schema(running: &RunningSite, offline: &str) {
    let path = running.place.path("readings.receipts.json");
    let honest = std::fs::read_to_string(&path).unwrap();
    for format in [1, 2] {
        let mut changed: Value = serde_json::from_str(&honest).unwrap();
        changed.as_object_mut().unwrap().remove("schema");
        changed["format"] = format.into();
        std::fs::write(&path, changed.to_string()).unwrap();
        let refused = run(running, offline);
        let (text, errors) = said(&refused);
        let why = "the file has no schema";
        assert!(!refused.status.success() && text.contains(why), "{text}{errors}");
        assert!(text.starts_with("rows of Readings\n") && !text.contains(SIGNED), "{text}");
    }
    std::fs::write(&path, honest).unwrap();
}

/// The rows are of another statement than the consumer's, as its note has it. Without a note, what they
/// say is printed, and nobody has compared it. Others cannot read the file.
fn another_statement(running: &RunningSite, commands: [&String; 2]) {
    let file = running.place.path("readings.receipts.json");
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let noted = running.place.path("pki/analyst/verified.known");
    let note = std::fs::read_to_string(&noted).unwrap();
    let changed = note.replace("SUM(reading)", "VAR(reading) AS sum_reading");
    assert_ne!(changed, note);
    let meaning =
        "in the next rows sum_reading is the total reading in kWh, count_reading is the number";
    for command in commands {
        std::fs::write(&noted, &changed).unwrap();
        let refused = run(running, command);
        let (text, errors) = said(&refused);
        let why =
            "does not hold: the plan of the row is not what you asked for: its columns differ";
        assert!(!refused.status.success() && text.contains(why), "{text}{errors}");
        assert!(!text.contains(SIGNED), "{text}");
        std::fs::remove_file(&noted).unwrap();
        let (text, errors) = said(&run(running, command));
        assert!(text.contains(meaning) && text.contains(SIGNED), "{text}{errors}");
        assert_eq!(text.matches(meaning).count(), 1, "{text}");
        std::fs::write(&noted, &note).unwrap();
        let (text, errors) = said(&run(running, command));
        assert!(text.contains(SIGNED) && !text.contains(meaning), "{text}{errors}");
    }
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

/// What a row would have as its sealed sum if its plan sealed it: all of it is public.
fn sealed_sum(running: &RunningSite, evidence: &Value, row: &Value) -> Value {
    let identity = open_identity(&running.place.path("pki/analyst"), Role::Consumer).unwrap();
    let deployment = deployment::of(&identity).unwrap();
    let of_row = |announced: &Arc<AnnouncedPlan>| announced.id().to_string() == row["plan"];
    let plans = evidence["plans"].as_array().unwrap().iter();
    let mut plans = plans.map(|plan| open_plan(&text_of(plan), &deployment).unwrap());
    let announced = plans.find(of_row).unwrap();
    let window = window_of(&announced, row["window_start"].as_u64().unwrap()).unwrap();
    let receipts = evidence["receipts"].as_array().unwrap().iter();
    let read = |digits| Receipt::from_bytes(&HEXLOWER.decode(text_of(digits).as_bytes()).unwrap());
    let mut verified =
        receipts.filter_map(|digits| read(digits).ok()?.verify(&announced, window).ok());
    let sealed = verified.next().unwrap().sealed();
    serde_json::json!({ "to": "analyst", "sum": HEXLOWER.encode(&sealed.to_bytes()) })
}

/// The plan is another one than the consumer's own statement asks for, as the consumer's note has it.
fn another_plan_than_asked(running: &RunningSite) {
    let noted = running.place.path("pki/analyst/verified.known");
    let note = std::fs::read_to_string(&noted).unwrap();
    let changed = note.replace("SUM(reading)", "VAR(reading) AS sum_reading");
    assert_ne!(changed, note);
    std::fs::write(&noted, changed).unwrap();
    let refused = rows(running, &[]);
    let why = "refused: the plan of the row is not what you asked for: its columns differ";
    let of_data = refused.iter().filter(|row| row["population"] == 3).collect::<Vec<_>>();
    assert!(!of_data.is_empty() && of_data.iter().all(|row| row["status"] == why), "{refused:?}");
    assert!(of_data.iter().all(|row| row["sum_reading"].is_null()), "{refused:?}");
    std::fs::write(&noted, note).unwrap();
}

/// The service goes on with another plan of the same statement than it named when it began the query. Here
/// the note names another, which looks the same to its readers.
fn another_plan_than_begun(running: &RunningSite, commands: [&String; 2]) {
    let noted = running.place.path("pki/analyst/verified.known");
    let note = std::fs::read_to_string(&noted).unwrap();
    let last: Value = serde_json::from_str(note.lines().next_back().unwrap()).unwrap();
    assert_eq!(last["plans"].as_array().map(Vec::len), Some(1), "{note}");
    let begun = text_of(&last["plans"][0]);
    std::fs::write(&noted, note.replace(&begun, &"0".repeat(begun.len()))).unwrap();
    let why = "the service did not name the plan of the row when it began your query; if an answer to that \
               was lost, drop the query and ask again";
    let refused = rows(running, &[]);
    let of_data = refused.iter().filter(|row| row["population"] == 3).collect::<Vec<_>>();
    let status = format!("refused: {why}");
    assert!(
        !of_data.is_empty() && of_data.iter().all(|row| row["status"] == status),
        "{refused:?}"
    );
    assert!(of_data.iter().all(|row| row["sum_reading"].is_null()), "{refused:?}");
    for command in commands {
        let refused = run(running, command);
        let (text, errors) = said(&refused);
        assert!(!refused.status.success() && text.contains(why), "{text}{errors}");
        assert!(!text.contains(SIGNED), "{text}");
    }
    std::fs::write(&noted, note).unwrap();
}

/// Writes three rows more for an honest one's window into the stopped service's store: another number, the
/// same without receipts, and the honest one again.
fn publish_unsigned(running: &mut RunningSite, honest: &Value) {
    running.publish(|stored| {
        let same = |row: &&Row| Some(row.window_start) == honest["window_start"].as_u64();
        let again = stored.iter().find(same).unwrap().clone();
        let mut other = again.clone();
        other.outputs[0].1 = "999".into();
        let plain = Row { verified: None, ..other.clone() };
        vec![other, plain, again]
    });
}

/// The service publishes rows that nobody has signed: another number, and one that it says is not
/// verified.
fn tampered_store(running: &mut RunningSite, honest: &Value, verify: &str) {
    publish_unsigned(running, honest);
    // Windows without data follow.
    // The consumer has noted that it asked for verified rows, so it refuses what the service calls
    // plain. Without the note it does if `--verified` says so.
    let noted = running.place.path("pki/analyst/verified.known");
    assert!(std::fs::read_to_string(&noted).unwrap().contains("Readings"));
    for (notes, more) in [(true, &[][..]), (false, &["--verified"])] {
        if !notes {
            std::fs::remove_file(&noted).unwrap();
        }
        let [first, other, plain, again] = of_window(rows(running, more), honest);
        assert_eq!(other["status"], format!("refused: {DIFFERS}"));
        assert!(other["sum_reading"].is_null() && other["integrity"] == "refused", "{other}");
        assert_eq!(plain["status"], "refused: the service says that the row is not verified");
        assert!(plain["sum_reading"].is_null(), "{plain}");
        // Who adds rows up would count it twice.
        let twice = "refused: the service has published another row of this window";
        assert!(again["status"] == twice && again["sum_reading"].is_null(), "{again}");
        // The honest row holds as before.
        assert!(first["integrity"] == SIGNED && first["sum_reading"] == "12", "{first}");
    }
    let [_, _, plain, _] = of_window(rows(running, &[]), honest);
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
