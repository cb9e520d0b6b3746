//! A service that lies to its consumer while it runs: every program that reads its rows refuses them, and says why.

use super::{DIFFERS, SIGNED, asked, said};
use crate::common::alpheus;
use crate::common::deployment::{RunningSite, until};
use crate::common::route_server::between;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::receipt::Receipt;
use alpheus_stream_runtime::receipts::ReceiptPart;
use axum::http::Uri;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// What it changes in an answer to a request, by the end of the request's path.
type Change = fn(&str, &mut Value);

/// Each lie, what readers of rows say of it, and who verifies all rows: that finds plans and receipts by what they
/// are of, whatever the service calls them.
const LIES: [(Change, &str, Option<&str>); 8] = [
    (another_number, DIFFERS, Some(DIFFERS)),
    (another_population, DIFFERS, Some(DIFFERS)),
    (plain, "the service says that the row is not verified", Some("not verified")),
    (no_receipts, NO_RECEIPT, Some(NO_RECEIPT)),
    (swapped_shares, "the share of controller 0 is not signed by it", Some("is not signed by it")),
    (other_windows, "the receipt is for the window ", None),
    (other_members, "the membership is not signed by the service", Some("signed by the service")),
    (changed_plan, "the plan of the row does not check out: ", Some(NO_RECEIPT)),
];
const NO_RECEIPT: &str = "the service has no receipt of this window";

/// The rows of an answer.
fn rows_of<'a>(path: &str, answer: &'a mut Value) -> impl Iterator<Item = &'a mut Value> {
    let rows = path.ends_with("/results").then(|| answer["rows"].as_array_mut()).flatten();
    rows.into_iter().flatten().filter(|row| row["population"] == 3)
}

fn another_number(path: &str, answer: &mut Value) {
    rows_of(path, answer).for_each(|row| row["sum_reading"] = "13".into());
}

fn another_population(path: &str, answer: &mut Value) {
    rows_of(path, answer).for_each(|row| row["population"] = 4.into());
}

/// It says that the query has no integrity, and so do its rows.
fn plain(path: &str, answer: &mut Value) {
    rows_of(path, answer).for_each(|row| {
        let row = row.as_object_mut().unwrap();
        row.shift_remove("integrity");
        row.shift_remove("plan");
    });
    if path.ends_with("/queries") {
        let queries = answer.as_array_mut().into_iter().flatten();
        queries.for_each(|query| query["verified"] = false.into());
    }
}

fn no_receipts(path: &str, answer: &mut Value) {
    if path.ends_with("/receipts") {
        *answer = json!({ "parts": [], "next": 0 });
    }
}

/// The parts of receipts in an answer. Receipts are small enough to have one each.
fn parts_of<'a>(path: &str, answer: &'a mut Value) -> Vec<(&'a mut Value, ReceiptPart)> {
    let parts = path.ends_with("/receipts").then(|| answer["parts"].as_array_mut()).flatten();
    let read = |digits: &'a mut Value| {
        let bytes = HEXLOWER.decode(digits.as_str().unwrap().as_bytes()).unwrap();
        let part: ReceiptPart = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(part.parts, 1);
        (digits, part)
    };
    parts.into_iter().flatten().map(read).collect()
}

/// Changes each receipt.
fn receipts(path: &str, answer: &mut Value, change: impl Fn(&mut Receipt)) {
    for (digits, mut part) in parts_of(path, answer) {
        let mut receipt = Receipt::from_bytes(&part.bytes).unwrap();
        change(&mut receipt);
        part.bytes = receipt.to_bytes();
        *digits = HEXLOWER.encode(&postcard::to_allocvec(&part).unwrap()).into();
    }
}

fn swapped_shares(path: &str, answer: &mut Value) {
    receipts(path, answer, |receipt| receipt.shares.swap(0, 1));
}

/// The membership is signed by somebody else.
fn other_members(path: &str, answer: &mut Value) {
    let key = SigningKey::from_seed(&Secret::from_bytes([7; 32]));
    receipts(path, answer, |receipt| {
        let own = receipt.membership.dangerous_unverified().unwrap();
        receipt.membership = Signed::new(&own, &key);
    });
}

