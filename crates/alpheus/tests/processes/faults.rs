//! A deployment of processes whose parts are killed, frozen and cut off: each
//! window opens right, once, or says why not, and afterwards all goes on.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::Process;
use crate::common::deployment::{HOUSES, QUERY, RunningSite, until};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A meter is read so often.
const EVERY: Duration = Duration::from_millis(250);
/// Windows of the query, in milliseconds.
const WINDOW: u64 = 2_000;

fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A line between a controller and the service that can be cut.
struct Wire {
    address: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    fn to(service: SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, streams) = (listener.local_addr().unwrap(), Arc::default());
        let kept: Arc<Mutex<Vec<TcpStream>>> = Arc::clone(&streams);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(service) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
                kept.lock().unwrap().extend([near, far]);
            }
        });
        Wire { address, streams }
    }

    /// Cuts all that is connected, in the middle of whatever is said.
    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// What a house's meter has read: when, in milliseconds, and what.
type Readings = Arc<Mutex<Vec<(u64, u64)>>>;

/// Reads a house's meter into a pipe for as long as the deployment is there.
fn read_meter(pipe: PathBuf, house: u64, readings: Readings, over: Arc<AtomicBool>) {
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        // Waits for a device that reads.
        let Ok(mut open) = OpenOptions::new().write(true).open(&pipe) else { return };
        while !over.load(Ordering::Relaxed) {
            std::thread::sleep(EVERY);
            count += 1;
            let (at, reading) = (now(), (count * 7 + house * 331) % 1000);
            // Before the device has it, so that no window is found without it.
            readings.lock().unwrap().push((at, reading));
            if writeln!(open, "{{\"reading\": {reading}, \"at\": {at}}}").is_err() {
                readings.lock().unwrap().pop();
                break;
            }
        }
    }
}

/// A deployment with live meters.
struct Live {
    running: RunningSite,
    wires: BTreeMap<String, Wire>,
    devices: Vec<Process>,
    readings: Vec<Readings>,
    over: Arc<AtomicBool>,
}

impl Live {
    fn start() -> Live {
        let wires = Mutex::new(BTreeMap::new());
        let running = RunningSite::start_behind(|house, service| {
            let wire = Wire::to(service.parse().unwrap());
            let address = wire.address.to_string();
            wires.lock().unwrap().insert(house.to_owned(), wire);
            address
        });
        let asked = running.place.ask(&running.server, QUERY);
        assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
        let (over, mut readings) = (Arc::new(AtomicBool::new(false)), Vec::new());
        for (number, house) in (0..).zip(HOUSES) {
            let pipe = running.place.path(&format!("{house}.pipe"));
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let (own, over) = (Readings::default(), Arc::clone(&over));
            readings.push(Arc::clone(&own));
            std::thread::spawn(move || read_meter(pipe, number, own, over));
        }
        let wires = wires.into_inner().unwrap();
        let mut live = Live { running, wires, devices: Vec::new(), readings, over };
        live.devices = (0..HOUSES.len()).map(|house| live.device(house)).collect();
        live
    }

    fn device(&self, house: usize) -> Process {
        let pipe = self.running.place.path(&format!("{}.pipe", HOUSES[house]));
        self.running.place.device(HOUSES[house], &self.running.server, &pipe)
    }

    /// Waits for a window that begins from now on and holds everybody's data.
    fn goes_on(&self, after: &str) {
        let since = now();
        until(&format!("whole window after {after}"), || {
            let mut rows = self.running.place.rows(&self.running.server).into_iter();
            rows.find(|row| {
                row["population"] == 3 && row["window_start"].as_u64().unwrap() >= since
            })
        });
    }

    fn kill_the_service(&mut self) {
        self.running.service.kill();
        let api = self.running.server.strip_prefix("https://").unwrap();
        self.running.service = self.running.place.server(api);
    }

    fn kill_a_controller(&mut self, house: usize) {
        let (api, process) = &mut self.running.hosts[house];
        process.kill();
        let service = format!("https://{}", self.wires[HOUSES[house]].address);
        *process = self.running.place.controller(HOUSES[house], api, &service);
    }

    fn kill_a_device(&mut self, house: usize) {
        self.devices[house].kill();
        self.devices[house] = self.device(house);
    }

