//! `alpheus board serve`: a database, the auditor, or one of a board's equal servers as a
//! process.
//!
//! - [`engine`]: the role on a thread of its own, one writer of its ledger,
//! - [`api`]: the requests,
//! - [`courier`]: fetches what the other servers have said.

pub mod api;
pub mod courier;
pub mod engine;

use crate::board::card::{self, Opened};
use crate::board::client::Client;
use crate::board::keys;
use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::pass::clock;
use crate::pass::ledger::{FencedLedger, Found};
use crate::pass::serve::{Listener, serve};
use crate::service::engine::{Worker, channel};
use crate::service::health::State;
use crate::service::tls::TlsFiles;
use crate::service::{Flags, Settings, path_flag};
use alpheus_anonymous_board::admission::Admission;
use alpheus_anonymous_board::auditor::Auditor;
use alpheus_anonymous_board::configuration::{Party, Time};
use alpheus_anonymous_board::database::Database;
use alpheus_crypto::ledger::Log;
use alpheus_crypto::sign::SigningKey;
use api::Api;
use engine::{Admitting, Bulletin, Engine, Server};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

const EXAMPLES: &str = "\
Examples:
  alpheus board serve --role database --identity pki/first --card board.json --key first.key --members members.txt --state run/first --api 127.0.0.1:7601
  alpheus board serve --role server --identity pki/a --card board.json --key a.key --members members.txt --state run/a --api 127.0.0.1:7601
  alpheus board serve --role auditor --identity pki/auditor --card board.json --key auditor.key --state run/auditor --api 127.0.0.1:7603

A server that comes back from an older copy of its state than its fence has seen burns the
epochs that had begun; nothing of them is revealed.";

/// The spaces of the store.
const SPACES: [&str; 2] = ["board", "board-fence"];

/// Which of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// Takes writes and gives its share of the table; the key says which of the two
    Database,
    /// Keeps the transcript, hears complaints, settles the set
    Auditor,
    /// One of the equal servers of a board without an auditor; the key says which
    Server,
}

/// Arguments of `alpheus board serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which of the servers
    #[arg(long, value_enum)]
    role: Which,
    /// The folder that says who it is to TLS
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The board's card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// This server's signing key
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Who may write, if the board has members; of all but the auditor
    #[arg(long, value_name = "FILE")]
    members: Option<PathBuf>,
    /// Where it keeps what must outlive it
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Where everybody reaches it
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
}

/// What does not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The key is another server's, or none's.
    #[error(
        "the key belongs to no server of this role on the card; `alpheus board key` made the one whose public half is on it"
    )]
    Key,
    /// The members are others than the card's.
    #[error("the members are not those of the card; all operators and the card have one list")]
    Members,
    /// The doorkeeper is another than the card's.
    #[error(
        "the key or the passes are not those of the card; `alpheus board init` was told the doorkeeper's public key and the passes' card"
    )]
    Door,
    /// The board's epochs are not the passes'.
    #[error(
        "the board's epochs are not those of the passes, so a pass would write twice in one or not at all; make the card with `alpheus board init --passes`"
    )]
    Epochs,
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A setting is missing or wrong, the store or the address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(flags(args))?;
    let board = settings.board.clone().unwrap_or_default();
    let identity = Settings::needed(&settings.identity, "identity")?;
    let identity = IdentityFolder::open(&identity, Role::Board)?;
    let card = card::open(&Settings::needed(&board.card, "board.card")?)?;
    let key = keys::load(&Settings::needed(&board.key, "board.key")?)?;
    let party = party(args.role, &card, &key)?;
    let admission = match party {
        Party::Auditor => None,
        Party::Database(_) | Party::Server(_) => Some(admission(&card, board.members.as_ref())?),
    };
    let address = Settings::needed(&settings.api, "api")?;
    let store = settings.open_store(&globals.health, &globals.metrics)?;
    let fence = Settings::needed(&settings.state, "state")?.join("fence");
    let found = FencedLedger::open_spaces(store, &fence, None, SPACES)?;
    let bulletin = Bulletin::default();
    let engine = restore(found, party, &card, key, admission, &bulletin)?;
    let (handle, jobs) = channel();
    let requests = globals.metrics.requests("board_requests");
    let (records, reading) = (engine.ledger.records(), Arc::new(Semaphore::new(1)));
    let (to, card_of) = (handle.clone(), card.clone());
    let router =
        api::router(Api { engine: to, bulletin, records, reading, card: card_of, party, requests });
    let part = globals.health.part("board");
    let own = handle.clone();
    let (worker, broken) =
        Worker::start("board", move |trigger| engine::run(engine, jobs, &own, trigger))?;
    part.set(State::Ready);
    let tls = Some(TlsFiles { client_ca: None, ..identity.tls() });
    let client = Client::new(&card)?;
    let listeners = || Ok(vec![Listener { address, tls, router, streams: false }]);
    let stop = handle.clone();
    serve(listeners, &settings, globals, broken, |at| {
        eprintln!("serving at {}", at.join(" "));
        tokio::spawn(courier::run(client, party, handle));
    })?;
    stop.tell_blocking(engine::Job::Stop);
    worker.end()
}

