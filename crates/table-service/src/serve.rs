//! `alpheus table serve`: stores owners' blocks and adds them up. It holds no key, and owners
//! verify all of its answers.

use super::blocks::{BlockError, TableRecord, Tables};
use super::quotas::{DEFAULT_BYTES, Quotas};
use super::settings::TableSettings;
use super::storage::StorageError;
use super::wire::{
    AboutTable, BLOCKS, BlockRequest, DROP, DROP_STATE, DROP_TABLE, FETCH, FETCH_STATE,
    FetchRequest, MAX_BODY, MAX_OBJECT, NewObject, NewTable, SAVE_STATE, SEGMENTS, STATES, SUMS,
    StateRequest, SumResponse, SumsRequest, TABLES, TableRequest,
};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::network::answer::{ApiError, caller, decode, encode};
use alpheus_node::network::door::Door;
use alpheus_node::network::door::without;
use alpheus_node::network::request_metrics::{metrics_readers, observed};
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::service::health::State as Condition;
use alpheus_node::service::http::{DrainOutcome, Peer};
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::service::{self, process};
use alpheus_node::settings::{Settings, path_flag};
use alpheus_verifiable_table::error::RequestError;
use alpheus_verifiable_table::label::{Address, DataSet};
use alpheus_verifiable_table::messages::{Answer, Block, MAX_REQUEST_BLOCKS, Manifest, Request};
use alpheus_verifiable_table::saved_state::SavedState;
use alpheus_verifiable_table::server::Sum;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, post};
use axum::{Extension, Router};
use prometheus_client::metrics::counter::Counter;
use rayon::prelude::*;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  alpheus table serve --identity pki/service --state run/tables --api 127.0.0.1:7601

`alpheus ca issue pki --role server --name service` creates the identity, and
`--role owner --name ada` that of an owner. A build with `--features object-store` also supports
--state s3://BUCKET/PREFIX, configured by AWS_ACCESS_KEY_ID, AWS_REGION and similar variables.";

/// Arguments of `alpheus table serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The server's identity
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The storage of tables: a folder, or an object store's address
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The address for owners
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// The number of bytes that an owner may store; by default 64 GiB
    #[arg(long, value_name = "BYTES")]
    quota_bytes: Option<u64>,
}

/// The state that requests share.
#[derive(Clone)]
pub struct Api {
    tables: Tables,
    quotas: Quotas,
    stored: Counter,
    summed: Counter,
}

impl Api {
    /// For a server's tables, with a limit for each owner in bytes.
    #[must_use]
    pub fn new(tables: Tables, quota: u64) -> Self {
        let quotas = Quotas::new(quota);
        Self { tables, quotas, stored: Counter::default(), summed: Counter::default() }
    }
}

/// Runs the command until it is stopped.
///
/// # Errors
/// A setting is missing or invalid, or the storage or the address is not available.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("api", args.api.map(|api| api.to_string())),
        ("table.quota-bytes", args.quota_bytes.map(|bytes| bytes.to_string())),
    ])?;
    let identity = Settings::needed(&settings.identity, "identity")?;
    let identity = open_identity(&identity, Role::Server)?;
    let state = Settings::needed(&settings.state, "state")?;
    let quota = settings.part::<TableSettings>()?.quota_bytes.unwrap_or(DEFAULT_BYTES);
    let api = Api::new(Tables::open(&state).blame(Category::Io)?, quota);
    globals.health.part("store").set(Condition::Ready);
    globals.metrics.with(|registry| {
        registry.register("table_blocks", "Blocks stored, repeats included", api.stored.clone());
        registry.register("table_sums", "Sums answered", api.summed.clone());
    });
    let address = Settings::needed(&settings.api, "api")?;
    let settings = Settings { listen: Some(address), tls: Some(identity.tls()), ..settings };
    let trigger = Trigger::new();
    let started = |address| note!("serving at https://{address}");
    let watched = (&globals.health, &globals.metrics);
    let routes = (
        observed(without(router(api), identity.revoked().cloned()), &globals.metrics),
        metrics_readers(identity.revoked().cloned()),
    );
    process::register(&globals.metrics);
    let drained = service::run(&settings, routes, watched, trigger.shutdown(), started)?;
    if let DrainOutcome::Cut(connections) = drained {
        tracing::warn!(connections, "connections were closed before they ended");
    }
    Ok(())
}

