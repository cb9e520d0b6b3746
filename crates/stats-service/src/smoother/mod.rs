//! `alpheus stats smoother`: grants slots, stores deposits, and decrypts jointly with the others.
//!
//! - [`engine`]: the role on its own thread, the only writer of its ledger,
//! - [`shards`]: work on aggregates, each on its own thread,
//! - [`batch`]: steps that are committed together and answered afterwards,
//! - [`key_store`]: the creation of keys, their certificates, and definitions,
//! - [`api`]: the API,
//! - [`forward`]: deposits that go to the other smoothers,
//! - [`outbox`]: messages for peers to fetch,
//! - [`peer_sync`]: fetches the messages of peers,
//! - [`relayed_responses`]: what the aggregator shows to everybody, kept for a while.

pub mod api;
pub mod batch;
pub mod engine;
pub mod forward;
pub mod key_store;
pub mod outbox;
pub mod peer_sync;
pub mod relayed_responses;
pub mod shards;

use crate::card::VerifiedCard;
use crate::keys;
use crate::links;
use crate::membership::{Members, stated};
use crate::parties::{Parties, PartyClient};
use crate::role::{RoleArgs, RoleContext};
use alpheus_accountable_statistics::configuration::{PinnedConfiguration, SmootherId};
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::keymaking::Timeouts;
use alpheus_accountable_statistics::logarithm::Table;
use alpheus_accountable_statistics::smoother::{Identity, Output, Smoother};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_node::clock::Clock;
use alpheus_node::engine::{Handle, Worker, channel};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::ledger::OpenedLedger;
use alpheus_node::listeners::{Listener, serve};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::service::health::State;
use alpheus_node::settings::Settings;
use alpheus_node::settings::TlsFiles;
use api::Api;
use engine::{Call, Engine, name_of};
use forward::{Forwarder, WaitingDeposit};
use key_store::KeyStore;
use outbox::{Outbox, PeerMessage};
use rand_core::Rng;
use relayed_responses::RelayedResponses;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;

const EXAMPLES: &str = "\
Examples:
  alpheus stats smoother --identity pki/smoother-1 --card roads/card.json \\
      --keys roads/smoother-1 --state run/smoother-1 --api 127.0.0.1:7711 \\
      --peers 127.0.0.1:7721

Smoothers create the key of each day together, and wait some time for absent ones. No aggregate can
be defined until the key exists. A smoother that starts with an older copy of its state, as its
fence shows, sits out two days. Only its user may have access to its state folder and to the folder
of its fence: sizes and times of files in them change with the number of samples.";

/// Arguments of `alpheus stats smoother`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    role: RoleArgs,
    /// The address it listens on for other smoothers and the aggregator
    #[arg(long, value_name = "ADDRESS")]
    peers: Option<SocketAddr>,
    /// How long to wait for each message of the others while they create a key; by default 20
    #[arg(long, value_name = "SECONDS")]
    message_timeout_seconds: Option<u64>,
    /// The duration of the first attempt to create a key; each later attempt may take twice as long,
    /// up to 64 times; by default 120
    #[arg(long, value_name = "SECONDS")]
    attempt_timeout_seconds: Option<u64>,
}

/// The key belongs to no smoother.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the signing key belongs to no smoother on the card; give the folder that `alpheus stats init` created for this smoother"
)]
pub(crate) struct NoSmootherError;

/// Runs the command until a shutdown signal.
///
/// # Errors
/// A setting is missing or wrong, or the store or an address is unavailable.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let seconds = |seconds: Option<u64>| seconds.map(|seconds| seconds.to_string());
    let own = vec![
        ("stats.peers", args.peers.map(|peers| peers.to_string())),
        ("stats.message-timeout-seconds", seconds(args.message_timeout_seconds)),
        ("stats.attempt-timeout-seconds", seconds(args.attempt_timeout_seconds)),
    ];
    let seat = args.role.open(Role::Smoother, own, globals)?;
    let RoleContext { settings, stats, identity, card, keys, clock, address, found } = seat;
    let addresses = [address, Settings::needed(&stats.peers, "stats.peers")?];
    let engine = restore(found, (&card, stats.key_patience()), &keys, clock)?;
    let (id, outbox) = (engine.smoother.id(), engine.outbox.clone());
    let (handle, calls) = channel();
    let requests = globals.metrics.requests("stats_requests");
    let signing = keys::signing(&keys.join(keys::SIGNING))?;
    let stated = stated(&card.pinned, identity.name(), &signing);
    let parties = parties(&card, (&identity, &stated), id)?;
    let (forwarder, queues) = Forwarder::new(parties.keys().copied());
    let (smoothers, quorum) = (card.smoothers.len(), card.pinned.quorum());
    let aggregator = Parties::new(&card)?.aggregator;
    let api = Api {
        engine: handle.clone(),
        outbox,
        aggregator,
        relayed: RelayedResponses::default(),
        forwarder,
        id,
        quorum,
        smoothers,
        members: Members::new(&card.pinned),
        requests,
    };
    let part = globals.health.part("smoother");
    let (worker, broken) = Worker::start("smoother", engine, calls)?;
    part.set(State::Ready);
    let listeners = || Ok(listeners(&identity, addresses, api));
    let sync_engine = handle.clone();
    serve(listeners, &settings, globals, broken, |at| {
        note!("serving at {}", at.join(" "));
        start(parties, queues, &sync_engine);
    })?;
    handle.tell_blocking(Call::Stop);
    worker.end()
}

