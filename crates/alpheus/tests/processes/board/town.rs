//! A board of some servers: keys, card, processes.

use crate::board::liar::{Liar, Plan};
use crate::common::{PATIENCE, Process, alpheus, free_address};
use alpheus_board_service::card;
use alpheus_node::clock::ClockWriter;
use alpheus_time::Timestamp;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Who keeps a board.
#[derive(Clone, Copy)]
pub(crate) enum Keepers {
    /// Two databases and an auditor.
    Audited,
    /// So many equal servers.
    Equal(usize),
}

impl Keepers {
    fn names(self) -> Vec<String> {
        match self {
            Self::Audited => ["first", "second", "auditor"].map(str::to_owned).to_vec(),
            Self::Equal(many) => (1..=many).map(|i| format!("server-{i}")).collect(),
        }
    }
}

/// A folder with a PKI, keys and a card, and what runs of it.
pub(crate) struct Town {
    folder: tempfile::TempDir,
    names: Vec<String>,
    at: Vec<SocketAddr>,
    /// Those that are processes.
    pub(crate) servers: Vec<Process>,
    keepers: Keepers,
    /// The time of all processes, if it is not the machine's.
    pub(crate) clock: Option<TownClock>,
}

/// A clock that a test moves.
pub(crate) struct TownClock {
    hand: ClockWriter,
    pub(crate) now: Arc<AtomicU64>,
}

impl TownClock {
    pub(crate) fn set(&mut self, now: Timestamp) {
        self.hand.set(now).unwrap();
        self.now.store(now.0, Ordering::SeqCst);
    }
}

impl Town {
    /// A board for so many members, with an epoch that closes when all have written.
    pub(crate) fn new(members: usize, more: &[&str]) -> Self {
        Self::of(Keepers::Audited, members, more)
    }

    /// The same, kept by others.
    pub(crate) fn of(keepers: Keepers, members: usize, more: &[&str]) -> Self {
        let mut town = Self::unstarted(keepers, members);
        town.init(members, &[&["--epoch", "900"], more].concat());
        for place in 0..town.names.len() {
            let server = town.server(place);
            town.servers.push(server);
        }
        town
    }

    /// Two databases and an auditor, of which the second database lies, on a clock that the test
    /// moves.
    pub(crate) fn with_liar(members: usize, more: &[&str], plan: Plan) -> (Self, Liar) {
        let mut town = Self::unstarted(Keepers::Audited, members);
        let start = alpheus_node::clock::now();
        let mut clock = TownClock {
            hand: ClockWriter::create(&town.path("clock"), start).unwrap(),
            now: Arc::default(),
        };
        clock.set(start);
        let now = Arc::clone(&clock.now);
        town.clock = Some(clock);
        let liar = Liar::listen(&town.path("pki/second"), &now);
        let port = liar.at.trim_start_matches("https://localhost:").parse().unwrap();
        town.at[1] = SocketAddr::from(([127, 0, 0, 1], port));
        town.init(members, more);
        for place in [0, 2] {
            let server = town.server(place);
            town.servers.push(server);
        }
        let card = card::open(&town.path("board.json")).unwrap();
        liar.start(town.folder.path(), &card, plan, &now);
        (town, liar)
    }

    /// Keys and certificates.
    fn unstarted(keepers: Keepers, members: usize) -> Self {
        let (folder, names) = (tempfile::tempdir().unwrap(), keepers.names());
        let at = names.iter().map(|_| free_address()).collect();
        let town = Self { folder, names, at, servers: Vec::new(), keepers, clock: None };
        town.done(&["ca", "init", "pki"]);
        for name in &town.names {
            town.done(&["ca", "issue", "pki", "--role", "board", "--name", name]);
            let public = town.done(&["board", "key", &format!("{name}.key")]);
            std::fs::write(town.path(&format!("{name}.pub")), public).unwrap();
        }
        let public: Vec<String> =
            (0..members).map(|i| town.done(&["board", "key", &member(i)])).collect();
        std::fs::write(town.path("members.txt"), public.join("\n") + "\n").unwrap();
        town
    }

