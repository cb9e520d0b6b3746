//! Keys, certificates and processes of a deployment on this machine.

use super::feed;
use super::inputs::Inputs;
use alpheus_node::clock::{Clock, ClockWriter};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, write_new};
use alpheus_node::globals::Globals;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::service::children::{Children, Condition, free_address, program};
use alpheus_node::service::shutdown::Shutdown;
use alpheus_streams::links;
use alpheus_streams::query::StatementResult;
use alpheus_streams::query::opener::{Opener, Statement};
use alpheus_time::Timestamp;
use clap::Parser;
use rand_core::Rng;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Seconds of real time that a window waits for streams, which the clock waits for anyway, and for
/// controllers; and that all are waited for after an outage.
const WAITS: [u32; 3] = [2, 10, 20];
/// Bytes of a key file.
const KEY_BYTES: usize = 32;
/// How often the service is asked whether it knows all streams.
const LOOK: Duration = Duration::from_millis(200);
/// The column of each line's time.
pub(super) const TIME_COLUMN: &str = "alpheus_unix_ms";
const CLOCK: &str = "clock";
/// The folder of the devices' logs.
const DEVICES: &str = "devices";

/// A deployment on this machine. Its processes end with it.
pub(super) struct Stage {
    folder: PathBuf,
    api: SocketAddr,
    hosts: Vec<SocketAddr>,
    speed: u32,
    /// The first owner, at the first controller, and their first stream.
    owner: (String, String),
    /// Addresses of the consoles.
    pub(super) consumer_page: String,
    pub(super) owner_page: String,
    pub(super) clock: ClockWriter,
    /// How far each device has come, once it says so.
    reached: Vec<Option<Clock>>,
    // Devices end first: they have something to send.
    devices: Children,
    roles: Children,
}

impl Stage {
    /// Creates keys and certificates.
    pub(super) fn build(
        folder: &Path,
        inputs: &Inputs,
        speed: u32,
        stop: &Shutdown,
    ) -> Result<Self, Failure> {
        let begin = inputs.begins().ok_or("the recording has no event").blame(Category::Input)?;
        // The query is answered from the next window on.
        let before = Timestamp(begin.0.saturating_sub(inputs.schema.tick.0));
        let clock = ClockWriter::create(&folder.join(CLOCK), before)?;
        let controllers = inputs.controllers.0;
        let devices = folder.join(DEVICES);
        std::fs::create_dir(&devices).blame_io(&devices)?;
        ca(&["ca", "init", &at(folder, "pki")])?;
        issue(folder, "server", "service")?;
        issue(folder, "consumer", "analyst")?;
        for number in 1..=controllers {
            issue(folder, "controller", &guard(number))?;
        }
        for owner in &inputs.owners {
            running(stop)?;
            issue(folder, "owner", owner)?;
        }
        for number in 1..=inputs.streams.len() {
            running(stop)?;
            issue(folder, "producer", &device(number))?;
        }
        let hosts = (0..controllers).map(|_| free_address()).collect::<Result<_, _>>()?;
        Ok(Self {
            folder: folder.to_owned(),
            api: free_address()?,
            hosts,
            speed,
            owner: (inputs.owners.first().cloned().unwrap_or_default(), String::new()),
            consumer_page: String::new(),
            owner_page: String::new(),
            clock,
            reached: Vec::new(),
            devices: Children::default(),
            roles: Children::default(),
        })
    }

    /// Starts the service, the controllers and the devices.
    pub(super) fn start(&mut self, inputs: &Inputs, stop: &Shutdown) -> Result<(), Failure> {
        let (schema, api) = (inputs.schema_file.display().to_string(), self.api.to_string());
        let [idle, wait, recovery] =
            WAITS.map(|seconds| seconds.saturating_mul(self.speed).to_string());
        self.serve(
            &[
                "server",
                "--identity",
                "pki/service",
                "--schema",
                &schema,
                "--state",
                "run/service",
                "--api",
                &api,
                "--idle-timeout",
                &idle,
                "--controller-timeout",
                &wait,
                "--recovery-timeout",
                &recovery,
                // A recording of years comes within minutes.
                "--stream-megabytes",
                "1000000",
            ],
            (self.api, stop),
        )?;
        let server = self.server();
        for (number, host) in (1..).zip(self.hosts.clone()) {
            let (name, own) = (guard(number), host.to_string());
            let (identity, state, key) =
                (format!("pki/{name}"), format!("run/{name}"), format!("{name}.key"));
            self.write_key(&key)?;
            let who = ["--identity", &identity, "--state", &state, "--key-file", &key];
            self.done(&[&["controller", "init"], &who[..], &["--ca", "pki"]].concat())?;
            let what = ["--schema", &schema, "--server", &server, "--api", &own];
            self.serve(&[&["controller", "run"], &who[..], &what].concat(), (host, stop))?;
        }
        let streams = self.add_streams(inputs, stop)?;
        // A recording's first stream need not be its first owner's.
        let of_first = streams.into_iter().zip(&inputs.streams).find(|(_, own)| own.owner == 0);
        self.owner.1 = of_first.map(|(stream, _)| stream).unwrap_or_default();
        let window = format!("{}ms", inputs.create.window.0 / 1000);
        for (number, stream) in (1..).zip(&inputs.streams) {
            feed::write(&inputs.schema, stream, &self.events_of(number))?;
            self.start_device(number, &schema, &window)?;
        }
        self.reached = inputs.streams.iter().map(|_| None).collect();
        Ok(())
    }

