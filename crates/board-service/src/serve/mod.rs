//! `alpheus board serve`: a database, the auditor, or an equal server as a process.
//!
//! - [`erasing_ledger`]: its ledger, in which an epoch's secrets can be erased,
//! - [`engine`]: the role on its own thread, the only writer of its ledger,
//! - [`api`]: the requests,
//! - [`outbox`]: what this server has published,
//! - [`peer_sync`]: fetches the other servers' statements.

pub mod api;
pub mod engine;
pub mod erasing_ledger;
pub mod outbox;
pub mod peer_sync;

use crate::card::{MismatchError, VerifiedCard};
use crate::client::Client;
use crate::keys;
use crate::role::{RoleArgs, RoleContext};
use alpheus_anonymous_board::admission::Admission;
use alpheus_anonymous_board::auditor::Auditor;
use alpheus_anonymous_board::configuration::Party;
use alpheus_anonymous_board::database::Database;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::sign::SigningKey;
use alpheus_node::clock;
use alpheus_node::engine::{Handle, Worker, channel};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::ledger::{FencedLedger, OpenedLedger};
use alpheus_node::listeners::{Listener, serve};
use alpheus_node::note;
use alpheus_node::service::health::State;
use alpheus_node::settings::TlsFiles;
use alpheus_node::settings::{Settings, path_flag};
use alpheus_node::slots::SlotFile;
use alpheus_time::Timestamp;
use api::Api;
use engine::{Admitter, Engine, Server};
use erasing_ledger::ErasingLedger;
use outbox::Outbox;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

const EXAMPLES: &str = "\
Examples:
  alpheus board serve --role database --identity pki/first --card board.json --key first.key \\
      --members members.txt --state run/first --fence fences/first --api 127.0.0.1:7601
  alpheus board serve --role server --identity pki/a --card board.json --key a.key \\
      --members members.txt --state run/a --fence fences/a --api 127.0.0.1:7601
  alpheus board serve --role auditor --identity pki/auditor --card board.json \\
      --key auditor.key --state run/auditor --fence fences/auditor --api 127.0.0.1:7603

If a server starts with an older copy of its state, as its fence or another server shows, it burns
the epochs that had begun. Nothing in them is revealed. An equal server also burns them after any
stop that was not orderly, unless it was already bound to its share. So stop it with SIGTERM.";

/// The spaces of the store.
const SPACES: [&str; 2] = ["board", "board-fence"];

/// The role of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ServerRole {
    /// Accepts writes and publishes its share of the table; the key determines which of the two
    Database,
    /// Keeps the transcript, judges complaints, fixes the set of writes
    Auditor,
    /// An equal server of a board without an auditor; the key determines which
    Server,
}

/// Arguments of `alpheus board serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The role of this server
    #[arg(long, value_enum)]
    role: ServerRole,
    #[command(flatten)]
    own: RoleArgs,
    /// The list of members, if the board has members; not for the auditor
    #[arg(long, value_name = "FILE")]
    members: Option<PathBuf>,
}

/// Runs the command until a shutdown signal.
///
/// # Errors
/// A setting is missing or wrong, or the store or the address is unavailable.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let own = vec![("board.members", path_flag(args.members.as_ref()))];
    let RoleContext { settings, board, identity, card, key, address } =
        args.own.open(own, globals)?;
    let party = party(args.role, &card, &key)?;
    let admission = match party {
        Party::Auditor => None,
        Party::Database(_) | Party::Server(_) => Some(admission(&card, board.members.as_ref())?),
    };
    let store = globals.open_store(&settings)?;
    let fence = board.fence(&settings.state)?;
    let found = FencedLedger::open_spaces(store, &fence, None, SPACES)?;
    let outbox = Outbox::default();
    let (handle, calls) = channel();
    let (own, of) = (handle.clone(), (&card, party));
    let slots = SlotFile::open(&erasing_ledger::slots_of(&fence)).blame(Category::Input)?;
    let engine = restore((found, slots), of, key, admission, (&outbox, own))?;
    let requests = globals.metrics.requests("board_requests");
    let (records, reading) = (engine.ledger.records(), Arc::new(Semaphore::new(1)));
    let (to, card_of) = (handle.clone(), card.clone());
    let router =
        api::router(Api { engine: to, outbox, records, reading, card: card_of, party, requests });
    let part = globals.health.part("board");
    let (worker, broken) = Worker::start("board", engine, calls)?;
    part.set(State::Ready);
    let tls = Some(TlsFiles { client_ca: None, ..identity.tls() });
    let client = Client::new(&card)?;
    let listeners = || Ok(vec![Listener { address, tls, router, streams: false, revoked: None }]);
    let stop = handle.clone();
    serve(listeners, &settings, globals, broken, |at| {
        note!("serving at {}", at.join(" "));
        tokio::spawn(peer_sync::run(client, party, handle));
    })?;
    stop.tell_blocking(engine::Call::Stop);
    worker.end()
}