fn party(role: Which, card: &Opened, key: &SigningKey) -> Result<Party, Failure> {
    let ours = |party: &Party| {
        let fits = match party {
            Party::Database(_) => role == Which::Database,
            Party::Auditor => role == Which::Auditor,
            Party::Server(_) => role == Which::Server,
        };
        fits && card.board.key(*party) == Some(&key.verifying_key())
    };
    card.board.parties().iter().copied().find(ours).ok_or(Mismatch::Key).blame(Category::Input)
}

/// Who may write: whom the card's doorkeeper admits, or its members.
fn admission(card: &Opened, members: Option<&PathBuf>) -> Result<Box<Admitting>, Failure> {
    if let Some(door) = &card.door {
        return Ok(Box::new(door.keeper(&card.board)));
    }
    let path = Settings::needed(&members.cloned(), "board.members")?;
    let members = keys::members(&path)?;
    let same = members.digest() == card.board.admission;
    same.then_some(()).ok_or(Mismatch::Members).blame_input(&path)?;
    Ok(Box::new(members))
}

/// The role with what its ledger holds.
fn restore(
    found: Found,
    party: Party,
    card: &Opened,
    key: SigningKey,
    admission: Option<Box<Admitting>>,
    bulletin: &Bulletin,
) -> Result<Engine, Failure> {
    let Found { mut ledger, records, log, untouched, .. } = found;
    let log = if untouched { Log::New } else { log };
    if log == Log::Doubtful {
        eprintln!("the state is older than its fence: epochs that had begun are burnt");
    }
    let now = Time(clock::now().0);
    let board = card.board.clone();
    let server = match (party, admission) {
        (Party::Database(_) | Party::Server(_), Some(admission)) => {
            let restored = Database::restore(&board, party, key, log, records, now);
            let (database, step) = restored.blame(Category::Input)?;
            bulletin.put_out(step.commit(&mut ledger).blame(Category::Io)?);
            Server::Database(Box::new(database), admission)
        }
        _ => {
            let restored = Auditor::restore(&board, key, log, records, now);
            let (auditor, step) = restored.blame(Category::Input)?;
            let said = step.commit(&mut ledger).blame(Category::Io)?;
            said.into_iter().for_each(|said| bulletin.say(said));
            Server::Auditor(Box::new(auditor))
        }
    };
    let rng = crate::entropy::rng()?;
    Ok(Engine { server, ledger, bulletin: bulletin.clone(), board, rng })
}

fn flags(args: &Args) -> Flags {
    vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("api", args.api.map(|api| api.to_string())),
        ("board.card", path_flag(args.card.as_ref())),
        ("board.key", path_flag(args.key.as_ref())),
        ("board.members", path_flag(args.members.as_ref())),
    ]
}
