//! An owner in the browser: what the page says, and what each decision does to the processes.

use super::browser::Browser;
use super::until_found;
use crate::common::deployment::{RunningSite, until};
use serde_json::Value;

/// Allowed while three owners share their litres.
const LITRES: &str = "EXPLAIN CREATE STREAM Litres AS SELECT SUM(litres) \
    WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters BETWEEN 3 AND 100 \
    WITH (epsilon = 1, events = 4)";

pub(super) async fn sees_and_decides(browser: &Browser, running: &RunningSite, address: &str) {
    browser.client.goto(address).await.unwrap();
    browser.says("#who", "owner-a at https://").await;
    browser.says("article h2", "meter-a").await;
    let story = "the total reading in kWh and the number of readings of 3 people, you among them";
    let lines = browser.says(".timeline", story).await;
    assert!(lines.contains("analyst learned") && lines.contains("analyst asked for"), "{lines}");
    let noisy = browser.says(".timeline", "the total alarms").await;
    assert!(noisy.contains("blurred with noise"), "{noisy}");
    browser.says(".gauge", "ε = 3 of 3 (100 %)").await;
    browser.says(".gauge", "The last 365 days used ε = 3.").await;
    browser.is_for_everybody("owner").await;
    keeps_the_whole_record(browser, running).await;
    pauses_and_resumes(browser, running).await;
    changes_the_choice(browser, running).await;
    gives_and_ends_access(browser, running).await;
    revokes_and_erases(browser, running).await;
}

/// The lines of the log are there, as the command prints them.
async fn keeps_the_whole_record(browser: &Browser, running: &RunningSite) {
    browser.presses("details.record > summary").await;
    let record = browser.says("[aria-label$=lines] table", "`analyst` got `Readings`").await;
    assert!(record.contains("of them are real") && record.contains("opened over"), "{record}");
    assert!(running.owner(0, "log").contains("`analyst` got `Readings`"));
    browser.presses("details.record > summary").await;
}

/// The number of people in the latest window that opened after now.
fn next_population(running: &RunningSite, wanted: u64) {
    let last = |rows: &[Value]| rows.last().map_or(0, |row| row["window_start"].as_u64().unwrap());
    let before = last(&running.place.rows(&running.server));
    until("a window over so many people", || {
        let rows = running.place.rows(&running.server);
        let later = |row: &&Value| row["window_start"].as_u64().unwrap() > before;
        rows.iter().filter(later).any(|row| row["population"] == wanted).then_some(())
    });
}

async fn pauses_and_resumes(browser: &Browser, running: &RunningSite) {
    browser.decides("article", "Pause").await;
    browser.says("dialog", "No query gets a new result that includes this device").await;
    let inside = "return document.querySelector('dialog').contains(document.activeElement)";
    assert_eq!(browser.finds(inside).await, true, "the dialog has the focus");
    browser.is_for_everybody("owner-pause").await;
    browser.decides("dialog", "Pause").await;
    browser.says("article .pill", "Paused").await;
    next_population(running, 2);
    browser.decides("article", "Share again").await;
    browser.says("dialog", "Only as part of a crowd").await;
    browser.is_for_everybody("owner-share-again").await;
    browser.decides("dialog", "Sign and share").await;
    browser.says("article .pill", "Sharing").await;
    next_population(running, 3);
}

async fn changes_the_choice(browser: &Browser, running: &RunningSite) {
    let allowed = running.place.ask(&running.server, LITRES);
    assert!(allowed.status.success(), "{}", String::from_utf8_lossy(&allowed.stderr));
    signs_only_what_it_showed(browser, running).await;
    let versions = running.owner(0, "log").matches("you changed your policy").count();
    browser.decides("article", "Change what is shared").await;
    browser.says("dialog", "Only as part of a crowd, and blurred with noise").await;
    browser.is_for_everybody("owner-choice").await;
    browser.ticks("[data-attribute=litres] [data-option=metered]").await;
    browser.decides("dialog", "Sign and save").await;
    browser.says("article", "Your new choice is signed and in force.").await;
    browser.says("article", "Not shared: litres").await;
    let log = running.owner(0, "log");
    assert_eq!(log.matches("you changed your policy").count(), versions + 1, "{log}");
    until("a service that knows that two owners are left for litres", || {
        let asked = running.place.ask(&running.server, LITRES);
        (asked.status.code() == Some(3)).then_some(())
    });
}

/// The owner chooses elsewhere while a dialog is open.
async fn signs_only_what_it_showed(browser: &Browser, running: &RunningSite) {
    let version = "return document.querySelector('article').dataset.version";
    let shown = browser.finds(version).await.as_str().unwrap().to_owned();
    browser.decides("article", "Change what is shared").await;
    browser.says("dialog", "Only as part of a crowd").await;
    running.owner_with(0, "choose", &["--schema", "schema.yaml", "--policies", "policies.yaml"]);
    let versions = || running.owner(0, "log").matches("you changed your policy").count();
    let before = versions();
    browser.decides("dialog", "Sign and save").await;
    browser.says("dialog [role=alert]", "has changed since the page showed it").await;
    assert_eq!(versions(), before, "something was signed that the page did not show");
    browser.decides("dialog", "Cancel").await;
    // The page looks again every few seconds.
    let script =
        format!("return document.querySelector('article').dataset.version !== '{shown}' || null");
    until_found(browser, &script).await;
}

