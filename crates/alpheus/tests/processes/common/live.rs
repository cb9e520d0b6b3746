//! A deployment with live meters, under a clock that waits for its processes: nothing depends on how
//! fast the machine is.

use super::clock::PacedClock;
use super::deployment::{HOUSES, QUERY, RunningSite, Site, until};
use super::{Process, get};
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_streams::server::api::status::Status;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A meter is read so often, in milliseconds.
const EVERY: u64 = 250;
/// The schema's tick, in milliseconds.
const TICK: u64 = 1_000;
/// Windows of the query, in milliseconds.
pub(crate) const WINDOW: u64 = 2_000;
/// How far the clock moves at once while the service is away for long.
const LEAP: Duration = Duration::from_secs(1);

/// What a house's meter has read: when, in milliseconds, and what.
pub(crate) type Readings = Arc<Mutex<BTreeMap<u64, u64>>>;

/// Reads a house's meter into a pipe, by the clock, which waits for that: late readings are in no
/// window.
pub(crate) fn read_meter(
    pipe: &Path,
    house: u64,
    clock: &PacedClock,
    readings: &Readings,
    over: &AtomicBool,
) {
    let mut open = OpenOptions::new().write(true).open(pipe).unwrap();
    let follower = clock.follow();
    let mut next = clock.now().0 / 1000 + EVERY;
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
        let now = clock.now();
        while next <= now.0 / 1000 {
            let reading = (next / EVERY * 7 + house * 331) % 1000;
            // Before the device has it, so that no window is found without it.
            readings.lock().unwrap().insert(next, reading);
            if writeln!(open, "{{\"reading\": {reading}, \"at\": {next}}}").is_err() {
                return;
            }
            next += EVERY;
        }
        follower.is_at(now);
    }
}

/// A deployment with live meters, under its own clock.
pub(crate) struct Live {
    pub(crate) running: RunningSite,
    pub(crate) clock: Arc<PacedClock>,
    _devices: Vec<Process>,
    readings: Vec<Readings>,
    over: Arc<AtomicBool>,
}

impl Live {
    /// With a query of all meters, which has had a whole window.
    pub(crate) fn start(frames: &str) -> Live {
        Live::asked(Site::paced(frames, None), QUERY)
    }

    /// The same of another place and query.
    pub(crate) fn asked(place: Site, query: &str) -> Live {
        let live = Live::start_in(place);
        live.ask(query);
        live.whole_window_since(0, "the start");
        live
    }

    /// Meters that send, and no query.
    pub(crate) fn start_in(place: Site) -> Live {
        let is_paced = place.is_paced();
        let clock = Arc::new(PacedClock::start(&place.path("clock")));
        let running = RunningSite::start_in(place, |_, api| api.to_owned());
        let watch = |process: &Process, state: &str| {
            if is_paced {
                clock.watch(process, running.place.health(state));
            }
        };
        watch(&running.service, "run/service");
        for (house, (_, host)) in HOUSES.iter().zip(&running.hosts) {
            watch(host, &format!("run/host-{house}"));
        }
        let (over, mut readings, mut devices) =
            (Arc::new(AtomicBool::new(false)), Vec::new(), Vec::new());
        for (number, house) in (0..).zip(HOUSES) {
            let pipe = running.place.path(&format!("{house}.pipe"));
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let device = running.place.device(house, &running.server, &pipe);
            watch(&device, &format!("run/meter-{house}"));
            devices.push(device);
            let own = Readings::default();
            readings.push(Arc::clone(&own));
            let (clock, over) = (Arc::clone(&clock), Arc::clone(&over));
            std::thread::spawn(move || read_meter(&pipe, number, &clock, &own, &over));
        }
        Live { running, clock, _devices: devices, readings, over }
    }

    pub(crate) fn ask(&self, query: &str) {
        until("a query that is accepted", || {
            self.running.place.ask(&self.running.server, query).status.success().then_some(())
        });
    }

    pub(crate) fn rows(&self) -> Vec<Value> {
        self.running.place.rows(&self.running.server)
    }

