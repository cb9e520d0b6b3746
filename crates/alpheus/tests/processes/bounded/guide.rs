//! The commands of `docs/integrity.md` about bounded queries, and what clients refuse.

use super::{BOUNDED, QUERY, opened, row_that, text};
use crate::common::deployment::{RunningSite, Site};
use crate::verified::{commands, run, said};
use alpheus_encrypted_stream::receipt::{Receipt, WindowReceipt};
use data_encoding::HEXLOWER;
use serde_json::Value;

const DIFFERS: &str = "the row differs from what the controllers have signed";

/// What is in the file that `alpheus verify` has written.
fn file(running: &RunningSite) -> (std::path::PathBuf, Value) {
    let path = running.place.path("loads.receipts.json");
    let evidence = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    (path, evidence)
}

#[test]
fn bounded_rows_hold_and_what_a_service_changes_is_refused() {
    let mut running = RunningSite::start_in(Site::with_ticks(), |_, api| api.to_owned());
    let bounded = commands().into_iter().skip(4).collect::<Vec<_>>();
    let [explain, ask, read, verify, offline] = <[String; 5]>::try_from(bounded).unwrap();
    assert!(ask.contains(QUERY), "the guide asks for {QUERY}");
    let (explained, errors) = said(&run(&running, &explain));
    let proven = "bounded: for each owner's window, controllers prove: ";
    let left = "up to 3 controllers, each of which could change it by its owners' bounds";
    assert!(explained.contains(proven) && explained.contains(left), "{explained}{errors}");
    let noted = running.place.path("pki/analyst/verified.known");
    assert!(!noted.exists(), "nothing was asked for yet");
    let (_, errors) = said(&run(&running, &ask));
    let devices = running.feed();
    let row = row_that(&running, "bounded row", |row| opened(row, 3));
    assert_eq!(row["integrity"], BOUNDED, "{row} {errors}");
    assert_eq!((text(&row, "sum_reading"), row["count_reading"].as_u64()), ("12", Some(6)));
    let (shown, _) = said(&run(&running, &read));
    assert!(shown.contains(BOUNDED), "{shown}");
    drop(devices);
    let verified = run(&running, &verify);
    let (text, errors) = said(&verified);
    assert!(verified.status.success() && text.contains(BOUNDED), "{text}{errors}");
    assert!(run(&running, &offline).status.success());
    changed_file(&running, &offline);
    changed_store(&mut running, &row);
}

/// Somebody changes the file: a row, its receipt, or what its bounds follow from.
fn changed_file(running: &RunningSite, offline: &str) {
    let (path, honest) = file(running);
    let refuse = |change: &dyn Fn(&mut Value), why: &str| {
        let mut changed = honest.clone();
        change(&mut changed);
        std::fs::write(&path, changed.to_string()).unwrap();
        let refused = run(running, offline);
        let (text, errors) = said(&refused);
        assert!(!refused.status.success() && text.contains(why), "{why}: {text}{errors}");
        assert!(!text.contains(BOUNDED), "{why}: {text}");
    };
    let all = |change: &dyn Fn(&mut Value), evidence: &mut Value| {
        evidence["rows"].as_array_mut().unwrap().iter_mut().for_each(change);
    };
    refuse(&|own| all(&|row| row["sum_reading"] = "13".into(), own), DIFFERS);
    // Without a receipt, or with one that has no proofs, there is no bounded row.
    let none = "the service has no receipt of this window";
    refuse(&|own| own["receipts"] = Value::Array(Vec::new()), none);
    let without = "the receipt has no proofs";
    refuse(&|own| each_receipt(own, without_proofs), without);
    refuse(&|own| each_receipt(own, with_another_proof), "is not signed by it");
    refuse(&|own| own["schema"] = Value::Null, "the file has no schema");
    std::fs::write(&path, honest.to_string()).unwrap();
    assert!(run(running, offline).status.success());
}

/// Changes each receipt of a file.
fn each_receipt(evidence: &mut Value, change: impl Fn(WindowReceipt) -> WindowReceipt) {
    for digits in evidence["receipts"].as_array_mut().unwrap() {
        let bytes = HEXLOWER.decode(digits.as_str().unwrap().as_bytes()).unwrap();
        let receipt = WindowReceipt::from_bytes(&bytes).unwrap();
        *digits = HEXLOWER.encode(&change(receipt).to_bytes()).into();
    }
}

/// M and S alone, as a verified window's receipt has them.
fn without_proofs(receipt: WindowReceipt) -> WindowReceipt {
    let WindowReceipt::Bounded(own) = receipt else { panic!("{receipt:?}") };
    let opening_set = Some(own.opening_set);
    let (shares, exclusions, listing) = (Vec::new(), own.exclusions, None);
    Receipt { membership: own.membership, opening_set, shares, exclusions, listing }.into()
}

/// With the contributions of two controllers swapped.
fn with_another_proof(receipt: WindowReceipt) -> WindowReceipt {
    let WindowReceipt::Bounded(mut own) = receipt else { panic!("{receipt:?}") };
    let first = own.shares[0].contribution.clone();
    own.shares[0].contribution = own.shares[1].contribution.clone();
    own.shares[1].contribution = first;
    own.into()
}

/// The service publishes rows that nobody has proven: another number; one without a receipt; and one that it
/// says is only verified, or plain.
fn changed_store(running: &mut RunningSite, honest: &Value) {
    running.publish(|stored| {
        let same = |row: &&alpheus_stream_runtime::results::Row| {
            Some(row.window_start) == honest["window_start"].as_u64()
        };
        let mut other = stored.iter().find(same).unwrap().clone();
        other.outputs[0].1 = "999".into();
        let verified = alpheus_stream_runtime::results::Row { bounded: false, ..other.clone() };
        let plain = alpheus_stream_runtime::results::Row { verified: None, ..verified.clone() };
        let mut unproven = other.clone();
        // Of a window that never was, so there is no receipt of it.
        unproven.window_start += 3_600_000;
        unproven.window_end += 3_600_000;
        vec![other, verified, plain, unproven]
    });
    let shown = running.place.rows_of(&running.server, "Loads");
    let of_window = |start: u64| -> Vec<&Value> {
        shown.iter().filter(|row| row["window_start"] == start).collect()
    };
    let start = honest["window_start"].as_u64().unwrap();
    let rows = of_window(start);
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert!(rows[0]["integrity"] == BOUNDED && rows[0]["sum_reading"] == "12", "{rows:?}");
    for other in [rows[1], rows[2]] {
        assert_eq!(text(other, "status"), format!("refused: {DIFFERS}"));
    }
    assert_eq!(text(rows[3], "status"), "refused: the service says that the row is not verified");
    let unproven = of_window(start + 3_600_000);
    let why = "refused: the service has no receipt of this window, or no longer keeps it";
    assert_eq!((unproven.len(), text(unproven[0], "status")), (1, why), "{unproven:?}");
    for row in rows[1..].iter().chain(&unproven) {
        assert!(row["sum_reading"].is_null() && row["integrity"] == "refused", "{row}");
    }
}
