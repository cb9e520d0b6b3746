//! `alpheus table serve`: stores owners' blocks and adds them up. It holds no key; what
//! it says is believed by nobody who has not checked it.

use super::blocks::{BlockError, Stored, Tables};
use super::storage::StorageError;
use super::wire::{
    Ask, BLOCKS, DROP, FETCH, LARGEST, Named, NewBlock, NewTable, OfTable, SEGMENTS, SUM, Summed,
    TABLES,
};
use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::network::answer::{ApiError, caller, decode, encode};
use crate::network::door::Door;
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::service::health::State as Condition;
use crate::service::http::{Drained, Peer};
use crate::service::shutdown::Trigger;
use crate::service::{self, Settings, path_flag};
use alpheus_verifiable_table::error::BadRequest;
use alpheus_verifiable_table::label::{Address, DataSet};
use alpheus_verifiable_table::messages::{Block, Manifest, Request};
use alpheus_verifiable_table::server::Sum;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Extension, Router};
use prometheus_client::metrics::counter::Counter;
use rayon::prelude::*;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  alpheus table serve --identity pki/service --state run/tables --api 127.0.0.1:7601

`alpheus ca issue pki --role server --name service` makes the identity, and
`--role owner --name ada` that of an owner. A build with `--features object-store` takes an object
store too: --state s3://BUCKET/PREFIX, with AWS_ACCESS_KEY_ID, AWS_REGION and their like.";

/// Arguments of `alpheus table serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder that says who it is
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// Where it keeps tables: a folder, or an object store's address
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Where owners reach it
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
}

/// What requests need.
#[derive(Clone)]
pub struct Api {
    tables: Tables,
    stored: Counter,
    summed: Counter,
}

impl Api {
    /// Over a server's tables.
    #[must_use]
    pub fn new(tables: Tables) -> Self {
        Self { tables, stored: Counter::default(), summed: Counter::default() }
    }
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A setting is missing or wrong, the folder or the address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("api", args.api.map(|api| api.to_string())),
    ])?;
    let identity = Settings::needed(&settings.identity, "identity")?;
    let identity = IdentityFolder::open(&identity, Role::Server)?;
    let state = Settings::needed(&settings.state, "state")?;
    let api = Api::new(Tables::open(&state).blame(Category::Io)?);
    globals.health.part("store").set(Condition::Ready);
    globals.metrics.with(|registry| {
        registry.register("table_blocks", "Blocks stored, repeats included", api.stored.clone());
        registry.register("table_sums", "Sums answered", api.summed.clone());
    });
    let address = Settings::needed(&settings.api, "api")?;
    let settings = Settings { listen: Some(address), tls: Some(identity.tls()), ..settings };
    let trigger = Trigger::new();
    let started = |address| eprintln!("serving at https://{address}");
    let (health, metrics) = (&globals.health, &globals.metrics);
    let drained =
        service::run(&settings, router(api), health, metrics, trigger.shutdown(), started)?;
    if let Drained::Cut(connections) = drained {
        tracing::warn!(connections, "connections were cut off");
    }
    Ok(())
}

/// The routes, all for owners, each for their own tables.
pub fn router(api: Api) -> Router {
    let door = Door::default();
    let owner = |route| door.guard(route, &[Role::Owner], LARGEST);
    Router::new()
        .route(TABLES, owner(post(create)))
        .route(BLOCKS, owner(post(put)))
        .route(FETCH, owner(post(fetch)))
        .route(SUM, owner(post(sum)))
        .route(DROP, owner(post(forget)))
        .route(SEGMENTS, owner(post(segments)))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(api)
}

impl From<BlockError> for ApiError {
    fn from(error: BlockError) -> Self {
        let said = error.to_string();
        match error {
            BlockError::Damaged(_) | BlockError::Storage(StorageError::Short(_)) => {
                tracing::error!(error = said, "a damaged object of a table");
                lost("damaged", "what is stored is damaged".to_owned())
            }
            BlockError::Storage(_) => {
                tracing::error!(error = said, "a table's storage");
                ApiError::failed("what is stored cannot be read or written")
            }
            BlockError::NoTable => ApiError::missing(said),
            BlockError::NoBlock(_) => lost("lost", said),
            BlockError::OtherTable | BlockError::OtherBlock(_) => {
                ApiError::new(StatusCode::CONFLICT, "conflict", said)
            }
        }
    }
}

