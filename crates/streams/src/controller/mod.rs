//! `alpheus controller`: a host of privacy controllers as a process. It holds its
//! owners' keys, answers the service according to their policies, and shows owners who
//! learned what.
//!
//! - [`keystore`]: seeds and master secrets, locked,
//! - [`guard`]: keys, ledgers and the controllers built from them,
//! - [`notices`]: notices about streams, for the service,
//! - [`outbox`]: messages that the service has not confirmed,
//! - [`service_link`]: messages to and from the service,
//! - [`api`]: requests of owners.

pub mod api;
pub mod guard;
pub mod keystore;
pub mod notices;
pub mod outbox;
pub mod service_link;

use crate::ca;
use crate::deployment;
use crate::links;
use crate::settings::{self, LogSettings};
use alpheus_encrypted_stream::certificate::Party;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::fence;
use alpheus_node::files::read_key_file;
use alpheus_node::globals::Globals;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::request_metrics::{metrics_readers, observed};
use alpheus_node::network::revocations::Revocations;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::service::{self, ServiceError};
use alpheus_node::settings::Flags;
use alpheus_node::settings::kafka::KafkaArgs;
use alpheus_node::settings::{Settings, path_flag};
use alpheus_node::slots::SlotFile;
use alpheus_policy::layout::Layout;
use alpheus_stream_runtime::fences::ControllerFences;
use alpheus_transport::Store;
use guard::{Guard, GuardError, LogKeeper, Parts, Spaces};
use keystore::{KeyStore, KeyStoreError};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const EXAMPLES: &str = "\
Examples:
  (umask 077 && head -c 32 /dev/urandom | base64 > first.key)
  alpheus controller init --identity pki/first --state run/first --key-file first.key --ca pki
  alpheus controller run --identity pki/first --state run/first --key-file first.key \\
      --schema examples/fitness/schema.yaml --server https://localhost:7400 --api 127.0.0.1:7401";

const INIT: &str = "\
Examples:
  (umask 077 && head -c 32 /dev/urandom | base64 > first.key)
  alpheus controller init --identity pki/first --state run/first --key-file first.key --ca pki

Without --ca, `init` writes request.txt to the state folder. Have it certified with
`alpheus ca certify`, and pass the certificate to `init --certificate`.";

const RUN: &str = "\
Examples:
  alpheus controller run --identity pki/first --state run/first --key-file first.key \\
      --schema examples/fitness/schema.yaml --server https://localhost:7400 --api 127.0.0.1:7401";

/// Arguments of `alpheus controller`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create the key store and an identity in it, once
    #[command(after_help = INIT)]
    Init(Init),
    /// Guard the streams until asked to stop
    #[command(after_help = RUN)]
    Run(Run),
}

/// Arguments of both commands.
#[derive(Debug, clap::Args)]
struct HostArgs {
    /// The host's identity folder
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// Folder for locked keys and ledgers
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    #[command(flatten)]
    kafka: KafkaArgs,
    /// The file that opens the key store; keep it apart from the state
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The fence, which records how far the ledgers have come. Keep it out of backups. By default it is next
    /// to the state folder, with the same name and the ending `.fence`
    #[arg(long, value_name = "FILE")]
    fence: Option<PathBuf>,
    /// The slot file, which makes erasure possible: a key without its slot is gone. Back it
    /// up separately, and again after each erasure. By default in the state folder
    #[arg(long, value_name = "FILE")]
    slots: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Init {
    #[command(flatten)]
    place: HostArgs,
    /// Certify at once, with the test PKI in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "certificate")]
    ca: Option<PathBuf>,
    /// The certificate that the authority issued for the request
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Run {
    #[command(flatten)]
    place: HostArgs,
    /// The schema of the streams: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The service's URL
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Address to serve owners at
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// How long lines of the owners' log are kept [default: 400]
    #[arg(long, value_name = "DAYS")]
    log_retention: Option<u32>,
    /// How many megabytes of the owners' log are kept: the oldest lines are deleted first
    /// [default: 1024]
    #[arg(long, value_name = "MEGABYTES")]
    log_size: Option<u32>,
}

impl HostArgs {
    fn settings(&self, globals: &Globals, more: Flags) -> Result<Settings, Failure> {
        let mut flags = vec![
            ("identity", path_flag(self.identity.as_ref())),
            ("state", path_flag(self.state.as_ref())),
            ("key-file", path_flag(self.key_file.as_ref())),
        ];
        flags.extend(self.kafka.flags());
        flags.extend(more);
        globals.settings(flags)
    }

    fn fence(&self, settings: &Settings) -> Result<ControllerFences, Failure> {
        let path = match &self.fence {
            Some(path) => path.clone(),
            None => fence::move_out_of(&Settings::needed(&settings.state, "state")?),
        };
        ControllerFences::hold(&path).blame(Category::Input)
    }

    fn slots(&self, settings: &Settings) -> Result<SlotFile, Failure> {
        let path = match &self.slots {
            Some(path) => path.clone(),
            None => Settings::needed(&settings.state, "state")?.join("slots"),
        };
        Ok(SlotFile::open(&path).map_err(KeyStoreError::from)?)
    }
}

/// What every start of a host opens first.
struct HostState {
    identity: IdentityFolder,
    store: Arc<dyn Store>,
    spaces: Spaces,
    key_file: PathBuf,
}

impl HostState {
    fn new(settings: &Settings, globals: &Globals) -> Result<HostState, Failure> {
        let folder = Settings::needed(&settings.identity, "identity")?;
        let identity = IdentityFolder::open(&folder, Role::Controller)?;
        let key_file = Settings::needed(&settings.key_file, "key-file")?;
        let store = globals.open_store(settings)?;
        let spaces = Spaces::new().blame(Category::Io)?;
        Ok(HostState { identity, store, spaces, key_file })
    }

    fn keys(&self, slots: SlotFile) -> Result<KeyStore, Failure> {
        let bytes = read_key_file(&self.key_file)?;
        Ok(KeyStore::open(self.store.clone(), self.spaces.keys.clone(), slots, &bytes)?)
    }
}

/// Runs the command.
///
/// # Errors
/// A setting is missing or wrong; a key, ledger or certificate is corrupted; the address
/// cannot be used.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        Command::Init(init) => initialise(init, globals),
        Command::Run(run) => serve(run, globals),
    }
}

