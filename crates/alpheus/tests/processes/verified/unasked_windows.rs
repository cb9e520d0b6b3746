//! What an owner reads of windows that the service did not ask about.

use super::asked;
use crate::common::deployment::until_or;

/// A house's meter is off. Windows open without it, and its owner's log names them; to the owner it looks as if the
/// service had left the house out, since nothing tells the two apart.
#[test]
fn an_owner_reads_of_windows_that_their_controller_was_not_asked_about() {
    let running = asked();
    let devices = running.feed_of([0, 1]);
    running.row(2);
    let line = |house: usize| {
        let log = running.owner(house, "log");
        log.lines()
            .find(|line| line.contains("the service did not ask about you in "))
            .map(str::to_owned)
    };
    let why = || format!("no such line: {}", running.owner(2, "log"));
    let said = until_or(why, || line(2));
    let reasons =
        "either there is no row, or your devices or your controller were off, or it left you out";
    assert!(said.contains("for `Readings`: ") && said.ends_with(reasons), "{said}");
    drop(devices);
}
