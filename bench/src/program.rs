//! The measured program: commands and servers in a temporary folder, which is
//! deleted with them.

use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::service::children;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// A temporary folder, in which the program runs.
pub(super) struct Program(tempfile::TempDir);

/// A server process. It ends when this is dropped.
pub(super) struct Server(Child);

/// A process that prints lines. It ends when this is dropped.
pub(super) struct Lines {
    /// Each line, with its time.
    pub(super) lines: Receiver<(Instant, String)>,
    _process: Server,
}

/// A free address.
pub(super) fn free() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").blame(Category::Io)?;
    listener.local_addr().blame(Category::Io)
}

impl Program {
    /// In its own folder.
    pub(super) fn new() -> Result<Program, Failure> {
        tempfile::tempdir().blame(Category::Io).map(Program)
    }

    /// A file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command to its end. Returns its output.
    pub(super) fn run(&self, args: &[&str]) -> Result<String, Failure> {
        let exe = children::program()?;
        let output = Command::new(exe).args(args).current_dir(self.0.path()).output();
        let output = output.blame(Category::Io)?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let failed = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(said) } else { Err(failed).blame(Category::Io) }
    }

    /// Runs a command that prints lines continuously.
    pub(super) fn lines(&self, args: &[&str]) -> Result<Lines, Failure> {
        let exe = children::program()?;
        let mut command = Command::new(exe);
        let command = command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().blame(Category::Io)?;
        let said = child.stdout.take().ok_or("no standard output").blame(Category::Io)?;
        let (_process, (to, lines)) = (Server(child), channel());
        std::thread::spawn(move || read_lines(BufReader::new(said), &to));
        Ok(Lines { lines, _process })
    }

    /// Starts a server, and waits until it serves.
    pub(super) fn start(&self, args: &[&str]) -> Result<Server, Failure> {
        self.start_by(&[], args)
    }

    /// The same with a command that takes our path and arguments.
    pub(super) fn start_by(&self, by: &[&str], args: &[&str]) -> Result<Server, Failure> {
        let exe = children::program()?;
        let mut command = match by.split_first() {
            Some((by, rest)) => {
                let mut command = Command::new(by);
                command.args(rest).arg(exe);
                command
            }
            None => Command::new(exe),
        };
        let command = command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().blame(Category::Io)?;
        let said = child.stderr.take().ok_or("no standard error").blame(Category::Io)?;
        let server = Server(child);
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        let ready = lines.find(|line| line.starts_with("serving at "));
        // Later output is read too, so that the process never blocks.
        std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(move || lines.for_each(drop))
            .blame(Category::Io)?;
        ready.map(|_| server).ok_or("a process did not start").blame(Category::Io)
    }
}

/// Forwards each line of a process, with its time.
fn read_lines(lines: impl BufRead, to: &Sender<(Instant, String)>) {
    for line in lines.lines().map_while(Result::ok) {
        if to.send((Instant::now(), line)).is_err() {
            return;
        }
    }
}

impl Server {
    /// Processor time so far, in seconds, of all its threads.
    pub(super) fn cpu(&self) -> Result<f64, Failure> {
        processor_seconds(self.0.id())
    }

    /// Private memory in KB, without pages shared with other processes of the program.
    pub(super) fn memory(&self) -> Result<f64, Failure> {
        let status = format!("/proc/{}/status", self.0.id());
        let status = std::fs::read_to_string(status).blame(Category::Io)?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or("the kernel does not report it").blame(Category::Io)
    }
}

/// Processor time of a process so far, in seconds, of all its threads.
pub(super) fn processor_seconds(process: u32) -> Result<f64, Failure> {
    seconds(&process.to_string(), (11, 12))
}

/// Processor time of all processes that we started and that have ended, in seconds.
pub(super) fn waited_seconds() -> Result<f64, Failure> {
    seconds("self", (13, 14))
}

/// The sum of two times of what the kernel says of a process: in user mode, and in its own.
fn seconds(process: &str, (user, system): (usize, usize)) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).blame(Category::Io)?;
    // The name in parentheses may contain anything. Numbers follow it.
    let numbers = stat.rsplit(')').next().unwrap_or_default();
    let number =
        |at: usize| numbers.split_whitespace().nth(at).and_then(|text| text.parse::<f64>().ok());
    let ticks = number(user).zip(number(system)).map(|(user, system)| user + system);
    let ticks = ticks.ok_or("the kernel does not report it").blame(Category::Io)?;
    // Linux counts in hundredths of a second here.
    Ok(ticks / 100.0)
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
