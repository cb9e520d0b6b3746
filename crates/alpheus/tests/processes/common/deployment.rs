//! A whole deployment as processes over mutual TLS: server, controllers,
//! devices, owners, a consumer.

use super::clock::set_clock;
pub(crate) use super::running_site::RunningSite;
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
/// The file that sets the clocks of a site's processes and commands.
pub(crate) const MACHINES_CLOCK: &str = "machines.clock";
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
    /// What lets the clocks of all processes and commands be set, by the file of that name.
    machines: Option<PathBuf>,
    /// For how long certificates are issued.
    lifetime: &'static [&'static str],
    /// Settings of the service: their variables and values.
    settings: Vec<(&'static str, &'static str)>,
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

    /// Whose processes and commands all follow a false clock, the one by which certificates end, too: an
    /// hour after they were issued.
    pub(crate) fn of_an_hour(schema: &str, library: PathBuf) -> Site {
        let place = Site::bare(schema);
        fs::write(place.path(MACHINES_CLOCK), "+0").unwrap();
        let place = Site {
            is_paced: true,
            machines: Some(library),
            lifetime: &["--hours", "1"],
            settings: vec![(PATIENCE_OF_WINDOWS, "300")],
            idle: "90",
            ..place.watched()
        };
        place.settled()
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
        Site { settings: vec![(PATIENCE_OF_WINDOWS, "60")], idle: "30", ..self }
    }

    /// Whose windows wait so many seconds for controllers.
    pub(crate) fn with_patience(seconds: &'static str) -> Site {
        Site::with_setting(PATIENCE_OF_WINDOWS, seconds)
    }

    /// Whose service has this setting: its variable and value.
    pub(crate) fn with_setting(variable: &'static str, value: &'static str) -> Site {
        Site { settings: vec![(variable, value)], ..Site::new() }
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
        Site { kafka, ..Site::bare(schema) }.settled()
    }

    /// A folder with files that nobody has signed.
    fn bare(schema: &str) -> Site {
        let place = Site {
            folder: tempfile::tempdir().unwrap(),
            houses: &HOUSES,
            kafka: None,
            idle: "3",
            healths: None,
            is_paced: false,
            skewed: None,
            machines: None,
            lifetime: &[],
            starter: Vec::new(),
            settings: Vec::new(),
        };
        fs::write(place.path("schema.yaml"), schema).unwrap();
        fs::write(place.path("policies.yaml"), POLICIES).unwrap();
        write_secret(&place.path("key"), KEY_FILE);
        place
    }

    /// With an authority, and everybody's certificates.
    fn settled(self) -> Site {
        self.done(&["ca", "init", "pki"]);
        self.issue("server", "service");
        self.issue("consumer", "analyst");
        HOUSES.iter().for_each(|house| self.settle(house));
        self
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
        let issue = ["ca", "issue", "pki", "--role", role, "--name", name];
        self.done(&[&issue[..], self.lifetime].concat());
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
        if let Some(library) = &self.machines {
            set_clock(&mut command, library, &self.path(MACHINES_CLOCK));
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
            set_clock(&mut server, library, &self.path("service.clock"));
        }
        server.envs(self.settings.iter().copied());
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
        let file = format!("{house}.device");
        self.stream_of(&format!("owner-{house}"), (&format!("meter-{house}"), &file), controller)
    }

    /// Issues certificates to one more device and its owner, and adds their stream.
    pub(crate) fn add_device(&self, device: &str, owner: &str, controller: &str) -> String {
        self.issue("producer", device);
        self.issue("owner", owner);
        self.stream_of(owner, (device, &format!("{device}.device")), controller)
    }

    /// Adds an owner's stream, of a device whose file is written.
    fn stream_of(&self, owner: &str, (device, file): (&str, &str), controller: &str) -> String {
        let (identity, controller) = (format!("pki/{owner}"), format!("https://{controller}"));
        let own = ["owner", "add", "--identity", &identity, "--controller", &controller];
        let files = ["--schema", "schema.yaml", "--policies", "policies.yaml"];
        self.done(&[&own[..], &files, &["--producer", device, "--device", file]].concat())
    }

    pub(crate) fn device(&self, house: &str, server: &str, lines: &Path) -> Process {
        Process::start(&mut self.device_command(house, server, lines))
    }

    pub(crate) fn device_command(&self, house: &str, server: &str, lines: &Path) -> Command {
        self.command(&[
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
        ])
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
