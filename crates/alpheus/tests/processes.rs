//! Server, controllers, devices, owners and a consumer, each a process.

mod common;

use common::deployment::{QUERY, Running, until};

#[test]
fn a_deployment_of_processes_answers_a_query() {
    let running = Running::start();
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let devices = running.feed();
    let row = running.row(3);
    assert_eq!((row["sum_reading"].as_str(), row["count_reading"].as_u64()), (Some("12"), Some(6)));
    let log = running.owner(0, "log");
    assert!(log.contains("`analyst` got `Readings`"), "{log}");
    drop(devices);
    running.owner(0, "revoke");
    assert!(running.owner(0, "log").contains("you revoked your consent"));
    let asked = format!("EXPLAIN {} BETWEEN 3 AND 100", QUERY.replace("Readings", "Others"));
    until("a service that knows of the withdrawal", || {
        let refused = running.place.ask(&running.server, &asked);
        (refused.status.code() == Some(3)).then_some(())
    });
}