/// Receipts are those of other windows.
fn other_windows(path: &str, answer: &mut Value) {
    let mut parts = parts_of(path, answer);
    let mut receipts: Vec<_> = parts.iter().map(|(_, part)| part.bytes.clone()).collect();
    if receipts.is_empty() {
        return;
    }
    receipts.rotate_left(1);
    for ((digits, part), bytes) in parts.iter_mut().zip(receipts) {
        part.bytes = bytes;
        **digits = HEXLOWER.encode(&postcard::to_allocvec(part).unwrap()).into();
    }
}

/// One bit of its signature is another.
fn changed_plan(path: &str, answer: &mut Value) {
    if path.contains("/plans/") {
        let digits = answer["announcement"].as_str().unwrap();
        let last = if digits.ends_with('0') { "1" } else { "0" };
        answer["announcement"] = format!("{}{last}", &digits[..digits.len() - 1]).into();
    }
}

/// A row as each program shows it: `alpheus query`, for people and for programs, and `alpheus sql`.
fn shown(running: &RunningSite, server: &str, more: &[&str], honest: &Value) -> [Value; 3] {
    let reach = ["--server", server, "--identity", "pki/analyst", "--format", "json"];
    let query = |read: &[&str]| running.place.done(&[&["query"], &reach[..], read, more].concat());
    let results = query(&["--results", "Readings"]);
    let released = query(&["--released"]);
    let mut sql = alpheus([&["sql"], &reach[..], more].concat());
    sql.current_dir(running.place.path("."));
    let mut sql = sql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    sql.stdin.take().unwrap().write_all(b"\\r Readings\n").unwrap();
    let typed = sql.wait_with_output().unwrap();
    let (typed, _) = said(&typed);
    let row_in = |lines: &str| {
        let rows = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let flat = rows.map(|line| match line["row"].is_object() {
            true => {
                assert!(
                    line["row"]["checked"] == (line["row"]["row"]["integrity"] == SIGNED),
                    "{line}"
                );
                line["row"]["row"].clone()
            }
            false => line,
        });
        let mut own = flat.filter(|row| row["window_start"] == honest["window_start"]);
        let row = own.next().unwrap();
        assert!(own.next().is_none(), "{lines}");
        row
    };
    [&results, &released, &typed].map(|lines| row_in(lines))
}

#[test]
fn a_service_that_lies_to_its_consumer_is_refused_by_every_reader() {
    let running = asked();
    let devices = running.feed();
    let honest = running.row(3);
    until("another row", || {
        let opened = |row: &&Value| row["status"] == "ok" && row["population"] == 3;
        let rows = running.place.rows(&running.server);
        (rows.iter().filter(opened).count() > 1).then_some(())
    });
    drop(devices);
    for row in shown(&running, &running.server, &[], &honest) {
        assert!(row == honest && row["integrity"] == SIGNED, "{row}");
    }
    for (lie, why, of_all) in LIES {
        let change = move |uri: &Uri, answer: &mut Value| lie(uri.path(), answer);
        let (_trigger, server) = between(&running, change);
        for row in shown(&running, &server, &[], &honest) {
            refused(&row, why);
        }
        let reach =
            ["verify", "--server", &server, "--identity", "pki/analyst", "--query", "Readings"];
        let checked = running.place.run(&reach);
        let (text, errors) = said(&checked);
        let holds = checked.status.success() && text.contains(SIGNED);
        assert_eq!(holds, of_all.is_none(), "{why}: {text}{errors}");
        if let Some(of_all) = of_all {
            assert!(text.contains(of_all) && !text.contains(SIGNED), "{of_all}: {text}{errors}");
        }
    }
    without_a_note(&running, &honest);
}

fn refused(row: &Value, why: &str) {
    let status = row["status"].as_str().unwrap();
    assert!(status.starts_with(&format!("refused: {why}")), "{why}: {row}");
    assert!(row["integrity"] == "refused" && row["sum_reading"].is_null(), "{row}");
    assert!(row["count_reading"].is_null(), "{row}");
}

/// Where the folder has no note of the query, only `--verified` tells the programs what to refuse.
fn without_a_note(running: &RunningSite, honest: &Value) {
    std::fs::remove_file(running.place.path("pki/analyst/verified.known")).unwrap();
    let change = |uri: &Uri, answer: &mut Value| plain(uri.path(), answer);
    let (_trigger, server) = between(running, change);
    for row in shown(running, &server, &[], honest) {
        assert!(row["sum_reading"] == "12" && row.get("integrity").is_none(), "{row}");
    }
    for row in shown(running, &server, &["--verified"], honest) {
        refused(&row, "the service says that the row is not verified");
    }
}