/// The routes. Each owner has access to its own tables only.
pub fn router(api: Api) -> Router {
    let door = Door::default();
    let owner = |route| door.guard(route, &[Role::Owner], MAX_BODY);
    Router::new()
        .route(TABLES, owner(post(create)))
        .route(BLOCKS, owner(of_table(put)))
        .route(FETCH, owner(of_table(fetch)))
        .route(SUMS, owner(of_table(sums)))
        .route(DROP, owner(of_table(delete)))
        .route(SEGMENTS, owner(of_table(segments)))
        .route(STATES, owner(of_table(states)))
        .route(SAVE_STATE, owner(of_table(save_state)))
        .route(FETCH_STATE, owner(of_table(fetch_state)))
        .route(DROP_STATE, owner(of_table(delete_state)))
        .route(DROP_TABLE, owner(of_table(forget)))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(api)
}

/// A route for requests about a table of the caller. Its work may block, so it has a thread that
/// serves no requests.
fn of_table<Q: AboutTable>(
    respond: fn(&Api, &TableRecord, Q) -> Result<Vec<u8>, ApiError>,
) -> MethodRouter<Api> {
    post(async move |State(api): State<Api>, Extension(peer): Extension<Peer>, body: Bytes| {
        let (owner, request) = (name(&peer)?, decode::<Q>(&body)?);
        blocking(move || {
            let table = own(&api.tables, &request.table(), &owner)?;
            respond(&api, &table, request)
        })
        .await
    })
}

impl From<BlockError> for ApiError {
    fn from(error: BlockError) -> Self {
        let message = error.to_string();
        match error {
            BlockError::Damaged(_) | BlockError::Storage(StorageError::Short(_)) => {
                tracing::error!(error = message, "an object of a table is damaged");
                lost("damaged", "a stored object is damaged".to_owned())
            }
            BlockError::Storage(_) => {
                tracing::error!(error = message, "the storage of tables failed");
                ApiError::failed("the storage cannot be read or written; see the server's log")
            }
            BlockError::Quota(_) => ApiError::new(StatusCode::FORBIDDEN, "quota", message),
            BlockError::NoTable => ApiError::missing(message),
            BlockError::NoBlock(_) | BlockError::NoState(_) => lost("lost", message),
            BlockError::OtherTable
            | BlockError::OtherBlock(_)
            | BlockError::OtherState(_)
            | BlockError::InUse(_) => ApiError::new(StatusCode::CONFLICT, "conflict", message),
        }
    }
}

/// Refuses an invalid request.
fn bad_request(error: RequestError) -> ApiError {
    match error {
        RequestError::Damaged(_) => lost("damaged", error.to_string()),
        error => ApiError::malformed(error.to_string()),
    }
}

/// A stored object is lost or damaged, so a retry is useless.
fn lost(rule: &str, message: String) -> ApiError {
    ApiError::new(StatusCode::GONE, rule, message)
}

/// The caller's name.
fn name(peer: &Peer) -> Result<String, ApiError> {
    Ok(caller(peer, &[Role::Owner])?.name)
}

/// Runs slow work on a thread that does not serve requests.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ApiError::failed("the request failed because of a bug; see the server's log"))?
}

/// A table of the caller. For others it does not exist.
fn own(tables: &Tables, table: &DataSet, owner: &str) -> Result<TableRecord, ApiError> {
    let stored = tables.about(table)?;
    if stored.owner == owner { Ok(stored) } else { Err(BlockError::NoTable.into()) }
}

async fn create(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let (owner, NewTable { manifest }) = (name(&peer)?, decode(&body)?);
    manifest.check().map_err(bad_request)?;
    blocking(move || {
        let record = TableRecord { owner, manifest };
        let about = (record.owner.as_str(), &record.manifest.data_set, 0);
        let create = || api.tables.create(&record);
        let there = || api.tables.about(about.1).is_ok_and(|there| there == record);
        Ok(api.quotas.store(&api.tables, about, (create, there))?)
    })
    .await?;
    encode(&())
}

fn put(api: &Api, of: &TableRecord, request: NewObject) -> Result<Vec<u8>, ApiError> {
    let about = (of.owner.as_str(), &request.table, request.bytes.len());
    let block = Block::from_bytes(&of.manifest, request.bytes);
    let block = block.map_err(|error| ApiError::malformed(error.to_string()))?;
    let there = || {
        let there = api.tables.get(&of.manifest, &block.address());
        there.is_ok_and(|there| there.as_bytes() == block.as_bytes())
    };
    let put = || api.tables.put(&request.table, &block);
    api.quotas.store(&api.tables, about, (put, there))?;
    api.stored.inc();
    encode(&())
}