    /// Waits for a window that begins from then on and holds everybody's data; when it begins.
    pub(crate) fn whole_window_since(&self, since: u64, after: &str) -> u64 {
        until(&format!("whole window after {after}"), || {
            let whole = |row: &Value| row["population"] == 3 && start_of(row) >= since;
            self.rows().iter().filter(|row| whole(row)).map(start_of).min()
        })
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now().0 / 1000
    }

    /// kill -9, and then nothing for so long.
    pub(crate) fn go_away(&mut self, seconds: u64) {
        self.running.service.kill();
        let since = self.clock.now();
        while self.clock.since(since) < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_millis(20));
            if seconds > 60 {
                self.clock.skip(LEAP);
            }
        }
    }

    pub(crate) fn come_back(&mut self) {
        let api = self.running.server.strip_prefix("https://").unwrap();
        self.running.service = self.running.place.server(api);
        self.clock.watch(&self.running.service, self.running.place.health("run/service"));
    }

    /// The first whole window begins within a tick of `since`, or of so many windows after it, and all later
    /// ones are whole.
    pub(crate) fn goes_on_whole(&self, since: u64, windows: u64, after: &str) {
        let whole = self.whole_window_since(since, after);
        assert!(
            whole < since + TICK + windows * WINDOW,
            "{after}: at {since}, whole from {whole} on"
        );
        self.whole_window_since(whole + 3 * WINDOW, "several whole ones");
        self.all_are_whole_from(whole);
    }

    /// Every window from this one to the last: there once, whole, and what the meters read.
    pub(crate) fn all_are_whole_from(&self, first: u64) {
        let rows = self.rows();
        are_there_once(&rows);
        let rows: Vec<&Value> = rows.iter().filter(|row| start_of(row) >= first).collect();
        let mut starts: Vec<u64> = rows.iter().map(|row| start_of(row)).collect();
        // After an outage several windows open at once.
        starts.sort_unstable();
        assert!(starts.is_sorted_by(|one, next| one + WINDOW == *next), "{starts:?}");
        for row in rows {
            assert_eq!((&row["status"], &row["population"]), (&"ok".into(), &3.into()), "{row}");
            self.is_true(row);
        }
    }

    /// Every window is there once, and what all meters read if all are in it. The others are not whole.
    pub(crate) fn whole_ones_are_true(&self) {
        let rows = self.rows();
        are_there_once(&rows);
        rows.iter().filter(|row| row["population"] == 3).for_each(|row| self.is_true(row));
    }

    /// The sum and the count of a whole window are those of all meters.
    fn is_true(&self, row: &Value) {
        let window = start_of(row)..start_of(row) + WINDOW;
        let of = |readings: &Readings| -> Vec<u64> {
            readings.lock().unwrap().range(window.clone()).map(|(_, reading)| *reading).collect()
        };
        let all: Vec<u64> = self.readings.iter().flat_map(of).collect();
        let sum = row["sum_reading"].as_str().map(str::to_owned);
        let truth = (Some(all.iter().sum::<u64>().to_string()), Some(all.len() as u64));
        assert_eq!((sum, row["count_reading"].as_u64()), truth, "{row}");
    }

    pub(crate) fn status(&self) -> Status {
        let identity =
            IdentityFolder::open(&self.running.place.path("pki/analyst"), Role::Consumer);
        let client = BlockingClient::new(&self.running.server, Role::Server, &identity.unwrap());
        client.unwrap().get_json("/v1/status", Duration::ZERO).unwrap()
    }

    pub(crate) fn health(&self, path: &str) -> String {
        get(self.running.place.health("run/service"), path).unwrap().1
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// No window has two rows.
pub(crate) fn are_there_once(rows: &[Value]) {
    let all: BTreeSet<u64> = rows.iter().map(start_of).collect();
    assert_eq!(all.len(), rows.len(), "a window twice");
}

pub(crate) fn start_of(row: &Value) -> u64 {
    row["window_start"].as_u64().unwrap()
}
