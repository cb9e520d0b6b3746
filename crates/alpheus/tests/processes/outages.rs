//! The service goes away, and comes back as it was, older, or empty. Time is that of a clock which
//! waits for all processes, so nothing here depends on how fast the machine is.
//!
//! `ALPHEUS_OUTAGES` says how many seconds the service is away, one after the other, and
//! `ALPHEUS_BACKUP_AGE` how many seconds old a restored backup is at least; `drills/outages.sh` has
//! long ones.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::clock::{PacedClock, faketime};
use crate::common::deployment::{HOUSES, QUERY, RunningSite, Site, until};
use crate::common::{Process, copy_folder, get};
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_streams::server::api::status::Status;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const EVENTS: &str = "frames: events\n";
const TICKS: &str = "anchor: 4s\n";
/// A meter is read so often, in milliseconds.
const EVERY: u64 = 250;
/// The schema's tick, in milliseconds.
const TICK: u64 = 1_000;
/// Windows of the query, in milliseconds.
const WINDOW: u64 = 2_000;
/// How far the clock moves at once while the service is away for long.
const LEAP: Duration = Duration::from_secs(1);

/// What a house's meter has read: when, in milliseconds, and what.
pub(crate) type Readings = Arc<Mutex<BTreeMap<u64, u64>>>;

/// Reads a house's meter into a pipe, by the clock, which waits for that: who comes late is not in
/// a window.
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
struct Live {
    running: RunningSite,
    clock: Arc<PacedClock>,
    _devices: Vec<Process>,
    readings: Vec<Readings>,
    over: Arc<AtomicBool>,
}

impl Live {
    fn start(frames: &str) -> Live {
        Live::at(Site::paced(frames), QUERY)
    }

    fn at(place: Site, query: &str) -> Live {
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
        let live = Live { running, clock, _devices: devices, readings, over };
        live.ask(query);
        live.whole_window_since(0, "the start");
        live
    }

    fn ask(&self, query: &str) {
        until("a query that is accepted", || {
            self.running.place.ask(&self.running.server, query).status.success().then_some(())
        });
    }

    fn rows(&self) -> Vec<Value> {
        self.running.place.rows(&self.running.server)
    }

    /// Waits for a window that begins from then on and holds everybody's data; when it begins.
    fn whole_window_since(&self, since: u64, after: &str) -> u64 {
        until(&format!("whole window after {after}"), || {
            let whole = |row: &Value| row["population"] == 3 && start_of(row) >= since;
            self.rows().iter().find(|row| whole(row)).map(start_of)
        })
    }

    fn now(&self) -> u64 {
        self.clock.now().0 / 1000
    }

