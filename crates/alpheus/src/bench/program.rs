//! This program again: commands and servers in a folder of their own, which goes
//! with them.

use crate::failure::{Blame, Category, Failure};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// A folder for temporary files, in which this program runs.
pub(super) struct Program(tempfile::TempDir);

/// A process that serves; it ends with this.
pub(super) struct Server(Child);

/// A process that prints; it ends with this.
pub(super) struct Lines {
    /// Each line, with when it was there.
    pub(super) lines: Receiver<(Instant, String)>,
    _process: Server,
}

/// An address that is free now.
pub(super) fn free() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").blame(Category::Io)?;
    listener.local_addr().blame(Category::Io)
}

impl Program {
    /// In a folder of its own.
    pub(super) fn new() -> Result<Program, Failure> {
        tempfile::tempdir().blame(Category::Io).map(Program)
    }

    /// A file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command to its end; what it prints.
    pub(super) fn run(&self, args: &[&str]) -> Result<String, Failure> {
        let exe = std::env::current_exe().blame(Category::Io)?;
        let output = Command::new(exe).args(args).current_dir(self.0.path()).output();
        let output = output.blame(Category::Io)?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let failed = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(said) } else { Err(failed).blame(Category::Io) }
    }

    /// Runs a command that goes on printing lines.
    pub(super) fn lines(&self, args: &[&str]) -> Result<Lines, Failure> {
        let exe = std::env::current_exe().blame(Category::Io)?;
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

    /// The same by a command that is given our path and arguments.
    pub(super) fn start_by(&self, by: &[&str], args: &[&str]) -> Result<Server, Failure> {
        let exe = std::env::current_exe().blame(Category::Io)?;
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
        // What it says later is read too, so that it never waits for us.
        std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(move || lines.for_each(drop))
            .blame(Category::Io)?;
        ready.map(|_| server).ok_or("a process did not start").blame(Category::Io)
    }
}

/// Sends on each line of a process, with when it was there.
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

    /// Memory of its own, in KB: without what it shares with others that run the same.
    pub(super) fn memory(&self) -> Result<f64, Failure> {
        let status = format!("/proc/{}/status", self.0.id());
        let status = std::fs::read_to_string(status).blame(Category::Io)?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or("the kernel does not say").blame(Category::Io)
    }
}

/// Processor time of a process so far, in seconds, of all its threads.
pub(super) fn processor_seconds(process: u32) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).blame(Category::Io)?;
    // The name in parentheses may hold anything; after it come the numbers.
    let numbers = stat.rsplit(')').next().unwrap_or_default();
    let number =
        |at: usize| numbers.split_whitespace().nth(at).and_then(|text| text.parse::<f64>().ok());
    let ticks = number(11).zip(number(12)).map(|(user, system)| user + system);
    let ticks = ticks.ok_or("the kernel does not say").blame(Category::Io)?;
    // Linux counts in hundredths of a second for whoever asks this way.
    Ok(ticks / 100.0)
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
