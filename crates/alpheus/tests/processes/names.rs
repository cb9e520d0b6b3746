//! Names in quotes and of any letters, from the statement to the rows, over processes; and rows of two
//! statements that have one name after the other.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::{QUERY, RunningSite, until};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

const NAME: &str = "Größe \"Ä/B\" 50%?";
const COLUMN: &str = "Σ of, it";

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What the prompt says to these lines.
fn prompt(running: &RunningSite, lines: &str) -> String {
    let reach =
        ["sql", "--server", &running.server, "--identity", "pki/analyst", "--format", "csv"];
    let mut command = running.place.command(&reach);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn any_name_is_read_shown_and_dropped() {
    let running = RunningSite::start();
    let statement = QUERY
        .replace("Readings", &quoted(NAME))
        .replace("SUM(reading)", &format!("SUM(reading) AS {}", quoted(COLUMN)));
    let explained = running.place.ask(&running.server, &format!("EXPLAIN {statement}"));
    let said = String::from_utf8(explained.stdout).unwrap();
    assert!(said.contains(&format!("{COLUMN}: total reading")), "{said}");
    assert!(running.place.ask(&running.server, &statement).status.success());
    let devices = running.feed();
    let row = until("a window over three", || {
        let rows = running.place.rows_of(&running.server, NAME).into_iter();
        rows.rev().find(|row| row["population"] == 3 && row["status"] == "ok")
    });
    assert_eq!((row[COLUMN].as_str(), row["count_reading"].as_u64()), (Some("12"), Some(6)));
    drop(devices);
    let csv = prompt(&running, &format!("\\r {}\n", quoted(NAME)));
    let mut read = csv::Reader::from_reader(csv.as_bytes());
    assert!(read.headers().unwrap().iter().any(|name| name == COLUMN), "{csv}");
    assert!(csv.contains(",12,"), "{csv}");
    let dropped = running.place.ask(&running.server, &format!("DROP STREAM {}", quoted(NAME)));
    assert!(dropped.status.success(), "{}", String::from_utf8_lossy(&dropped.stderr));
    one_name_after_the_other(&running, &statement);
}

/// Rows of an earlier statement do not stand among those of the one that has its name now.
fn one_name_after_the_other(running: &RunningSite, first: &str) {
    let ask = |sql: &str| {
        let asked = running.place.ask(&running.server, sql);
        assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    };
    let rows = || running.place.rows_of(&running.server, NAME);
    let with =
        |rows: &[Value], column: &str| rows.iter().filter(|row| row.get(column).is_some()).count();
    let before = rows().len();
    ask(first);
    assert!(rows().len() >= before, "the same statement goes on with its rows");
    ask(&format!("DROP STREAM {}", quoted(NAME)));
    ask(&first.replace(&quoted(COLUMN), "other"));
    let later = until("a row of the second statement", || {
        let later = rows();
        (with(&later, "other") > 0).then_some(later)
    });
    assert_eq!(with(&later, COLUMN), 0, "{later:?}");
}
