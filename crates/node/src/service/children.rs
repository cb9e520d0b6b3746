//! Child processes of this program in a temporary folder; both end with the command. For
//! replays and measurements on one machine.

use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::note;
use alpheus_crypto::secret::Secret;
use rand_core::Rng;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::net::TcpSocket;

/// The variable that marks a child process.
const GOES_ALONG: &str = "CHILD_OF_ALPHEUS";
/// How often it is looked whether a process serves.
const LOOK: Duration = Duration::from_millis(100);
/// Ports outside the system's ephemeral range. So a process that is killed and restarted gets
/// its address back, and no outgoing connection takes it.
const PORTS: Range<u16> = 10_000..32_768;
/// Maximum number of ports to try.
const TRIES: usize = 256;
/// Maximum bytes of a process's last output to print.
const LAST_WORDS: usize = 2048;
/// Maximum restarts of a killed process: more is not an accident.
const MAX_REVIVALS: u32 = 64;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Has children run this program instead of the one that is running, as a benchmark of it
/// does. Only the first call counts.
pub fn set_program(path: PathBuf) {
    PROGRAM.get_or_init(|| path);
}

/// The program that children run.
///
/// # Errors
/// If the system does not say which program is running.
pub fn program() -> Result<PathBuf, Failure> {
    match PROGRAM.get() {
        Some(path) => Ok(path.clone()),
        None => std::env::current_exe().blame(Category::Io),
    }
}

/// A folder that goes with the command.
pub struct Folder(PathBuf);

impl Folder {
    /// A new one among the temporary files, which only its owner reads.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(what: &str) -> Result<Self, Failure> {
        let name = Secret::<16>::random(&mut entropy::rng()?);
        let name = data_encoding::HEXLOWER.encode(name.expose());
        let path = std::env::temp_dir().join(format!("alpheus-{what}-{name}"));
        crate::files::make_private_folder(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Else what is half removed would look like files that cannot be used.
        super::reload::forget(&self.0);
        // What cannot be removed is left to the system's cleaning of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Processes that go with the command.
#[derive(Default)]
pub struct Children(Vec<ChildProcess>);

/// A process, and what starts it again.
struct ChildProcess {
    child: Child,
    folder: PathBuf,
    args: Vec<String>,
    /// The file with its output, unless a log is requested.
    said: PathBuf,
    revivals: u32,
    /// What this process reads from it; such a process is not restarted.
    bound: bool,
    /// It has something to do, and ends well once that is done.
    finite: bool,
    /// It has failed at that.
    gave_up: bool,
    /// Its further output, which nobody reads.
    _output: Option<BufReader<ChildStdout>>,
}

/// How a process is bound to this one.
#[derive(Clone, Copy)]
enum Pipes {
    /// Its standard input only shows that this process is there.
    None,
    /// This process reads its output.
    Output,
}

/// The condition of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All run.
    Running,
    /// Some were killed and are restarted.
    Revived,
    /// One that has something to do has failed at it, and the others run on. It is reported once.
    GaveUp,
    /// One has ended by itself.
    Ended,
}

impl Children {
    /// Starts this program in a folder. Its output goes to a file there, unless a log is
    /// requested.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self, folder: &Path, args: &[&str]) -> Result<(), Failure> {
        self.spawned(folder, args, Pipes::None).map(drop)
    }

