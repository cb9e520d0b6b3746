//! `alpheus server`: the service as a process. It holds ciphertext, public metadata
//! and results, but no key to any data.
//!
//! - [`evidence`]: what it states for an impact assessment,
//! - [`engine`]: policy manager and transformer, on their own thread,
//! - [`mod@intake`]: frames of devices, into the log,
//! - [`lost_state`]: signs that the state is older than what others have seen,
//! - [`outages`]: who is waited for after the service was away,
//! - [`service_clock`]: the time, also when the machine's clock jumps,
//! - [`signs`]: signs of faults, counted lately,
//! - [`silent_hosts`]: controllers' hosts that nobody waits for,
//! - [`outboxes`]: messages that wait for controllers,
//! - [`registry`]: registered controllers and streams,
//! - [`retention`](mod@retention): deletion of old events,
//! - [`api`]: the requests.

pub mod api;
pub mod engine;
pub mod evidence;
pub mod intake;
pub mod lost_state;
pub mod outages;
pub mod outboxes;
pub mod registry;
pub mod retention;
pub mod service_clock;
pub mod signs;
pub mod silent_hosts;

use crate::deployment;
use crate::deployment::SERVICE_SEED;
use crate::ingest_keys;
use crate::settings::{self, WindowSettings};
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_node::clock;
use alpheus_node::engine::{Worker, channel_for};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::request_metrics::{metrics_readers, observed};
use alpheus_node::network::revocations::Revocations;
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::pki::read_seed;
use alpheus_node::service::health::Note;
use alpheus_node::service::http::DrainOutcome;
use alpheus_node::service::{self, ServiceError};
use alpheus_node::settings::kafka::KafkaArgs;
use alpheus_node::settings::{Settings, path_flag};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::engine_kind::EngineKind;
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::keys::ServiceKeys;
use alpheus_stream_runtime::manager::Manager;
use alpheus_stream_runtime::service::Service;
use alpheus_stream_runtime::storage::Topics;
use alpheus_time::Span;
use alpheus_transport::Store;
use api::{Api, EngineCaller};
use engine::{Call, Engine, EngineThread, MAX_JOBS};
use intake::Intake;
use lost_state::LostState;
use outages::Outages;
use outboxes::Outboxes;
use rand_core::Rng;
use registry::{IntroductionError, Registry};
use retention::Retention;
use service_clock::{DeviceTimes, ServiceClock};
use signs::Signs;
use silent_hosts::SilentHosts;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;

const EXAMPLES: &str = "\
Examples:
  alpheus server --identity pki/service --schema examples/fitness/schema.yaml \\
      --state run/service --api 127.0.0.1:7400
  alpheus server --config server.toml --listen 127.0.0.1:9400
  alpheus server --config server.toml --engine job --kafka-brokers 127.0.0.1:9092 \\
      --kafka-prefix fitness.

Unless the schema says `frames: events`, the identity folder has the ingest key: ingest.seed, and
retired ones as ingest.1.seed, ingest.2.seed and so on.

Settings can also come from a file (`identity`, `schema`, `state`, `api` and others) or from
variables (ALPHEUS_IDENTITY and so on). Flags override variables, and variables override the file.";

/// Partitions of the events topic.
const PARTITIONS: u32 = 4;
/// Events of a clock that is further ahead than this are refused.
const SKEW: Span = Span::seconds(60);