    /// Each owner adds their streams at their controller.
    fn add_streams(&self, inputs: &Inputs, stop: &Shutdown) -> Result<Vec<String>, Failure> {
        let add = |(number, stream): (usize, &super::inputs::DeviceStream)| {
            running(stop)?;
            let device = device(number);
            let (schema, policies) = (inputs.schema_file.display(), inputs.policies_file.display());
            let identity =
                format!("pki/{}", inputs.owners.get(stream.owner).map_or("", String::as_str));
            let file = format!("{device}.device");
            let mut args: Vec<String> =
                ["owner", "add", "--identity", &identity, "--producer", &device, "--device", &file]
                    .map(str::to_owned)
                    .to_vec();
            args.extend(["--controller".to_owned(), self.host_of(stream.owner)]);
            args.extend([
                "--schema".to_owned(),
                schema.to_string(),
                "--policies".to_owned(),
                policies.to_string(),
            ]);
            for (name, value) in &stream.recorded.metadata {
                args.extend(["--metadata".to_owned(), format!("{name}={value}")]);
            }
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            self.done(&args)
        };
        (1..).zip(&inputs.streams).map(add).collect()
    }

    /// The file of a device's events.
    fn events_of(&self, number: usize) -> PathBuf {
        self.folder.join(DEVICES).join(format!("{}.json", device(number)))
    }

    /// The file in which a device says how far it has come.
    fn progress_of(&self, number: usize) -> PathBuf {
        self.folder.join(DEVICES).join(format!("{}.reached", device(number)))
    }

    /// How far the slowest device has come: all frames of before that time have arrived.
    pub(super) fn devices_reached(&mut self) -> Timestamp {
        for number in 1..=self.reached.len() {
            let path = self.progress_of(number);
            if let Some(unknown @ None) = self.reached.get_mut(number - 1) {
                // It comes into being with the device's first word.
                *unknown = Clock::replayed(&path).ok();
            }
        }
        let of = |clock: &Option<Clock>| clock.as_ref().map_or(Timestamp(0), Clock::now);
        let sending = (0..).zip(&self.reached).filter(|(index, _)| !self.devices.gave_up(*index));
        sending.map(|(_, clock)| of(clock)).min().unwrap_or(Timestamp(u64::MAX))
    }

    fn start_device(&mut self, number: usize, schema: &str, window: &str) -> Result<(), Failure> {
        let (name, server, own) = (device(number), self.server(), self.folder.join(DEVICES));
        // Their logs are beside each other in a folder of their own.
        let [identity, file, state, clock] = [
            format!("pki/{name}"),
            format!("{name}.device"),
            format!("run/{name}"),
            CLOCK.to_owned(),
        ]
        .map(|path| at(&self.folder, &path));
        let events = self.events_of(number).display().to_string();
        let progress = self.progress_of(number).display().to_string();
        let args = [
            "produce",
            "--identity",
            &identity,
            "--device",
            &file,
            "--state",
            &state,
            "--schema",
            schema,
            "--server",
            &server,
            "--input",
            &events,
            "--time-column",
            TIME_COLUMN,
            "--paced",
            "--whole-windows",
            window,
            "--progress",
            &progress,
            "--replay-clock",
            &clock,
        ];
        self.devices.start_finite(&own, &args)
    }

    /// Asks the query, once the service knows the streams. It says what it does not hide.
    pub(super) fn ask(&self, inputs: &Inputs, stop: &Shutdown) -> Result<(), Failure> {
        let (client, opener) = self.consumer()?;
        let (text, place) = &inputs.query;
        let shown = |failure: Failure| failure.at(place.clone());
        loop {
            running(stop)?;
            let show = Statement { sql: "SHOW STREAMS", certificate: None };
            let answer: StatementResult = client.post_json("/v1/statements", &show)?;
            if streams(&answer) >= inputs.streams.len() {
                break;
            }
            std::thread::sleep(LOOK);
        }
        let statement = opener.statement(text)?;
        let answer = client.post_json::<StatementResult>("/v1/statements", &statement);
        let answer = opener.answered(text, answer).map_err(|error| shown(error.into()))?;
        opener.accepted(text, answer.running().as_ref()).map_err(shown)?;
        if let StatementResult::Running(explained) = answer {
            explained.warnings.iter().for_each(|what| note!("warning: {what}"));
        }
        Ok(())
    }

    /// A connection as the consumer.
    pub(super) fn consumer(&self) -> Result<(BlockingClient, Opener), Failure> {
        let identity = open_identity(&self.folder.join("pki/analyst"), Role::Consumer)?;
        Ok((links::service(&self.server(), &identity)?, Opener::new(&identity)?))
    }

