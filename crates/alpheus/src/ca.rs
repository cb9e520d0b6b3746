//! `alpheus ca`: a certificate authority for trials. It adds the streams' own files to the
//! identities that [`alpheus_node::pki`] issues: the deployment, seeds, protocol certificates.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{self as protocol, Party, Subject};
use alpheus_encrypted_stream::consumer::ConsumerSecrets;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, lock_folder, read_text, replace};
use alpheus_node::globals::Globals;
use alpheus_node::network::identity::{CERTIFICATE, DEPLOYMENT};
use alpheus_node::network::revocation_list::{tls_digest, tls_key_digest};
use alpheus_node::network::revocations::{self, REVOKED};
use alpheus_node::network::revoked_certificates::public_key;
use alpheus_node::network::role::{Name, Role};
use alpheus_node::note;
use alpheus_node::pki::{self, Folder, Lifetime};
use alpheus_stream_runtime::keys::ServiceKeys;
use alpheus_streams::ca::{authority_key, certify, read_request, renewed, sign_new};
use alpheus_streams::deployment::{
    self, AUTHORITY_SEED, CONSUMER_CERTIFICATE, CONSUMER_SEED, DEVICE_CERTIFICATE, DEVICE_SEED,
    DeploymentFile, INGEST_SEED, OWNER_CERTIFICATE, OWNER_SEED, SERVICE_SEED,
};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus ca init pki
  alpheus ca issue pki --role server --name service --host service.example

The --help of each command has its own examples.";

const INIT: &str = "\
Examples:
  alpheus ca init pki";

const ISSUE: &str = "\
Examples:
  alpheus ca issue pki --role server --name service --host service.example
  alpheus ca issue pki --role controller --name first
  alpheus ca issue pki --role consumer --name analyst";

const CERTIFY: &str = "\
Examples:
  alpheus ca certify pki first/request.txt --name first > first/certificate.txt
  alpheus ca certify pki alice/request.txt --name alice > alice/owner.txt
  alpheus ca certify pki alice/request.txt --name alice --renew alice/owner.txt > renewed.txt

`alpheus controller init` writes the request of a controller, and `alpheus owner request` that of
an owner.";

const RENEW: &str = "\
Examples:
  alpheus ca renew pki pki/service pki/first
  alpheus ca renew pki pki/service --hours 12";

const ROLLOVER: &str = "\
Examples:
  alpheus ca rollover pki pki/service pki/first pki/phone
  alpheus ca renew pki pki/service pki/first pki/phone
  alpheus ca rollover pki --finish pki/service pki/first pki/phone

Before you renew certificates, every process must know the new authority: copy `ca.pem` to identity
folders elsewhere. Before you finish, every process must have a renewed certificate.";

