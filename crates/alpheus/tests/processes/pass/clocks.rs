//! Wall clocks that go back while servers run.

use crate::common::clock::faketime;
use crate::common::in_some_attempt;
use crate::pass::town::{Town, until};
use std::fs;

/// Earlier sessions would count as not served yet: nothing is served until
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
    let ada = town.connected("ada");
    let set = |server: &str, by: &str| {
        fs::write(town.path(&format!("{server}.clock")), by).unwrap();
    };
    // The gateway's: it says so, to a session that lives. On a loaded machine it may end before that.
    in_some_attempt("an answer to a session that lives", || {
        until("an answer", || (ada.get("/").0 == 200).then_some(()));
        set("gateway", "-60");
        let (status, answer) = ada.get("/");
        set("gateway", "+0");
        let lives = !answer.contains("session-over");
        let says_so = status == 503 && answer.contains("clock was set back");
        assert!(!lives || says_so, "{answer}");
        lives.then_some(())
    });
    until("an answer", || (ada.get("/").0 == 200).then_some(()));
    // The verifier's: nobody is carried on, and nobody gets in, with a copy neither.
    let says = |line: &str| line.contains("clock was set back").then_some(());
    let said = || ada.process.log().lines().filter_map(says).count();
    let before = said();
    set("verifier", "-60");
    until("a refusal", || (said() > before).then_some(()));
    let mut eve = town.client("eve", &[]);
    eve.process.wait_for("refusal", says);
    drop(eve);
    set("verifier", "+0");
    until("a session again", || (ada.get("/").0 == 200).then_some(()));
}
