//! `alpheus ca`: a certificate authority for trials. It adds the streams' own files to the
//! identities that [`alpheus_node::pki`] issues: the deployment, seeds, protocol certificates.

use crate::deployment::{
    self, AUTHORITY_SEED, CONSUMER_CERTIFICATE, CONSUMER_SEED, DEPLOYMENT, DeploymentFile,
    OWNER_SEED, SERVICE_SEED,
};
use crate::runtime::keys::ServiceKeys;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::certificate::{self as protocol, Certificate};
use alpheus_encrypted_stream::consumer::ConsumerSecrets;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_node::globals::Globals;
use alpheus_node::network::role::{Name, Role};
use alpheus_node::pki::{self, Folder, read_seed};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
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
    what: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create the authority for TLS certificates and controllers' protocol certificates
    #[command(after_help = EXAMPLES)]
    Init {
        /// A folder that does not exist yet
        folder: PathBuf,
    },
    /// Create an identity folder: TLS certificate and key, authority, deployment
    #[command(after_help = EXAMPLES)]
    Issue(Issue),
    /// Certify a controller's request and print the certificate
    #[command(after_help = EXAMPLES)]
    Certify {
        /// The authority's folder
        folder: PathBuf,
        /// The request, as `alpheus controller init` wrote it
        request: PathBuf,
        /// The controller's name: its host's name, or `host/name`
        #[arg(long)]
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct Issue {
    /// The authority's folder
    folder: PathBuf,
    /// The role of the identity
    #[arg(long, value_enum)]
    role: Role,
    /// The name of the identity
    #[arg(long)]
    name: String,
    /// Host names and addresses of the process, in addition to `localhost` and 127.0.0.1
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Validity of the certificate
    #[arg(long, value_name = "DAYS", default_value = "90", value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// The identity folder; by default a folder of that name in the authority's folder
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If a folder cannot be read or written, or would be overwritten.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        Command::Init { folder } => init(folder),
        Command::Issue(issue) => issue_one(issue),
        Command::Certify { folder, request, name } => {
            let certificate = certify(folder, &read_request(request)?, name)?;
            println!("{}", deployment::to_hex(&certificate));
            Ok(())
        }
    }
}

fn init(folder: &Path) -> Result<(), Failure> {
    let folder = Folder::create(folder)?;
    let mut rng = entropy::rng()?;
    let authority = Secret::random(&mut rng);
    folder.write_secret(AUTHORITY_SEED, &authority)?;
    let service = Secret::random(&mut rng);
    folder.write_secret(SERVICE_SEED, &service)?;
    let key = SigningKey::from_seed(&authority);
    let certificate = ServiceKeys::from_seed(&service).request().issue(&key);
    let deployment = DeploymentFile::new(&key.verifying_key(), &certificate);
    let text = serde_json::to_string_pretty(&deployment).blame(Category::Io)?;
    folder.write(DEPLOYMENT, &text)?;
    pki::make_authority(&folder)
}

fn issue_one(issue: &Issue) -> Result<(), Failure> {
    let name = Name::new(issue.role, issue.name.clone()).blame(Category::Usage)?;
    let authority = Folder::existing(&issue.folder);
    let default = || issue.folder.join(&name.name);
    let folder = Folder::create(&issue.output.clone().unwrap_or_else(default))?;
    pki::issue(&authority, &folder, &name, &issue.host, issue.days)?;
    folder.copy(&authority, DEPLOYMENT)?;
    match issue.role {
        Role::Server => folder.copy_secret(&authority, SERVICE_SEED),
        Role::Owner => folder.write_secret(OWNER_SEED, &Secret::random(&mut entropy::rng()?)),
        Role::Consumer => certify_consumer(&authority, &folder, &name),
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

/// Creates keys that results can be sealed to, and has the authority certify them.
fn certify_consumer(authority: &Folder, folder: &Folder, name: &Name) -> Result<(), Failure> {
    let seed = Secret::random(&mut entropy::rng()?);
    let request = ConsumerSecrets::from_seed(&seed).request(name.name.clone());
    let key = SigningKey::from_seed(&read_seed(&authority.path(AUTHORITY_SEED))?);
    folder.write(CONSUMER_CERTIFICATE, &deployment::to_hex(&request.issue(&key)))?;
    folder.write_secret(CONSUMER_SEED, &seed)
}

/// Signs the request of the controller `name` with the authority in `folder`, and
/// prints on standard error what it signs.
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
        return Err("the request is not for a controller; only controllers are certified here")
            .blame(Category::Check);
    }
    if request.name != name {
        // The author of the request chose this text.
        let asked: String = request.name.escape_debug().take(64).collect();
        let help = "certify it under that name only if the requester is entitled to it";
        return Err(format!("the request is for the name `{asked}`, not for `{name}`"))
            .blame(Category::Check)
            .map_err(|failure| failure.with_help(help));
    }
    eprintln!(
        "certifying the controller `{name}`, key {}",
        HEXLOWER.encode(request.verifying.as_bytes())
    );
    let authority = SigningKey::from_seed(&read_seed(&folder.join(AUTHORITY_SEED))?);
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
