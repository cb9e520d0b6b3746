//! Processes of this program that go with the command that started them, in a folder
//! that goes with it too: for replays and measurements on one machine.

use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use alpheus_crypto::secret::Secret;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Tells a process that it goes with the one that started it.
const GOES_ALONG: &str = "CHILD_OF_ALPHEUS";
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
    /// Starts this program in a folder. It says nothing, unless a log is asked for.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self, folder: &Path, args: &[&str]) -> Result<(), Failure> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let child = spawn(folder, &args)?;
        self.0.push(Started { child, folder: folder.to_owned(), args, revivals: 0 });
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
    /// had a reason, and stays; so does who is killed over and over.
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
                    started.child = spawn(&started.folder, &started.args)?;
                    condition = Condition::Revived;
                }
                _ => return Ok(Condition::Ended),
            }
        }
        Ok(condition)
    }
}

fn spawn(folder: &Path, args: &[String]) -> Result<Child, Failure> {
    let mut command = Command::new(std::env::current_exe().blame(Category::Io)?);
    command.current_dir(folder).args(args).stdin(Stdio::piped()).stdout(Stdio::null());
    command.env(GOES_ALONG, "1");
    if std::env::var_os("ALPHEUS_LOG").is_none() {
        command.stderr(Stdio::null());
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

/// An address of this machine that is free now.
///
/// # Errors
/// If there is none.
pub fn free_address() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").blame(Category::Io)?;
    listener.local_addr().blame(Category::Io)
}
