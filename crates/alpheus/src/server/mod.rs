//! `alpheus server`: the service as a process. It holds ciphertext, public facts
//! and results, and no key to any data.
//!
//! - [`engine`]: policy manager and transformer, on a thread of their own,
//! - [`intake`]: frames of devices, into the log,
//! - [`outboxes`]: what waits for controllers,
//! - [`registry`]: controllers and streams, as they were introduced,
//! - [`api`]: the requests.

pub mod api;
pub mod engine;
pub mod intake;
pub mod outboxes;
pub mod registry;
pub mod retention;

use crate::ca::{SERVICE_SEED, read_seed};
use crate::commands::Globals;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::replay::inputs::read_schema;
use crate::runtime::embedded::{RuntimeError, wall_clock};
use crate::runtime::keys::ServiceKeys;
use crate::runtime::manager::Manager;
use crate::runtime::plane::EngineKind;
use crate::runtime::service::Service;
use crate::runtime::storage::Topics;
use crate::service::health::{Part, State};
use crate::service::http::Drained;
use crate::service::kafka::KafkaArgs;
use crate::service::shutdown::Trigger;
use crate::service::{self, ServiceError, Settings, path_flag};
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::Span;
use alpheus_transport::Store;
use api::Api;
use engine::{Engine, Inlet};
use intake::Intake;
use outboxes::Outboxes;
use rand_core::Rng;
use registry::{NotIntroduced, Registry};
use retention::Retention;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

const EXAMPLES: &str = "\
Examples:
  alpheus server --identity pki/service --schema examples/fitness/schema.yaml --state run/service --api 127.0.0.1:7400
  alpheus server --config server.toml --listen 127.0.0.1:9400
  alpheus server --config server.toml --engine job --kafka-brokers 127.0.0.1:9092 --kafka-prefix fitness.

The same settings stand in a file as `identity`, `schema`, `state`, `api`, or in
variables as ALPHEUS_IDENTITY and so on; flags win over variables, variables over
the file.";

/// Partitions of the events topic.
const PARTITIONS: u32 = 4;
/// Seconds after its end that a window waits for streams that are late.
const IDLE: u64 = 10;
/// The same for a job, which says how far it is: it is given time to come back.
const JOB_IDLE: u64 = 600;
/// Events from a clock that goes this much ahead are not taken.
const SKEW: Span = Span::seconds(60);

