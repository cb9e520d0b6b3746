//! A deployment of the pass: keys, accounts, processes.

use crate::common::clock::{PacedClock, set_clock};
use crate::common::{KEY_FILE, Process, alpheus, free_address, write_secret};
use crate::pass::service;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A folder with a PKI, a deployment and accounts, and what runs of it.
pub(crate) struct Town {
    folder: tempfile::TempDir,
    pub(crate) issuer_at: SocketAddr,
    pub(crate) gateway_at: SocketAddr,
    pub(crate) verifiers: Vec<String>,
    pub(crate) upstream: SocketAddr,
    /// The time of all processes.
    pub(crate) clock: PacedClock,
    /// Processes take the machine's time in place of `clock`.
    pub(crate) in_machine_time: bool,
    /// Lets servers' wall clocks be set, each by a file.
    pub(crate) skewed: Option<PathBuf>,
}

/// A client that runs.
pub(crate) struct Client {
    pub(crate) process: Process,
    pub(crate) at: SocketAddr,
    pub(crate) secret: String,
}

impl Town {
    /// Epochs of so many seconds, and this many shards.
    pub(crate) fn new(epoch: &str, shards: usize, more: &[&str]) -> Self {
        let (issuer_at, gateway_at) = (free_address(), free_address());
        let verifiers = (0..shards).map(|_| free_address().to_string()).collect();
        let folder = tempfile::tempdir().unwrap();
        let upstream = service::start();
        let clock = PacedClock::start(&folder.path().join("clock"));
        let town = Self {
            folder,
            issuer_at,
            gateway_at,
            verifiers,
            upstream,
            clock,
            in_machine_time: false,
            skewed: None,
        };
        town.done(&["ca", "init", "pki"]);
        let roles = ["issuer", "gateway"].map(|role| (role, role.to_owned()));
        let shards = (0..shards).map(|shard| ("verifier", format!("shard-{shard}")));
        for (role, name) in roles.into_iter().chain(shards) {
            town.done(&["ca", "issue", "pki", "--role", role, "--name", &name]);
        }
        let (issuer, gateway) = (format!("https://{issuer_at}"), format!("https://{gateway_at}"));
        let init = ["pass", "init", "deployment", "--issuer", &issuer, "--gateway", &gateway];
        let init = [&init[..], &["--authority", "pki/ca.pem", "--epoch", epoch], more].concat();
        town.done(&init);
        town
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = alpheus(args.iter().copied());
        command.current_dir(self.folder.path());
        if !self.in_machine_time {
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

    fn start(&self, args: &[&str]) -> Process {
        let mut command = self.command(args);
        if let Some(library) = self.skewed.clone() {
            let clock = self.path(&format!("{}.clock", args[1]));
            fs::write(&clock, "+0").unwrap();
            set_clock(&mut command, &library, &clock);
        }
        let mut process = self.paced(&mut command);
        process.wait_for_prefix("serving at ");
        process
    }

    /// Starts a process that the town's clock does not leave behind.
    pub(crate) fn paced(&self, command: &mut Command) -> Process {
        let health = free_address();
        let process = Process::start(command.args(["--listen", &health.to_string()]));
        self.clock.watch(&process, health);
        process
    }

    pub(crate) fn issuer(&self, more: &[&str]) -> Process {
        let at = self.issuer_at.to_string();
        let issuer = ["pass", "issuer", "--identity", "pki/issuer", "--deployment", "deployment"];
        let rest = ["--accounts", "accounts", "--state", "run/issuer", "--api", &at];
        self.start(&[&issuer[..], &rest, more].concat())
    }

    /// Where gateways find the verifiers.
    pub(crate) fn urls(&self) -> String {
        let urls: Vec<String> = self.verifiers.iter().map(|at| format!("https://{at}")).collect();
        urls.join(",")
    }

    pub(crate) fn verifier(&self, shard: usize) -> Process {
        let (urls, number) = (self.urls(), shard.to_string());
        let (name, state) = (format!("pki/shard-{shard}"), format!("run/shard-{shard}"));
        let verifier = ["pass", "verifier", "--identity", &name, "--deployment", "deployment"];
        let rest = ["--state", &state, "--api", &self.verifiers[shard]];
        let shards = ["--verifiers", &urls, "--shard", &number];
        self.start(&[&verifier[..], &rest, &shards].concat())
    }

    pub(crate) fn gateway(&self, verifiers: &str, more: &[&str]) -> Process {
        let (at, upstream) = (self.gateway_at.to_string(), format!("http://{}", self.upstream));
        let gateway = ["pass", "gateway", "--identity", "pki/gateway"];
        let rest = ["--card", "deployment/card.json", "--verifiers", verifiers, "--api", &at];
        let rest =
            [&rest[..], &["--upstream", &upstream, "--overlap-milliseconds", "300"]].concat();
        self.start(&[&gateway[..], &rest, more].concat())
    }

    /// Issuer, all verifiers, gateway.
    pub(crate) fn all(&self) -> (Process, Vec<Process>, Process) {
        fs::write(self.path("accounts"), "").unwrap();
        let issuer = self.issuer(&["--new-state"]);
        let verifiers = (0..self.verifiers.len()).map(|shard| self.verifier(shard)).collect();
        (issuer, verifiers, self.gateway(&self.urls(), &[]))
    }

    /// An account with a pass file, which holds the pass of this period.
    pub(crate) fn subscriber(&self, name: &str) {
        self.join(name, name);
        // On a busy machine the period could be over before the issuer has read the request.
        let _same_period = self.clock.hold();
        self.done(&["pass", "client", "fetch", "--pass", &pass(name), "--key-file", &key(name)]);
    }

    /// A pass file without a pass.
    pub(crate) fn join(&self, name: &str, account: &str) {
        let secret = format!("{account}.secret");
        if !self.path(&secret).exists() {
            let said = self.done(&["pass", "account", account, "--accounts", "accounts"]);
            write_secret(&self.path(&secret), &said);
        }
        write_secret(&self.path(&key(name)), KEY_FILE);
        let join = ["pass", "client", "join", "--card", "deployment/card.json"];
        let account = ["--account", account, "--secret-file", &secret];
        let file = ["--pass", &pass(name), "--key-file", &key(name)];
        self.done(&[&join[..], &account, &file].concat());
    }

    /// A friend gets a copy of all that somebody has.
    pub(crate) fn copy(&self, name: &str, friend: &str) {
        fs::copy(self.path(&pass(name)), self.path(&pass(friend))).unwrap();
        fs::copy(self.path(&key(name)), self.path(&key(friend))).unwrap();
    }

    /// A client of somebody's pass, which need not have a session yet.
    pub(crate) fn client(&self, name: &str, more: &[&str]) -> Client {
        let run = ["pass", "client", "run", "--local", "127.0.0.1:0", "--log", "info"];
        let file = ["--pass", &pass(name), "--key-file", &key(name)];
        let mut process = self.paced(&mut self.command(&[&run[..], &file, more].concat()));
        let at = process.wait_for_prefix("serving at http://").parse().unwrap();
        let secret = process.wait_for("local secret", |line| {
            line.split_once("secret=").map(|(_, secret)| secret.to_owned())
        });
        Client { process, at, secret }
    }

    /// A client with a session.
    pub(crate) fn connected(&self, name: &str) -> Client {
        let mut client = self.client(name, &[]);
        client.process.wait_for_prefix("connected");
        client
    }
}

pub(crate) fn pass(name: &str) -> String {
    format!("{name}.pass")
}

pub(crate) fn key(name: &str) -> String {
    format!("{name}.key")
}

impl Client {
    /// Opens a request with the local secret; the connection, to read from.
    pub(crate) fn open(&self, path: &str, more: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(crate::common::PATIENCE)).unwrap();
        let (at, secret) = (self.at, &self.secret);
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {at}\r\nAlpheus-Local: {secret}\r\n{more}\r\n"
        )
        .unwrap();
        stream
    }

    /// Whether there is a session now. Without one, a request waits for the next one.
    pub(crate) fn is_served(&self) -> bool {
        let stream = self.open("/", "Connection: close\r\n");
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        read_answer(stream).0 == 200
    }

    /// Status and the whole answer.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        read_answer(self.open(path, "Connection: close\r\n"))
    }
}

pub(crate) fn read_answer(mut stream: impl Read) -> (u16, String) {
    let mut answer = Vec::new();
    // A connection that breaks off has said what it said.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (status_of(&answer), answer)
}

/// The head of an answer over a connection that stays open; its status too.
pub(crate) fn read_head(stream: impl Read) -> (u16, String) {
    let mut head = String::new();
    let mut reader = BufReader::new(stream);
    // A connection that breaks off has said what it said.
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
    (status_of(&head), head)
}

fn status_of(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Waits until `found` finds something.
pub(crate) fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + crate::common::PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "no {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
