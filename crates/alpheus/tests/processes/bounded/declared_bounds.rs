//! What the service says of a query counts against it: if it calls a query bounded, rows that nobody has
//! proven are refused.

use crate::common::deployment::{QUERY, RunningSite, Site, until};
use crate::common::route_server::between;
use alpheus_node::service::shutdown::Trigger;
use serde_json::Value;

/// A service that calls every query bounded. It serves as long as it is kept.
fn start_boaster(running: &RunningSite) -> (Trigger, String) {
    between(running, |uri, answer| {
        if uri.path() == "/v1/queries" {
            let all = answer.as_array_mut().into_iter().flatten();
            all.for_each(|query| query["bounded"] = true.into());
        }
    })
}

/// The first row with data, as a program without a key reads it, and whether it was checked.
fn first_opened(running: &RunningSite, server: &str) -> Option<(Value, Value)> {
    let reach = ["query", "--server", server, "--identity", "pki/analyst", "--released"];
    let said = running.place.done(&reach);
    let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let all: Vec<Value> = lines.collect();
    let query = all.iter().find(|line| line["query"]["name"] == "Readings")?["query"].clone();
    let opened = |line: &&Value| line["row"]["row"]["population"].as_u64() == Some(3);
    Some((query, all.iter().find(opened)?["row"].clone()))
}

#[test]
fn a_service_that_calls_a_query_bounded_must_prove_it() {
    let running = RunningSite::start_in(Site::with_ticks(), |_, api| api.to_owned());
    let verified = format!("{QUERY} WITH (integrity = 'verified', alpha = '1/3')");
    let asked = running.place.ask(&running.server, &verified);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let devices = running.feed();
    let (query, row) = until("a verified row", || first_opened(&running, &running.server));
    drop(devices);
    assert!(query["verified"] == true && query["bounded"] == false, "{query}");
    assert_eq!((&row["checked"], &row["row"]["status"]), (&true.into(), &"ok".into()), "{row}");
    let (_trigger, boaster) = start_boaster(&running);
    let (query, boasted) = first_opened(&running, &boaster).unwrap();
    assert_eq!(query["bounded"], true);
    let why = "refused: the service says that the query is bounded, but the row's plan is not";
    assert_eq!((&boasted["checked"], &boasted["row"]["status"]), (&false.into(), &why.into()));
    assert!(boasted["row"]["sum_reading"].is_null(), "{boasted}");
    assert_eq!(boasted["row"]["window_start"], row["row"]["window_start"]);
}
