//! Processes of this program that go with the command that started them, in a folder
//! that goes with it too: for replays and measurements on one machine.

use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use alpheus_crypto::secret::Secret;
use rand_core::Rng;
use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Tells a process that it goes with the one that started it.
const GOES_ALONG: &str = "CHILD_OF_ALPHEUS";
/// Ports that no system gives to whoever asks for any. An address stays its process's while that is
/// killed and started again; one of the others is soon the near end of somebody's connection.
const PORTS: Range<u16> = 10_000..32_768;
/// So many of them are tried.
const TRIES: usize = 256;
/// Of what a process said last so much is told.
const LAST_WORDS: usize = 2048;
/// So often a process that was killed is started again: more is no accident.
const MOST_REVIVALS: u32 = 64;

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
        // What cannot be removed is left to the system's cleaning of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Processes that go with the command.
#[derive(Default)]
pub struct Children(Vec<Started>);

/// A process, and what starts it again.
struct Started {
    child: Child,
    folder: PathBuf,
    args: Vec<String>,
    /// What it says, unless a log is asked for.
    said: PathBuf,
    revivals: u32,
}

/// How processes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All run.
    Running,
    /// Some were killed, and are started again.
    Revived,
    /// One has ended by itself.
    Ended,
}

impl Children {
    /// Starts this program in a folder. What it says goes into a file there, unless a log is asked
    /// for.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self, folder: &Path, args: &[&str]) -> Result<(), Failure> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let said = folder.join(format!("said-by-{}", self.0.len()));
        let child = spawn(folder, &args, &said)?;
        self.0.push(Started { child, folder: folder.to_owned(), args, said, revivals: 0 });
        Ok(())
    }

    /// The process that was started as the `index`-th.
    #[must_use]
    pub fn id(&self, index: usize) -> u32 {
        self.0.get(index).map_or(0, |started| started.child.id())
    }

    /// Whether one of them has ended.
    pub fn any_ended(&mut self) -> bool {
        self.0.iter_mut().any(|started| !matches!(started.child.try_wait(), Ok(None)))
    }

    /// Starts those that were killed again, as a machine's supervisor does. Who ended by itself
    /// had a reason, which is told, and stays; so does who is killed over and over.
    ///
    /// # Errors
    /// If one cannot be started.
    pub fn revive(&mut self) -> Result<Condition, Failure> {
        let mut condition = Condition::Running;
        for started in &mut self.0 {
            match started.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) if status.code().is_none() && started.revivals < MOST_REVIVALS => {
                    started.revivals += 1;
                    started.child = spawn(&started.folder, &started.args, &started.said)?;
                    condition = Condition::Revived;
                }
                _ => {
                    eprint!("{}", last_words(&started.said));
                    return Ok(Condition::Ended);
                }
            }
        }
        Ok(condition)
    }
}

/// The last lines of what a process said.
fn last_words(said: &Path) -> String {
    let said = std::fs::read(said).unwrap_or_default();
    let last = said.len().saturating_sub(LAST_WORDS);
    String::from_utf8_lossy(said.get(last..).unwrap_or_default()).into_owned()
}

fn spawn(folder: &Path, args: &[String], said: &Path) -> Result<Child, Failure> {
    let mut command = Command::new(std::env::current_exe().blame(Category::Io)?);
    command.current_dir(folder).args(args).stdin(Stdio::piped()).stdout(Stdio::null());
    command.env(GOES_ALONG, "1");
    if std::env::var_os("ALPHEUS_LOG").is_none() {
        command.stderr(File::create(said).blame_io(said)?);
    }
    command.spawn().blame(Category::Io)
}

/// Ends this process once the one that started it is gone, however it went: with that one goes
/// the other end of standard input. Nothing, in a process that nobody of this program started.
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
        for Started { child, .. } in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// An address of this machine that is free now, for a process that may be killed and started again.
///
/// # Errors
/// If there is none.
pub fn free_address() -> Result<SocketAddr, Failure> {
    let mut rng = entropy::rng()?;
    for _ in 0..TRIES {
        let drawn = rng.next_u32().checked_rem(u32::from(PORTS.end - PORTS.start)).unwrap_or(0);
        let port = PORTS.start.saturating_add(u16::try_from(drawn).unwrap_or(0));
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    // Nearly all are taken: any will do for now.
    let listener = TcpListener::bind("127.0.0.1:0").blame(Category::Io)?;
    listener.local_addr().blame(Category::Io)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is killed comes back at its address, whatever connections are made meanwhile.
    #[test]
    fn a_processes_port_is_none_that_the_system_gives_away() {
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        let range = range.unwrap_or_else(|_| "32768 60999".to_owned());
        let given: Vec<u16> = range.split_whitespace().map(|port| port.parse().unwrap()).collect();
        for _ in 0..64 {
            let port = free_address().unwrap().port();
            assert!(!(given[0]..=given[1]).contains(&port), "{port} of {given:?}");
        }
    }

    /// Somebody who reads of a process that has ended reads why.
    #[test]
    fn what_a_process_said_last_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join("said");
        assert_eq!(last_words(&said), "");
        std::fs::write(&said, "x".repeat(5000) + "\nerror: the address is taken\n").unwrap();
        let told = last_words(&said);
        assert!(told.ends_with("error: the address is taken\n") && told.len() == LAST_WORDS);
    }
}
