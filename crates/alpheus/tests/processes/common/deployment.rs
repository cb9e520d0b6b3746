//! A whole deployment as processes over mutual TLS: server, controllers,
//! devices, owners, a consumer.

use super::{KEY_FILE, PATIENCE, Process, alpheus, free_address, started_by, write_secret};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(crate) const SCHEMA: &str = "\
name: Meters
version: 1
tick: 1s
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: reading, type: integer, unit: kWh, min: 0, max: 1000, aggregations: [mean] }
  - { name: alarms, type: [integer, optional], min: 0, max: 1, aggregations: [sum] }
  - { name: litres, type: [integer, optional], min: 0, max: 10, aggregations: [sum] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [1], window: 2s, alpha: 0, dropout: 1/3 }
  - name: noisy
    option: dp-aggregate
    clients: [1]
    window: 2s
    alpha: 0
    dropout: 1/3
    budget: { perWindow: 1, total: 3, unit: person-per-window }
  - name: metered
    option: dp-aggregate
    clients: [1]
    window: 2s
    alpha: 0
    dropout: 1/3
    budget: { perWindow: 1, total: 1, delta: 1e-9, unit: person-per-window }
";
const POLICIES: &str = "\
schema: Meters
service: analyst
default:
  reading: { option: crowd, clients: 1 }
  alarms: { option: noisy, clients: 1 }
  litres: { option: metered, clients: 1 }
";
pub(crate) const QUERY: &str = "CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading) \
    WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters";
/// How long a window waits for controllers.
const PATIENCE_OF_WINDOWS: &str = "ALPHEUS_WINDOWS__CONTROLLER_TIMEOUT_SECONDS";
/// The houses of most deployments, and those of the largest.
pub(crate) const HOUSES: [&str; 3] = ["a", "b", "c"];
pub(crate) const FIVE_HOUSES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A folder with a PKI and everybody's files.
pub(crate) struct Site {
    folder: tempfile::TempDir,
    pub(crate) houses: &'static [&'static str],
    kafka: Option<Cluster>,
    /// Seconds that a window waits for late streams.
    idle: &'static str,
    /// Where processes serve their health, by their state folders, if they do.
    healths: Option<Mutex<BTreeMap<String, SocketAddr>>>,
    /// Whether all of them follow one clock.
    is_paced: bool,
    /// What lets the service's clock be set, by the file `service.clock`.
    skewed: Option<PathBuf>,
    /// A setting of the service: its variable and value.
    setting: Option<(&'static str, &'static str)>,
    /// What starts the service's program, if not the test itself: a program and its arguments.
    starter: Vec<String>,
}

/// Brokers that keep the state of service and controllers, and what all names there
/// begin with.
pub(crate) struct Cluster {
    pub(crate) brokers: String,
    pub(crate) prefix: String,
    /// Whether the job adds up, and not the service.
    pub(crate) job: bool,
}

impl Site {
    pub(crate) fn new() -> Site {
        Site::with_state_in(None)
    }

    /// With another schema. Policies are still those of meters.
    pub(crate) fn with_schema(schema: &str) -> Site {
        Site::of(None, schema)
    }

    /// With the state in folders, or in a Kafka cluster.
    pub(crate) fn with_state_in(kafka: Option<Cluster>) -> Site {
        Site::of(kafka, SCHEMA)
    }

    /// Whose devices send a frame for each event.
    pub(crate) fn with_events() -> Site {
        Site::of(None, &format!("frames: events\n{SCHEMA}"))
    }

    /// Whose devices send one frame a tick, with an anchor every few of them.
    pub(crate) fn with_ticks() -> Site {
        Site::with_ticks_in(None)
    }

    /// The same with two more houses.
    pub(crate) fn of_five_with_ticks() -> Site {
        let place = Site::with_ticks();
        FIVE_HOUSES.iter().skip(HOUSES.len()).for_each(|house| place.settle(house));
        Site { houses: &FIVE_HOUSES, ..place }
    }

