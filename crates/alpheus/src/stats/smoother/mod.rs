//! `alpheus stats smoother`: gives out slots, keeps deposits, decrypts with the others.
//!
//! - [`engine`]: the role on a thread of its own, one writer of its ledger,
//! - [`shards`]: work on aggregates, each by a thread of its own,
//! - [`together`]: what is committed at once, and answered after it,
//! - [`side`]: keys of key epochs, as smoothers make them,
//! - [`api`]: the requests,
//! - [`bulletin`]: what it has said, for peers to fetch,
//! - [`courier`]: fetches what peers have said.

pub mod api;
pub mod bulletin;
pub mod courier;
pub mod engine;
pub mod shards;
pub mod side;
pub mod together;

use crate::commands::Globals;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::pass::ledger::Found;
use crate::pass::serve::{Listener, serve};
use crate::service::Settings;
use crate::service::engine::{Handle, Worker, channel};
use crate::service::health::State;
use crate::service::tls::TlsFiles;
use crate::stats::card::Opened;
use crate::stats::clock::Clock;
use crate::stats::keys;
use crate::stats::role::{RoleArgs, Seat};
use crate::stats::ways::Way;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::Agreed;
use alpheus_accountable_statistics::keymaking::Patience;
use alpheus_accountable_statistics::logarithm::Table;
use alpheus_accountable_statistics::smoother::{Identity, Output, Smoother};
use alpheus_crypto::ledger::Log;
use alpheus_crypto::sign::VerifyingKey;
use api::Api;
use bulletin::Bulletin;
use engine::{Engine, Job, name_of};
use rand_core::Rng;
use side::Side;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  alpheus stats smoother --identity pki/smoother-1 --card roads/card.json --keys roads/smoother-1 --state run/smoother-1 --api 127.0.0.1:7711 --peers 127.0.0.1:7721

Smoothers together make the key of each day, and wait some time for who is not there; until it
is made, nothing is defined. One that comes back from an older copy of its state than its fence has seen sits out two days.";

/// Arguments of `alpheus stats smoother`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    role: RoleArgs,
    /// Where the other smoothers and the aggregator reach it
    #[arg(long, value_name = "ADDRESS")]
    peers: Option<SocketAddr>,
    /// For so long it waits for each word of the others while they make a key; by default 20
    #[arg(long, value_name = "SECONDS")]
    word_seconds: Option<u64>,
    /// For so long the first attempt at a key goes on, and each later one twice as long, up to 64
    /// times; by default 120
    #[arg(long, value_name = "SECONDS")]
    attempt_seconds: Option<u64>,
}

/// The key belongs to nobody here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the signing key belongs to no smoother on the card; give the folder that `alpheus stats init` made for this smoother"
)]
struct NoSmoother;

/// Runs the command until it is told to stop.
///
/// # Errors
/// A setting is missing or wrong, the store or an address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let seconds = |seconds: Option<u64>| seconds.map(|seconds| seconds.to_string());
    let own = vec![
        ("stats.peers", args.peers.map(|peers| peers.to_string())),
        ("stats.word-seconds", seconds(args.word_seconds)),
        ("stats.attempt-seconds", seconds(args.attempt_seconds)),
    ];
    let seat = args.role.open(Role::Smoother, own, globals)?;
    let Seat { settings, stats, identity, card, keys, clock, address, found } = seat;
    let addresses = [address, Settings::needed(&stats.peers, "stats.peers")?];
    let engine = restore(found, (&card, stats.key_patience()), &keys, clock)?;
    let (id, bulletin) = (engine.smoother.id(), engine.bulletin.clone());
    let (handle, jobs) = channel();
    let requests = globals.metrics.requests("stats_requests");
    let smoothers = card.smoothers.len();
    let api = Api { engine: handle.clone(), bulletin, smoothers, requests };
    let part = globals.health.part("smoother");
    let (worker, broken) =
        Worker::start("smoother", move |trigger| engine::run(engine, jobs, trigger))?;
    part.set(State::Ready);
    let ways = ways(&card, &identity, id)?;
    let listeners = || Ok(listeners(&identity, addresses, api));
    let couriers = handle.clone();
    serve(listeners, &settings, globals, broken, |at| {
        eprintln!("serving at {}", at.join(" "));
        start(ways, &couriers);
    })?;
    handle.tell_blocking(Job::Stop);
    worker.end()
}

