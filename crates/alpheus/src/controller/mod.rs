//! `alpheus controller`: a host of privacy controllers as a process. It holds
//! its owners' keys, answers the service by their policies, and shows owners who
//! learnt what.
//!
//! - [`keystore`]: seeds and master secrets, locked,
//! - [`slots`]: what makes a master secret's end possible,
//! - [`guard`]: keys, ledgers and the controllers made of them,
//! - [`notices`]: what the service must know of streams,
//! - [`outgoing`]: what they have said, until the service has it,
//! - [`post`]: messages to and from the service,
//! - [`api`]: what owners ask.

pub mod api;
pub mod guard;
pub mod keystore;
pub mod notices;
pub mod outgoing;
pub mod post;
pub mod slots;

use crate::ca;
use crate::commands::Globals;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::client::Client;
use crate::network::identity::{IdentityFolder, from_hex};
use crate::network::role::Role;
use crate::replay::inputs::{read_schema, read_text};
use crate::runtime::embedded::wall_clock;
use crate::runtime::fence::FenceFile;
use crate::service::kafka::KafkaArgs;
use crate::service::shutdown::Trigger;
use crate::service::{self, ServiceError, Settings, path_flag};
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_policy::layout::Layout;
use alpheus_transport::Store;
use guard::{Guard, GuardError, Parts, Spaces};
use keystore::{KeyStore, KeyStoreError, read_key_file};
use slots::SlotFile;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const EXAMPLES: &str = "\\
Examples:
  (umask 077 && head -c 32 /dev/urandom | base64 > first.key)
  alpheus controller init --identity pki/first --state run/first --key-file first.key --ca pki
  alpheus controller run --identity pki/first --state run/first --key-file first.key \\\\
      --schema examples/fitness/schema.yaml --server https://localhost:7400 --api 127.0.0.1:7401

Without --ca, `init` writes request.txt into the state folder; have it certified with
`alpheus ca certify`, and hand the answer in with `init --certificate`.";

/// Arguments of `alpheus controller`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make the key store and an identity in it, once
    #[command(after_help = EXAMPLES)]
    Init(Init),
    /// Guard the streams until told to stop
    #[command(after_help = EXAMPLES)]
    Run(Run),
}

/// What both need.
#[derive(Debug, clap::Args)]
struct Place {
    /// The folder that says who it is
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// Where keys, locked, and ledgers are kept
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    #[command(flatten)]
    kafka: KafkaArgs,
    /// The file that opens the key store; keep it elsewhere than the state
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The fence: how far the ledgers had come. Keep it out of backups; by
    /// default in the state folder
    #[arg(long, value_name = "FILE")]
    fence: Option<PathBuf>,
    /// What makes an erasure possible: without its slot here a key is gone. Back it up
    /// apart, and anew after each erasure; by default in the state folder
    #[arg(long, value_name = "FILE")]
    slots: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Init {
    #[command(flatten)]
    place: Place,
    /// Certify at once, with the test PKI in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "certificate")]
    ca: Option<PathBuf>,
    /// Hand in the certificate that the authority gave for the request
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Run {
    #[command(flatten)]
    place: Place,
    /// What its owners' streams are streams of: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Where the service is reached
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Where owners reach it
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
}

impl Place {
    fn settings(&self, globals: &Globals, more: service::Flags) -> Result<Settings, Failure> {
        let mut flags = vec![
            ("identity", path_flag(self.identity.as_ref())),
            ("state", path_flag(self.state.as_ref())),
            ("key-file", path_flag(self.key_file.as_ref())),
        ];
        flags.extend(self.kafka.flags());
        flags.extend(more);
        globals.settings(flags)
    }

    fn fence(&self, settings: &Settings) -> Result<FenceFile, Failure> {
        FenceFile::load(&beside(settings, self.fence.as_ref(), "fence")?).blame(Category::Input)
    }

    fn slots(&self, settings: &Settings) -> Result<SlotFile, Failure> {
        let path = beside(settings, self.slots.as_ref(), "slots")?;
        Ok(SlotFile::open(&path).map_err(KeyStoreError::from)?)
    }
}

/// The file that a flag names, or the one of the state folder.
fn beside(settings: &Settings, given: Option<&PathBuf>, name: &str) -> Result<PathBuf, Failure> {
    match given {
        Some(path) => Ok(path.clone()),
        None => Ok(Settings::needed(&settings.state, "state")?.join(name)),
    }
}

/// What every start of a host begins with.
struct Opened {
    identity: IdentityFolder,
    store: Arc<dyn Store>,
    spaces: Spaces,
    key_file: PathBuf,
}

impl Opened {
    fn new(settings: &Settings, globals: &Globals) -> Result<Opened, Failure> {
        let folder = Settings::needed(&settings.identity, "identity")?;
        let identity = IdentityFolder::open(&folder, Role::Controller)?;
        let key_file = Settings::needed(&settings.key_file, "key-file")?;
        let store = settings.open_store(&globals.health, &globals.metrics)?;
        let spaces = Spaces::new().blame(Category::Io)?;
        Ok(Opened { identity, store, spaces, key_file })
    }

    fn keys(&self, slots: SlotFile) -> Result<KeyStore, Failure> {
        let bytes = read_key_file(&self.key_file)?;
        Ok(KeyStore::open(self.store.clone(), self.spaces.keys.clone(), slots, &bytes)?)
    }
}

/// Runs the command.
///
/// # Errors
/// A setting is missing or wrong; a key, ledger or certificate is not as it was
/// written; the address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        What::Init(init) => initialise(init, globals),
        What::Run(run) => serve(run, globals),
    }
}