    /// The same, with the state in folders, or in a Kafka cluster.
    pub(crate) fn with_ticks_in(kafka: Option<Cluster>) -> Site {
        // Live devices on a busy machine come late.
        let place = Site::of(kafka, &format!("anchor: 4s\n{SCHEMA}"));
        Site { idle: "30", ..place }
    }

    /// Whose processes follow the clock in the file `clock`, with this line in the schema.
    pub(crate) fn paced(frames: &str, kafka: Option<Cluster>) -> Site {
        let place = Site::of(kafka, &format!("{frames}{SCHEMA}"));
        Site { is_paced: true, ..place.watched() }
    }

    /// Whose processes serve their health.
    pub(crate) fn watched(self) -> Site {
        Site { healths: Some(Mutex::default()), ..self }
    }

    /// Whether its processes follow the clock in the file `clock`.
    pub(crate) fn is_paced(&self) -> bool {
        self.is_paced
    }

    /// Whose service's clock can be set, with this line in the schema. Windows wait for long.
    pub(crate) fn skewed(frames: &str, library: PathBuf) -> Site {
        let place = Site::of(None, &format!("{frames}{SCHEMA}")).that_waits();
        fs::write(place.path("service.clock"), "+0").unwrap();
        Site { skewed: Some(library), ..place }
    }

    /// Whose windows wait for streams and controllers for as long as a busy machine may take.
    pub(crate) fn that_waits(self) -> Site {
        Site { setting: Some((PATIENCE_OF_WINDOWS, "60")), idle: "30", ..self }
    }

    /// Whose windows wait so many seconds for controllers.
    pub(crate) fn with_patience(seconds: &'static str) -> Site {
        Site::with_setting(PATIENCE_OF_WINDOWS, seconds)
    }

    /// Whose service has this setting: its variable and value.
    pub(crate) fn with_setting(variable: &'static str, value: &'static str) -> Site {
        Site { setting: Some((variable, value)), ..Site::new() }
    }

    /// Whose service may have so many files open.
    pub(crate) fn with_open_files(open_files: u32) -> Site {
        let limit = format!("--nofile={open_files}:{open_files}");
        Site::new().started_by(vec!["prlimit".into(), limit])
    }

    /// Whose service's program is started by this one: a program and its arguments.
    pub(crate) fn started_by(self, starter: Vec<String>) -> Site {
        Site { starter, ..self }
    }

    /// Where the process with this state folder serves its health.
    pub(crate) fn health(&self, state: &str) -> SocketAddr {
        let mut known = self.healths.as_ref().unwrap().lock().unwrap();
        *known.entry(state.to_owned()).or_insert_with(free_address)
    }

