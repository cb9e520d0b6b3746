//! A day of keys: certificates of an hour are renewed all day while processes run on, a stream moves to
//! another host, the authority is replaced, and a device and its owner are revoked. No window is lost.
//!
//! Time is that of a clock which waits for all processes. It leaps while they rest, and goes no faster than the
//! machine's whenever certificates change, since processes look at their files by the machine's. All processes and
//! commands run under faketime: certificates begin and end by that clock, too.
//!
//! `ALPHEUS_DAY_OF_KEYS` says how many hours the day has, two by default; `drills/keys.sh` has 24.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::common::clock::{PacedClock, faketime};
use crate::common::deployment::{HOUSES, MACHINES_CLOCK, QUERY, SCHEMA, Site, until};
use crate::common::live::{are_there_once, start_of};
use crate::common::{Process, get, get_over, tls};
use crate::latecomers::Street;
use crate::renewals::days_left;
use crate::rollover::identities;
use alpheus_time::Timestamp;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// All times are in milliseconds, as in rows.
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
/// Windows of the query.
const WINDOW: u64 = 10 * MINUTE;
/// How long after they were issued certificates are renewed.
const RENEWED: u64 = 40 * MINUTE;
/// How long the row of a window is waited for.
const LATE: u64 = HOUR / 2;
/// The service takes leaps for times in which it was away, and such times end no window that waits for a
/// silent house. Where no other stream shares its partition, windows end once the service was there for so
/// long: as long as it waits after it was away, and as a window waits.
const THERE: Duration = Duration::from_secs(240);
/// How soon a revoked certificate is refused.
const SOON: Duration = Duration::from_secs(60);
/// How long processes may take to know of a change, as the guide says.
const KNOWN: Duration = Duration::from_secs(10);

struct Day {
    street: Street,
    /// The identity folders of all who take part still.
    parties: Vec<String>,
    /// When their certificates were renewed last.
    renewed: u64,
    renewals: usize,
    /// Whether a house is silent.
    is_one_silent: bool,
}

/// What a house's meter reads in the middle of each minute.
fn reading(house: u64, minute: u64) -> u64 {
    (minute * 7 + house * 331) % 1000
}

/// How long it took until a certificate was refused.
struct Refusal {
    caller: &'static str,
    by: String,
    after: Duration,
}

impl Day {
    /// Three houses, each with a host and a meter, of which a query asks by epochs.
    fn begin(hours: u64, library: PathBuf) -> Day {
        let schema =
            SCHEMA.replace("tick: 1s", "tick: 1min").replace("window: 2s", "window: 10min");
        let place = Site::of_an_hour(&schema, library);
        let machines = place.path(MACHINES_CLOCK);
        let clock = PacedClock::start_with_machines(&place.path("clock"), machines);
        let renewed = clock.now().0 / 1000;
        let mut street = Street::of(place, clock);
        HOUSES.into_iter().for_each(|house| street.settle(house));
        let mut day =
            Day { street, parties: identities(), renewed, renewals: 0, is_one_silent: false };
        (0..).zip(HOUSES).for_each(|(number, house)| day.feed(number, house, hours));
        let query = QUERY.replace("2 SECONDS", "10 MINUTES").replace("1 SECONDS", "2 MINUTES");
        let asked = format!("{query} WITH (membership = 'epochs')");
        let asked = day.street.place.ask(&day.street.server, &asked);
        assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
        day
    }

    /// A house's meter has all its readings in a file, and sends each when it is time.
    fn feed(&mut self, number: u64, house: &str, hours: u64) {
        let from = self.now() / MINUTE + 1;
        let line = |minute: u64| {
            let (reading, at) = (reading(number, minute), minute * MINUTE + MINUTE / 2);
            format!("{{\"reading\": {reading}, \"at\": {at}}}\n")
        };
        let street = &mut self.street;
        let lines = street.place.path(&format!("{house}.json"));
        let minutes = ((hours + 2) * HOUR) / MINUTE;
        fs::write(&lines, (from..from + minutes).map(line).collect::<String>()).unwrap();
        let mut device = street.place.device_command(house, &street.server, &lines);
        let device = Process::start(device.arg("--paced"));
        street.clock.watch(&device, street.place.health(&format!("run/meter-{house}")));
        street.devices.push(device);
    }

    fn now(&self) -> u64 {
        self.street.clock.now().0 / 1000
    }

    /// Time passes, in leaps. On the way certificates are renewed.
    fn pass(&mut self, until: u64) {
        while self.now() < until {
            let due = self.renewed + RENEWED;
            self.street.clock.leap_to(Timestamp(until.min(due) * 1000));
            if self.now() >= due {
                self.renew();
            }
        }
    }