/// Arguments of `alpheus server`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The service's identity folder
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The schema of the streams: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Folder for ciphertext, results and ledgers
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    #[command(flatten)]
    kafka: KafkaArgs,
    /// Address to serve devices, controllers and consumers at
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// Which engine sums ciphertexts: this process, or the Flink job or workers on the same Kafka topics
    #[arg(long, value_enum)]
    engine: Option<EngineKind>,
    /// How long after its end a window waits for late streams [default: 10; 600 with the engine
    /// `job`, until the job reports that it has passed the window]
    #[arg(long, value_name = "SECONDS")]
    idle_timeout: Option<u32>,
    /// How long a window waits for controllers to answer, and again for their tokens, before it
    /// proceeds without them [default: 2; 30 with the engine `job`]
    #[arg(long, value_name = "SECONDS")]
    controller_timeout: Option<u32>,
    /// With the engine `job`: how long a window waits for its sums before it fails
    /// [default: 86400]
    #[arg(long, value_name = "SECONDS")]
    sums_timeout: Option<u32>,
    /// How long the service waits, after an outage, for controllers and devices that were connected before it
    /// [default: 120]
    #[arg(long, value_name = "SECONDS")]
    recovery_timeout: Option<u32>,
    /// How long ciphertext is kept after it has been summed [default: 168]
    #[arg(long, value_name = "HOURS")]
    retention: Option<u32>,
    /// How long results are kept [default: 400]
    #[arg(long, value_name = "DAYS")]
    results_retention: Option<u32>,
    /// How many results are kept: the oldest are deleted first [default: 10000000]
    #[arg(long, value_name = "ROWS")]
    results_rows: Option<u64>,
    /// How long receipts of verified windows are kept; after that, nobody can check their rows
    /// [default: 30]
    #[arg(long, value_name = "DAYS")]
    receipts_retention: Option<u32>,
    /// How many queries of one consumer may run at a time [default: 100]
    #[arg(long, value_name = "QUERIES")]
    queries_per_consumer: Option<u32>,
    /// How many megabytes of a stream are accepted in a day [default: as many as eight days of it have, but
    /// at least 64; 1024 with `frames: events`]
    #[arg(long, value_name = "MEGABYTES", value_parser = clap::value_parser!(u32).range(1..))]
    stream_megabytes: Option<u32>,
}

impl Args {
    fn settings(&self, globals: &Globals) -> Result<Settings, Failure> {
        let mut flags = self.kafka.flags();
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        flags.extend([
            ("identity", path_flag(self.identity.as_ref())),
            ("schema", path_flag(self.schema.as_ref())),
            ("state", path_flag(self.state.as_ref())),
            ("api", self.api.map(|api| api.to_string())),
            ("engine", self.engine.map(|engine| engine.to_string())),
            ("windows.idle-timeout-seconds", number(self.idle_timeout)),
            ("windows.controller-timeout-seconds", number(self.controller_timeout)),
            ("windows.sums-timeout-seconds", number(self.sums_timeout)),
            ("windows.recovery-timeout-seconds", number(self.recovery_timeout)),
            ("windows.retention-hours", number(self.retention)),
            ("windows.results-days", number(self.results_retention)),
            ("windows.receipts-days", number(self.receipts_retention)),
            ("windows.results-rows", self.results_rows.map(|rows| rows.to_string())),
            (settings::QUERIES, number(self.queries_per_consumer)),
            (settings::QUOTA, number(self.stream_megabytes)),
        ]);
        globals.settings(flags)
    }
}

/// Runs the command until it is asked to stop.
///
/// # Errors
/// A setting is missing or wrong, or the store or the address cannot be used.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = args.settings(globals)?;
    let identity =
        IdentityFolder::open(&Settings::needed(&settings.identity, "identity")?, Role::Server)?;
    let schema = settings::schema(&settings)?;
    let api = Settings::needed(&settings.api, "api")?;
    let kind = settings::engine(&settings)?;
    let windows = settings.part::<WindowSettings>()?;
    let store = globals.open_store(&settings)?;
    let devices = DeviceTimes::default();
    let clock = (ServiceClock::new(SKEW, devices.clone()), globals.health.note("clock"));
    let revocations = Revocations::open(&identity, deployment::of(&identity)?.authority())?;
    let revoked = revocations.revoked();
    revocations.watch().map_err(ServiceError::from)?;
    let mut engine = open(
        &identity,
        &schema,
        (kind, store.clone()),
        &windows,
        (clock, revocations, globals.health.note("controllers")),
    )?;
    if !schema.frames.is_events() && kind == EngineKind::InProcess {
        engine.manager.service.check_with(ingest_keys::server_check(&identity, &schema)?);
    }
    engine.manager.limit_queries(settings::queries(&settings)?);
    engine.manager.service.watch.register(&globals.metrics);
    let topics = engine.manager.service.topics().clone();
    engine.lost.register(&globals.metrics, &globals.health);
    let (handle, calls) = channel_for(MAX_JOBS);
    engine.outboxes.register(&globals.metrics);
    let intake = intake((store.clone(), topics.clone()), &schema, &settings)?;
    let api_state = Api {
        engine: EngineCaller::new(handle, &globals.metrics),
        intake: intake.with_signs(engine.lost.clone(), devices),
        outboxes: engine.outboxes.clone(),
        store,
        topics,
        rows: engine.rows.subscribe(),
        schema: serde_json::to_string(&schema).blame(Category::Input)?.into(),
        refused: engine.manager.service.refused(),
        tick: (!schema.frames.is_events()).then_some(schema.tick),
        lost: engine.lost.clone(),
        signs: engine.signs.clone(),
        windows_wait: windows.timing(kind).presence,
        health: globals.health.clone(),
        evidence: api::StatementSlots::new(),
    };
    let settings = Settings { listen: Some(api), tls: Some(identity.tls()), ..settings };
    serve(engine, calls, &settings, (api::router(api_state, revoked.clone()), revoked), globals)
}