async fn gives_and_ends_access(browser: &Browser, running: &RunningSite) {
    let certificate =
        std::fs::read_to_string(running.place.path("pki/analyst/consumer.txt")).unwrap();
    browser.decides("article", "Let somebody read").await;
    let shut = "return document.querySelector('dialog [type=submit]').disabled";
    assert_eq!(browser.finds(shut).await, true, "it asks twice");
    browser.writes("#certificate", "00ff").await;
    browser.says("#reader", "not a certificate").await;
    browser.is_for_everybody("owner-grant-refused").await;
    browser.writes("#certificate", certificate.trim()).await;
    browser.says("#reader", "This is analyst, certified").await;
    browser.is_for_everybody("owner-grant").await;
    browser.ticks("#sure").await;
    browser.decides("dialog", "Sign and give").await;
    browser
        .says("article .note.warn", "analyst may read the sums and counts of every second")
        .await;
    browser.says("article .note.warn", "the name on its certificate").await;
    assert!(
        running
            .owner(0, "log")
            .contains("you let `analyst` read the sums and counts of every second")
    );
    browser.decides("article", "End access").await;
    browser.says("dialog", "gets no further keys").await;
    browser.is_for_everybody("owner-end-access").await;
    browser.decides("dialog", "End access").await;
    browser.says("article", "You ended the access of analyst.").await;
    has_no_dialog(browser).await;
    assert!(running.owner(0, "log").contains("you ended the access of `analyst`"));
    a_pause_says_who_can_still_read(browser, certificate.trim()).await;
}

/// A pause ends no access by itself. The page says so, and ends it if the owner leaves that ticked.
async fn a_pause_says_who_can_still_read(browser: &Browser, certificate: &str) {
    browser.decides("article", "Let somebody read").await;
    browser.writes("#certificate", certificate).await;
    browser.says("#reader", "This is analyst, certified").await;
    browser.ticks("#sure").await;
    browser.decides("dialog", "Sign and give").await;
    browser.says("article .note.warn", "A pause does not change that.").await;
    has_no_dialog(browser).await;
    for ends in [false, true] {
        browser.decides("article", "Pause").await;
        browser
            .says("dialog", "A pause does not hold back keys: analyst may read everything")
            .await;
        if !ends {
            browser.is_for_everybody("owner-pause-readers").await;
            browser.ticks("#end").await;
        }
        browser.decides("dialog", "Pause").await;
        let said = match ends {
            false => "Analyst can still read everything.",
            true => "You ended the access of analyst.",
        };
        browser.says("article", said).await;
        has_no_dialog(browser).await;
        browser.decides("article", "Share again").await;
        browser.decides("dialog", "Sign and share").await;
        browser.says("article .pill", "Sharing").await;
        has_no_dialog(browser).await;
    }
}

/// A dialog closes once the page shows the new state. Nothing behind it can be used before.
async fn has_no_dialog(browser: &Browser) {
    until_found(browser, "return document.querySelector('dialog') ? null : true").await;
}

async fn revokes_and_erases(browser: &Browser, running: &RunningSite) {
    browser.decides("article", "End sharing").await;
    browser.says("dialog", "this cannot be undone").await;
    let shut = "return document.querySelector('dialog [type=submit]').disabled";
    assert_eq!(browser.finds(shut).await, true, "it asks twice");
    browser.is_for_everybody("owner-revoke").await;
    browser.ticks("#sure").await;
    browser.decides("dialog", "End sharing").await;
    browser.says("article .pill", "Ended for good").await;
    browser.says(".timeline", "You ended sharing for good.").await;
    assert!(running.owner(0, "log").contains("you revoked your consent"));
    browser.decides("article", "Erase").await;
    browser.says("dialog", "nobody can bring the data back").await;
    browser.is_for_everybody("owner-erase").await;
    browser.ticks("#sure").await;
    browser.decides("dialog", "Erase for good").await;
    browser.says("article .pill", "Erased").await;
    let caught = "window.saved = []; const real = URL.createObjectURL;
        URL.createObjectURL = (blob) => { blob.text().then((text) => saved.push(text)); return real(blob); }";
    browser.finds(caught).await;
    browser.decides("article", "Save the statement").await;
    let saved = until_found(browser, "return window.saved[0] ?? null").await;
    let statement: Value = serde_json::from_str(saved.as_str().unwrap()).unwrap();
    assert_eq!(statement["stream"], running.streams[0].as_str());
    assert!(statement["signed"].as_str().unwrap().len() > 100, "{statement}");
    browser.is_for_everybody("owner-erased").await;
}
