//! `alpheus pass verifier`: checks logins with the issuer's key, and stores spent tags.
//! Several processes can be shards of one store; each owns its part.
//!
//! - [`engine`]: the shard, on its own thread,
//! - [`api`]: the requests,
//! - [`shards`]: links to all shards.

pub mod api;
pub mod engine;
pub mod shards;

use crate::settings::PassSettings;
use crate::{card, init};
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::sessions::Shard;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_node::clock;
use alpheus_node::engine::{Worker, channel};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::fence;
use alpheus_node::globals::Globals;
use alpheus_node::ledger::ShardIndex;
use alpheus_node::ledger::{FencedLedger, OpenedLedger};
use alpheus_node::listeners::{Listener, serve};
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::service::health::State;
use alpheus_node::settings::{Flags, Settings, path_flag};
use api::Api;
use engine::Engine;
use shards::{AMONG_VERIFIERS, Shards};
use std::net::SocketAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus pass verifier --identity pki/verifier --deployment deployment --state run/verifier \\
      --api 127.0.0.1:7502
  alpheus pass verifier --identity pki/second --deployment deployment --state run/second \\
      --api 127.0.0.1:7503 --shard 1 \\
      --verifiers https://localhost:7502,https://localhost:7503

A verifier whose state is new, or older than its fence, serves from the next epoch on. With login
codes it also waits the number of epochs that a code covers, so any tags it lost have expired. It
prints the first epoch. Give all verifiers and gateways the same --verifiers.";

/// Arguments of `alpheus pass verifier`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The verifier's identity
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The folder that `alpheus pass init` created
    #[arg(long, value_name = "FOLDER")]
    deployment: Option<PathBuf>,
    /// The folder of spent tags
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The address for gateways and other verifiers
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// All verifiers in the order of shards, separated by commas, if there are several
    #[arg(long, value_name = "URLS")]
    verifiers: Option<String>,
    /// The number of this verifier's shard, from 0
    #[arg(long, value_name = "NUMBER")]
    shard: Option<usize>,
}

/// The shard does not exist.
#[derive(Debug, thiserror::Error)]
#[error("there is no shard {shard} among {of} verifiers; the first is 0")]
pub(crate) struct ShardError {
    shard: u64,
    of: u64,
}

/// Runs the command until it is stopped.
///
/// # Errors
/// A setting is missing or invalid, or the store or the address is not available.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(flags(args))?;
    let pass = settings.part::<PassSettings>()?;
    let identity = Settings::needed(&settings.identity, "identity")?;
    let identity = open_identity(&identity, Role::Verifier)?;
    let deployment = Settings::needed(&pass.deployment, "pass.deployment")?;
    let pinned = card::Card::load(&deployment.join(card::CARD))?.1.pinned;
    let api = Settings::needed(&settings.api, "api")?;
    let alone = format!("https://{api}");
    let verifiers = pass.verifiers.as_deref().unwrap_or(&alone);
    let shards = Shards::new(verifiers, &identity, AMONG_VERIFIERS)?;
    let shard = pass.shard.unwrap_or(0) as u64;
    let place = ShardIndex { index: shard, count: shards.count() };
    if place.index >= place.count {
        return Err(ShardError { shard, of: place.count }).blame(Category::Usage);
    }
    let store = globals.open_store(&settings)?;
    let fence = fence::move_out_of(&Settings::needed(&settings.state, "state")?);
    let found = FencedLedger::open(store, &fence, Some(place))?;
    let key = init::issuer_key(&deployment)?;
    let verifier = Verifier::new(key, pinned.clone()).blame(Category::Input)?;
    let engine = restore(found, verifier, &pinned, place)?;
    let (handle, jobs) = channel();
    let requests = globals.metrics.requests("pass_verifier_requests");
    let router = api::router(Api { engine: handle, pinned, place, shards, requests });
    let part = globals.health.part("shard");
    let (worker, broken) = Worker::start("shard", engine, jobs)?;
    part.set(State::Ready);
    let tls = Some(identity.tls());
    let revoked = identity.revoked().cloned();
    let listeners = || Ok(vec![Listener { address: api, tls, router, streams: false, revoked }]);
    serve(listeners, &settings, globals, broken, |at| note!("serving at {}", at.join(" ")))?;
    worker.end()
}

/// Restores the shard from its ledger. Records of a ledger that may be incomplete are
/// discarded.
///
/// # Errors
/// The ledger is damaged or cannot be written.
pub fn restore(
    found: OpenedLedger,
    verifier: Verifier,
    pinned: &PinnedConfiguration,
    place: ShardIndex,
) -> Result<Engine<FencedLedger>, Failure> {
    let OpenedLedger { mut ledger, records, origin, .. } = found;
    let shard = Shard::restore(pinned.clone(), records, origin, clock::now());
    let shard = shard.blame(Category::Input)?.commit(&mut ledger).blame(Category::Io)?;
    if origin != StateOrigin::Intact {
        let first = shard.serves_from();
        let seconds = clock::until(pinned.schedule.opens(first)).as_secs() + 1;
        note!(
            "the state is new, older than its fence, or of another shard: serving from epoch {}, whose logins open in {seconds} s",
            first.0
        );
    }
    let pinned = pinned.clone();
    Ok(Engine { shard, verifier, pinned, ledger, place, clock: clock::now, pruned: None })
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
