//! Who gets receipts and plans, and when a reader may say that a window is withheld.

use super::{SIGNED, asked, said};
use crate::common::alpheus;
use crate::common::deployment::RunningSite;
use crate::common::route_server::between;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_streams::links;
use axum::http::Uri;
use serde_json::Value;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const READINGS: &str = "/v1/queries/Readings";

fn client(running: &RunningSite, role: Role, name: &str) -> BlockingClient {
    let folder = running.place.path(&format!("pki/{name}"));
    links::service(&running.server, &IdentityFolder::open(&folder, role).unwrap()).unwrap()
}

fn get(client: &BlockingClient, what: &str) -> Result<Value, u16> {
    match client.get_json(&format!("{READINGS}/{what}"), Duration::ZERO) {
        Ok(answer) => Ok(answer),
        Err(RequestError::Refused(problem)) => Err(problem.status),
        Err(failed) => unreachable!("{failed}"),
    }
}

#[test]
fn receipts_and_plans_are_for_their_consumer_and_late_windows_are_not_withheld() {
    let running = asked();
    let devices = running.feed();
    let row = running.row(3);
    assert_eq!(row["integrity"], SIGNED, "{row}");
    drop(devices);
    others_are_refused(&running);
    a_window_that_ends_while_it_reads_is_not_withheld(&running);
}

/// Receipts and plans show who took part: nobody else reads them, whatever their role.
fn others_are_refused(running: &RunningSite) {
    let analyst = client(running, Role::Consumer, "analyst");
    let rows = get(&analyst, "results?after=0&wait=0").unwrap();
    let plan = rows["rows"][0]["plan"].as_str().unwrap();
    let all = ["receipts?after=0", &format!("plans/{plan}"), "results?after=0&wait=0"];
    for what in all {
        assert!(get(&analyst, what).is_ok(), "{what}");
    }
    running.place.issue("consumer", "rival");
    running.place.issue("operator", "watch");
    let others = [
        (Role::Consumer, "rival", 404),
        (Role::Operator, "watch", 403),
        (Role::Owner, "owner-a", 403),
        (Role::Controller, "host-a", 403),
        (Role::Producer, "meter-a", 403),
    ];
    for (role, name, status) in others {
        let other = client(running, role, name);
        for what in all {
            assert_eq!(get(&other, what), Err(status), "{what} for {name}");
        }
    }
}

/// Where the service's log has the row of a window.
fn place_of(analyst: &BlockingClient, start: &Value) -> u64 {
    let first = |place: &u64| {
        let rows = get(analyst, &format!("results?after={place}&wait=0")).unwrap();
        rows["rows"][0]["window_start"].clone()
    };
    let is_before =
        |place: &u64| first(place).as_u64().is_some_and(|own| Some(own) <= start.as_u64());
    let place = (0..).take_while(is_before).last().unwrap();
    assert_eq!(first(&place), *start);
    place
}

fn verify(running: &RunningSite, server: &str) -> Output {
    let reach = ["verify", "--server", server, "--identity", "pki/analyst", "--query", "Readings"];
    alpheus(reach).current_dir(running.place.path(".")).output().unwrap()
}

/// A window ends after its rows were read and before its receipts are. Its receipt is there, and its row was not.
fn a_window_that_ends_while_it_reads_is_not_withheld(running: &RunningSite) {
    let analyst = client(running, Role::Consumer, "analyst");
    let rows = running.place.rows(&running.server);
    let last = rows.iter().rfind(|row| row["status"] == "ok").unwrap()["window_start"].clone();
    let (place, ended) = (place_of(&analyst, &last), AtomicBool::new(false));
    let start = last.clone();
    let early = move |uri: &Uri, answer: &mut Value| {
        let reads = |what: &str| uri.path() == format!("{READINGS}/{what}");
        if reads("receipts") {
            ended.store(true, Ordering::Relaxed);
        }
        if ended.load(Ordering::Relaxed) || !reads("results") {
            return;
        }
        if let Some(rows) = answer["rows"].as_array_mut() {
            rows.retain(|row| row["window_start"].as_u64() < start.as_u64());
        }
        answer["next"] = answer["next"].as_u64().min(Some(place)).into();
    };
    let (trigger, server) = between(running, early);
    let checked = verify(running, &server);
    let (text, errors) = said(&checked);
    assert!(checked.status.success() && !text.contains("withheld"), "{text}{errors}");
    assert!(text.contains(&format!("{last} – ")) && text.contains(SIGNED), "{text}");
    drop(trigger);
    // One whose row never comes is, or is said to be too old, if it is the first window that has a row.
    let hidden = move |uri: &Uri, answer: &mut Value| {
        if uri.path() == format!("{READINGS}/results")
            && let Some(rows) = answer["rows"].as_array_mut()
        {
            rows.retain(|row| row["window_start"] != last);
        }
    };
    let (_trigger, server) = between(running, hidden);
    let checked = verify(running, &server);
    let (text, errors) = said(&checked);
    assert!(!checked.status.success() && text.contains("withheld"), "{text}{errors}");
}