    /// Time passes with the machine's.
    fn wait(&self, time: Duration) {
        let since = self.street.clock.now();
        while self.street.clock.since(since) < time {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn with_all(&self, args: &[&str]) {
        let parties: Vec<&str> = self.parties.iter().map(String::as_str).collect();
        self.street.place.done(&[&["ca"], args, &parties].concat());
    }

    /// Everybody gets a certificate of another hour before the last one ends, and shows it.
    fn renew(&mut self) {
        for party in self.running() {
            let left = self.minutes_left(&party);
            assert!(left > 0.0, "{party}: its certificate has ended, {left} minutes are left");
        }
        self.with_all(&["renew", "pki", "--hours", "1"]);
        self.renewed = self.now();
        self.renewals += self.parties.len();
        for party in self.running() {
            until(&format!("renewed certificate in use by {party}"), || {
                (self.minutes_left(&party) > 55.0).then_some(())
            });
        }
    }

    /// Those of the parties that are processes.
    fn running(&self) -> Vec<String> {
        let names = self.parties.iter().filter_map(|party| party.strip_prefix("pki/"));
        let runs =
            |name: &&str| ["service", "host-", "meter-"].iter().any(|kind| name.starts_with(kind));
        names.filter(runs).map(str::to_owned).collect()
    }

    fn minutes_left(&self, party: &str) -> f64 {
        let health = self.street.place.health(&format!("run/{party}"));
        days_left(&get(health, "/metrics").unwrap().1) * 24.0 * 60.0
    }

    fn leaves(&mut self, party: &str) {
        self.parties.retain(|known| known != &format!("pki/{party}"));
    }

    /// The first house's stream moves to the second house's host, and once late windows have ended
    /// the host that it has left is shut down.
    fn move_stream(&mut self) {
        let (street, stream) = (&self.street, self.street.stream());
        let to = format!("https://{}", street.addresses["b"]);
        let said = street.owner("move", &["--stream", &stream, "--to", &to]);
        assert!(said.contains("`host-b` for those that begin from then on"), "{said}");
        self.wait(KNOWN);
        self.pass(self.now() + 3 * WINDOW);
        let left = self.street.hosts.get_mut("a").unwrap();
        left.terminate();
        assert!(left.wait().success());
        self.leaves("host-a");
    }

    /// As the guide says.
    fn replace_authority(&mut self) {
        self.with_all(&["rollover", "pki"]);
        self.wait(KNOWN);
        self.renew();
        self.with_all(&["rollover", "pki", "--finish"]);
        self.wait(KNOWN);
    }

    /// The last house's device and owner are revoked, and everybody gets the list. All others go on.
    fn revoke(&mut self) -> Vec<Refusal> {
        let mut refused = Vec::new();
        let callers =
            [("meter-c", "service", "/v1/schema"), ("owner-c", "host-b", "/v1/controllers")];
        let more =
            [("owner-c", "host-c", "/v1/controllers"), ("meter-c", "host-c", "/v1/controllers")];
        let all = [callers, more].concat();
        for (caller, by, path) in &all {
            assert_ne!(self.status(caller, by, path), 401, "{caller} at {by}");
        }
        let revoked = ["pki/meter-c/tls.pem", "pki/meter-c/device.txt", "pki/owner-c/tls.pem"];
        let place = &self.street.place;
        place.done(&[&["ca", "revoke", "pki"], &revoked[..]].concat());
        let since = self.street.clock.now();
        for party in &self.parties {
            let own = place.path(&format!("{party}/revoked.txt"));
            fs::copy(place.path("pki/revoked.txt"), own).unwrap();
        }
        for (caller, by, path) in all {
            until(&format!("refusal of {caller} by {by}"), || {
                (self.status(caller, by, path) == 401).then_some(())
            });
            let after = self.street.clock.since(since);
            assert!(after < SOON, "{caller} by {by}: {after:?}");
            refused.push(Refusal { caller, by: by.to_owned(), after });
        }
        assert_eq!(self.status("meter-a", "service", "/v1/schema"), 200);
        assert_eq!(self.status("owner-a", "host-c", "/v1/controllers"), 200);
        let again = self.street.place.run(&["ca", "renew", "pki", "pki/meter-c", "--hours", "1"]);
        assert!(String::from_utf8_lossy(&again.stderr).contains("is revoked"), "{again:?}");
        ["meter-c", "owner-c"].iter().for_each(|party| self.leaves(party));
        self.is_one_silent = true;
        refused
    }

    /// What a party hears there.
    fn status(&self, caller: &str, by: &str, path: &str) -> u16 {
        let api = match by.strip_prefix("host-") {
            Some(house) => self.street.addresses[house].as_str(),
            None => self.street.server.trim_start_matches("https://"),
        };
        let own = self.street.place.path(&format!("pki/{caller}"));
        let connection = tls::connect_at(&own, api, self.street.clock.now());
        get_over(connection, path).map_or(0, |(status, _)| status)
    }

    /// Lets time pass until there is such a row.
    fn row(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> u64 {
        let last = self.now() + LATE;
        loop {
            let rows = self.street.rows();
            if let Some(row) = rows.iter().find(|row| is_it(row)) {
                return start_of(row);
            }
            assert!(self.now() < last, "no {what}: {rows:?}\n{}", self.logs());
            if self.is_one_silent {
                self.wait(THERE);
            }
            self.pass(self.now() + 2 * MINUTE);
        }
    }

    /// What the service and hosts have said, but for leaps.
    fn logs(&self) -> String {
        let all = [&self.street.service].into_iter().chain(self.street.hosts.values());
        let all: Vec<String> = all.map(Process::log).collect();
        let said = |line: &&str| !line.contains("the service was away");
        all.iter().flat_map(|log| log.lines()).filter(said).collect::<Vec<_>>().join("\n")
    }

    /// Each window from the first one on is there once, and is the truth over all houses, and from the
    /// window on in which the last house was revoked over all others.
    fn is_whole(&self, first: u64, windows: u64, revoked: u64) -> u64 {
        let rows = self.street.rows();
        are_there_once(&rows);
        let mut whole = 0;
        for start in (0..windows).map(|number| first + number * WINDOW) {
            let row = rows.iter().find(|row| start_of(row) == start);
            let row = row.unwrap_or_else(|| panic!("no window of {start}: {rows:?}"));
            let houses = if start < revoked { 3 } else { 2 };
            let minutes = start / MINUTE..(start + WINDOW) / MINUTE;
            let count = houses * WINDOW / MINUTE;
            let sum: u64 =
                minutes.flat_map(|at| (0..houses).map(move |own| reading(own, at))).sum();
            let is_over = row["status"] == "ok" && row["population"] == houses;
            assert!(is_over, "not over {houses} houses: {row}\n{}", self.logs());
            assert_eq!(row["sum_reading"], sum.to_string(), "{row}");
            assert_eq!(row["count_reading"], count, "{row}");
            whole += 1;
        }
        whole
    }
}

/// Prints what the drill notes.
fn figure(name: &str, value: impl std::fmt::Display) {
    println!("figure: {name} = {value}");
}

#[test]
#[ignore = "drill: minutes, most of which it waits"]
fn every_window_is_whole_while_certificates_of_an_hour_come_and_go() {
    let Some(library) = faketime() else { return };
    let hours = std::env::var("ALPHEUS_DAY_OF_KEYS").map_or(2, |hours| hours.parse().unwrap());
    let mut day = Day::begin(hours, library);
    let (begun, morning) = (Instant::now(), day.now());
    let first = day.row("whole window", |row| row["population"] == 3);
    let (quarter, windows) = (hours * HOUR / 4, hours * HOUR / WINDOW);
    day.pass(first + quarter + 3 * MINUTE);
    day.move_stream();
    day.pass(first + 2 * quarter + 3 * MINUTE);
    day.replace_authority();
    let revoked = first + 3 * quarter / WINDOW * WINDOW;
    day.pass(revoked + WINDOW / 2);
    // Who is revoked is in no window that ends later.
    day.row("window before the revocation", |row| start_of(row) + WINDOW == revoked);
    assert!(day.now() < revoked + WINDOW, "its row came late");
    let refused = day.revoke();
    let end = first + windows * WINDOW;
    day.pass(end + WINDOW);
    day.row("last window", |row| start_of(row) + WINDOW == end);
    let whole = day.is_whole(first, windows, revoked);
    let heard = day.street.devices[2].log();
    assert!(heard.contains("the authority has revoked your certificate"), "{heard}");

    let (real, simulated) = (begun.elapsed().as_secs(), (day.now() - morning) / 1000);
    println!();
    figure("hours of the day", hours);
    figure("mean rate of the clock, its seconds in a real second", simulated / real.max(1));
    figure("windows that are whole", format!("{whole} of {windows}"));
    figure("windows without the revoked house", (end - revoked) / WINDOW);
    figure("certificates renewed", day.renewals);
    for Refusal { caller, by, after } in refused {
        figure(
            &format!("seconds until {by} refuses the revoked {caller}"),
            format!("{:.1}", after.as_secs_f64()),
        );
    }
    figure("real seconds", real);
}