    /// The same for a process that ends well once it has done its work.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_finite(&mut self, folder: &Path, args: &[&str]) -> Result<(), Failure> {
        self.spawned(folder, args, Pipes::None)?.finite = true;
        Ok(())
    }

    /// The same for a process that prints a line once it is ready. It is not restarted.
    ///
    /// # Errors
    /// If it cannot be started, or ends without a line.
    pub fn start_heard(&mut self, folder: &Path, args: &[&str]) -> Result<String, Failure> {
        let started = self.spawned(folder, args, Pipes::Output)?;
        let output = started.child.stdout.take().map(BufReader::new);
        let (mut output, mut line) =
            (output.ok_or("a process without output").blame(Category::Io)?, String::new());
        output.read_line(&mut line).blame(Category::Io)?;
        started._output = Some(output);
        if line.is_empty() {
            let said = last_words(&started.said);
            return Err(said.trim().to_owned()).blame(Category::Io);
        }
        Ok(line.trim_end().to_owned())
    }

    fn spawned(
        &mut self,
        folder: &Path,
        args: &[&str],
        pipes: Pipes,
    ) -> Result<&mut ChildProcess, Failure> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let said = folder.join(format!("said-by-{}", self.0.len()));
        let child = spawn(folder, &args, &said, pipes)?;
        let bound = !matches!(pipes, Pipes::None);
        self.0.push(ChildProcess {
            child,
            folder: folder.to_owned(),
            args,
            said,
            revivals: 0,
            bound,
            finite: false,
            gave_up: false,
            _output: None,
        });
        self.0.last_mut().ok_or("no process was started").blame(Category::Io)
    }

    /// Waits until the process that was started last accepts connections at an address, and says
    /// whether it does; if it has ended or is to stop, it does not.
    pub fn serves(&mut self, address: SocketAddr, stop: impl Fn() -> bool) -> bool {
        while TcpStream::connect(address).is_err() {
            let ended =
                self.0.last_mut().is_none_or(|last| !matches!(last.child.try_wait(), Ok(None)));
            if ended || stop() {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// The last output of the process that was started last.
    #[must_use]
    pub fn last_words(&self) -> String {
        self.0.last().map(|last| last_words(&last.said)).unwrap_or_default()
    }

    /// The process that was started as the `index`-th.
    #[must_use]
    pub fn id(&self, index: usize) -> u32 {
        self.0.get(index).map_or(0, |started| started.child.id())
    }

    /// Whether the process that was started as the `index`-th has failed at what it had to do.
    #[must_use]
    pub fn gave_up(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|started| started.gave_up)
    }

    /// Whether one of them has ended.
    pub fn any_ended(&mut self) -> bool {
        self.0.iter_mut().any(|started| !matches!(started.child.try_wait(), Ok(None)))
    }

    /// Restarts killed processes, as a supervisor does. If a process ended by itself or is
    /// killed repeatedly, it is not restarted, and its last output is printed.
    ///
    /// # Errors
    /// If one cannot be started.
    pub fn revive(&mut self) -> Result<Condition, Failure> {
        let mut condition = Condition::Running;
        for started in &mut self.0 {
            match started.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) if started.finite && status.success() => {}
                Ok(Some(status))
                    if status.code().is_none()
                        && !started.bound
                        && started.revivals < MAX_REVIVALS =>
                {
                    started.revivals += 1;
                    started.child =
                        spawn(&started.folder, &started.args, &started.said, Pipes::None)?;
                    condition = Condition::Revived;
                }
                Ok(Some(_)) if started.gave_up => {}
                Ok(Some(_)) if started.finite => {
                    note!("{}", last_words(&started.said).trim_end());
                    started.gave_up = true;
                    condition = Condition::GaveUp;
                }
                _ => {
                    note!("{}", last_words(&started.said).trim_end());
                    return Ok(Condition::Ended);
                }
            }
        }
        Ok(condition)
    }
}

/// The last lines of a process's output.
fn last_words(said: &Path) -> String {
    let said = std::fs::read(said).unwrap_or_default();
    let last = said.len().saturating_sub(LAST_WORDS);
    String::from_utf8_lossy(said.get(last..).unwrap_or_default()).into_owned()
}

fn spawn(folder: &Path, args: &[String], said: &Path, pipes: Pipes) -> Result<Child, Failure> {
    let mut command = Command::new(program()?);
    command.current_dir(folder).args(args).stdin(Stdio::piped());
    command.stdout(match pipes {
        Pipes::Output => Stdio::piped(),
        Pipes::None => Stdio::null(),
    });
    command.env(GOES_ALONG, "1");
    if std::env::var_os("ALPHEUS_LOG").is_none() {
        command.stderr(File::create(said).blame_io(said)?);
    }
    command.spawn().blame(Category::Io)
}