    /// Starts a console for the consumer and one for the first owner.
    pub(super) fn open_consoles(&mut self) -> Result<(), Failure> {
        let (server, host, identity) =
            (self.server(), self.host_of(0), format!("pki/{}", self.owner.0));
        let args = ["console", "--identity", "pki/analyst", "--server", &server];
        self.consumer_page = self.roles.start_heard(&self.folder, &args)?;
        let args = ["console", "--identity", &identity, "--controller", &host];
        self.owner_page = self.roles.start_heard(&self.folder, &args)?;
        Ok(())
    }

    /// The service's address.
    pub(super) fn server(&self) -> String {
        format!("https://{}", self.api)
    }

    /// A command of the first owner about their first stream.
    pub(super) fn owner_command(&self, at: &Path, what: &str) -> String {
        let (owner, stream) = &self.owner;
        let (at, host) = (at.display(), self.host_of(0));
        format!(
            "alpheus owner {what} --identity {at}/pki/{owner} --controller {host} --stream {stream}"
        )
    }

    /// Fails if a process has failed; restarts what was killed. Devices may have sent all, and one
    /// whose owner revokes is not taken any more.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        let (roles, devices) = (self.roles.revive()?, self.devices.revive()?);
        if devices == Condition::GaveUp {
            note!(
                "a device has stopped, for the reason above; windows continue without it, as they do after an owner has revoked consent"
            );
        }
        match roles == Condition::Ended || devices == Condition::Ended {
            true => {
                Err("a process ended unexpectedly; its last messages are above").blame(Category::Io)
            }
            false => Ok(()),
        }
    }

    fn host_of(&self, owner: usize) -> String {
        let host = self.hosts.get(owner % self.hosts.len().max(1));
        host.map(|host| format!("https://{host}")).unwrap_or_default()
    }

    /// Starts a process that serves, and waits until it does.
    fn serve(
        &mut self,
        args: &[&str],
        (address, stop): (SocketAddr, &Shutdown),
    ) -> Result<(), Failure> {
        let args = [args, &["--replay-clock", CLOCK]].concat();
        self.roles.start(&self.folder, &args)?;
        if self.roles.serves(address, || stop.is_stopping()) {
            return Ok(());
        }
        running(stop)?;
        Err(failure_of(&self.roles.last_words()))
    }

    /// Runs a command of this program to its end; what it prints. It follows the recording's clock,
    /// too: a ledger that begins now takes the whole recording for windows of before it.
    fn done(&self, args: &[&str]) -> Result<String, Failure> {
        let mut command = Command::new(program()?);
        command.current_dir(&self.folder).args(args).args(["--replay-clock", CLOCK]);
        command.stdin(Stdio::null());
        let output = command.output().blame(Category::Io)?;
        if !output.status.success() {
            return Err(failure_of(&String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn write_key(&self, name: &str) -> Result<(), Failure> {
        let mut key = [0; KEY_BYTES];
        entropy::rng()?.fill_bytes(&mut key);
        write_new(&self.folder.join(name), data_encoding::BASE64.encode(&key), Readers::Owner)
    }
}

fn guard(number: u32) -> String {
    format!("guard-{number}")
}

fn device(number: usize) -> String {
    format!("device-{number}")
}

fn at(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

fn issue(folder: &Path, role: &str, name: &str) -> Result<(), Failure> {
    let output = at(folder, &format!("pki/{name}"));
    ca(&["ca", "issue", &at(folder, "pki"), "--role", role, "--name", name, "--output", &output])
}

/// A command of the authority, in this process: there are many.
fn ca(line: &[&str]) -> Result<(), Failure> {
    let AuthorityLine { globals, args } =
        AuthorityLine::try_parse_from(line).blame(Category::Usage)?;
    crate::ca::run(&args, &globals)
}

/// The command line of the authority.
#[derive(clap::Parser)]
struct AuthorityLine {
    #[command(flatten)]
    globals: Globals,
    #[command(flatten)]
    args: crate::ca::Args,
}

/// What a process said as it failed, without what this one says again.
fn failure_of(said: &str) -> Failure {
    let lines = said.lines().filter(|line| !line.starts_with("more: "));
    let text: Vec<&str> = lines.collect();
    let text = text.join("\n");
    Failure::new(Category::Io, text.trim().trim_start_matches("error: ").to_owned())
}

/// How many streams the service knows.
fn streams(answer: &StatementResult) -> usize {
    let StatementResult::Tables(tables) = answer else { return 0 };
    let count = |row: &Vec<String>| row.get(1).and_then(|cell| cell.parse().ok()).unwrap_or(0);
    tables.iter().flat_map(|table| &table.rows).map(count).sum::<usize>()
}

/// Fails if it is time to stop.
fn running(stop: &Shutdown) -> Result<(), Failure> {
    match stop.is_stopping() {
        true => Err("stopped before everything ran").blame(Category::Interrupted),
        false => Ok(()),
    }
}
