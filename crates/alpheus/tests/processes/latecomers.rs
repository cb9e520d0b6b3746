//! A query by epochs at real processes: a host that is started after the query, one that sleeps and
//! comes back, and a service that is killed. Each window has one row over those who were there.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::Process;
use crate::common::deployment::{HOUSES, QUERY, Site, free, until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds that a meter is read.
const READINGS: u64 = 400;

struct Street {
    place: Site,
    api: String,
    server: String,
    service: Process,
    hosts: BTreeMap<&'static str, Process>,
    addresses: BTreeMap<&'static str, String>,
    meters: Vec<Process>,
}

impl Street {
    fn new() -> Street {
        let (place, api) = (Site::new(), free());
        let service = place.server(&api);
        let server = format!("https://{api}");
        let (hosts, addresses, meters) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Street { place, api, server, service, hosts, addresses, meters }
    }

    fn wake(&mut self, house: &'static str) {
        let own = self.addresses.entry(house).or_insert_with(free).clone();
        self.hosts.insert(house, self.place.controller(house, &own, &self.server));
    }

    /// An owner with a stream comes to a house, and its meter is read twice in each window.
    fn come(&mut self, house: &'static str) {
        self.wake(house);
        self.place.add_stream(house, &self.addresses[house]);
        let number = HOUSES.iter().position(|known| *known == house).unwrap() + 1;
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 4;
        let line = |step: u64| {
            let at = (start + step) * 1000 + 500;
            format!("{{\"reading\": {number}, \"alarms\": 1, \"litres\": 5, \"at\": {at}}}\n")
        };
        let lines = self.place.path(&format!("{house}.json"));
        fs::write(&lines, (0..READINGS).map(line).collect::<String>()).unwrap();
        self.meters.push(self.place.device(house, &self.server, &lines));
    }

    fn rows(&self) -> Vec<Value> {
        self.place.rows(&self.server)
    }

    /// Waits for a window after this one with such a sum; when it begins.
    fn window_after(&self, start: u64, sum: &str) -> u64 {
        until(&format!("window with the sum {sum}"), || {
            let rows = self.rows();
            let found = |row: &&Value| {
                row["window_start"].as_u64() > Some(start) && row["sum_reading"] == sum
            };
            rows.iter().find(found)?["window_start"].as_u64()
        })
    }
}

#[test]
fn hosts_come_and_go_while_a_query_runs_by_epochs() {
    let mut street = Street::new();
    street.come("a");
    street.come("b");
    let query = format!("{QUERY} WITH (membership = 'epochs')");
    until("a query that is accepted", || {
        let asked = format!("EXPLAIN {QUERY} BETWEEN 2 AND 100");
        street.place.ask(&street.server, &asked).status.success().then_some(())
    });
    let asked = street.place.ask(&street.server, &query);
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    assert!(said.contains("by epochs of one window"), "{said}");
    // Two readings of 1 and of 2 in a window.
    let first = street.window_after(0, "6");
    // A host that was not there when the query was asked.
    street.come("c");
    let all = street.window_after(first, "12");
    street.service.kill();
    street.service = street.place.server(&street.api);
    let again = street.window_after(all, "12");
    // A host sleeps: windows open without it.
    street.hosts.get_mut("a").unwrap().kill();
    let without = street.window_after(again, "10");
    street.wake("a");
    street.window_after(without, "12");
    let rows = street.rows();
    let mut starts: Vec<u64> =
        rows.iter().map(|row| row["window_start"].as_u64().unwrap()).collect();
    let many = starts.len();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), many, "a window has two rows");
}