fn party(role: ServerRole, card: &VerifiedCard, key: &SigningKey) -> Result<Party, Failure> {
    let ours = |party: &Party| {
        let fits = match party {
            Party::Database(_) => role == ServerRole::Database,
            Party::Auditor => role == ServerRole::Auditor,
            Party::Server(_) => role == ServerRole::Server,
        };
        fits && card.board.key(*party) == Some(&key.verifying_key())
    };
    card.board.parties().iter().copied().find(ours).ok_or(MismatchError::Key).blame(Category::Input)
}

/// The admission of writers: the card's doorkeeper, or its members.
fn admission(card: &VerifiedCard, members: Option<&PathBuf>) -> Result<Box<Admitter>, Failure> {
    if let Some(door) = &card.door {
        return Ok(Box::new(door.keeper(&card.board)));
    }
    let path = Settings::needed(&members.cloned(), "board.members")?;
    let members = keys::members(&path)?;
    let same = members.digest() == card.board.admission;
    same.then_some(()).ok_or(MismatchError::Members).blame_input(&path)?;
    Ok(Box::new(members))
}

/// Restores the role from its ledger.
fn restore(
    (found, slots): (OpenedLedger, SlotFile),
    (card, party): (&VerifiedCard, Party),
    key: SigningKey,
    admission: Option<Box<Admitter>>,
    (outbox, own): (&Outbox, Handle<engine::Call>),
) -> Result<Engine, Failure> {
    let OpenedLedger { ledger, mut records, origin, untouched, .. } = found;
    let is_secret = if party == Party::Auditor { Auditor::is_secret } else { Database::is_secret };
    let rng = alpheus_node::entropy::rng()?;
    let (mut ledger, is_whole) = ErasingLedger::open(ledger, slots, is_secret, rng, &mut records)?;
    let origin = match (untouched, is_whole) {
        (true, _) => StateOrigin::New,
        (false, true) => origin,
        (false, false) => StateOrigin::Restored,
    };
    if origin == StateOrigin::Restored {
        note!("the state is older than its fence: the epochs that had begun are burnt");
    }
    let now = Timestamp(clock::now().0);
    let board = card.board.clone();
    let server = match (party, admission) {
        (Party::Database(_) | Party::Server(_), Some(admission)) => {
            let restored = Database::restore(&board, party, key, origin, records, now);
            let (database, step) = restored.blame(Category::Input)?;
            outbox.put_out(step.commit(&mut ledger).blame(Category::Io)?);
            Server::Database(Box::new(database), admission)
        }
        _ => {
            let restored = Auditor::restore(&board, key, origin, records, now);
            let (auditor, step) = restored.blame(Category::Input)?;
            let said = step.commit(&mut ledger).blame(Category::Io)?;
            said.into_iter().for_each(|said| outbox.say(said));
            Server::Auditor(Box::new(auditor))
        }
    };
    let rng = alpheus_node::entropy::rng()?;
    let (outbox, knocks) = (outbox.clone(), Vec::new());
    Ok(Engine { server, ledger, outbox, board, rng, own, knocks })
}
