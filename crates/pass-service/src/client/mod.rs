//! `alpheus pass client`: holds a pass, and lets any browser, curl or player use it.
//!
//! - [`passfile`]: the encrypted pass file, locked by one process,
//! - [`fetch`], [`id_token`], [`stock`]: get passes from the issuer, on demand and ahead of time,
//! - [`passes`]: presentations of passes,
//! - [`session`], [`retry`]: logins, re-ups, retries,
//! - [`proxy`], [`browser`]: the local proxy, and access to it,
//! - [`code`]: login codes.

pub mod browser;
pub(crate) mod code;
pub mod fetch;
pub mod id_token;
pub mod passes;
pub mod passfile;
pub mod proxy;
pub mod retry;
pub mod session;
pub mod stock;

use crate::card::Card;
use alpheus_access_pass::file::Evidence;
use alpheus_anonymous_credential::holder::Timing;
use alpheus_crypto::secret::Secret;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_key_file;
use alpheus_node::files::{Readers, write_new};
use alpheus_node::globals::Globals;
use alpheus_node::listeners::block_on;
use alpheus_node::note;
use alpheus_node::service::ServiceError;
use alpheus_node::service::http::{Bounds, Server};
use alpheus_node::service::shutdown::{Signals, Trigger};
use browser::Door;
use data_encoding::BASE64URL_NOPAD;
use id_token::IdToken;
use passfile::PassFile;
use proxy::Local;
use session::{Driver, SessionOptions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const EXAMPLES: &str = "\
Examples:
  alpheus pass client join --card card.json --account ada --secret-file ada.secret \\
      --pass ada.pass --key-file ada.key
  alpheus pass client fetch --pass ada.pass --key-file ada.key
  alpheus pass client run --pass ada.pass --key-file ada.key --local 127.0.0.1:7600

The --help of each command has its own examples.";

const JOIN: &str = "\
Examples:
  (umask 077; head -c 32 /dev/urandom | base64 > ada.key)
  alpheus pass client join --card card.json --account ada --secret-file ada.secret \\
      --pass ada.pass --key-file ada.key
  alpheus pass client join --card card.json \\
      --id-token-command 'oidc-token --id-token example' --pass ada.pass --key-file ada.key";

const FETCH: &str = "\
Examples:
  alpheus pass client fetch --pass ada.pass --key-file ada.key";

const RUN: &str = "\
Examples:
  alpheus pass client run --pass ada.pass --key-file ada.key --local 127.0.0.1:7600";

/// Arguments of `alpheus pass client`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create a pass file for an account
    #[command(after_help = JOIN)]
    Join(Join),
    /// Get the passes of this period and the next from the issuer; do not run it at login time
    #[command(after_help = FETCH)]
    Fetch(PassFileArgs),
    /// Log in, renew the session, and share it with programs on this machine
    #[command(after_help = RUN)]
    Run(Run),
    /// Print a login code for a gate
    Code(code::Args),
}

/// A pass file and its key file.
#[derive(Debug, clap::Args)]
pub(super) struct PassFileArgs {
    /// The pass file
    #[arg(long, value_name = "FILE")]
    pass: PathBuf,
    /// The key file that decrypts it; keep it elsewhere
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Join {
    #[command(flatten)]
    file: PassFileArgs,
    /// The deployment's public card; compare its fingerprint with other subscribers
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
    /// The account at the issuer
    #[arg(long, requires = "secret_file", required_unless_present = "id_token_command")]
    account: Option<String>,
    /// The file of the account's secret
    #[arg(long, value_name = "FILE", requires = "account")]
    secret_file: Option<PathBuf>,
    /// For an issuer with a provider of accounts: a command that prints an ID token. It is stored in
    /// the pass file and run for each pass
    #[arg(long, value_name = "COMMAND", conflicts_with = "account")]
    id_token_command: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Run {
    #[command(flatten)]
    file: PassFileArgs,
    /// The address for programs on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7600")]
    local: SocketAddr,
    /// A file to create, for the local secret
    #[arg(long, value_name = "FILE")]
    local_secret: Option<PathBuf>,
    /// The gateway's address, if it differs from the card's
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// Start a new, unlinkable session after this many epochs; keep the default, so that all
    /// clients change sessions together
    #[arg(long, value_name = "NUMBER", default_value = "240", value_parser = clap::value_parser!(u64).range(1..))]
    epochs: u64,
    /// Do not fetch the next period's pass at a random time in this one
    #[arg(long)]
    no_fetch: bool,
}

/// A local proxy that other machines can reach.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} is reachable from other machines, which could then use the pass; listen on a loopback address"
)]
pub(crate) struct LocalAddressError(SocketAddr);