    /// The card.
    fn init(&self, members: usize, more: &[&str]) {
        let keepers = self.keepers;
        let mut init: Vec<String> = ["board", "init", "board.json"].map(str::to_owned).into();
        if let Keepers::Equal(many) = keepers {
            init.extend(["--servers".to_owned(), many.to_string()]);
        }
        for (name, at) in self.names.iter().zip(&self.at) {
            let public = std::fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap();
            let url = format!("https://{at}");
            let flag = if matches!(keepers, Keepers::Audited) { name } else { "server" };
            init.extend([format!("--{flag}"), url, format!("--{flag}-key"), public]);
        }
        let rest = ["--members", "members.txt", "--authority", "pki/ca.pem"];
        init.extend(rest.into_iter().chain(more.iter().copied()).map(str::to_owned));
        init.extend(["--writers".to_owned(), members.to_string()]);
        let init: Vec<&str> = init.iter().map(String::as_str).collect();
        self.done(&init);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command in the town's folder and time.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = alpheus(args.iter().copied());
        command.current_dir(self.folder.path());
        if self.clock.is_some() {
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

    fn server(&self, place: usize) -> Process {
        let name = &self.names[place];
        let role = match name.as_str() {
            "auditor" => "auditor",
            "first" | "second" => "database",
            _ => "server",
        };
        let (identity, key) = (format!("pki/{name}"), format!("{name}.key"));
        let (state, at) = (format!("run/{name}"), self.at[place].to_string());
        let serve = ["board", "serve", "--role", role, "--identity", &identity];
        let files = ["--card", "board.json", "--key", &key, "--members", "members.txt"];
        let fence = format!("fences/{name}");
        let rest = ["--state", &state, "--fence", &fence, "--api", &at];
        let mut command = self.command(&[serve.as_slice(), &files, &rest].concat());
        let mut process = Process::start(&mut command);
        process.wait_for_prefix("serving at ");
        process
    }

    /// kill -9, and the same command again.
    pub(crate) fn restart(&mut self, place: usize) {
        self.servers[place].kill();
        self.servers[place] = self.server(place);
    }

    /// SIGTERM, and the same command again.
    pub(crate) fn stop_and_start(&mut self, place: usize) {
        self.servers[place].terminate();
        self.servers[place].wait();
        self.servers[place] = self.server(place);
    }

    pub(crate) fn post(&self, i: usize, message: &str) {
        let output = self.try_post(i, message, &["--no-wait"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }

    /// Where a server is.
    pub(crate) fn address(&self, place: usize) -> String {
        self.at[place].to_string()
    }

    /// Runs `alpheus board post` with a message on standard input.
    pub(crate) fn try_post(&self, i: usize, message: &str, more: &[&str]) -> Output {
        self.posting(i, message, more).wait_with_output().unwrap()
    }

    /// The same, while it runs.
    pub(crate) fn posting(&self, i: usize, message: &str, more: &[&str]) -> Child {
        self.posting_by("board.json", i, message, more)
    }

    /// The same by another card.
    pub(crate) fn posting_by(&self, card: &str, i: usize, message: &str, more: &[&str]) -> Child {
        let key = member(i);
        let post = ["board", "post", "--card", card, "--key", &key, "--within", "0"];
        let mut command = self.command(&[post.as_slice(), more].concat());
        command.stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It may end before it reads, if it is refused.
        let _ = child.stdin.take().unwrap().write_all(message.as_bytes());
        child
    }

    fn again(&mut self, place: usize, kill: bool) {
        if kill { self.restart(place) } else { self.stop_and_start(place) }
    }

    /// Posts five messages and kills servers (stops equal ones) at points that a seed chooses, in the
    /// middle of the epoch too: it goes through, and what was posted is read.
    pub(crate) fn is_read_though_killed(&mut self, mut seed: u64) {
        let kill = matches!(self.keepers, Keepers::Audited);
        for i in 0..5 {
            self.post(i, &format!("message {i}"));
            if i % 2 == 0 {
                self.again(i % 3, kill);
            }
        }
        let until = Instant::now() + PATIENCE;
        let mut messages = loop {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            std::thread::sleep(Duration::from_millis(seed >> 40 & 0x1ff));
            self.again(usize::try_from(seed >> 33).unwrap() % 3, kill);
            match self.messages() {
                Ok(messages) => break messages,
                Err(said) => assert!(!said.contains("burnt"), "{said}"),
            }
            assert!(Instant::now() < until, "not published in time: {:?}", self.messages());
        };
        messages.sort();
        assert_eq!(messages, (0..5).map(|i| format!("message {i}")).collect::<Vec<_>>());
    }

    /// Brings the first server back from a copy of its state that is older than a post.
    pub(crate) fn put_an_old_copy_back(&mut self) {
        self.post(0, "before the copy");
        // A copy of an equal server that was killed would burn the epoch by itself.
        if matches!(self.keepers, Keepers::Audited) {
            self.servers[0].kill();
        } else {
            self.servers[0].terminate();
            self.servers[0].wait();
        }
        let (state, copy) = (self.path(&format!("run/{}", self.names[0])), self.path("copy"));
        let copied = Command::new("cp").arg("-r").args([&state, &copy]).status().unwrap();
        assert!(copied.success());
        self.servers[0] = self.server(0);
        self.post(1, "after the copy");
        self.servers[0].kill();
        // The fence lies elsewhere: it is what shows the rest to be old.
        std::fs::remove_dir_all(&state).unwrap();
        std::fs::rename(&copy, &state).unwrap();
        self.restart(0);
    }

    /// The messages of epoch 0, once it is published.
    pub(crate) fn messages(&self) -> Result<Vec<String>, String> {
        let read = ["board", "read", "--card", "board.json", "--epoch", "0", "--format", "json"];
        let output = self.run(&read);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Err(said);
        }
        let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let messages = read["messages"].as_array().unwrap().iter();
        Ok(messages.map(|message| message.as_str().unwrap().to_owned()).collect())
    }
}

pub(crate) fn member(i: usize) -> String {
    format!("member-{i}.key")
}