/// Creates key store and identity if they do not exist, and takes a certificate if one
/// is given.
fn initialise(init: &Init, globals: &Globals) -> Result<(), Failure> {
    let settings = init.place.settings(globals, Vec::new())?;
    let opened = HostState::new(&settings, globals)?;
    let name = opened.identity.name().name.clone();
    let mut rng = entropy::rng()?;
    let bytes = read_key_file(&opened.key_file)?;
    let (store, space) = (opened.store.clone(), opened.spaces.keys.clone());
    let slots = || init.place.slots(&settings);
    let keys = match KeyStore::create(store, space, slots()?, &bytes, &mut rng) {
        Ok(keys) => keys,
        Err(KeyStoreError::Exists) => opened.keys(slots()?)?,
        Err(error) => return Err(error.into()),
    };
    match keys.new_identity(&name, &mut rng) {
        Ok(_) | Err(KeyStoreError::Exists) => {}
        Err(error) => return Err(error.into()),
    }
    let mut identities = keys.identities()?.into_iter();
    let secrets = identities.find(|(known, _)| *known == name).map(|(_, secrets)| secrets);
    let secrets = secrets.ok_or(KeyStoreError::Damaged)?;
    let request = secrets.request(name.as_str());
    let certificate = match (&init.ca, &init.certificate) {
        (Some(folder), _) => Some(ca::certify(folder, &request, &name)?),
        (None, Some(path)) => Some(deployment::read_certificate(path)?),
        (None, None) => None,
    };
    let Some(certificate) = certificate else {
        return write_request(&settings, &request);
    };
    let deployment = deployment::of(&opened.identity)?;
    let identity = secrets.certified(&certificate, &deployment).blame(Category::Input)?;
    let mut fence = init.place.fence(&settings)?;
    let (place, own) = ((&opened.store, &opened.spaces), (name.as_str(), &certificate));
    guard::begin_identity(place, &mut fence, identity, own, (&deployment, clock::now()))
        .map_err(failed)
}

fn write_request(settings: &Settings, request: &Party) -> Result<(), Failure> {
    let path = Settings::needed(&settings.state, "state")?.join("request.txt");
    std::fs::write(&path, ca::request_text(request)).blame_io(&path)?;
    println!("{}", path.display());
    Ok(())
}

fn serve(run: &Run, globals: &Globals) -> Result<(), Failure> {
    let flags = vec![
        ("schema", path_flag(run.schema.as_ref())),
        ("server", run.server.clone()),
        ("api", run.api.map(|api| api.to_string())),
        ("owners-log.retention-days", run.log_retention.map(|days| days.to_string())),
        ("owners-log.max-megabytes", run.log_size.map(|size| size.to_string())),
    ];
    let settings = run.place.settings(globals, flags)?;
    let opened = HostState::new(&settings, globals)?;
    let schema = settings::schema(&settings)?;
    let layout = Layout::of(&schema).blame(Category::Input)?;
    let deployment = deployment::of(&opened.identity)?;
    let revocations = Revocations::open(&opened.identity, deployment.authority())?;
    let identity = opened.identity.clone().without(revocations.revoked());
    let server = links::service(&Settings::needed(&settings.server, "server")?, &identity)?;
    revocations.watch().map_err(ServiceError::from)?;
    let parts = Parts {
        keys: opened.keys(run.place.slots(&settings)?)?,
        revoked: revocations.revoked(),
        deployment,
        fence: run.place.fence(&settings)?,
        store: opened.store,
        spaces: opened.spaces,
        schema: schema.clone(),
        rng: entropy::rng()?,
    };
    let mut keeper = LogKeeper::new(settings.part::<LogSettings>()?.limits());
    keeper.register(&globals.metrics, &globals.health);
    let guard = Guard::open(parts, layout, clock::now()).map_err(failed)?.keeping_logs(keeper);
    let guard = Arc::new(Mutex::new(guard));
    let trigger = Trigger::new();
    let broken = trigger.shutdown();
    let carrier =
        service_link::start(server, guard.clone(), trigger, globals.health.part("service"));
    let carrier = carrier.map_err(ServiceError::from)?;
    let router = api::router(guard, schema, revocations.revoked());
    let readers = metrics_readers(Some(revocations.revoked()));
    let address = settings.api;
    let settings = Settings { listen: address, tls: Some(identity.tls()), ..settings };
    let started = |address| note!("serving at https://{address}");
    let routes = (observed(router, &globals.metrics), readers);
    service::run(&settings, routes, (&globals.health, &globals.metrics), broken, started)?;
    carrier.end().map_err(failed)
}

fn failed(error: GuardError) -> Failure {
    let category = match error {
        GuardError::Store(_) | GuardError::Host(_) => Category::Io,
        _ => Category::Input,
    };
    Failure::new(category, error)
}
