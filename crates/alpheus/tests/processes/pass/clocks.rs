//! Wall clocks that go back while servers run.

use crate::common::clock::faketime;
use crate::pass::town::{Town, until};
use std::fs;

/// What was served before would count as not served yet: nothing is served until
/// the clock is where it was.
#[test]
fn a_clock_that_goes_back_serves_nobody() {
    let Some(library) = faketime() else { return };
    let mut town = Town::new("3", 1, &[]);
    town.in_machine_time = true;
    town.skewed = Some(library);
    let _all = town.all();
    town.subscriber("ada");
    town.copy("ada", "eve");
    let mut ada = town.connected("ada");
    assert_eq!(ada.get("/").0, 200);
    let set = |server: &str, by: &str| {
        fs::write(town.path(&format!("{server}.clock")), by).unwrap();
    };
    // The gateway's: it says so, to a session that lives.
    set("gateway", "-60");
    let (status, answer) = ada.get("/");
    assert!(status == 503 && answer.contains("clock went back"), "{answer}");
    set("gateway", "+0");
    until("an answer", || (ada.get("/").0 == 200).then_some(()));
    // The verifier's: nobody is carried on, and nobody gets in, with a copy neither.
    set("verifier", "-60");
    let says = |line: &str| line.contains("clock went back").then_some(());
    ada.process.wait_for("refusal", says);
    let mut eve = town.client("eve", &[]);
    eve.process.wait_for("refusal", says);
    drop(eve);
    set("verifier", "+0");
    until("a session again", || (ada.get("/").0 == 200).then_some(()));
}
