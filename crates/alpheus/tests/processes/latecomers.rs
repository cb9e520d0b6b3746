//! A query by epochs at real processes: a host that is started after the query, one that sleeps and
//! comes back, and a service that is killed. Each window has one row over those who were there.
//!
//! Time is that of a clock which waits for all processes.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::Process;
use crate::common::clock::PacedClock;
use crate::common::deployment::{HOUSES, QUERY, Site, free, until};
use crate::outages::{Readings, read_meter};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Windows of the query, in milliseconds.
const WINDOW: u64 = 2_000;

struct Street {
    place: Site,
    clock: Arc<PacedClock>,
    api: String,
    server: String,
    service: Process,
    hosts: BTreeMap<&'static str, Process>,
    addresses: BTreeMap<&'static str, String>,
    devices: Vec<Process>,
    readings: Vec<Readings>,
    over: Arc<AtomicBool>,
}

impl Drop for Street {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Street {
    fn new() -> Street {
        let (place, api) = (Site::paced("frames: events\n"), free());
        let clock = Arc::new(PacedClock::start(&place.path("clock")));
        let service = place.server(&api);
        clock.watch(&service, place.health("run/service"));
        let server = format!("https://{api}");
        let (hosts, addresses) = (BTreeMap::new(), BTreeMap::new());
        let (devices, readings, over) = (Vec::new(), Vec::new(), Arc::default());
        Street { place, clock, api, server, service, hosts, addresses, devices, readings, over }
    }

    fn wake(&mut self, house: &'static str) {
        let own = self.addresses.entry(house).or_insert_with(free).clone();
        let host = self.place.controller(house, &own, &self.server);
        self.clock.watch(&host, self.place.health(&format!("run/host-{house}")));
        self.hosts.insert(house, host);
    }

    /// An owner with a stream comes to a new host, and then a meter that is read by the clock.
    fn come(&mut self, house: &'static str) {
        self.wake(house);
        self.place.add_stream(house, &self.addresses[house]);
        let streams = self.readings.len() + 1;
        until(&format!("{streams} streams at the service"), || {
            let shown = self.place.ask(&self.server, "SHOW STREAMS");
            let row = format!("Meters  {streams} ");
            String::from_utf8_lossy(&shown.stdout).contains(&row).then_some(())
        });
        let pipe = self.place.path(&format!("{house}.pipe"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let device = self.place.device(house, &self.server, &pipe);
        self.clock.watch(&device, self.place.health(&format!("run/meter-{house}")));
        self.devices.push(device);
        let own = Readings::default();
        self.readings.push(Arc::clone(&own));
        let number = u64::try_from(streams).unwrap();
        let (clock, over) = (Arc::clone(&self.clock), Arc::clone(&self.over));
        std::thread::spawn(move || read_meter(&pipe, number, &clock, &own, &over));
    }

    fn kill_service(&mut self) {
        self.service.kill();
        self.service = self.place.server(&self.api);
        self.clock.watch(&self.service, self.place.health("run/service"));
    }

    fn rows(&self) -> Vec<Value> {
        self.place.rows(&self.server)
    }

    /// What some of the houses have read in a window.
    fn truth(&self, start: u64, houses: &BTreeSet<usize>) -> u64 {
        let window = start..start + WINDOW;
        let of = |house: &usize| {
            let readings = self.readings[*house].lock().unwrap();
            readings.range(window.clone()).map(|(_, reading)| *reading).sum::<u64>()
        };
        houses.iter().map(of).sum()
    }

    /// Waits for a window after this one over these houses; when it begins.
    fn window_after(&self, start: u64, houses: &[usize]) -> u64 {
        let houses: BTreeSet<usize> = houses.iter().copied().collect();
        until(&format!("window over {houses:?} after {start}"), || {
            let found = |row: &Value| {
                let begins = row["window_start"].as_u64()?;
                let truth = self.truth(begins, &houses).to_string();
                let is_over = row["status"] == "ok" && row["sum_reading"] == truth;
                (begins > start && row["population"] == houses.len() && is_over).then_some(begins)
            };
            self.rows().iter().find_map(found)
        })
    }
}

#[test]
fn hosts_come_and_go_while_a_query_runs_by_epochs() {
    let mut street = Street::new();
    let [a, b, c] = HOUSES;
    street.come(a);
    street.come(b);
    let query = format!("{QUERY} WITH (membership = 'epochs')");
    let asked = street.place.ask(&street.server, &query);
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    assert!(said.contains("by epochs of one window"), "{said}");
    let first = street.window_after(0, &[0, 1]);
    // A host that was not there when the query was asked.
    street.come(c);
    let all = street.window_after(first, &[0, 1, 2]);
    street.kill_service();
    let again = street.window_after(all, &[0, 1, 2]);
    // A host sleeps: windows open without it.
    street.hosts.get_mut(a).unwrap().kill();
    let without = street.window_after(again, &[1, 2]);
    street.wake(a);
    street.window_after(without, &[0, 1, 2]);
    let mut starts: Vec<u64> =
        street.rows().iter().map(|row| row["window_start"].as_u64().unwrap()).collect();
    let many = starts.len();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), many, "a window has two rows");
}
