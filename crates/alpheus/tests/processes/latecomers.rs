//! A query by epochs at real processes: a host that is started after the query, one that sleeps and
//! comes back, and a service that is killed. Each window has one row over those who were there.
//!
//! Time is that of a clock which waits for all processes.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::Process;
use crate::common::clock::PacedClock;
use crate::common::deployment::{HOUSES, QUERY, Site, free, until};
use crate::common::live::{Readings, WINDOW, read_meter};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Street {
    pub(crate) place: Site,
    pub(crate) clock: Arc<PacedClock>,
    api: String,
    pub(crate) server: String,
    pub(crate) service: Process,
    pub(crate) hosts: BTreeMap<&'static str, Process>,
    pub(crate) addresses: BTreeMap<&'static str, String>,
    pub(crate) devices: Vec<Process>,
    pub(crate) readings: Vec<Readings>,
    over: Arc<AtomicBool>,
}

impl Drop for Street {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Street {
    /// With this line in the schema.
    pub(crate) fn new(frames: &str) -> Street {
        let place = Site::paced(frames, None);
        let clock = PacedClock::start(&place.path("clock"));
        Street::of(place, clock)
    }

    /// In a place whose processes follow this clock.
    pub(crate) fn of(place: Site, clock: PacedClock) -> Street {
        let (api, clock) = (free(), Arc::new(clock));
        let service = place.server(&api);
        clock.watch(&service, place.health("run/service"));
        let server = format!("https://{api}");
        let (hosts, addresses) = (BTreeMap::new(), BTreeMap::new());
        let (devices, readings, over) = (Vec::new(), Vec::new(), Arc::default());
        Street { place, clock, api, server, service, hosts, addresses, devices, readings, over }
    }

    pub(crate) fn wake(&mut self, house: &'static str) {
        let own = self.addresses.entry(house).or_insert_with(free).clone();
        let host = self.place.controller(house, &own, &self.server);
        self.clock.watch(&host, self.place.health(&format!("run/host-{house}")));
        self.hosts.insert(house, host);
    }

    /// An owner with a stream comes to a new host.
    pub(crate) fn settle(&mut self, house: &'static str) {
        self.wake(house);
        self.place.add_stream(house, &self.addresses[house]);
        let streams = self.hosts.len();
        until(&format!("{streams} streams at the service"), || {
            let shown = self.place.ask(&self.server, "SHOW STREAMS");
            let row = format!("Meters  {streams} ");
            String::from_utf8_lossy(&shown.stdout).contains(&row).then_some(())
        });
    }

