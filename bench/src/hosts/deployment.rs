//! A service, and a controller for each owner. Each is a process with its own
//! certificate of its own.

use crate::program::{Program, Server, free};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::note;
use alpheus_policy::show::Table;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The paper's application with the most words of those that a person might run.
const SCHEMA: &str = include_str!("../../../examples/car-maintenance/schema.yaml");
const POLICIES: &str = "\
schema: CarSensors
service: analyst
default:
  \"*\": { option: fleet, clients: small, window: 10s }
";
/// Every statistic of every attribute: all 169 words.
const ATTRIBUTES: [&str; 11] = [
    "vibration_velocity",
    "vibration_displacement",
    "vibration_acceleration",
    "sound_pressure",
    "humidity",
    "speed",
    "fuel",
    "tyre_pressure",
    "ambient_air",
    "oil",
    "engine",
];
/// Progress is printed after this many.
const SOME: usize = 100;
/// Timeout for the service to know all streams.
const HEARD: Duration = Duration::from_secs(300);

/// The running deployment.
pub(super) struct Deployment {
    pub(super) program: Program,
    /// The address of the service.
    pub(super) url: String,
    /// Length of a window in seconds.
    window: u32,
    service: Server,
    controllers: Vec<Server>,
}

/// Prints progress.
struct Progress<'a> {
    what: &'a str,
    of: usize,
    done: AtomicUsize,
}

impl<'a> Progress<'a> {
    fn new(what: &'a str, of: usize) -> Self {
        Progress { what, of, done: AtomicUsize::new(0) }
    }

    fn one(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(SOME) || done == self.of {
            note!("{}: {done} of {}", self.what, self.of);
        }
    }
}

/// All files, written by the usual commands.
fn people(program: &Program, hosts: usize, window: u32) -> Result<(), Failure> {
    let write = |name: &str, text: &str| {
        let path = program.path(name);
        fs::write(&path, text).blame_io(&path)
    };
    let by = |text: &str| text.replace("10s", &format!("{window}s"));
    write("schema.yaml", &format!("frames: events\n{}", by(SCHEMA)))?;
    write("policies.yaml", &by(POLICIES))?;
    write("key", "a key file of a benchmark")?;
    let key = program.path("key");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).blame_io(&key)?;
    program.run(&["ca", "init", "pki"])?;
    let issue = |role: &str, name: &str| {
        program.run(&["ca", "issue", "pki", "--role", role, "--name", name])
    };
    issue("server", "service")?;
    issue("consumer", "analyst")?;
    issue("producer", "cars")?;
    let progress = Progress::new("identities of controllers and owners", hosts);
    (0..hosts).into_par_iter().try_for_each(|number| {
        issue("owner", &format!("owner-{number}"))?;
        let host = format!("host-{number}");
        issue("controller", &host)?;
        let (identity, state) = (format!("pki/{host}"), format!("run/{host}"));
        let place = ["--identity", &identity, "--state", &state, "--key-file", "key"];
        program.run(&[&["controller", "init"], &place[..], &["--ca", "pki"]].concat())?;
        progress.one();
        Ok(())
    })
}

fn host(program: &Program, url: &str, number: usize) -> Result<(String, Server), Failure> {
    let (identity, state) = (format!("pki/host-{number}"), format!("run/host-{number}"));
    let api = free()?.to_string();
    let place = ["--identity", &identity, "--state", &state, "--key-file", "key"];
    let rest = ["--schema", "schema.yaml", "--server", url, "--api", &api];
    let run = [&["controller", "run"], &place[..], &rest].concat();
    // In production they have their own machines. Here the service has priority.
    let server = program.start_by(&["nice", "-n", "5"], &run)?;
    Ok((api, server))
}

fn add(program: &Program, number: usize, api: &str) -> Result<(), Failure> {
    let (identity, controller) = (format!("pki/owner-{number}"), format!("https://{api}"));
    let device = super::devices::file(number);
    let who = ["--identity", &identity, "--controller", &controller, "--producer", "cars"];
    let what = ["--schema", "schema.yaml", "--policies", "policies.yaml", "--device", &device];
    program.run(&[&["owner", "add"], &who[..], &what].concat()).map(drop)
}