/// Restores the state of the last run.
fn open(
    identity: &IdentityFolder,
    schema: &Schema,
    (kind, store): (EngineKind, Arc<dyn Store>),
    windows: &WindowSettings,
    ((mut clock, clock_note), revocations, asked_last): ((ServiceClock, Note), Revocations, Note),
) -> Result<Engine, Failure> {
    let keys = ServiceKeys::from_seed(&read_seed(&identity.path(SERVICE_SEED))?);
    let deployment = deployment::of(identity)?;
    let key = Arc::new(keys.into_signing());
    let layout = Layout::of(schema).blame(Category::Input)?;
    let topics = topics_of(store.as_ref())?;
    let shape = Shape::of(schema, &layout, SKEW);
    let (mut rng, mut life) = (entropy::rng()?, [0; 16]);
    rng.fill_bytes(&mut life);
    let opened = || -> Result<Engine, IntroductionError> {
        let (runtime, timing) = (RuntimeError::from, windows.timing(kind));
        let service = Service::open(kind, store.clone(), &topics, key.clone(), shape, timing)
            .map_err(runtime)?
            .with_proofs_apart();
        let mut manager = Manager::new(service, schema, deployment.clone(), key)?;
        let registry = Registry::load(&mut manager, &deployment)?;
        let last = manager.service.last_entry();
        manager.resume(clock.begin(last, clock::now(), clock::steady()))?;
        let (outboxes, rows) = (Outboxes::new(life), watch::Sender::new(0));
        let retention = retention((store, topics), windows, kind)?;
        let service = &manager.service;
        let silent = SilentHosts::load(service.store().as_ref(), service.topics());
        Ok(Engine {
            outages: Outages::new(windows.idle(kind), windows.recovery()),
            silent: silent.map_err(runtime)?,
            manager,
            registry,
            deployment,
            rng,
            clock,
            clock_note,
            asked_last: (asked_last, 0),
            revocations: (revocations, 0),
            lost: LostState::default(),
            signs: Signs::default(),
            retention,
            outboxes,
            rows,
        })
    };
    opened().blame(Category::Io)
}

/// The way into the log, for frames of this schema.
fn intake(
    (store, topics): (Arc<dyn Store>, Topics),
    schema: &Schema,
    settings: &Settings,
) -> Result<Intake, Failure> {
    let layout = Layout::of(schema).blame(Category::Input)?;
    let shape = Shape::of(schema, &layout, SKEW);
    let quota = settings::quota(settings, &shape)?;
    Ok(Intake::new(store, topics).for_shape(&shape).with_quota(quota))
}

fn retention(
    (store, topics): (Arc<dyn Store>, Topics),
    windows: &WindowSettings,
    kind: EngineKind,
) -> Result<Retention, RuntimeError> {
    let events = Retention::open(store, topics, windows.retention())?;
    let all = events.with_results(windows.results())?.with_receipts(windows.receipts())?;
    Ok(if kind == EngineKind::Job { all.with_job() } else { all })
}

fn topics_of(store: &dyn Store) -> Result<Topics, Failure> {
    let mut topics = Topics::new(PARTITIONS).blame(Category::Io)?;
    // An existing topic keeps its number of partitions.
    let partitions = store.partitions(&topics.events).blame(Category::Io)?;
    topics.partitions = partitions.unwrap_or(PARTITIONS);
    Ok(topics)
}

/// Serves while the engine works; when either ends, so does the other.
fn serve(
    engine: Engine,
    calls: Receiver<Call>,
    settings: &Settings,
    (router, revoked): (axum::Router, RevokedCertificates),
    globals: &Globals,
) -> Result<(), Failure> {
    let engine = EngineThread::new(engine, &globals.health);
    let (worker, broken) = Worker::start("engine", engine, calls)?;
    let started = |address| note!("serving at https://{address}");
    let routes = (observed(router, &globals.metrics), metrics_readers(Some(revoked)));
    let watched = (&globals.health, &globals.metrics);
    let drained = service::run(settings, routes, watched, broken, started)?;
    if let DrainOutcome::Cut(connections) = drained {
        tracing::warn!(connections, "connections were cut off");
    }
    worker.end()
}