const REVOKE: &str = "\
Examples:
  alpheus ca revoke pki pki/phone/tls.pem pki/phone/device.txt";

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
    #[command(after_help = INIT)]
    Init {
        /// A folder that does not exist yet
        folder: PathBuf,
    },
    /// Create an identity folder: TLS certificate and key, authority, deployment
    #[command(after_help = ISSUE)]
    Issue(Issue),
    /// Certify the request of a controller or an owner and print the certificate
    #[command(after_help = CERTIFY)]
    Certify {
        /// The authority's folder
        folder: PathBuf,
        /// The request, as `alpheus controller init` or `alpheus owner request` wrote it
        request: PathBuf,
        /// The name: a controller's is its host's name, or `host/name`
        #[arg(long)]
        name: String,
        /// The party's previous certificate: it stays the same party, with other keys
        #[arg(long, value_name = "FILE")]
        renew: Option<PathBuf>,
    },
    /// Extend TLS certificates; keys, names and hosts stay the same
    ///
    /// Processes read the file again within seconds, without a restart.
    #[command(after_help = RENEW)]
    Renew {
        /// The authority's folder
        folder: PathBuf,
        /// Identity folders, or certificates (`tls.pem`), which are replaced
        #[arg(required = true, value_name = "FOLDER|FILE")]
        certificates: Vec<PathBuf>,
        #[command(flatten)]
        validity: Validity,
    },
    /// Replace the authority of TLS certificates with another one; with `--finish`, drop the old one
    ///
    /// In between both are accepted, so no process restarts and no connection is refused. Processes read their
    /// `ca.pem` again within seconds. The authority of protocol certificates stays.
    #[command(after_help = ROLLOVER)]
    Rollover {
        /// The authority's folder
        folder: PathBuf,
        /// Identity folders, whose `ca.pem` is replaced
        #[arg(required = true, value_name = "IDENTITY")]
        identities: Vec<PathBuf>,
        /// Every certificate has been renewed: stop accepting the old authority
        #[arg(long)]
        finish: bool,
    },
    /// Revoke certificates: write the signed list of all that are revoked to `revoked.txt`
    ///
    /// Copy the file to the identity folders of all processes. They read it again within seconds. Revoking a
    /// TLS certificate revokes its key, and so all certificates that the key ever had.
    #[command(after_help = REVOKE)]
    Revoke {
        /// The authority's folder
        folder: PathBuf,
        /// TLS certificates (`tls.pem`) and certificates of owners, devices, controllers,
        /// consumers and ingest keys
        #[arg(required = true, value_name = "FILE")]
        certificates: Vec<PathBuf>,
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
    #[command(flatten)]
    validity: Validity,
    /// The identity folder; by default a folder of that name in the authority's folder
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// For how long a certificate is valid.
#[derive(Debug, clap::Args)]
struct Validity {
    /// Validity from now on
    #[arg(long, value_name = "DAYS", default_value = "90", value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Validity from now on, in hours
    #[arg(long, value_name = "HOURS", conflicts_with = "days", value_parser = clap::value_parser!(u32).range(1..=87_600))]
    hours: Option<u32>,
}

impl Validity {
    fn lifetime(&self) -> Lifetime {
        self.hours.map_or(Lifetime::days(self.days), Lifetime::hours)
    }
}

/// Runs the command.
///
/// # Errors
/// If a folder cannot be read or written, or would be overwritten.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        Command::Init { folder } => init(folder),
        Command::Issue(issue) => issue_one(issue),
        Command::Certify { folder, request, name, renew } => {
            let request = read_request(request)?;
            let certificate = match renew {
                None => certify(folder, &request, name)?,
                Some(path) => renewed(folder, &request, name, path)?,
            };
            println!("{}", deployment::to_hex(&certificate));
            Ok(())
        }
        Command::Renew { folder, certificates, validity } => {
            renew(folder, certificates, validity.lifetime())
        }
        Command::Rollover { folder, identities, finish } => roll_over(folder, identities, *finish),
        Command::Revoke { folder, certificates } => revoke(folder, certificates),
    }
}

/// Replaces the authority of TLS certificates, or forgets the one that was replaced.
fn roll_over(folder: &Path, identities: &[PathBuf], finish: bool) -> Result<(), Failure> {
    let authority = Folder::existing(folder);
    let _alone = lock_folder(folder)?;
    // Before anything is written.
    for identity in identities {
        pki::read_certificate(&identity.join(CERTIFICATE))?;
    }
    if finish {
        pki::finish_rollover(&authority, identities)?;
    } else if !pki::begin_rollover(&authority)? {
        note!("the authority is already being replaced: its file of authorities is copied again");
    }
    for identity in identities {
        println!("{}", pki::trust(&authority, identity)?.display());
    }
    Ok(())
}

/// Extends TLS certificates that are not revoked.
fn renew(folder: &Path, certificates: &[PathBuf], lifetime: Lifetime) -> Result<(), Failure> {
    let authority = Folder::existing(folder);
    let key = authority_key(&authority)?.verifying_key();
    let _alone = lock_folder(folder)?;
    let revoked = revocations::list_of(&authority.path(REVOKED), &key)?;
    for path in certificates {
        let file = if path.is_dir() { path.join(CERTIFICATE) } else { path.clone() };
        let certificate = pki::read_certificate(&file)?;
        let names = tls_digests(&certificate, &file)?;
        if names.iter().any(|name| revoked.certificates.contains(name)) {
            let failure = Err("the certificate or its key is revoked, and is not extended");
            return failure.blame(Category::Check).map_err(|failure| {
                failure
                    .at(file.display().to_string())
                    .with_help("`alpheus ca issue` creates another one")
            });
        }
        pki::renew(&authority, &file, lifetime)?;
        println!("{}", file.display());
    }
    Ok(())
}

