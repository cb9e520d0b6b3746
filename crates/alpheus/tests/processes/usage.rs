//! How commands are used from a shell: a query as text, results on standard output, rows that are
//! refused, and a device that sends its own stream of a recording.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use crate::common::deployment::{HOUSES, RunningSite};
use crate::common::recording::Recording;
use crate::common::terminal::{END, Terminal};
use std::fs;
use std::path::Path;
use std::process::Command;

/// `alpheus replay` over the files of a folder.
fn replay(folder: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command: Command = alpheus(["replay"]);
    command.current_dir(folder).args(["--schema", "schema.yaml", "--source", "source.yaml"]);
    command.args(["--policies", "policies.yaml", "--input", "data.csv"]).args(more);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const SELECT: &str = "SELECT SUM(reading) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters";

#[test]
fn a_query_is_text_and_its_rows_go_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    Recording::made(2, 3).write(folder.path());
    let (code, csv, log) = replay(folder.path(), &["--query", SELECT, "--output", "-"]);
    assert_eq!(code, Some(0), "{log}");
    assert!(csv.starts_with("window_start,window_end,sum_reading,population,"), "{csv}");
    assert_eq!(csv.lines().count(), 4, "{csv}");
    let json = ["--query", SELECT, "--output", "-", "--format", "json"];
    let (_, json, _) = replay(folder.path(), &json);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.len(), 3, "{json}");
    // Beside a file, its name follows from what it asks.
    let count = SELECT.replace("SUM(reading)", "COUNT(reading)");
    let (code, _, log) = replay(folder.path(), &["--query", &count, "--output", "out.json"]);
    assert_eq!(code, Some(0), "{log}");
    let (code, said, log) = replay(folder.path(), &["--query", "SELECT 1", "--output", "-"]);
    assert!(code == Some(4) && said.is_empty() && log.contains("--query: "), "{log}");
}

#[test]
fn a_console_without_a_source_is_refused_with_the_sources() {
    let refused = alpheus(["console", "--identity", "pki/analyst"]).output().unwrap();
    let log = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{log}");
    assert!(log.contains("--server <URL>") && log.contains("--controller <URL>"), "{log}");
}

#[test]
fn generated_data_goes_to_standard_output() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/household");
    let mut generate = alpheus(["generate", "--streams", "2", "--minutes", "1", "--output", "-"]);
    generate.current_dir(example).args(["--schema", "schema.yaml", "--profile", "profile.yaml"]);
    let output = generate.output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 121);
}

#[test]
fn too_many_refused_rows_are_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    Recording::made(1, 1).write(folder.path());
    let good = (0..999).map(|row| format!("{},m{row},5\n", 1_700_000_000 + row % 10));
    let rows = |bad: usize| {
        let bad = (0..bad).map(|row| format!("1700000000,b{row},many\n"));
        "time,meter,reading\n".to_owned() + &good.clone().chain(bad).collect::<String>()
    };
    let ask = |most: &[&str]| {
        let out = ["--query", "sum.sql", "--output", "out.csv"];
        replay(folder.path(), &[&out, most].concat())
    };
    fs::write(folder.path().join("data.csv"), rows(2)).unwrap();
    let (code, _, log) = ask(&[]);
    assert_eq!(code, Some(4), "{log}");
    assert!(log.contains("2 of 1001 rows were refused") && log.contains("--max-refused"), "{log}");
    assert!(!folder.path().join("out.csv").exists(), "nothing is replayed");
    let (code, _, log) = ask(&["--max-refused", "1%"]);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("refused 2 rows: not a decimal number"), "{log}");
    // One of a thousand is few enough.
    fs::write(folder.path().join("data.csv"), rows(1)).unwrap();
    assert_eq!(ask(&[]).0, Some(0));
}

#[test]
fn rows_that_repeat_are_kept_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    Recording::made(1, 1).write(folder.path());
    let rows = "time,meter,reading\n1700000000,a,5\n1700000000,a,5\n1700000001,a,6\n";
    fs::write(folder.path().join("data.csv"), rows).unwrap();
    let (code, said, log) = replay(folder.path(), &["--query", SELECT, "--output", "-"]);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("1 row equals an earlier one in every cell; all are kept"), "{log}");
    assert!(said.contains(",16,"), "5, 5 and 6: {said}");
}