fn fetch(api: &Api, of: &TableRecord, request: FetchRequest) -> Result<Vec<u8>, ApiError> {
    let manifest = &of.manifest;
    check_length(request.addresses.iter().map(|_| manifest.block_length()))?;
    let fetch = |address| api.tables.get(manifest, address);
    let blocks: Result<Vec<_>, _> = request.addresses.iter().map(fetch).collect();
    encode(&blocks?.iter().map(Block::as_bytes).collect::<Vec<_>>())
}

fn delete(api: &Api, of: &TableRecord, request: BlockRequest) -> Result<Vec<u8>, ApiError> {
    api.tables.remove(&request.table, &request.address)?;
    api.quotas.deleted(&of.owner);
    encode(&())
}

fn segments(api: &Api, _: &TableRecord, request: TableRequest) -> Result<Vec<u8>, ApiError> {
    encode(&api.tables.segments(&request.table)?)
}

fn sums(api: &Api, of: &TableRecord, request: SumsRequest) -> Result<Vec<u8>, ApiError> {
    let manifest = &of.manifest;
    let length = |request: &Request| Answer::length(manifest.ring(), request.kind);
    check_length(request.requests.iter().map(length))?;
    let summed = request.requests.iter().fold(0, |sum, one| one.blocks().saturating_add(sum));
    if summed > MAX_REQUEST_BLOCKS {
        let max = MAX_REQUEST_BLOCKS;
        return Err(bad_request(RequestError::Blocks { max, count: summed }));
    }
    let respond = |request: &Request| {
        let began = Instant::now();
        let answer = answer(&api.tables, manifest, request)?;
        let microseconds = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        api.summed.inc();
        Ok(SumResponse { microseconds, answer })
    };
    let answers: Result<Vec<_>, ApiError> = request.requests.par_iter().map(respond).collect();
    encode(&answers?)
}

/// Checks that parts of a response fit into one.
fn check_length(mut parts: impl Iterator<Item = usize>) -> Result<(), ApiError> {
    let fits =
        parts.try_fold(0_usize, |sum, part| sum.checked_add(part).filter(|sum| *sum <= MAX_OBJECT));
    let large = || {
        ApiError::malformed(format!(
            "a response has at most {MAX_OBJECT} bytes: ask for less at once"
        ))
    };
    fits.map(drop).ok_or_else(large)
}

fn save_state(api: &Api, of: &TableRecord, request: NewObject) -> Result<Vec<u8>, ApiError> {
    let about = (of.owner.as_str(), &request.table, request.bytes.len());
    let state = SavedState::from_bytes(&request.table, request.bytes);
    let state = state.map_err(|error| ApiError::malformed(error.to_string()))?;
    let there = || {
        let there = api.tables.state(&request.table, &state.name());
        there.is_ok_and(|there| there.as_ref() == state.as_bytes())
    };
    let put = || api.tables.put_state(&request.table, &state);
    api.quotas.store(&api.tables, about, (put, there))?;
    encode(&())
}

fn states(api: &Api, _: &TableRecord, request: TableRequest) -> Result<Vec<u8>, ApiError> {
    encode(&api.tables.states(&request.table)?)
}

fn fetch_state(api: &Api, _: &TableRecord, request: StateRequest) -> Result<Vec<u8>, ApiError> {
    encode(&api.tables.state(&request.table, &request.name)?.as_ref())
}

fn delete_state(api: &Api, of: &TableRecord, request: StateRequest) -> Result<Vec<u8>, ApiError> {
    api.tables.remove_state(&request.table, &request.name)?;
    api.quotas.deleted(&of.owner);
    encode(&())
}

fn forget(api: &Api, of: &TableRecord, request: TableRequest) -> Result<Vec<u8>, ApiError> {
    api.tables.forget(&request.table)?;
    api.quotas.deleted(&of.owner);
    encode(&())
}

/// Blocks that one thread fetches together and adds up before sums are merged.
const CHUNK: usize = 16;

/// A sum over blocks, on all processors.
fn answer(tables: &Tables, manifest: &Manifest, request: &Request) -> Result<Vec<u8>, ApiError> {
    let nothing = || Sum::new(manifest, request).map_err(bad_request);
    // The request is checked before its blocks are listed.
    let all = nothing()?;
    let addresses: Vec<Address> = request.runs.iter().flat_map(|run| run.addresses()).collect();
    let parts = addresses.par_chunks(CHUNK).map(|part| {
        let mut sum = nothing()?;
        let found = tables.parts(manifest, request.kind, part)?;
        for (address, parts) in part.iter().zip(found) {
            sum.add_parts(address.index, &parts).map_err(bad_request)?;
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