    /// Every window once, none left out; those that opened hold what the meters of so
    /// many houses read, each whole. A window that had to be asked for again has its
    /// row after the next one's.
    fn check(&self) {
        let number = |row: &serde_json::Value, column: &str| row[column].as_u64().unwrap();
        let rows = until("row of each window", || {
            let rows = self.running.place.rows(&self.running.server);
            let mut starts: Vec<u64> = rows.iter().map(|row| number(row, "window_start")).collect();
            starts.sort_unstable();
            assert!(starts.is_sorted_by(|one, next| one < next), "twice: {starts:?}");
            starts.is_sorted_by(|one, next| one + WINDOW == *next).then_some(rows)
        });
        let mut opened = 0;
        for row in &rows {
            if row["status"] != "ok" {
                assert!(row["sum_reading"].is_null(), "{row}");
                continue;
            }
            opened += 1;
            let count = row["count_reading"].as_u64().unwrap_or(0);
            let sum = row["sum_reading"].as_str().map_or(0, |sum| sum.parse().unwrap());
            let (start, population) = (number(row, "window_start"), number(row, "population"));
            assert!(self.is_true(start, population, (count, sum)), "{row}");
        }
        assert!(opened > 0);
    }

    fn is_true(&self, start: u64, population: u64, said: (u64, u64)) -> bool {
        let of = |readings: &Readings| {
            let readings = readings.lock().unwrap();
            let within = readings.iter().filter(|(at, _)| (start..start + WINDOW).contains(at));
            within.fold((0, 0), |(count, sum), (_, reading)| (count + 1, sum + reading))
        };
        let houses: Vec<(u64, u64)> = self.readings.iter().map(of).collect();
        (0..1_u32 << houses.len()).filter(|set| u64::from(set.count_ones()) == population).any(
            |set| {
                let chosen = houses.iter().enumerate().filter(|(place, _)| set >> place & 1 == 1);
                let add = |all: (u64, u64), (_, one): (usize, &(u64, u64))| {
                    (all.0 + one.0, all.1 + one.1)
                };
                chosen.fold((0, 0), add) == said
            },
        )
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

#[test]
fn whatever_is_killed_frozen_or_cut_off_windows_open_right_and_once() {
    let mut live = Live::start();
    live.goes_on("the start");
    live.kill_the_service();
    live.goes_on("the service was killed");
    live.kill_a_controller(0);
    live.goes_on("a controller was killed");
    // Frozen for longer than a window waits.
    live.running.hosts[1].1.freeze();
    std::thread::sleep(Duration::from_secs(6));
    live.running.hosts[1].1.thaw();
    live.goes_on("a controller was frozen");
    live.running.service.freeze();
    std::thread::sleep(Duration::from_secs(3));
    live.running.service.thaw();
    live.goes_on("the service was frozen");
    for _ in 0..20 {
        live.wires.values().for_each(Wire::cut);
        std::thread::sleep(Duration::from_millis(150));
    }
    live.goes_on("lines were cut");
    live.kill_a_device(2);
    live.goes_on("a device was killed");
    live.kill_the_service();
    live.kill_a_controller(1);
    live.kill_a_controller(2);
    live.goes_on("all were killed at once");
    live.check();
}

#[test]
fn a_ledger_that_is_damaged_is_not_started_from() {
    let mut running = RunningSite::start();
    let (api, host) = &mut running.hosts[0];
    host.kill();
    let damaged = damage(&running.place.path("run/host-a"));
    assert!(damaged > 0);
    let mut process = running.place.start_controller(HOUSES[0], api, &running.server);
    let said = process.wait_for("refusal", |line| line.contains("error").then(|| line.to_owned()));
    assert!(!process.wait().success());
    let log = process.log();
    assert!(said.contains("run/host-a") && log.contains("backup"), "{log}");
}

/// Flips a bit in the middle of every file of the store that holds something.
fn damage(folder: &Path) -> usize {
    let mut damaged = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            damaged += damage(&path);
            continue;
        }
        // All but the socket through which a process hands out copies.
        if !path.is_file() {
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        if used > 64 {
            bytes[used / 2] ^= 1;
            fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    damaged
}
