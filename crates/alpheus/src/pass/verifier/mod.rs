//! `alpheus pass verifier`: checks logins with the issuer's key and keeps what is
//! spent. Several processes are shards of one store; each holds its part alone.
//!
//! - [`engine`]: the shard, on a thread of its own,
//! - [`api`]: the requests,
//! - [`shards`]: the ways to all shards.

pub mod api;
pub mod engine;
pub mod shards;

use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::pass::ledger::{FencedLedger, Found};
use crate::pass::serve::{Listener, serve};
use crate::pass::{card, clock, init};
use crate::service::engine::{Worker, channel};
use crate::service::health::State;
use crate::service::{Flags, Settings, path_flag};
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::ledger::Log;
use alpheus_anonymous_credential::sessions::Shard;
use alpheus_anonymous_credential::verifier::Verifier;
use api::Api;
use engine::{Engine, Place};
use shards::{AMONG_VERIFIERS, Shards};
use std::net::SocketAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus pass verifier --identity pki/verifier --deployment deployment --state run/verifier --api 127.0.0.1:7502
  alpheus pass verifier --identity pki/second --deployment deployment --state run/second --api 127.0.0.1:7503 --shard 1 --verifiers https://localhost:7502,https://localhost:7503

A verifier whose state is new, or an older copy than its fence has seen, serves from the next
epoch on, and with login codes from as many later as they spend: what it may have forgotten is
then over. It says from when. Say the same --verifiers everywhere.";

/// Arguments of `alpheus pass verifier`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder that says who it is
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The folder that `alpheus pass init` made
    #[arg(long, value_name = "FOLDER")]
    deployment: Option<PathBuf>,
    /// Where it keeps what is spent
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Where gateways and the other verifiers reach it
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// All verifiers, in order, if there are several
    #[arg(long, value_name = "URLS")]
    verifiers: Option<String>,
    /// Which of them this is, from 0
    #[arg(long, value_name = "NUMBER")]
    shard: Option<usize>,
}

/// A shard that is none.
#[derive(Debug, thiserror::Error)]
#[error("there is no shard {shard} among {of} verifiers; the first is 0")]
struct NoShard {
    shard: u64,
    of: u64,
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A setting is missing or wrong, the store or the address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(flags(args))?;
    let pass = settings.pass.clone().unwrap_or_default();
    let identity = Settings::needed(&settings.identity, "identity")?;
    let identity = IdentityFolder::open(&identity, Role::Verifier)?;
    let deployment = Settings::needed(&pass.deployment, "pass.deployment")?;
    let pinned = card::open(&deployment.join(card::CARD))?.1.pinned;
    let api = Settings::needed(&settings.api, "api")?;
    let alone = format!("https://{api}");
    let verifiers = pass.verifiers.as_deref().unwrap_or(&alone);
    let shards = Shards::new(verifiers, &identity, AMONG_VERIFIERS)?;
    let shard = pass.shard.unwrap_or(0) as u64;
    let place = Place { shard, of: shards.count() };
    if place.shard >= place.of {
        return Err(NoShard { shard, of: place.of }).blame(Category::Usage);
    }
    let store = settings.open_store(&globals.health, &globals.metrics)?;
    let fence = Settings::needed(&settings.state, "state")?.join("fence");
    let found = FencedLedger::open(store, &fence, Some(place))?;
    let key = init::issuer_key(&deployment)?;
    let verifier = Verifier::new(key, pinned.clone()).blame(Category::Input)?;
    let engine = restore(found, verifier, &pinned, place)?;
    let (handle, jobs) = channel();
    let requests = globals.metrics.requests("pass_verifier_requests");
    let router = api::router(Api { engine: handle, pinned, place, shards, requests });
    let part = globals.health.part("shard");
    let (worker, broken) =
        Worker::start("shard", move |trigger| engine::run(engine, jobs, trigger))?;
    part.set(State::Ready);
    let tls = Some(identity.tls());
    let listeners = || Ok(vec![Listener { address: api, tls, router, streams: false }]);
    serve(listeners, &settings, globals, broken, |at| eprintln!("serving at {}", at.join(" ")))?;
    worker.end()
}

/// The shard with what its ledger holds; nothing of a ledger that may not be whole.
///
/// # Errors
/// The ledger is damaged or cannot be written.
pub fn restore(
    found: Found,
    verifier: Verifier,
    pinned: &Pinned,
    place: Place,
) -> Result<Engine<FencedLedger>, Failure> {
    let Found { mut ledger, records, log, .. } = found;
    let shard = Shard::restore(pinned.clone(), records, log, clock::now());
    let shard = shard.blame(Category::Input)?.commit(&mut ledger).blame(Category::Io)?;
    if log != Log::Whole {
        let first = shard.serves_from();
        let seconds = clock::until(pinned.schedule.opens(first)).as_secs() + 1;
        eprintln!(
            "the state is new, older than its fence, or another shard's: serving from epoch {} on, for which logins open in {seconds} s",
            first.0
        );
    }
    let pinned = pinned.clone();
    Ok(Engine { shard, verifier, pinned, ledger, place, clock: clock::now })
}

fn flags(args: &Args) -> Flags {
    vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("api", args.api.map(|api| api.to_string())),
        ("pass.deployment", path_flag(args.deployment.as_ref())),
        ("pass.verifiers", args.verifiers.clone()),
        ("pass.shard", args.shard.map(|shard| shard.to_string())),
    ]
}
