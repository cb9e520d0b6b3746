//! `alpheus server`: the service as a process. It holds ciphertext, public facts
//! and results, and no key to any data.
//!
//! - [`engine`]: policy manager and transformer, on a thread of their own,
//! - [`intake`]: frames of devices, into the log,
//! - [`outboxes`]: what waits for controllers,
//! - [`registry`]: controllers and streams, as they were introduced,
//! - [`settings`]: how long windows wait for whom,
//! - [`api`]: the requests.

pub mod api;
pub mod engine;
pub mod intake;
pub mod outboxes;
pub mod registry;
pub mod retention;
pub mod settings;

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
use settings::WindowSettings;
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
    idle: Option<u32>,
    /// A window waits so many seconds for controllers that do not answer, and as many for their
    /// tokens, then it goes on without them [default: 2; with the engine `job` 30]
    #[arg(long, value_name = "SECONDS")]
    controllers_wait: Option<u32>,
    /// With the engine `job`: a window waits so many seconds for its sums, then it fails
    /// [default: 86400]
    #[arg(long, value_name = "SECONDS")]
    sums_wait: Option<u32>,
    /// Ciphertext that was summed is kept for so many hours, then let go [default: 168]
    #[arg(long, value_name = "HOURS")]
    keep: Option<u32>,
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A setting is missing or wrong, the store or the address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let mut flags = args.kafka.flags();
    let number = |said: Option<u32>| said.map(|said| said.to_string());
    flags.extend([
        ("identity", path_flag(args.identity.as_ref())),
        ("schema", path_flag(args.schema.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("api", args.api.map(|api| api.to_string())),
        ("engine", args.engine.map(|engine| engine.to_string())),
        ("windows.idle-seconds", number(args.idle)),
        ("windows.controllers-wait-seconds", number(args.controllers_wait)),
        ("windows.sums-wait-seconds", number(args.sums_wait)),
        ("windows.keep-hours", number(args.keep)),
    ]);
    let settings = globals.settings(flags)?;
    let identity =
        IdentityFolder::open(&Settings::needed(&settings.identity, "identity")?, Role::Server)?;
    let schema = read_schema(&Settings::needed(&settings.schema, "schema")?)?;
    let api = Settings::needed(&settings.api, "api")?;
    let kind = settings.engine()?;
    let windows = settings.windows.clone().unwrap_or_default();
    let store = settings.open_store(&globals.health, &globals.metrics)?;
    let (engine, handle, inlet) = open(&identity, &schema, (kind, store.clone()), &windows)?;
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
    windows: &WindowSettings,
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
    let opened = || -> Result<Engine, NotIntroduced> {
        let runtime = RuntimeError::from;
        let timing = windows.timing(kind);
        let service = Service::open(kind, store.clone(), &topics, key.clone(), shape, timing)
            .map_err(runtime)?;
        let mut manager = Manager::new(service, schema, deployment.clone(), key)?;
        let registry = Registry::load(&mut manager, &deployment)?;
        manager.resume(wall_clock())?;
        let (outboxes, rows) = (Outboxes::new(life), watch::Sender::new(0));
        let mut retention = Retention::open(store, topics, windows.keep()).map_err(runtime)?;
        if kind == EngineKind::Job {
            retention = retention.beside_a_job();
        }
        let idle = windows.idle(kind);
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