    fn of(kafka: Option<Cluster>, schema: &str) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let place = Site {
            folder,
            houses: &HOUSES,
            kafka,
            idle: "3",
            healths: None,
            is_paced: false,
            skewed: None,
            starter: Vec::new(),
            setting: None,
        };
        fs::write(place.path("schema.yaml"), schema).unwrap();
        fs::write(place.path("policies.yaml"), POLICIES).unwrap();
        write_secret(&place.path("key"), KEY_FILE);
        place.done(&["ca", "init", "pki"]);
        place.issue("server", "service");
        place.issue("consumer", "analyst");
        HOUSES.iter().for_each(|house| place.settle(house));
        place
    }

    /// Gives a house an owner, a meter and a controller.
    fn settle(&self, house: &str) {
        self.issue("owner", &format!("owner-{house}"));
        self.issue("producer", &format!("meter-{house}"));
        let host = format!("host-{house}");
        self.issue("controller", &host);
        let (identity, state) = (format!("pki/{host}"), format!("run/{host}"));
        self.done(&[
            "controller",
            "init",
            "--identity",
            &identity,
            "--state",
            &state,
            "--key-file",
            "key",
            "--ca",
            "pki",
        ]);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn issue(&self, role: &str, name: &str) {
        self.done(&["ca", "issue", "pki", "--role", role, "--name", name]);
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = alpheus(args.iter().copied());
        command.current_dir(self.folder.path());
        let is_kept = |of: &&&str| matches!(**of, "server" | "controller");
        if let (Some(kafka), Some(_)) = (&self.kafka, args.first().filter(is_kept)) {
            let state = args.iter().skip_while(|arg| **arg != "--state").nth(1).unwrap();
            let prefix = format!("{}{}.", kafka.prefix, state.replace('/', "-"));
            command.args(["--kafka-brokers", &kafka.brokers, "--kafka-prefix", &prefix]);
        }
        let runs = matches!(args[..], ["server" | "produce", ..] | [_, "run", ..]);
        if runs && self.healths.is_some() {
            let state = args.iter().skip_while(|arg| **arg != "--state").nth(1).unwrap();
            command.args(["--listen", &self.health(state).to_string()]);
        }
        if runs && self.is_paced {
            command.args(["--replay-clock", "clock"]);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must succeed; what it prints.
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn server(&self, api: &str) -> Process {
        let job = self.kafka.as_ref().is_some_and(|cluster| cluster.job);
        // A job that is restarted takes a while to report again what it knows, and minutes on a
        // machine that does much else.
        let (engine, idle) = if job { ("job", "240") } else { ("in-process", self.idle) };
        let mut server = self.command(&[
            "server",
            "--identity",
            "pki/service",
            "--schema",
            "schema.yaml",
            "--state",
            "run/service",
            "--api",
            api,
            "--engine",
            engine,
            "--idle-timeout",
            idle,
        ]);
        if let Some(library) = &self.skewed {
            let clock = self.path("service.clock");
            server.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", clock);
            server.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        if let Some((name, value)) = self.setting {
            server.env(name, value);
        }
        server = started_by(&self.starter, server);
        // Why a stream was left out of a window.
        let mut process = Process::start(server.env("ALPHEUS_LOG", "info"));
        process.wait_for_prefix("serving at ");
        process
    }

    pub(crate) fn controller(&self, house: &str, api: &str, server: &str) -> Process {
        let mut process = self.start_controller(house, api, server);
        process.wait_for_prefix("serving at ");
        process
    }

    /// The same, which may not come as far as to serve.
    pub(crate) fn start_controller(&self, house: &str, api: &str, server: &str) -> Process {
        let host = format!("host-{house}");
        Process::start(&mut self.command(&[
            "controller",
            "run",
            "--identity",
            &format!("pki/{host}"),
            "--state",
            &format!("run/{host}"),
            "--key-file",
            "key",
            "--schema",
            "schema.yaml",
            "--server",
            server,
            "--api",
            api,
        ]))
    }

    pub(crate) fn add_stream(&self, house: &str, controller: &str) -> String {
        self.done(&[
            "owner",
            "add",
            "--identity",
            &format!("pki/owner-{house}"),
            "--controller",
            &format!("https://{controller}"),
            "--schema",
            "schema.yaml",
            "--policies",
            "policies.yaml",
            "--producer",
            &format!("meter-{house}"),
            "--device",
            &format!("{house}.device"),
        ])
    }

    pub(crate) fn device(&self, house: &str, server: &str, lines: &Path) -> Process {
        Process::start(&mut self.command(&[
            "produce",
            "--identity",
            &format!("pki/meter-{house}"),
            "--device",
            &format!("{house}.device"),
            "--state",
            &format!("run/meter-{house}"),
            "--schema",
            "schema.yaml",
            "--server",
            server,
            "--input",
            lines.to_str().unwrap(),
            "--time-column",
            "at",
        ]))
    }

    pub(crate) fn ask(&self, server: &str, sql: &str) -> Output {
        self.run(&["query", "--server", server, "--identity", "pki/analyst", "--query", sql])
    }

    /// Rows of the query so far, as JSON objects.
    pub(crate) fn rows(&self, server: &str) -> Vec<serde_json::Value> {
        self.rows_of(server, "Readings")
    }

    /// The same of a query with this name.
    pub(crate) fn rows_of(&self, server: &str, name: &str) -> Vec<serde_json::Value> {
        let said = self.done(&[
            "query",
            "--server",
            server,
            "--identity",
            "pki/analyst",
            "--results",
            name,
            "--format",
            "json",
        ]);
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// As [`free_address`], in words.
pub(crate) fn free() -> String {
    free_address().to_string()
}

/// Waits until `found` finds something. It looks less often after a while: most looks start a process.
pub(crate) fn until<T>(what: &str, found: impl FnMut() -> Option<T>) -> T {
    until_or(|| format!("no {what}"), found)
}

/// The same; `why` says what there is if it does not come.
pub(crate) fn until_or<T>(why: impl Fn() -> String, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(100);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{}", why());
        std::thread::sleep(pause);
        pause = (pause * 3 / 2).min(Duration::from_secs(1));
    }
}

/// A service and a controller for each house, with a stream at each.
pub(crate) struct RunningSite {
    pub(crate) place: Site,
    pub(crate) server: String,
    pub(crate) hosts: Vec<(String, Process)>,
    pub(crate) streams: Vec<String>,
    pub(crate) service: Process,
}

impl RunningSite {
    pub(crate) fn start() -> RunningSite {
        RunningSite::start_behind(|_, api| api.to_owned())
    }

    /// The same, where each house's controller reaches the service at the address
    /// that `behind` gives.
    pub(crate) fn start_behind(behind: impl Fn(&str, &str) -> String) -> RunningSite {
        RunningSite::start_in(Site::new(), behind)
    }

    /// The same in a place that is there.
    pub(crate) fn start_in(place: Site, behind: impl Fn(&str, &str) -> String) -> RunningSite {
        let api = free();
        let server = format!("https://{api}");
        let service = place.server(&api);
        let host = |house: &&str| {
            let (own, service) = (free(), behind(house, &api));
            let process = place.controller(house, &own, &format!("https://{service}"));
            (own, process)
        };
        let houses = place.houses;
        let hosts: Vec<(String, Process)> = houses.iter().map(host).collect();
        let add = |(house, (api, _)): (&&str, &(String, Process))| place.add_stream(house, api);
        let streams = houses.iter().zip(&hosts).map(add).collect();
        let running = RunningSite { place, server, hosts, streams, service };
        running.knows_all();
        running
    }

    /// Waits until the service knows the streams of all houses: a query has only those that are
    /// known when it is accepted.
    pub(crate) fn knows_all(&self) {
        let many = self.place.houses.len();
        until("a stream of each house at the service", || {
            let asked = format!("EXPLAIN {QUERY} BETWEEN {many} AND 100");
            self.place.ask(&self.server, &asked).status.success().then_some(())
        });
    }

    /// The first row over so many owners.
    pub(crate) fn row(&self, population: u64) -> serde_json::Value {
        let rows = || self.place.rows(&self.server);
        let why = || {
            let (rows, log) = (rows(), self.service.log());
            let last = &rows[rows.len().saturating_sub(4)..];
            format!("no window over {population}; the last: {last:?}\n{log}")
        };
        until_or(why, || {
            rows().into_iter().find(|row| row["population"] == population && row["status"] == "ok")
        })
    }

    pub(crate) fn owner(&self, house: usize, what: &str) -> String {
        self.owner_with(house, what, &[])
    }

    /// The same with more flags.
    pub(crate) fn owner_with(&self, house: usize, what: &str, more: &[&str]) -> String {
        let output = self.owner_does(house, what, more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{what} {more:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same, whatever comes of it.
    pub(crate) fn owner_does(&self, house: usize, what: &str, more: &[&str]) -> Output {
        let (identity, controller) = (
            format!("pki/owner-{}", self.place.houses[house]),
            format!("https://{}", self.hosts[house].0),
        );
        let stream = self.streams[house].as_str();
        let reach = ["--identity", &identity, "--controller", &controller, "--stream", stream];
        self.place.run(&[&["owner", what], &reach[..], more].concat())
    }
}
