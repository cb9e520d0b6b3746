//! Starts processes of ours, watches them, asks them, and ends them in every
//! way that a process can end.

#![allow(dead_code, reason = "each test binary uses its part of the harness")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

pub(crate) mod clock;
pub(crate) mod deployment;
pub(crate) mod embedded_replay;
pub(crate) mod in_memory;
pub(crate) mod live;
pub(crate) mod machine;
mod meters;
pub(crate) mod played_job;
pub(crate) mod published_rows;
pub(crate) mod recording;
pub(crate) mod relay;
pub(crate) mod route_server;
mod running_site;
pub(crate) mod socks;
pub(crate) mod terminal;
pub(crate) mod tls;
pub(crate) mod witness;

use alpheus_node::fence::{Fence, FenceFile};
use alpheus_node::service::children;
use alpheus_time::Timestamp;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a test waits for something to happen: long enough for a heavily loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// How long a script may take, on a heavily loaded machine too.
const SCRIPT_SECONDS: &str = "900";

/// A key file as guides make it: 32 random bytes in base64. From a passphrase, a key would cost seconds of
/// a processor in all these tests together.
pub(crate) const KEY_FILE: &str = "EUCpfaD4b6RC92VxUTmSqcYVf36V7aQmGCjg7rwJc6I=";

/// Repeats an attempt that a loaded machine can be too slow for, and which returns nothing then.
pub(crate) fn in_some_attempt<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    (0..5).find_map(|_| attempt()).unwrap_or_else(|| panic!("five times too slow: {what}"))
}

/// The binary, with these arguments.
pub(crate) fn alpheus<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_alpheus"));
    without_variables(command.args(args));
    command
}

/// Takes out the variables that are for tests: the program would warn that it ignores them.
pub(crate) fn without_variables(command: &mut Command) -> &mut Command {
    let variables =
        ["ALPHEUS_DAY_OF_KEYS", "ALPHEUS_KILLS", "ALPHEUS_OUTAGES", "ALPHEUS_REAL_DATA"];
    variables.into_iter().fold(command, Command::env_remove)
}

/// The same command, which this program starts.
pub(crate) fn started_by(starter: &[String], command: Command) -> Command {
    let Some((program, args)) = starter.split_first() else { return command };
    let mut started = Command::new(program);
    started.args(args).arg(command.get_program()).args(command.get_args());
    command.get_current_dir().map(|folder| started.current_dir(folder));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => started.env(name, value),
            None => started.env_remove(name),
        };
    }
    started
}

/// A file for its owner alone: others are refused.
pub(crate) fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// Copies what is in a folder, as people back it up: sockets and all.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(copied.success());
}

/// `PATH`, on which the binary comes first: scripts call it by its name.
pub(crate) fn path() -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_alpheus"));
    format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap())
}

/// A shell whose script is ended if it does not end by itself.
pub(crate) fn bash(folder: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", SCRIPT_SECONDS, "bash"]);
    without_variables(command.current_dir(folder).env("PATH", path()));
    command
}

/// Runs a script with which all ends that it has started, and gives what it said and logged. If it fails,
/// the last lines of its jobs' logs are among that.
pub(crate) fn run_script(folder: &Path, script: &str) -> (String, String) {
    let script = format!(
        "set -eu\n\
         ended() {{\n\
           [ $1 = 0 ] || tail -n 9 -- *.log >&2 || true\n\
           kill $(jobs -p) 2> /dev/null || true\n\
           for process in $(grep -lszx \"STARTED_BY=$$\" /proc/[0-9]*/environ); do\n\
             process=${{process#/proc/}}\n\
             kill ${{process%/environ}} 2> /dev/null || true\n\
           done\n\
         }}\n\
         export STARTED_BY=$$\n\
         trap 'ended $?' EXIT\n\
         {script}"
    );
    ended_well(bash(folder).args(["-c", &script]))
}

/// Writes the fence of a ledger whose first commit is about to be made.
pub(crate) fn begin_fence(path: &Path) {
    let begun = Fence { sequence: 0, start: 0, clock: Timestamp(0), restored: None };
    FenceFile::load(path).unwrap().advance([([0; 32], begun)]).unwrap();
}

/// Waits in a script until the job that was started last serves. One that has ended never will.
pub(crate) fn until_serving(log: &str) -> String {
    format!("until grep -qs 'serving at' {log}; do kill -0 $!; sleep 0.1; done\n")
}

/// `road.yaml` of the guide to statistics, changed.
pub(crate) fn road(changes: &[(&str, &str)]) -> String {
    let guide = include_str!("../../../../../docs/statistics.md");
    let plan = guide.split("cat > road.yaml <<END\n").nth(1).unwrap();
    let mut plan = plan.split("END\n").next().unwrap().to_owned();
    for (from, to) in changes {
        assert!(plan.contains(from), "{from}");
        plan = plan.replace(from, to);
    }
    plan
}