fn listeners(identity: &IdentityFolder, at: [SocketAddr; 2], api: Api) -> Vec<Listener> {
    let clients = Listener {
        address: at[0],
        tls: Some(TlsFiles { client_ca: None, ..identity.tls() }),
        router: api::clients(api.clone()),
        streams: false,
        revoked: None,
    };
    let (address, tls) = (at[1], Some(identity.tls()));
    let revoked = identity.revoked().cloned();
    vec![clients, Listener { address, tls, router: api::peers(api), streams: false, revoked }]
}

fn parties(
    card: &VerifiedCard,
    (identity, stated): (&IdentityFolder, &Arc<str>),
    own: SmootherId,
) -> Result<BTreeMap<SmootherId, PartyClient>, Failure> {
    let others = (0..).map(SmootherId).zip(&card.smoothers).filter(|(id, _)| *id != own);
    others
        .map(|(id, (_, peers))| {
            let link = links::smoother_peer(peers.clone(), identity)?;
            Ok((id, PartyClient::of_member(link, Arc::clone(stated))))
        })
        .collect()
}

fn start(
    parties: BTreeMap<SmootherId, PartyClient>,
    mut queues: BTreeMap<SmootherId, Receiver<WaitingDeposit>>,
    engine: &Handle<Call>,
) {
    let smoothers = parties.len().saturating_add(1);
    for (by, party) in parties {
        tokio::spawn(peer_sync::run(by, party.clone(), engine.clone()));
        tokio::spawn(peer_sync::complete(party.clone(), smoothers, engine.clone()));
        if let Some(queue) = queues.remove(&by) {
            tokio::spawn(forward::run(party, queue));
        }
    }
    tokio::spawn(peer_sync::tick(engine.clone()));
}

fn own_id(card: &VerifiedCard, key: &VerifyingKey) -> Result<SmootherId, Failure> {
    let id = card.pinned.ids().find(|id| card.pinned.key(*id) == Some(key));
    id.ok_or(NoSmootherError).blame(Category::Input)
}

/// Restores the role from its ledger.
fn restore(
    found: OpenedLedger,
    (card, patience): (&VerifiedCard, Timeouts),
    folder: &Path,
    clock: Clock,
) -> Result<Engine, Failure> {
    let mut rng = entropy::rng()?;
    let outbox = Outbox::new(rng.next_u64(), clock.now());
    let signing = || keys::signing(&folder.join(keys::SIGNING));
    let key = signing()?.verifying_key();
    let id = own_id(card, &key)?;
    let slots = keys::issuing(&folder.join(keys::SLOTS))?;
    let origin = found.since_it_began();
    let OpenedLedger { mut ledger, records, .. } = found;
    let (records, beside) = key_store::split_records(records);
    let key_store = KeyStore::restore(beside, (id, signing()?), (&card.pinned, patience), &outbox);
    let key_store = key_store.blame(Category::Input)?;
    if origin == StateOrigin::Restored {
        note!("the state is older than its fence: this smoother sits out two days");
    }
    let identity = Identity { id, key: signing()?, slots };
    let (table, now) = (Arc::new(Table::new(card.pinned.limits.table_bits)), clock.now());
    let restored = Smoother::restore(&card.pinned, identity, table, origin, records, now);
    let (smoother, step) = restored.blame(Category::Input)?;
    step.commit(&mut ledger).blame(Category::Io)?;
    let agreed = republish(&smoother, &card.pinned, &outbox, &key)?;
    outbox.put_out(|outcome| name_of(&key, outcome), smoother.resend(now));
    let (early, recheck_early) = (Vec::new(), false);
    Ok(Engine {
        smoother,
        ledger,
        agreed,
        key_store,
        outbox,
        key,
        clock,
        rng,
        early,
        recheck_early,
        rejected: BTreeMap::new(),
    })
}

/// Adds the receipts and outcomes of known definitions to the outbox; returns these definitions.
fn republish(
    smoother: &Smoother,
    pinned: &PinnedConfiguration,
    outbox: &Outbox,
    key: &VerifyingKey,
) -> Result<BTreeMap<Digest, AgreedDefinition>, Failure> {
    let mut known = BTreeMap::new();
    for signed in outbox.definitions() {
        let agreed = AgreedDefinition::open(&signed, pinned).blame(Category::Input)?;
        let name = agreed.name();
        for receipt in smoother.receipts(&name) {
            outbox.say(PeerMessage::Receipt(Box::new(receipt)));
        }
        let outcome = smoother.signed_outcome(&name).map(Output::Outcome);
        outbox.put_out(|outcome| name_of(key, outcome), outcome.into_iter().collect());
        known.insert(name, agreed);
    }
    Ok(known)
}