/// Key store and identity are made if they are not there; a certificate is
/// taken if one is given.
fn initialise(init: &Init, globals: &Globals) -> Result<(), Failure> {
    let settings = init.place.settings(globals, Vec::new())?;
    let opened = Opened::new(&settings, globals)?;
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
        (None, Some(path)) => Some(read_certificate(path)?),
        (None, None) => None,
    };
    let Some(certificate) = certificate else {
        return write_request(&settings, &request);
    };
    let deployment = opened.identity.deployment()?;
    let identity = secrets.certified(&certificate, &deployment).blame(Category::Input)?;
    let mut fence = init.place.fence(&settings)?;
    let (place, own) = ((&opened.store, &opened.spaces), (name.as_str(), &certificate));
    guard::found(place, &mut fence, identity, own, (&deployment, wall_clock())).map_err(failed)
}

fn read_certificate(path: &Path) -> Result<Signed<Certificate>, Failure> {
    from_hex(&read_text(path)?).ok_or("not a certificate of `alpheus ca certify`").blame_input(path)
}

fn write_request(settings: &Settings, request: &Certificate) -> Result<(), Failure> {
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
    ];
    let settings = run.place.settings(globals, flags)?;
    let opened = Opened::new(&settings, globals)?;
    let schema = read_schema(&Settings::needed(&settings.schema, "schema")?)?;
    let layout = Layout::of(&schema).blame(Category::Input)?;
    let server = Client::new(&opened.identity, &Settings::needed(&settings.server, "server")?)?;
    let parts = Parts {
        keys: opened.keys(run.place.slots(&settings)?)?,
        deployment: opened.identity.deployment()?,
        fence: run.place.fence(&settings)?,
        store: opened.store,
        spaces: opened.spaces,
        schema: schema.clone(),
        rng: entropy::rng()?,
    };
    let guard = Guard::open(parts, layout, wall_clock()).map_err(failed)?;
    let guard = Arc::new(Mutex::new(guard));
    let trigger = Trigger::new();
    let broken = trigger.shutdown();
    let carrier = post::start(server, guard.clone(), trigger, globals.health.part("service"));
    let carrier = carrier.map_err(ServiceError::from)?;
    let router = api::router(guard, schema);
    let address = settings.api;
    let settings = Settings { listen: address, tls: Some(opened.identity.tls()), ..settings };
    let started = |address| eprintln!("serving at https://{address}");
    service::run(&settings, router, &globals.health, &globals.metrics, broken, started)?;
    carrier.end().map_err(failed)
}

fn failed(error: GuardError) -> Failure {
    let category = match error {
        GuardError::Store(_) | GuardError::Host(_) => Category::Io,
        _ => Category::Input,
    };
    Failure::new(category, error)
}