/// Arguments of `alpheus server`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder that says who it is
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// What its streams are streams of: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Where it keeps ciphertext, results and what must not be forgotten
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    #[command(flatten)]
    kafka: KafkaArgs,
    /// Where devices, controllers and consumers reach it
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// What adds up ciphertexts: this process, or the Flink job over the same Kafka topics
    #[arg(long, value_enum)]
    engine: Option<EngineKind>,
    /// A window that ended so many seconds ago closes without streams that are late [default: 10;
    /// with the engine `job`, while the job does not say that it is beyond the window, 600]
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
    /// With the engine `job`: a window waits so many seconds for its sums, then it fails
    #[arg(long, value_name = "SECONDS", default_value = "86400")]
    sums_wait: u64,
    /// Ciphertext that was summed is kept for so many hours, then let go
    #[arg(long, value_name = "HOURS", default_value = "168")]
    keep: u64,
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A setting is missing or wrong, the store or the address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let mut flags = args.kafka.flags();
    flags.extend([
        ("identity", path_flag(args.identity.as_ref())),
        ("schema", path_flag(args.schema.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("api", args.api.map(|api| api.to_string())),
        ("engine", args.engine.map(|engine| engine.to_string())),
    ]);
    let settings = globals.settings(flags)?;
    let identity =
        IdentityFolder::open(&Settings::needed(&settings.identity, "identity")?, Role::Server)?;
    let schema = read_schema(&Settings::needed(&settings.schema, "schema")?)?;
    let api = Settings::needed(&settings.api, "api")?;
    let kind = settings.engine()?;
    let store = settings.open_store(&globals.health, &globals.metrics)?;
    let (engine, handle, inlet) = open(&identity, &schema, (kind, store.clone()), args)?;
    engine.manager.service.watch.register(&globals.metrics);
    let topics = engine.manager.service.topics().clone();
    let router = api::router(Api {
        engine: handle,
        intake: Intake::new(store.clone(), topics.clone()),
        outboxes: engine.outboxes.clone(),
        store,
        topics,
        rows: engine.rows.subscribe(),
        schema: serde_json::to_string(&schema).blame(Category::Input)?.into(),
    });
    let settings = Settings { listen: Some(api), tls: Some(identity.tls()), ..settings };
    serve(engine, inlet, &settings, router, globals)
}

/// What the process was when it ended.
fn open(
    identity: &IdentityFolder,
    schema: &Schema,
    (kind, store): (EngineKind, Arc<dyn Store>),
    args: &Args,
) -> Result<(Engine, engine::Handle, Inlet), Failure> {
    let keys = ServiceKeys::from_seed(&read_seed(&identity.path(SERVICE_SEED))?);
    let deployment = identity.deployment()?;
    let key = Arc::new(keys.into_signing());
    let layout = Layout::of(schema).blame(Category::Input)?;
    let mut topics = Topics::new(PARTITIONS).blame(Category::Io)?;
    // Whoever made the topic before may have chosen.
    let partitions = store.partitions(&topics.events).blame(Category::Io)?;
    topics.partitions = partitions.unwrap_or(PARTITIONS);
    let shape = Shape::of(schema, &layout, SKEW);
    let (mut rng, mut life) = (entropy::rng()?, [0; 16]);
    rng.fill_bytes(&mut life);
    let keep = Span::seconds(args.keep.saturating_mul(3600));
    let opened = || -> Result<Engine, NotIntroduced> {
        let runtime = RuntimeError::from;
        let timing = Timing { sums: Span::seconds(args.sums_wait), ..Timing::default() };
        let service = Service::open(kind, store.clone(), &topics, key.clone(), shape, timing)
            .map_err(runtime)?;
        let mut manager = Manager::new(service, schema, deployment.clone(), key)?;
        let registry = Registry::load(&mut manager, &deployment)?;
        manager.resume(wall_clock())?;
        let (outboxes, rows) = (Outboxes::new(life), watch::Sender::new(0));
        let mut retention = Retention::open(store, topics, keep).map_err(runtime)?;
        if kind == EngineKind::Job {
            retention = retention.beside_a_job();
        }
        let idle = Span::seconds(args.idle.unwrap_or(match kind {
            EngineKind::InProcess => IDLE,
            EngineKind::Job => JOB_IDLE,
        }));
        Ok(Engine { manager, registry, deployment, rng, idle, retention, outboxes, rows })
    };
    let engine = opened().blame(Category::Io)?;
    let (handle, inlet) = engine::channel();
    Ok((engine, handle, inlet))
}

/// Serves while the engine works; when either ends, so does the other.
fn serve(
    engine: Engine,
    inlet: Inlet,
    settings: &Settings,
    router: axum::Router,
    globals: &Globals,
) -> Result<(), Failure> {
    let (trigger, part) = (Trigger::new(), globals.health.part("engine"));
    let broken = trigger.shutdown();
    let engine = std::thread::Builder::new().name("engine".into()).spawn(move || {
        let worked = work(engine, &inlet, &part);
        drop(trigger);
        worked
    });
    let engine = engine.map_err(ServiceError::from)?;
    let started = |address| eprintln!("serving at https://{address}");
    let drained =
        service::run(settings, router, &globals.health, &globals.metrics, broken, started)?;
    if let Drained::Cut(connections) = drained {
        tracing::warn!(connections, "connections were cut off");
    }
    match engine.join() {
        Ok(worked) => worked.blame(Category::Io),
        Err(_) => {
            Err("the engine ended in a panic, which is a mistake of ours").blame(Category::Io)
        }
    }
}

fn work(engine: Engine, inlet: &Inlet, part: &Part) -> Result<(), RuntimeError> {
    part.set(State::Ready);
    let worked = engine.run(inlet);
    if let Err(error) = &worked {
        tracing::error!(%error, "the engine stops");
        part.set(State::Failed);
    }
    worked
}