/// Ends this process once its parent is gone for any reason, which closes standard input. Does
/// nothing in a process that is not a child of this program.
pub fn go_along() {
    if std::env::var_os(GOES_ALONG).is_none() {
        return;
    }
    std::thread::spawn(|| {
        let mut said = [0; 64];
        while matches!(io::stdin().read(&mut said), Ok(1..)) {}
        std::process::exit(0)
    });
}

impl Drop for Children {
    fn drop(&mut self) {
        for ChildProcess { child, .. } in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// An address of this machine that nobody listens at, for a process that may be killed and started
/// again. No other program that asks gets it while this one runs: between the draw and the moment
/// when the process listens, and while it is started again, the address is free to the system.
///
/// # Errors
/// If there is none.
pub fn free_address() -> Result<SocketAddr, Failure> {
    let mut rng = entropy::rng()?;
    for _ in 0..TRIES {
        let drawn = rng.next_u32().checked_rem(u32::from(PORTS.end - PORTS.start)).unwrap_or(0);
        let port = PORTS.start.saturating_add(u16::try_from(drawn).unwrap_or(0));
        if claim_port(port) {
            return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
        }
    }
    // Nearly all are taken: use any free port.
    let listener = TcpListener::bind("127.0.0.1:0").blame(Category::Io)?;
    listener.local_addr().blame(Category::Io)
}

/// Keeps a port for processes of this program until it ends. `false` if somebody listens there or
/// another program that asks this function has it.
pub fn claim_port(port: u16) -> bool {
    static CLAIMED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    // An abstract name, like a port, belongs to one network namespace and ends with its process.
    let name = UnixAddr::from_abstract_name(format!("alpheus-port-{port}"));
    let Ok(claim) = name.and_then(|name| UnixListener::bind_addr(&name)) else { return false };
    let is_free = is_free(SocketAddr::from(([127, 0, 0, 1], port)));
    if is_free {
        CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).push(claim);
    }
    is_free
}

/// Whether nobody listens there. It does not listen itself: a child that is being started has a copy
/// of a listener until it runs, and that would keep the address for a moment.
fn is_free(address: SocketAddr) -> bool {
    let Ok(socket) = TcpSocket::new_v4() else { return false };
    socket.set_reuseaddr(true).is_ok() && socket.bind(address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_address_is_free_until_somebody_listens() {
        let address = free_address().ok().unwrap();
        assert!(is_free(address));
        let listener = TcpListener::bind(address).unwrap();
        assert!(!is_free(address));
        drop(listener);
        assert!(is_free(address));
    }

    /// Ten processes of each of many replays side by side: none gets the address of another.
    #[test]
    fn no_address_is_given_twice() {
        let given: HashSet<_> = (0..300).map(|_| free_address().unwrap()).collect();
        assert_eq!(given.len(), 300);
        let one = given.iter().next().unwrap().port();
        assert!(!claim_port(one));
    }

    /// A killed process gets its address back, whatever connections are made meanwhile.
    #[test]
    fn ports_are_outside_the_ephemeral_range() {
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        let range = range.unwrap_or_else(|_| "32768 60999".to_owned());
        let given: Vec<u16> = range.split_whitespace().map(|port| port.parse().unwrap()).collect();
        for _ in 0..64 {
            let port = free_address().unwrap().port();
            assert!(!(given[0]..=given[1]).contains(&port), "{port} of {given:?}");
        }
    }

    /// The reason why a process ended is printed.
    #[test]
    fn the_last_output_of_a_process_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join("said");
        assert_eq!(last_words(&said), "");
        std::fs::write(&said, "x".repeat(5000) + "\nerror: the address is taken\n").unwrap();
        let last = last_words(&said);
        assert!(last.ends_with("error: the address is taken\n") && last.len() == LAST_WORDS);
    }
}