/// What a command said and logged, which succeeds.
pub(crate) fn ended_well(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{log}");
    (said, log)
}

/// This test binary again, running only the test `name`, which plays the
/// process under test if the variable that `role` names is set.
pub(crate) fn myself(name: &str, role: &str, value: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(role, value);
    command
}

/// A running process, whose output is collected. It is killed when dropped.
pub(crate) struct Process {
    child: Child,
    output: Arc<Output>,
    readers: Vec<JoinHandle<()>>,
    /// Whether it leads a process group, which ends with it.
    leads: bool,
}

#[derive(Default)]
struct Output {
    lines: Mutex<Vec<String>>,
    more: Condvar,
}

impl Output {
    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    /// Starts it, without standard input.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = without_variables(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = Arc::new(Output::default());
        let streams: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        let readers = streams.map(|stream| collect(stream, Arc::clone(&output)));
        Self { child, output, readers: readers.into(), leads: false }
    }

    /// Starts a script: what it starts ends with it.
    pub(crate) fn start_script(command: &mut Command) -> Self {
        let mut process = Self::start(command.process_group(0));
        process.leads = true;
        process
    }

    /// Waits for a line of output in which `find` finds what it looks for.
    pub(crate) fn wait_for<T>(&mut self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let output = Arc::clone(&self.output);
        let mut seen = 0;
        loop {
            // Its end is asked for before its words: what it said last counts.
            let ended = self.child.try_wait().unwrap();
            if ended.is_some() {
                self.readers.drain(..).for_each(|reader| reader.join().unwrap());
            }
            let lines = output.lines();
            if let Some(found) = lines[seen..].iter().find_map(|line| find(line)) {
                return found;
            }
            seen = lines.len();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || ended.is_some() {
                panic!("no {what} ({ended:?}); the process said:\n{}", lines.join("\n"));
            }
            let woken = output.more.wait_timeout(lines, left.min(Duration::from_millis(50)));
            drop(woken.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Waits for `prefix` at the start of a line; the rest of that line.
    pub(crate) fn wait_for_prefix(&mut self, prefix: &str) -> String {
        self.wait_for(prefix, |line| line.strip_prefix(prefix).map(str::to_owned))
    }

    /// Waits until `/healthz` at `address` says that all is well.
    pub(crate) fn wait_healthy(&mut self, address: SocketAddr) {
        let until = Instant::now() + PATIENCE;
        while get(address, "/healthz").is_none_or(|(status, _)| status != 200) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "ended with {ended:?}:\n{}", self.log());
            assert!(Instant::now() < until, "not healthy:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// All that it said so far, both streams.
    pub(crate) fn log(&self) -> String {
        self.output.lines().join("\n")
    }

    /// kill -9: it cannot do anything about it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end (SIGTERM).
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Ends it and all that it started, where it leads a process group.
    pub(crate) fn hang_up(&self) {
        self.signal_group("TERM");
    }

    fn signal_group(&self, name: &str) {
        let kill = format!("kill -{name} -- -{}", self.child.id());
        // They may have ended already, which is as good.
        let _ = Command::new("bash").args(["-c", &kill]).stderr(Stdio::null()).status();
    }

    /// SIGHUP, to it alone.
    pub(crate) fn hang_up_alone(&self) {
        self.signal("HUP");
    }

    /// Freezes it, as a machine that hangs (SIGSTOP).
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets it go on (SIGCONT).
    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.readers.drain(..).for_each(|reader| reader.join().unwrap());
                return status;
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.leads {
            self.signal_group("KILL");
        }
        // It may have ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(stream: impl Read + Send + 'static, output: Arc<Output>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            output.lines().push(String::from_utf8_lossy(&line).into_owned());
            output.more.notify_all();
        }
    })
}

/// GET without TLS: status and body, or nothing if nobody answers.
pub(crate) fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    get_over(stream, path)
}

/// GET over a connection that is there, and is closed after it.
pub(crate) fn get_over(mut stream: impl Read + Write, path: &str) -> Option<(u16, String)> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    stream.flush().ok()?;
    let mut answer = Vec::new();
    // The other end may close a TLS stream without saying goodbye.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// An address on this machine that is this test's alone, also while its process is started again.
pub(crate) fn free_address() -> SocketAddr {
    children::free_address().ok().unwrap()
}

/// The first of so many ports in a row that are this test's alone.
pub(crate) fn free_row(ports: u16) -> u16 {
    loop {
        let first = free_address().port();
        if (first + 1..first + ports).all(children::claim_port) {
            return first;
        }
    }
}
