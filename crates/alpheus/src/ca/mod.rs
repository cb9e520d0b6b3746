//! `alpheus ca`: a PKI to try things with. A deployment in earnest has one
//! already, with its root key somewhere safer than a folder; put the same files
//! into the identity folders (see [`crate::network::identity`]).

mod files;

use crate::commands::Globals;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::identity::{self, DeploymentFile};
use crate::network::role::{Name, Role};
use crate::replay::inputs::read_text;
use crate::runtime::keys::ServiceKeys;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::certificate::{self as protocol, Certificate};
use alpheus_encrypted_stream::consumer::ConsumerSecrets;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
pub use files::{CONSUMER_SEED, OWNER_SEED, SERVICE_SEED, read_seed};
use files::{Place, folder_for};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus ca init pki
  alpheus ca issue pki --role server --name service --host service.example
  alpheus ca issue pki --role controller --name first
  alpheus ca issue pki --role consumer --name analyst
  alpheus ca certify pki first/request.txt --name first > first/certificate.txt";

/// Arguments of `alpheus ca`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make the authority: for TLS, and for controllers' protocol certificates
    #[command(after_help = EXAMPLES)]
    Init {
        /// A folder that is not there yet
        folder: PathBuf,
    },
    /// Make an identity folder: TLS certificate and key, authority, deployment
    #[command(after_help = EXAMPLES)]
    Issue(Issue),
    /// Certify a controller's request: prints the certificate
    #[command(after_help = EXAMPLES)]
    Certify {
        /// The authority's folder
        folder: PathBuf,
        /// The request, as `alpheus controller init` wrote it
        request: PathBuf,
        /// The name that the controller is to have: of its host, or `host/name`
        #[arg(long)]
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct Issue {
    /// The authority's folder
    folder: PathBuf,
    /// What the holder acts as
    #[arg(long, value_enum)]
    role: Role,
    /// What the holder is called
    #[arg(long)]
    name: String,
    /// Names and addresses at which it is reached; `localhost` and 127.0.0.1 besides
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// How long the certificate is good
    #[arg(long, value_name = "DAYS", default_value = "90", value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// The identity folder; by default the name, in the authority's folder
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If a folder cannot be read or written, or exists and would be written over.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        What::Init { folder } => init(folder),
        What::Issue(issue) => issue_one(issue),
        What::Certify { folder, request, name } => {
            let certificate = certify(folder, &read_request(request)?, name)?;
            println!("{}", identity::to_hex(&certificate));
            Ok(())
        }
    }
}

/// Makes an authority and identities of it, for processes that try things among
/// themselves.
///
/// # Errors
/// If a folder cannot be written, or is there already.
#[cfg(any(feature = "stats", feature = "table"))]
pub(crate) fn make(folder: &Path, identities: &[(Role, &str)]) -> Result<(), Failure> {
    init(folder)?;
    identities.iter().try_for_each(|(role, name)| {
        let (folder, name) = (folder.to_owned(), (*name).to_owned());
        let (host, output) = (Vec::new(), None);
        issue_one(&Issue { folder, role: *role, name, host, days: 1, output })
    })
}

fn init(folder: &Path) -> Result<(), Failure> {
    let place = Place::create(folder)?;
    let mut rng = entropy::rng()?;
    let authority = Secret::random(&mut rng);
    place.write_secret(files::AUTHORITY_SEED, &authority)?;
    let service = Secret::random(&mut rng);
    place.write_secret(files::SERVICE_SEED, &service)?;
    let key = SigningKey::from_seed(&authority);
    let certificate = ServiceKeys::from_seed(&service).request().issue(&key);
    let deployment = DeploymentFile::new(&key.verifying_key(), &certificate);
    let text = serde_json::to_string_pretty(&deployment).blame(Category::Io)?;
    place.write(identity::DEPLOYMENT, &text)?;
    files::make_tls_authority(&place)
}

fn issue_one(issue: &Issue) -> Result<(), Failure> {
    let name = Name::new(issue.role, issue.name.clone()).blame(Category::Usage)?;
    let authority = Place::existing(&issue.folder);
    let output = folder_for(issue.output.as_deref(), &issue.folder, &name);
    let place = Place::create(&output)?;
    files::issue_tls(&authority, &place, &name, &issue.host, issue.days)?;
    place.copy(&authority, identity::AUTHORITY)?;
    place.copy(&authority, identity::DEPLOYMENT)?;
    match issue.role {
        Role::Server => place.copy_secret(&authority, files::SERVICE_SEED),
        Role::Owner => place.write_secret(files::OWNER_SEED, &Secret::random(&mut entropy::rng()?)),
        Role::Consumer => certify_consumer(&authority, &place, &name),
        Role::Controller
        | Role::Producer
        | Role::Issuer
        | Role::Verifier
        | Role::Gateway
        | Role::Board
        | Role::Registrar
        | Role::Smoother
        | Role::Aggregator => Ok(()),
    }
}

/// Keys that results can be sealed to, and the authority's word for them.
fn certify_consumer(authority: &Place, place: &Place, name: &Name) -> Result<(), Failure> {
    let seed = Secret::random(&mut entropy::rng()?);
    let request = ConsumerSecrets::from_seed(&seed).request(name.name.clone());
    let key = SigningKey::from_seed(&read_seed(&authority.path(files::AUTHORITY_SEED))?);
    place.write(identity::CONSUMER_CERTIFICATE, &identity::to_hex(&request.issue(&key)))?;
    place.write_secret(files::CONSUMER_SEED, &seed)
}

/// Signs the request of the controller `name` with the authority in `folder`, and
/// says on standard error what it signs.
///
/// # Errors
/// If the request is for another name or role, or the authority's seed cannot be read.
pub fn certify(
    folder: &Path,
    request: &Certificate,
    name: &str,
) -> Result<Signed<Certificate>, Failure> {
    let (host, rest) = name.split_once('/').unwrap_or((name, "x"));
    for part in [host, rest] {
        Name::new(Role::Controller, part).blame(Category::Usage)?;
    }
    if request.role != protocol::Role::Controller {
        return Err("the request is not for a controller, and others are not certified here")
            .blame(Category::Check);
    }
    if request.name != name {
        // Whoever wrote the request chose this text.
        let asked: String = request.name.escape_debug().take(64).collect();
        let help = "certify it under that name only if the party is entitled to it";
        return Err(format!("the request is for the name `{asked}`, not for `{name}`"))
            .blame(Category::Check)
            .map_err(|failure| failure.with_help(help));
    }
    eprintln!(
        "certifying the controller `{name}`, key {}",
        HEXLOWER.encode(request.verifying.as_bytes())
    );
    let authority = SigningKey::from_seed(&read_seed(&folder.join(files::AUTHORITY_SEED))?);
    Ok(request.issue(&authority))
}

/// A request as text.
#[must_use]
pub fn request_text(request: &Certificate) -> String {
    HEXLOWER.encode(&postcard::to_allocvec(request).unwrap_or_default()) + "\n"
}

fn read_request(path: &Path) -> Result<Certificate, Failure> {
    let text = read_text(path)?;
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok();
    let request = bytes.and_then(|bytes| postcard::from_bytes(&bytes).ok());
    request.ok_or("not a request of `alpheus controller init`").blame_input(path)
}