    /// The same, and then a meter that is read by the clock.
    pub(crate) fn come(&mut self, house: &'static str) {
        self.settle(house);
        let streams = self.devices.len() + 1;
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

    pub(crate) fn rows(&self) -> Vec<Value> {
        self.place.rows(&self.server)
    }

    /// What some of the houses have read in a window.
    pub(crate) fn truth(&self, start: u64, houses: &BTreeSet<usize>) -> u64 {
        let window = start..start + WINDOW;
        let of = |house: &usize| {
            let readings = self.readings[*house].lock().unwrap();
            readings.range(window.clone()).map(|(_, reading)| *reading).sum::<u64>()
        };
        houses.iter().map(of).sum()
    }

    /// Waits for a window after this one over these houses; when it begins.
    pub(crate) fn window_after(&self, start: u64, houses: &[usize]) -> u64 {
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
    let mut street = Street::new("frames: events\n");
    let (said, _) = street.live("WITH (membership = 'epochs')");
    assert!(said.contains("by epochs of one window"), "{said}");
    let mut starts: Vec<u64> =
        street.rows().iter().map(|row| row["window_start"].as_u64().unwrap()).collect();
    let many = starts.len();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), many, "a window has two rows");
}

/// What the rows of the last windows say about who has signed them.
const SIGNED: &str = "signed by 3 controllers, any of which could have changed it";
const SAVED: &str = "readings.receipts.json";

/// An owner joins a verified query that runs, and the rows hold: online, from a file, and in a pack that
/// other code checks. A number that somebody changes does not, nor does a row with another epoch's receipt.
#[test]
fn rows_hold_while_owners_come_and_go() {
    let mut street = Street::new("anchor: 4s\n");
    let with = "WITH (membership = 'epochs', integrity = 'verified', alpha = '1/3')";
    let (_, [first, all, last]) = street.live(with);
    let rows = street.rows();
    let said = |start: u64| {
        let row = rows.iter().find(|row| row["window_start"] == start).unwrap();
        row["integrity"].as_str().unwrap().to_owned()
    };
    assert!(said(first).starts_with("signed by 2 controllers"), "{}", said(first));
    assert_eq!([said(all), said(last)], [SIGNED, SIGNED]);
    let refused = |row: &&Value| row["integrity"] == "refused";
    assert_eq!(rows.iter().find(refused), None, "an honest row is refused");
    let online =
        street.verify(&["--server", &street.server, "--query", "Readings", "--save", SAVED]);
    let (text, errors) = said_by(&online);
    assert!(online.status.success() && text.contains(SIGNED), "{text}{errors}");
    assert!(street.verify(&[SAVED]).status.success());
    street.tampered_files(all, last);
    street.checked_pack();
}

fn said_by(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

impl Street {
    /// Two houses ask a query, and another one comes; the service is killed, and a house sleeps for a
    /// while. Returns what the service said, and when three windows began: the first one, and one over all
    /// houses before and after.
    fn live(&mut self, with: &str) -> (String, [u64; 3]) {
        let [a, b, c] = HOUSES;
        self.come(a);
        self.come(b);
        let asked = self.place.ask(&self.server, &format!("{QUERY} {with}"));
        let (said, errors) = said_by(&asked);
        assert!(asked.status.success(), "{errors}");
        let first = self.window_after(0, &[0, 1]);
        // A host that was not there when the query was asked.
        self.come(c);
        let all = self.window_after(first, &[0, 1, 2]);
        self.kill_service();
        let again = self.window_after(all, &[0, 1, 2]);
        // A host sleeps: windows open without it.
        self.hosts.get_mut(a).unwrap().kill();
        let without = self.window_after(again, &[1, 2]);
        self.wake(a);
        let last = self.window_after(without, &[0, 1, 2]);
        (said, [first, all, last])
    }

    fn verify(&self, more: &[&str]) -> Output {
        self.place.run(&[&["verify", "--identity", "pki/analyst"], more].concat())
    }

    /// Rows that do not hold, in the file that is verified elsewhere.
    fn tampered_files(&self, one: u64, other: u64) {
        let path = self.place.path(SAVED);
        let honest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let at = |start: u64| {
            let rows = honest["rows"].as_array().unwrap();
            rows.iter().position(|row| row["window_start"] == start).unwrap()
        };
        let (one, other) = (at(one), at(other));
        let refused = |why: &str, change: &dyn Fn(&mut Value)| {
            let mut evidence = honest.clone();
            change(&mut evidence);
            std::fs::write(&path, evidence.to_string()).unwrap();
            let (text, errors) = said_by(&self.verify(&[SAVED]));
            assert!(text.contains(why) && errors.contains("1 of "), "{why}: {text}{errors}");
        };
        refused("the row differs from what the controllers have signed", &|evidence| {
            evidence["rows"][one]["sum_reading"] = "999999".into();
        });
        // The other window's plan and receipt.
        refused("has no receipt of this window", &|evidence| {
            evidence["rows"][one]["plan"] = evidence["rows"][other]["plan"].clone();
        });
        refused("does not hold", &|evidence| {
            let start = evidence["rows"][other]["window_start"].clone();
            let plan = evidence["rows"][other]["plan"].clone();
            (evidence["rows"][one]["window_start"], evidence["rows"][one]["plan"]) = (start, plan);
        });
        std::fs::write(&path, honest.to_string()).unwrap();
    }

    /// The evidence of the query, checked by other code.
    fn checked_pack(&self) {
        const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let python = format!("{ROOT}/.venv/bin/python");
        if !std::path::Path::new(&python).exists() {
            alpheus_test_support::skip::skip("there is no .venv (`make .venv/ready` makes it)");
            return;
        }
        let day = ["--from", "1970-01-01", "--until", "2100-01-01"];
        let reach = ["evidence", "--server", &self.server, "--identity", "pki/analyst"];
        self.place.done(&[&reach[..], &day].concat());
        for program in ["check", "further"] {
            let mut command = Command::new(&python);
            let script = format!("{ROOT}/docs/evidence/{program}.py");
            command.args(["-B", &script, "evidence.jsonl", "pki/analyst/deployment.json"]);
            let checked = command.current_dir(self.place.path(".")).output().unwrap();
            let (text, errors) = said_by(&checked);
            assert!(checked.status.success(), "{text}{errors}");
            assert!(text.contains("rows that controllers have signed"), "{text}");
        }
    }
}
