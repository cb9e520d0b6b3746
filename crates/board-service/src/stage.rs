//! A complete board on one machine, for replays and benchmarks: PKI, keys, card and server
//! processes. All of it is deleted when the command ends.

use crate::card::{self, Card, Content, VerifiedCard};
use crate::init::Size;
use crate::keys;
use alpheus_anonymous_board::admission::{Admission, Members};
use alpheus_anonymous_board::configuration::{Party, Servers};
use alpheus_anonymous_board::row::Format;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, write_new};
use alpheus_node::service::children;
use alpheus_node::service::children::{Children, Folder, free_address};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The kind of board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keepers {
    /// Two databases and an auditor.
    Audited,
    /// This many equal servers.
    Equal(u8),
}

impl Keepers {
    /// The servers' names and roles.
    fn names(self) -> Vec<(String, &'static str)> {
        match self {
            Self::Audited => {
                let roles = [("first", "database"), ("second", "database"), ("auditor", "auditor")];
                roles.map(|(name, role)| (name.to_owned(), role)).to_vec()
            }
            Self::Equal(many) => (1..=many).map(|i| (format!("server-{i}"), "server")).collect(),
        }
    }

    /// The servers' keys, in the form of a configuration.
    fn servers(self, keys: &[VerifyingKey]) -> Result<Servers, StageError> {
        match self {
            Self::Audited => Ok(Servers::Audited(keys.try_into().map_err(|_| StageError)?)),
            Self::Equal(_) => Ok(Servers::Coalition(keys.to_vec())),
        }
    }
}

/// A board's servers on this machine, in a temporary folder.
pub struct Stage {
    /// The board.
    pub card: VerifiedCard,
    servers: Children,
    // Last, so that it is deleted after the processes have ended.
    _folder: Folder,
}

/// A command or a server could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a command of the local board failed; see the messages above")]
struct StageError;

impl Stage {
    /// Creates keys and a card for these writers, and starts the servers. The epoch closes
    /// when all have written.
    ///
    /// # Errors
    /// If a file cannot be written or a process cannot be started.
    pub fn start(
        writers: &[SigningKey],
        format: Format,
        rows: Option<u32>,
        keepers: Keepers,
    ) -> Result<Self, Failure> {
        let folder = Folder::create("board")?;
        let servers = start(folder.path(), writers, format, rows, keepers)?;
        let card = card::open(&folder.path().join("board.json"))?;
        Ok(Self { card, servers, _folder: folder })
    }

    /// The process id of a server.
    #[must_use]
    pub fn process(&self, party: Party) -> u32 {
        self.servers.id(party.index())
    }
}

/// Creates PKI, keys and card in a folder, and starts the servers.
fn start(
    folder: &Path,
    writers: &[SigningKey],
    format: Format,
    rows: Option<u32>,
    keepers: Keepers,
) -> Result<Children, Failure> {
    command(folder, &["ca", "init", "pki"])?;
    let (names, mut at, mut keys_of) = (keepers.names(), Vec::new(), Vec::new());
    for (name, _) in &names {
        command(folder, &["ca", "issue", "pki", "--role", "board", "--name", name])?;
        at.push(free_address()?);
        keys_of.push(keys::create(&folder.join(format!("{name}.key")))?.verifying_key());
    }
    let lines: Vec<String> = writers.iter().map(|key| keys::hex(&key.verifying_key())).collect();
    write_new(&folder.join("members.txt"), &(lines.join("\n") + "\n"), Readers::Everybody)?;
    let members = Members::new(writers.iter().map(SigningKey::verifying_key));
    let size = Size {
        writers: u32::try_from(writers.len()).blame(Category::Input)?,
        rows,
        min_writes: Some(2),
        epoch: 3600,
        complaints: 1,
        timeout: 3600,
    };
    let servers = keepers.servers(&keys_of).blame(Category::Io)?;
    let configuration = size.configuration(format, servers, members.digest())?;
    let authority = std::fs::read_to_string(folder.join("pki/ca.pem")).blame_io(folder)?;
    let urls = at.iter().map(|at| format!("https://{at}")).collect();
    let operator = SigningKey::from_seed(&Secret::random(&mut entropy::rng()?));
    let card =
        Card::new(&Content::new(&configuration, urls, Some(authority), None, &operator), &operator);
    card.open().blame(Category::Usage)?;
    let text = serde_json::to_string_pretty(&card).blame(Category::Io)?;
    write_new(&folder.join("board.json"), &text, Readers::Everybody)?;
    let mut started = Children::default();
    for ((name, role), at) in names.iter().zip(&at) {
        serve(&mut started, folder, name, role, at)?;
    }
    Ok(started)
}

fn serve(
    started: &mut Children,
    folder: &Path,
    name: &str,
    role: &str,
    at: &SocketAddr,
) -> Result<(), Failure> {
    let (identity, key, state) =
        (format!("pki/{name}"), format!("{name}.key"), format!("run/{name}"));
    let at = at.to_string();
    let who = ["board", "serve", "--role", role, "--identity", &identity, "--key", &key];
    let fence = format!("fences/{name}");
    let rest = ["--card", "board.json", "--members", "members.txt", "--state", &state];
    let more = ["--fence", &fence, "--api", &at];
    started.start(folder, &[who.as_slice(), &rest, &more].concat())
}

fn command(folder: &Path, args: &[&str]) -> Result<(), Failure> {
    let program = children::program()?;
    let status =
        Command::new(program).current_dir(folder).args(args).stdout(Stdio::null()).status();
    let done = status.blame(Category::Io)?.success();
    if done { Ok(()) } else { Err(StageError).blame(Category::Io) }
}