/// The resources used by an action.
pub(super) struct ResourceUse {
    /// Wall-clock time.
    pub(super) seconds: f64,
    /// Seconds of processor time.
    pub(super) service: f64,
    /// Of all controllers together.
    pub(super) controllers: f64,
}

impl Deployment {
    /// With this many controllers, each with a stream of its own owner;
    /// windows have this many seconds.
    pub(super) fn new(hosts: usize, window: u32) -> Result<Deployment, Failure> {
        let program = Program::new()?;
        people(&program, hosts, window)?;
        let api = free()?.to_string();
        let service = ["server", "--identity", "pki/service", "--schema", "schema.yaml"];
        let rest = ["--state", "run/service", "--api", &api, "--idle-timeout", "60"];
        let service = program.start(&[&service[..], &rest].concat())?;
        let url = format!("https://{api}");
        let progress = Progress::new("controllers that run, and streams at them", hosts);
        let started = (0..hosts).into_par_iter().map(|number| {
            let (api, controller) = host(&program, &url, number)?;
            add(&program, number, &api)?;
            progress.one();
            Ok(controller)
        });
        let controllers = started.collect::<Result<Vec<_>, Failure>>()?;
        Ok(Deployment { program, url, window, service, controllers })
    }

    /// Starts a query over at least a third of the owners, once all are known.
    pub(super) fn register(&self) -> Result<(), Failure> {
        let (owners, window) = (self.owners().to_string(), self.window);
        self.wait_for("SHOW STREAMS", &owners)?;
        let selected: Vec<_> =
            ATTRIBUTES.iter().map(|it| format!("VAR({it}), HISTOGRAM({it})")).collect();
        let (selected, least) = (selected.join(", "), self.owners() / 3);
        let asked = self.ask(&format!(
            "CREATE STREAM Fleet AS SELECT {selected} WINDOW TUMBLING (SIZE {window} SECONDS) \
             FROM CarSensors BETWEEN {least} AND {owners}"
        ));
        // An answer may exceed the timeout if all share a machine.
        match self.wait_for("SHOW QUERIES", "Fleet") {
            Ok(()) => Ok(()),
            Err(absent) => asked.and(Err(absent)),
        }
    }

    /// Waits until a cell of the output is `wanted`.
    fn wait_for(&self, show: &str, wanted: &str) -> Result<(), Failure> {
        let end = Instant::now() + HEARD;
        loop {
            let shown = self.ask(show).and_then(|shown| {
                serde_json::from_str::<Vec<Table>>(&shown).blame(Category::Check)
            });
            let shows = |tables: &Vec<Table>| {
                tables.iter().flat_map(|table| &table.rows).flatten().any(|cell| cell == wanted)
            };
            if shown.as_ref().is_ok_and(shows) {
                return Ok(());
            }
            if Instant::now() > end {
                return shown
                    .and(Err("the service does not know all streams").blame(Category::Check));
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    fn ask(&self, sql: &str) -> Result<String, Failure> {
        self.program.run(&[&self.reach()[..], &["--query", sql, "--format", "json"]].concat())
    }

    /// How many there are.
    pub(super) fn owners(&self) -> usize {
        self.controllers.len()
    }

    /// The analyst's command line for the service.
    pub(super) fn reach(&self) -> [&str; 5] {
        ["query", "--server", &self.url, "--identity", "pki/analyst"]
    }

    /// The resources that all processes use during an action.
    pub(super) fn used_over(
        &self,
        work: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<ResourceUse, Failure> {
        let all = || {
            let each = self.controllers.iter().map(Server::cpu);
            Ok::<_, Failure>((self.service.cpu()?, each.sum::<Result<f64, _>>()?))
        };
        let (before, began) = (all()?, Instant::now());
        work()?;
        let (after, seconds) = (all()?, began.elapsed().as_secs_f64());
        Ok(ResourceUse { seconds, service: after.0 - before.0, controllers: after.1 - before.1 })
    }

    /// Of the service, and of all controllers together, in KB.
    pub(super) fn memory(&self) -> Result<(f64, f64), Failure> {
        let each = self.controllers.iter().map(Server::memory);
        Ok((self.service.memory()?, each.sum::<Result<f64, _>>()?))
    }
}
