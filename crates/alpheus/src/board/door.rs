//! `alpheus board door`: the doorkeeper. It checks passes with their issuer's key,
//! keeps which were shown in an epoch, and signs for the key that each was shown with that
//! its holder may write once. It is apart from the board's servers: who checks passes can make them.
//!
//! | request | answers |
//! | --- | --- |
//! | `GET /v1/passes` | the fingerprint of the passes' configuration |
//! | `POST /v1/admissions` | takes a login, gives [`Admitted`], signed; the same login gets the same |

use crate::board::card::{self, Opened};
use crate::board::keys;
use crate::board::serve::Mismatch;
use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::network::answer::{ApiError, encode};
use crate::network::door::in_time;
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::pass::ledger::FencedLedger;
use crate::pass::serve::{Listener, serve};
use crate::pass::verifier::engine::{self, Job, Place};
use crate::pass::verifier::restore;
use crate::pass::{card as passes, init};
use crate::service::engine::{Handle, Worker, channel};
use crate::service::health::State as Ready;
use crate::service::tls::TlsFiles;
use crate::service::{Flags, Settings, path_flag};
use alpheus_anonymous_board::admission::{Admission, Admitted, Doorkeeper};
use alpheus_anonymous_board::configuration::{Schedule, Time};
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::error::Refused;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::Login;
use alpheus_anonymous_credential::schedule::Schedule as PassSchedule;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::{get, post};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  alpheus board door --identity pki/door --card board.json --key door.key --deployment deployment --state run/door --api 127.0.0.1:7604

The deployment is one that `alpheus pass init` made, for this board alone. Of the board's servers
none may have its folder: with it they could make passes, and a crowd of their own.";

/// The largest body: a login.
const LARGEST: usize = 16 << 10;

/// Arguments of `alpheus board door`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder that says who it is to TLS
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The board's card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// The doorkeeper's signing key
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The folder that `alpheus pass init` made
    #[arg(long, value_name = "FOLDER")]
    deployment: Option<PathBuf>,
    /// Where it keeps which passes were shown
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Where writers reach it
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
}

/// What requests need.
struct Door {
    engine: Handle<Job>,
    key: SigningKey,
    passes: Pinned,
    card: Opened,
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A setting is missing or wrong, the store or the address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(flags(args))?;
    let (board, pass) =
        (settings.board.clone().unwrap_or_default(), settings.pass.clone().unwrap_or_default());
    let identity = Settings::needed(&settings.identity, "identity")?;
    let identity = IdentityFolder::open(&identity, Role::Board)?;
    let card = card::open(&Settings::needed(&board.card, "board.card")?)?;
    let key = keys::load(&Settings::needed(&board.key, "board.key")?)?;
    let deployment = Settings::needed(&pass.deployment, "pass.deployment")?;
    let passes = passes::open(&deployment.join(passes::CARD))?.1.pinned;
    let ours = Doorkeeper::new(key.verifying_key(), passes.fingerprint(), card.board.board);
    if ours.digest() != card.board.admission {
        return Err(Mismatch::Door).blame(Category::Input);
    }
    if !same_epochs(&card.board.schedule, &passes.schedule) {
        return Err(Mismatch::Epochs).blame(Category::Input);
    }
    let address = Settings::needed(&settings.api, "api")?;
    let store = settings.open_store(&globals.health, &globals.metrics)?;
    let fence = Settings::needed(&settings.state, "state")?.join("fence");
    let place = Place { shard: 0, of: 1 };
    let found = FencedLedger::open(store, &fence, Some(place))?;
    let issuer = init::issuer_key(&deployment)?;
    let verifier = Verifier::new(issuer, passes.clone()).blame(Category::Input)?;
    let engine = restore(found, verifier, &passes, place)?;
    let (handle, jobs) = channel();
    let router = router(Door { engine: handle, key, passes, card });
    let part = globals.health.part("door");
    let (worker, broken) =
        Worker::start("door", move |trigger| engine::run(engine, jobs, trigger))?;
    part.set(Ready::Ready);
    let tls = Some(TlsFiles { client_ca: None, ..identity.tls() });
    let listeners = || Ok(vec![Listener { address, tls, router, streams: false }]);
    serve(listeners, &settings, globals, broken, |at| eprintln!("serving at {}", at.join(" ")))?;
    worker.end()
}

/// Whether a board's epochs are the passes': were they longer a pass would be shown, and
/// write, more than once in one.
#[must_use]
pub fn same_epochs(board: &Schedule, passes: &PassSchedule) -> bool {
    let apart = board.start.0.abs_diff(passes.start.0);
    board.length == passes.epoch && apart.checked_rem(passes.epoch) == Some(0)
}

fn router(door: Door) -> Router {
    let router = Router::new()
        .route("/v1/passes", get(passes_of))
        .route("/v1/admissions", post(admit))
        .with_state(Arc::new(door));
    in_time(router, LARGEST)
}

async fn passes_of(State(door): State<Arc<Door>>) -> Result<Vec<u8>, ApiError> {
    encode(&door.passes.fingerprint())
}

async fn admit(State(door): State<Arc<Door>>, body: Bytes) -> Result<Vec<u8>, ApiError> {
    let login = Login::from_bytes(&body, Limit::ONE).map_err(Refused::from)?;
    let standing = door.engine.ask(|reply| Job::LogIn(Box::new(login), reply)).await??;
    let starts = door.passes.schedule.starts(standing.first);
    let epoch = door.card.board.schedule.at(Time(starts.0)).ok_or(Refused::Epoch)?;
    let admitted = Admitted { board: door.card.board.board, epoch, writer: standing.holder };
    encode(&Signed::new(&admitted, &door.key))
}

fn flags(args: &Args) -> Flags {
    vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("api", args.api.map(|api| api.to_string())),
        ("board.card", path_flag(args.card.as_ref())),
        ("board.key", path_flag(args.key.as_ref())),
        ("pass.deployment", path_flag(args.deployment.as_ref())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_anonymous_credential::schedule::Time as PassTime;

    /// Ten shown passes to an epoch of the board would make one holder a crowd.
    #[test]
    fn a_boards_epochs_are_the_passes() {
        let same = |start, length| {
            let board = Schedule { start: Time(start), length, complaints: 1, patience: 1 };
            let passes = PassSchedule {
                start: PassTime(1_000),
                epoch: 60,
                pre_login: 0,
                border_pre_login: 0,
                epochs_per_period: 10,
                ahead: 0,
            };
            same_epochs(&board, &passes)
        };
        assert!(same(1_000, 60) && same(1_600, 60) && same(940, 60));
        assert!(!same(1_000, 600) && !same(1_000, 30) && !same(1_001, 60));
    }
}