fn listeners(identity: &IdentityFolder, at: [SocketAddr; 2], api: Api) -> Vec<Listener> {
    let clients = Listener {
        address: at[0],
        tls: Some(TlsFiles { client_ca: None, ..identity.tls() }),
        router: api::clients(api.clone()),
        streams: false,
    };
    let (address, tls) = (at[1], Some(identity.tls()));
    vec![clients, Listener { address, tls, router: api::peers(api), streams: false }]
}

fn ways(
    card: &Opened,
    identity: &IdentityFolder,
    own: SmootherId,
) -> Result<Vec<(SmootherId, Way)>, Failure> {
    let others = (0..).map(SmootherId).zip(&card.smoothers).filter(|(id, _)| *id != own);
    others.map(|(id, (_, peers))| Ok((id, Way::named(peers, identity)?))).collect()
}

fn start(ways: Vec<(SmootherId, Way)>, engine: &Handle<Job>) {
    for (by, way) in ways {
        tokio::spawn(courier::run(by, way.clone(), engine.clone()));
        tokio::spawn(courier::complete(way, engine.clone()));
    }
    tokio::spawn(courier::tick(engine.clone()));
}

fn which(card: &Opened, key: &VerifyingKey) -> Result<SmootherId, Failure> {
    let id = card.pinned.ids().find(|id| card.pinned.key(*id) == Some(key));
    id.ok_or(NoSmoother).blame(Category::Input)
}

/// The role with what its ledgers hold.
fn restore(
    found: Found,
    (card, patience): (&Opened, Patience),
    folder: &Path,
    clock: Clock,
) -> Result<Engine, Failure> {
    let mut rng = entropy::rng()?;
    let bulletin = Bulletin::new(rng.next_u64());
    let signing = || keys::signing(&folder.join(keys::SIGNING));
    let key = signing()?.verifying_key();
    let id = which(card, &key)?;
    let slots = keys::issuing(&folder.join(keys::SLOTS))?;
    let log = found.since_it_began();
    let Found { mut ledger, records, .. } = found;
    let (records, beside) = side::divided(records);
    let side = Side::restore(beside, (id, signing()?), (&card.pinned, patience), &bulletin);
    let side = side.blame(Category::Input)?;
    if log == Log::Doubtful {
        eprintln!("the state is older than its fence: this smoother sits out two days");
    }
    let identity = Identity { id, key: signing()?, slots };
    let (table, now) = (Arc::new(Table::new(card.pinned.limits.bits)), clock.now());
    let restored = Smoother::restore(&card.pinned, identity, table, log, records, now);
    let (smoother, step) = restored.blame(Category::Input)?;
    step.commit(&mut ledger).blame(Category::Io)?;
    let mut known = BTreeMap::new();
    for signed in bulletin.definitions() {
        let agreed = Agreed::open(&signed, &card.pinned).blame(Category::Input)?;
        let name = agreed.name();
        for receipt in smoother.receipts(&name) {
            bulletin.say(bulletin::Said::Receipt(Box::new(receipt)));
        }
        let outcome = smoother.signed_outcome(&name).map(Output::Outcome);
        bulletin.put_out(|outcome| name_of(&key, outcome), outcome.into_iter().collect());
        known.insert(name, agreed);
    }
    bulletin.put_out(|outcome| name_of(&key, outcome), smoother.repeat(now));
    let (agreed, early, stirred) = (known, Vec::new(), false);
    Ok(Engine { smoother, ledger, agreed, side, bulletin, key, clock, rng, early, stirred })
}