/// Runs the command.
///
/// # Errors
/// The pass file cannot be used; the issuer or the gateway refuses.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.command {
        Command::Join(join) => join_account(join),
        Command::Fetch(file) => fetch_passes(file),
        Command::Run(run) => serve(run, globals),
        Command::Code(args) => code::run(args, globals),
    }
}

fn join_account(join: &Join) -> Result<(), Failure> {
    let (card, checked) = Card::load(&join.card)?;
    let (account, evidence) = evidence(join)?;
    let PassFileArgs { pass, key_file } = &join.file;
    PassFile::create(pass, key_file, &card, &account, evidence)?;
    println!("{}", checked.fingerprint);
    Ok(())
}

/// The account, and what it shows to the issuer.
fn evidence(join: &Join) -> Result<(String, Evidence), Failure> {
    if let Some(command) = &join.id_token_command {
        let token = IdToken::print(command).blame(Category::Refused)?;
        return Ok((token.subject, Evidence::IdTokenCommand(command.clone())));
    }
    let path = join.secret_file.clone().unwrap_or_default();
    let secret = read_key_file(&path)?;
    let secret = std::str::from_utf8(&secret).blame_input(&path)?;
    Ok((join.account.clone().unwrap_or_default(), Evidence::Secret(secret.to_owned())))
}

fn fetch_passes(args: &PassFileArgs) -> Result<(), Failure> {
    let mut file = PassFile::open(&args.pass, &args.key_file)?;
    block_on(async {
        for timing in [Timing::Running, Timing::Next] {
            let pass = fetch::fetch(&mut file, timing).await?;
            let result = if pass.new { "fetched" } else { "already there" };
            println!("period {}: {result}", pass.period.0);
        }
        Ok(())
    })
}

fn serve(run: &Run, globals: &Globals) -> Result<(), Failure> {
    if !run.local.ip().is_loopback() {
        return Err(LocalAddressError(run.local)).blame(Category::Usage);
    }
    let file = PassFile::open(&run.file.pass, &run.file.key_file)?;
    let mut rng = entropy::rng()?;
    let secret = BASE64URL_NOPAD.encode(Secret::<16>::random(&mut rng).expose());
    let (gateway, rotation) = (run.gateway.clone(), run.epochs);
    let options = SessionOptions { gateway, rotation, fetches: !run.no_fetch };
    let (driver, current) = Driver::new(file, &options, rng)?;
    let prints_address = globals.format.is_none();
    block_on(async {
        // A caller may stop this process as soon as it prints that it serves.
        let mut signals = Signals::listen().map_err(ServiceError::from)?;
        let server = Server::bind(run.local, None).await.map_err(ServiceError::from)?;
        let server = server.with_bounds(Bounds { silence: None, ..Bounds::default() });
        let address = server.address().map_err(ServiceError::from)?;
        // A script that sees the file connects at once.
        if let Some(path) = &run.local_secret {
            write_new(path, &secret, Readers::Owner)?;
        }
        let (orders, ordered) = mpsc::channel(16);
        let door = Arc::new(Door::new(secret, address));
        note!("serving at http://{address}");
        if prints_address {
            println!("{}", door.opening());
        }
        let mut session = current.clone();
        let local = Local { door, current, orders };
        let trigger = Trigger::new();
        let drain = Duration::from_secs(1);
        let serving = tokio::spawn(server.serve(proxy::router(local), trigger.shutdown(), drain));
        tokio::spawn(async move {
            if session.wait_for(Option::is_some).await.is_ok() {
                note!("connected");
            }
        });
        let driven = tokio::select! {
            driven = driver.run(ordered) => driven.blame(Category::Refused),
            () = signals.next() => Ok(()),
        };
        trigger.stop();
        let _ = serving.await;
        driven
    })
}
