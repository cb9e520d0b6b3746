//! Service and controllers with their state in a Kafka cluster.

use crate::broker::{Broker, prefix};
use crate::common::deployment::{Cluster, HOUSES, QUERY, RunningSite, Site, until};
use serde_json::Value;
use std::collections::BTreeSet;

/// The windows of all three houses that were opened; each is right and there once.
fn windows(running: &RunningSite) -> BTreeSet<String> {
    let (mut windows, mut whole) = (BTreeSet::new(), BTreeSet::new());
    for row in running.place.rows(&running.server) {
        let start = row["window_start"].to_string();
        assert!(windows.insert(start.clone()), "a window twice: {row}");
        if row["population"] == 3 && row["status"] == "ok" && row["count_reading"] == 6 {
            assert_eq!(row["sum_reading"].as_str(), Some("12"), "{row}");
            whole.insert(start);
        }
    }
    whole
}

#[test]
fn killed_processes_come_back_from_compacted_topics_alone() {
    let Some(broker) = Broker::shared() else { return };
    let cluster = Cluster { brokers: broker.open.clone(), prefix: prefix(), job: false };
    let place = Site::with_state_in(Some(cluster));
    let mut running = RunningSite::start_in(place, |_, api| api.to_owned());
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _devices = running.feed();
    let row: Value = running.row(3);
    assert_eq!((row["sum_reading"].as_str(), row["count_reading"].as_u64()), (Some("12"), Some(6)));
    let before = windows(&running);
    let log = running.owner(0, "log");

    running.service.kill();
    running.hosts.iter_mut().for_each(|(_, host)| host.kill());
    // What a folder still has is no store: what makes erasing possible, whose the folder is, and a sign of
    // life.
    std::fs::remove_dir_all(running.place.path("run/service")).unwrap();
    for house in HOUSES {
        let left = std::fs::read_dir(running.place.path(&format!("run/host-{house}"))).unwrap();
        let left: BTreeSet<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        let known = ["belongs-to", "heartbeat", "slots"];
        assert!(left.iter().all(|name| known.iter().any(|known| name == known)), "{left:?}");
    }
    running.start_service();
    for (house, (api, host)) in HOUSES.iter().zip(&mut running.hosts) {
        *host = running.place.controller(house, api, &running.server);
    }
    let after = until("windows after the start", || {
        let after = windows(&running);
        (after.difference(&before).count() >= 2).then_some(after)
    });
    assert!(before.is_subset(&after), "what was known is known");
    assert!(running.owner(0, "log").starts_with(log.lines().next().unwrap()));
}
