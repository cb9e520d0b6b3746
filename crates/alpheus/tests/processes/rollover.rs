//! The authority of TLS certificates is replaced while a deployment runs.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::copy_folder;
use crate::common::deployment::{HOUSES, QUERY, RunningSite, Site, until};
use serde_json::Value;

/// The identity folders of a deployment.
pub(crate) fn identities() -> Vec<String> {
    let of_house =
        |house: &&str| ["host", "owner", "meter"].map(|who| format!("pki/{who}-{house}"));
    let rest = ["service", "analyst"].map(|name| format!("pki/{name}"));
    HOUSES.iter().flat_map(of_house).chain(rest).collect()
}

fn with_all(place: &Site, args: &[&str]) -> String {
    let all = identities();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    place.done(&[&["ca"], args, &all].concat())
}

/// A window that holds everybody's data and begins from then on; when it begins.
fn whole_since(running: &RunningSite, since: u64) -> u64 {
    let start = |row: &Value| row["window_start"].as_u64().unwrap();
    until("whole window", || {
        let rows = running.place.rows(&running.server);
        let whole = |row: &&Value| row["population"] == 3 && start(row) >= since;
        rows.iter().find(whole).map(start)
    })
}

/// Windows of two seconds go on, one after the other, from the first authority's days to the second's.
#[test]
fn no_window_is_lost_while_the_authority_is_replaced() {
    let place = Site::with_patience("60");
    let running = RunningSite::start_in(place, |_, api| api.to_owned());
    let place = &running.place;
    assert!(place.ask(&running.server, QUERY).status.success());
    let _meters = running.feed();
    let first = whole_since(&running, 0);

    // Everybody learns to know the second authority before anybody shows a certificate of it.
    let said = with_all(place, &["rollover", "pki"]);
    assert_eq!(said.lines().count(), identities().len(), "{said}");
    place.issue("consumer", "newcomer");
    place.issue("owner", "new-owner");
    until("the service to know the second authority", || {
        is_let_in(&running, "pki/newcomer").then_some(())
    });
    for (api, _) in &running.hosts {
        until("hosts to know the second authority", || {
            let asked = ["owner", "streams", "--identity", "pki/new-owner", "--controller"];
            let asked = place.run(&[&asked[..], &[&format!("https://{api}")]].concat());
            asked.status.success().then_some(())
        });
    }
    copy_folder(&place.path("pki/analyst"), &place.path("left-behind"));

    let early = place.run(&["ca", "rollover", "pki", "--finish", "pki/service"]);
    let said = String::from_utf8_lossy(&early.stderr).into_owned();
    assert!(early.status.code() == Some(1) && said.contains("alpheus ca renew"), "{said}");
    with_all(place, &["renew", "pki"]);
    with_all(place, &["rollover", "pki", "--finish"]);
    until("the service to forget the first authority", || {
        (!is_let_in(&running, "left-behind")).then_some(())
    });

    let last = place.rows(&running.server).iter().map(|row| row["window_start"].as_u64()).max();
    let last = whole_since(&running, last.flatten().unwrap() + 2000);
    let rows = place.rows(&running.server);
    let start = |row: &Value| row["window_start"].as_u64().unwrap();
    let between: Vec<&Value> =
        rows.iter().filter(|row| (first..=last).contains(&start(row))).collect();
    assert_eq!(between.len() as u64, (last - first) / 2000 + 1, "{between:?}");
    let whole = |row: &&Value| row["population"] == 3 && row["status"] == "ok";
    assert!(between.iter().all(whole), "{between:?}");
}

/// Whether the service answers who is in this identity folder; a newcomer has no query.
fn is_let_in(running: &RunningSite, identity: &str) -> bool {
    let asked = ["query", "--server", &running.server, "--identity", identity];
    let answer = running.place.run(&[&asked[..], &["--results", "Readings"]].concat());
    let said = String::from_utf8_lossy(&answer.stderr).into_owned();
    answer.status.success() || said.contains("you have no query named")
}