    /// kill -9, and then nothing for so long.
    fn go_away(&mut self, seconds: u64) {
        self.running.service.kill();
        let since = self.clock.now();
        while self.clock.since(since) < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_millis(20));
            if seconds > 60 {
                self.clock.skip(LEAP);
            }
        }
    }

    fn come_back(&mut self) {
        let api = self.running.server.strip_prefix("https://").unwrap();
        self.running.service = self.running.place.server(api);
        self.clock.watch(&self.running.service, self.running.place.health("run/service"));
    }

    /// The first whole window begins within a tick of `since`, or of so many windows after it, and all later
    /// ones are whole.
    fn goes_on_whole(&self, since: u64, windows: u64, after: &str) {
        let whole = self.whole_window_since(since, after);
        assert!(
            whole < since + TICK + windows * WINDOW,
            "{after}: at {since}, whole from {whole} on"
        );
        self.whole_window_since(whole + 3 * WINDOW, "several whole ones");
        self.all_are_whole_from(whole);
    }

    /// Every window from this one to the last: there once, whole, and what the meters read.
    fn all_are_whole_from(&self, first: u64) {
        let rows = self.rows();
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

    fn status(&self) -> Status {
        let identity =
            IdentityFolder::open(&self.running.place.path("pki/analyst"), Role::Consumer);
        let client = BlockingClient::new(&self.running.server, Role::Server, &identity.unwrap());
        client.unwrap().get_json("/v1/status", Duration::ZERO).unwrap()
    }

    fn health(&self, path: &str) -> String {
        get(self.running.place.health("run/service"), path).unwrap().1
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn start_of(row: &Value) -> u64 {
    row["window_start"].as_u64().unwrap()
}

fn outages(frames: &str, usual: &[u64]) {
    let seconds = std::env::var("ALPHEUS_OUTAGES").map_or(usual.to_vec(), |given| {
        given.split(' ').map(|seconds| seconds.parse().unwrap()).collect()
    });
    let mut live = Live::start(frames);
    let first = live.whole_window_since(live.now(), "everybody was there");
    for away in seconds {
        live.go_away(away);
        live.come_back();
        let since = live.now();
        live.whole_window_since(since, &format!("{away} s"));
        live.all_are_whole_from(first);
    }
    let status = live.status();
    assert_eq!((status.absent_streams, status.absent_hosts), (0, 0));
    assert_eq!(status.lost_state, None, "nothing was lost");
    assert_eq!(status.frames_refused.get("late"), None);
}

#[test]
fn every_window_is_whole_after_the_service_was_away() {
    outages(EVENTS, &[4, 15]);
}

#[test]
fn every_window_of_ticks_is_whole_after_the_service_was_away() {
    outages(TICKS, &[8, 40]);
}

/// A backup is restored while devices run on. They go on by themselves, the service says so, and
/// windows that were published before are not announced as failures.
fn restored(frames: &str) {
    let mut live = Live::start(frames);
    let (state, backup) =
        (live.running.place.path("run/service"), live.running.place.path("backup"));
    live.go_away(0);
    copy_folder(&state, &backup);
    live.come_back();
    let since = live.now();
    let later = live.whole_window_since(since, "the backup") + 2 * WINDOW;
    live.whole_window_since(later, "some time");
    if let Ok(age) = std::env::var("ALPHEUS_BACKUP_AGE") {
        live.go_away(age.parse().unwrap());
        live.come_back();
        let since = live.now();
        live.whole_window_since(since, "a long time");
    }
    let published: BTreeMap<u64, Value> =
        live.rows().into_iter().map(|row| (start_of(&row), row)).collect();
    live.go_away(0);
    fs::remove_dir_all(&state).unwrap();
    fs::rename(&backup, &state).unwrap();
    live.come_back();
    let since = live.now();
    live.goes_on_whole(since, 1, "the restore");
    let rows = live.rows();
    for failed in rows.iter().filter(|row| row["status"] != "ok") {
        let before = published.get(&start_of(failed));
        assert!(before.is_none_or(|before| before["status"] != "ok"), "{failed}, was {before:?}");
    }
    let lost = live.status().lost_state.unwrap();
    assert!(lost.streams == 3 && lost.windows > 0, "{lost:?}");
    assert!(live.health("/healthz").contains("restored from a backup"));
    assert!(live.health("/metrics").contains("alpheus_stream_state_lost_streams 3"));
    assert!(live.running.service.log().contains("restored from a backup"));
}

#[test]
fn devices_go_on_at_a_service_that_was_restored_from_a_backup() {
    restored(EVENTS);
}

#[test]
fn devices_of_ticks_go_on_at_a_service_that_was_restored_from_a_backup() {
    restored(TICKS);
}

#[test]
fn devices_go_on_at_a_service_that_was_emptied() {
    let mut live = Live::start(EVENTS);
    live.go_away(0);
    fs::remove_dir_all(live.running.place.path("run/service")).unwrap();
    live.come_back();
    live.running.knows_all();
    live.ask(QUERY);
    let since = live.now();
    // Devices learn that they are unknown, and begin new sessions, which takes a loaded machine longer.
    live.goes_on_whole(since, 3, "it was emptied");
    assert_eq!(live.status().lost_state.unwrap().streams, 3);
}

/// The machine of the service is set an hour forward, and then an hour back: windows go on, as
/// long as devices agree with the time that it had.
#[test]
fn a_clock_that_jumps_costs_no_windows() {
    let Some(library) = faketime() else { return };
    let query = QUERY.replace("GRACE PERIOD 1 SECONDS", "GRACE PERIOD 15 SECONDS");
    let live = Live::at(Site::skewed(TICKS, library), &query);
    let first = live.whole_window_since(0, "the start");
    let mut last = first;
    for by in ["+3600", "+0", "-3600", "+0"] {
        fs::write(live.running.place.path("service.clock"), by).unwrap();
        last = live.whole_window_since(last + 2 * WINDOW, by);
    }
    live.all_are_whole_from(first);
    let log = live.running.service.log();
    assert!(log.contains("clock has jumped") && log.contains("service's time again"), "{log}");
}

/// The authority revokes a device and an owner: both are out while all processes run on.
#[test]
fn a_revoked_device_and_a_revoked_owner_are_out_without_a_restart() {
    let live = Live::start(TICKS);
    let place = &live.running.place;
    let days = live.health("/metrics");
    assert!(days.contains("alpheus_certificate_days_left"), "{days}");
    let log = |house: usize| live.running.owner_does(house, "log", &[]);
    assert!(log(1).status.success());
    let mut revoke = vec!["ca", "revoke", "pki"];
    revoke.extend(["pki/meter-a/tls.pem", "pki/meter-a/device.txt", "pki/owner-b/tls.pem"]);
    place.done(&revoke);
    let hosts = HOUSES.map(|house| format!("host-{house}"));
    for party in hosts.iter().map(String::as_str).chain(["service"]) {
        fs::copy(place.path("pki/revoked.txt"), place.path(&format!("pki/{party}/revoked.txt")))
            .unwrap();
    }
    let refused = until("the owner's refusal", || {
        let output = log(1);
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    });
    assert!(refused.contains("revoked"), "{refused}");
    assert!(log(2).status.success(), "nobody else is refused");
    let since = live.now();
    until("a window without the revoked device", || {
        let rows = live.rows();
        rows.into_iter().find(|row| row["population"] == 2 && start_of(row) >= since)
    });
}