/// At a terminal, a mistyped answer is asked for again, and the end of the input ends the command.
#[test]
fn questions_that_are_not_answered_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.csv");
    let rows = "shop,day,orders\nnorth,03/04/2024,10\nsouth,03/04/2024,20\nnorth,05/04/2024,30\n";
    fs::write(&file, rows).unwrap();
    let output = folder.path().join("orders");
    let program = env!("CARGO_BIN_EXE_alpheus");
    let line = format!("{program} init {} --output {}", file.display(), output.display());
    let Some(mut terminal) = Terminal::start(&line) else { return };
    terminal.types("", "Your answer", "--day-frist\r");
    terminal.types("--day-first", "Your answer", END);
    let (status, said) = terminal.ends();
    assert_eq!(status.code(), Some(6), "{said}");
    assert!(said.contains("An answer is an option") && !said.contains("Usage:"), "{said}");
    assert!(said.contains("nothing was written") && said.contains("`--yes`"), "{said}");
    assert!(!output.exists());
}

/// Each device finds its own rows in a file of other columns, and is online for whole windows.
#[test]
fn devices_send_their_streams_of_a_recording() {
    let running = RunningSite::start();
    let sql = "CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading) \
               WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters \
               BETWEEN 3 AND 100";
    assert!(running.place.ask(&running.server, sql).status.success());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let begin = now.as_secs() / 2 * 2 + 4;
    let mut rows = vec!["who;when;kWh".to_owned()];
    for at in begin..begin + 60 {
        for (number, house) in HOUSES.iter().enumerate() {
            rows.push(format!("{house};{at};{}", number + 1));
        }
    }
    // One row of another stream, and one that is none. They need no order.
    rows.extend([format!("d;{begin};900"), format!("a;{begin};many")]);
    rows[1..].reverse();
    let source = "schema: Meters\nfile: { delimiter: ';' }\ntime: { column: when }\nstream: who\n\
                  attributes: { reading: kWh }\n";
    fs::write(running.place.path("rows.csv"), rows.join("\n") + "\n").unwrap();
    fs::write(running.place.path("source.yaml"), source).unwrap();
    let produce = |house: &str, more: &[&str]| {
        let (identity, device) = (format!("pki/meter-{house}"), format!("{house}.device"));
        let state = format!("run/meter-{house}");
        let own = ["produce", "--identity", &identity, "--device", &device, "--state", &state];
        let to = ["--schema", "schema.yaml", "--server", &running.server];
        let from = ["--input", "rows.csv", "--source", "source.yaml"];
        running.place.command(&[&own[..], &to, &from, more].concat())
    };
    let unclear = produce("a", &[]).output().unwrap();
    let said = String::from_utf8_lossy(&unclear.stderr).into_owned();
    assert_eq!(unclear.status.code(), Some(4), "{said}");
    assert!(said.contains("the recording has 4 streams") && said.contains("--key"), "{said}");
    assert!(said.contains("refused 1 row: not a decimal number"), "{said}");
    let start = |house: &&str| {
        let whole = ["--key", house, "--whole-windows", "2s"];
        crate::common::Process::start(&mut produce(house, &whole))
    };
    let _devices: Vec<_> = HOUSES.iter().map(start).collect();
    let row = running.row(3);
    assert_eq!((&row["sum_reading"], &row["count_reading"]), (&"12".into(), &6.into()), "{row}");
}

/// At a terminal an error has colours, unless the reader wants none. `NO_COLOR` decides if it is set and not empty.
#[test]
fn errors_have_no_colours_for_who_wants_none() {
    let program = env!("CARGO_BIN_EXE_alpheus");
    for (variable, is_coloured) in [("", true), ("NO_COLOR= ", true), ("NO_COLOR=1 ", false)] {
        let line = format!("env -u NO_COLOR TERM=xterm {variable}{program} errors no-such-id");
        let Some(terminal) = Terminal::start(&line) else { return };
        let (status, said) = terminal.ends();
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(said.contains("there is no error `no-such-id`"), "{said}");
        let colours = ["\u{1b}[1m\u{1b}[31merror:", "\u{1b}[36mhelp:", "\u{1b}[2mmore:"];
        for colour in colours {
            assert_eq!(said.contains(colour), is_coloured, "{variable}{colour:?}: {said:?}");
        }
        assert_eq!(said.contains('\u{1b}'), is_coloured, "{variable}: {said:?}");
    }
}