impl From<BadRequest> for ApiError {
    fn from(error: BadRequest) -> Self {
        match error {
            BadRequest::Damaged(_) => lost("damaged", error.to_string()),
            error => ApiError::malformed(error.to_string()),
        }
    }
}

/// What was stored and is not as it was: asking again is of no use.
fn lost(rule: &str, said: String) -> ApiError {
    ApiError::new(StatusCode::GONE, rule, said)
}

/// Who asks.
fn name(peer: &Peer) -> Result<String, ApiError> {
    Ok(caller(peer, &[Role::Owner])?.name)
}

/// Work that takes the disk or the processor for long, beside the threads that serve.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ApiError::failed("it broke off, which is a mistake of ours"))?
}

/// A table of the one who asks. Another's is as if it were not there.
fn own(tables: &Tables, table: &DataSet, owner: &str) -> Result<Manifest, ApiError> {
    let stored = tables.about(table)?;
    if stored.owner == owner { Ok(stored.manifest) } else { Err(BlockError::NoTable.into()) }
}

async fn create(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (owner, NewTable { manifest }) = (name(&peer)?, decode(&body)?);
    manifest.check()?;
    beside(move || Ok(api.tables.create(&Stored { owner, manifest })?)).await?;
    encode(&())
}

async fn put(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (owner, NewBlock { table, bytes }) = (name(&peer)?, decode(&body)?);
    beside(move || {
        let manifest = own(&api.tables, &table, &owner)?;
        let block = Block::from_bytes(&manifest, bytes);
        let block = block.map_err(|error| ApiError::malformed(error.to_string()))?;
        api.tables.put(&table, &block)?;
        api.stored.inc();
        encode(&())
    })
    .await
}

async fn fetch(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (owner, Named { table, address }) = (name(&peer)?, decode(&body)?);
    beside(move || {
        let manifest = own(&api.tables, &table, &owner)?;
        encode(&api.tables.get(&manifest, &address)?.as_bytes())
    })
    .await
}

async fn forget(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (owner, Named { table, address }) = (name(&peer)?, decode(&body)?);
    beside(move || {
        own(&api.tables, &table, &owner)?;
        api.tables.remove(&table, &address)?;
        encode(&())
    })
    .await
}

async fn segments(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (owner, OfTable { table }) = (name(&peer)?, decode(&body)?);
    beside(move || {
        own(&api.tables, &table, &owner)?;
        encode(&api.tables.segments(&table)?)
    })
    .await
}

async fn sum(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (owner, Ask { table, request }) = (name(&peer)?, decode(&body)?);
    beside(move || {
        let (manifest, began) = (own(&api.tables, &table, &owner)?, Instant::now());
        let answer = answer(&api.tables, &manifest, &request)?;
        let microseconds = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        api.summed.inc();
        encode(&Summed { microseconds, answer })
    })
    .await
}

/// Blocks that one thread fetches at once and adds up before its sum is merged with others.
const TOGETHER: usize = 16;

/// A sum over blocks, on all processors.
fn answer(tables: &Tables, manifest: &Manifest, request: &Request) -> Result<Vec<u8>, ApiError> {
    let nothing = || Sum::new(manifest, request).map_err(ApiError::from);
    // A request is checked before its blocks are listed.
    let all = nothing()?;
    let addresses: Vec<Address> = request.runs.iter().flat_map(|run| run.addresses()).collect();
    let parts = addresses.par_chunks(TOGETHER).map(|part| {
        let mut sum = nothing()?;
        let found = tables.parts(manifest, request.kind, part)?;
        for (address, parts) in part.iter().zip(found) {
            sum.add_parts(address.index, &parts)?;
        }
        Ok(sum)
    });
    let merged = parts.try_reduce_with(|mut a, b| {
        a.merge(&b);
        Ok::<_, ApiError>(a)
    });
    let sum = merged.transpose()?.unwrap_or(all);
    Ok(sum.answer().to_bytes(manifest.ring()))
}