/// Adds certificates to the authority's list, which is replaced as a whole.
fn revoke(folder: &Path, certificates: &[PathBuf]) -> Result<(), Failure> {
    let authority = Folder::existing(folder);
    let (key, path) = (authority_key(&authority)?, authority.path(REVOKED));
    let _alone = lock_folder(folder)?;
    let known = revocations::list_of(&path, &key.verifying_key())?;
    let digests = certificates.iter().map(|path| certificate_digests(path));
    let list = known.with(digests.collect::<Result<Vec<_>, _>>()?.concat());
    let text = revocations::to_text(&Signed::new(&list, &key));
    replace(&path, text, Readers::Everybody).blame_io(&path)?;
    println!("{}", path.display());
    Ok(())
}

/// What names a certificate in the list.
fn certificate_digests(path: &Path) -> Result<Vec<Digest>, Failure> {
    let text = read_text(path)?;
    if let Some(certificate) = deployment::from_hex::<protocol::Certificate>(&text) {
        return Ok(vec![certificate.digest()]);
    }
    Ok(tls_digests(&pki::read_certificate(path)?, path)?.to_vec())
}

/// What names a TLS certificate in the list: itself, for builds that do not know keys, and its key.
fn tls_digests(certificate: &[u8], path: &Path) -> Result<[Digest; 2], Failure> {
    let key = public_key(certificate).ok_or("the certificate cannot be read").blame_input(path)?;
    Ok([tls_digest(certificate), tls_key_digest(&key)])
}

fn init(folder: &Path) -> Result<(), Failure> {
    let folder = Folder::create(folder)?;
    let mut rng = entropy::rng()?;
    let authority = Secret::random(&mut rng);
    folder.write_secret(AUTHORITY_SEED, &authority)?;
    let service = Secret::random(&mut rng);
    folder.write_secret(SERVICE_SEED, &service)?;
    let key = SigningKey::from_seed(&authority);
    let request = ServiceKeys::from_seed(&service).request();
    let certificate = request.certify(Subject::random(&mut rng), &key);
    let ingest = Secret::random(&mut rng);
    folder.write_secret(INGEST_SEED, &ingest)?;
    let ingest = ServiceKeys::from_seed(&service).ingest_request(&SealingKey::from_seed(&ingest));
    let ingest = ingest.certify(Subject::random(&mut rng), &key);
    let deployment = DeploymentFile::new(&key.verifying_key(), &certificate).with_ingest(&ingest);
    let text = serde_json::to_string_pretty(&deployment).blame(Category::Io)?;
    folder.write(DEPLOYMENT, &text)?;
    pki::make_authority(&folder)
}

fn issue_one(issue: &Issue) -> Result<(), Failure> {
    let name = Name::new(issue.role, issue.name.clone()).blame(Category::Usage)?;
    let authority = Folder::existing(&issue.folder);
    let default = || issue.folder.join(&name.name);
    let folder = Folder::create(&issue.output.clone().unwrap_or_else(default))?;
    pki::issue(&authority, &folder, &name, &issue.host, issue.validity.lifetime())?;
    folder.copy(&authority, DEPLOYMENT)?;
    match issue.role {
        Role::Server => {
            folder.copy_secret(&authority, INGEST_SEED)?;
            folder.copy_secret(&authority, SERVICE_SEED)
        }
        Role::Producer => {
            let device = (protocol::Role::Device, DEVICE_SEED, DEVICE_CERTIFICATE);
            certify_signer(&authority, &folder, &name, device)
        }
        Role::Owner => {
            let owner = (protocol::Role::Owner, OWNER_SEED, OWNER_CERTIFICATE);
            certify_signer(&authority, &folder, &name, owner)
        }
        Role::Consumer => certify_consumer(&authority, &folder, &name),
        Role::Controller
        | Role::Operator
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
    folder.write(CONSUMER_CERTIFICATE, &deployment::to_hex(&sign_new(authority, request)?))?;
    folder.write_secret(CONSUMER_SEED, &seed)
}

/// Creates a key that signs, and has the authority certify it: of an owner's choices, or of the
/// openings of a device's sessions.
fn certify_signer(
    authority: &Folder,
    folder: &Folder,
    name: &Name,
    (role, seed_file, certificate_file): (protocol::Role, &str, &str),
) -> Result<(), Failure> {
    let seed = Secret::random(&mut entropy::rng()?);
    let key = SigningKey::from_seed(&seed).verifying_key();
    let request = Party::signing(role, name.name.clone(), key);
    folder.write(certificate_file, &deployment::to_hex(&sign_new(authority, request)?))?;
    folder.write_secret(seed_file, &seed)
}
