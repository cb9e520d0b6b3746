//! `alpheus pass client`: holds a pass and lets any browser, curl or player use it.
//!
//! - [`passfile`]: the pass, locked,
//! - [`fetch`], [`stock`]: get it from the issuer, on demand and in time,
//! - [`passes`]: what it shows,
//! - [`session`], [`retry`]: logs in, carries on, tries again,
//! - [`proxy`], [`browser`]: the local proxy and who may use it,
//! - [`code`]: login codes.

pub mod browser;
pub(crate) mod code;
pub mod fetch;
pub mod passes;
pub mod passfile;
pub mod proxy;
pub mod retry;
pub mod session;
pub mod stock;

use crate::commands::Globals;
use crate::controller::keystore::read_key_file;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::card;
use crate::pass::init::write_new;
use crate::pass::serve::block_on;
use crate::service::ServiceError;
use crate::service::http::{Bounds, Server};
use crate::service::shutdown::{Signals, Trigger};
use alpheus_anonymous_credential::holder::Which;
use alpheus_crypto::secret::Secret;
use browser::Door;
use data_encoding::BASE64URL_NOPAD;
use passfile::PassFile;
use proxy::Local;
use session::{Driver, Habits};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const EXAMPLES: &str = "\
Examples:
  (umask 077; head -c 32 /dev/urandom | base64 > ada.key)
  alpheus pass client join --card card.json --account ada --secret-file ada.secret --pass ada.pass --key-file ada.key
  alpheus pass client fetch --pass ada.pass --key-file ada.key
  alpheus pass client run --pass ada.pass --key-file ada.key
  alpheus pass client code --pass ada.pass --key-file ada.key --qr";

/// Arguments of `alpheus pass client`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a pass file for an account
    #[command(after_help = EXAMPLES)]
    Join(Join),
    /// Get the pass of this period from the issuer, and the next one's; not when you log in
    #[command(after_help = EXAMPLES)]
    Fetch(Place),
    /// Log in, carry the session on, and serve it to programs on this machine
    #[command(after_help = EXAMPLES)]
    Run(Run),
    /// Show a login code for a gate
    #[command(after_help = EXAMPLES)]
    Code(code::Args),
}

/// A pass file and what opens it.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// The pass file
    #[arg(long, value_name = "FILE")]
    pass: PathBuf,
    /// The file that opens it; keep it elsewhere
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Join {
    #[command(flatten)]
    place: Place,
    /// The deployment's public card; compare its fingerprint with other people's
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
    /// The account at the issuer
    #[arg(long)]
    account: String,
    /// The file with what the account shows to the issuer
    #[arg(long, value_name = "FILE")]
    secret_file: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Run {
    #[command(flatten)]
    place: Place,
    /// Where programs on this machine reach it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7600")]
    local: SocketAddr,
    /// A file that is not there yet, for the local secret
    #[arg(long, value_name = "FILE")]
    local_secret: Option<PathBuf>,
    /// Another address of the gateway than the card's
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// At epochs whose number is a multiple of this the session ends and another begins that nobody
    /// can link to it; leave it as it is, so that everybody's end together
    #[arg(long, value_name = "NUMBER", default_value = "240", value_parser = clap::value_parser!(u64).range(1..))]
    epochs: u64,
    /// Do not fetch the next period's pass at a random moment of this one
    #[arg(long)]
    no_fetch: bool,
}

/// A local proxy for the whole network to use.
#[derive(Debug, thiserror::Error)]
#[error("{0} is for other machines too: whoever reaches the local proxy uses the pass")]
struct NotLocal(SocketAddr);

/// Runs the command.
///
/// # Errors
/// The pass file cannot be used; the issuer or the gateway refuses.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        What::Join(join) => join_account(join),
        What::Fetch(place) => fetch_passes(place),
        What::Run(run) => serve(run, globals),
        What::Code(args) => code::run(args, globals),
    }
}

fn join_account(join: &Join) -> Result<(), Failure> {
    let (card, opened) = card::open(&join.card)?;
    let secret = read_key_file(&join.secret_file)?;
    let secret = std::str::from_utf8(&secret).blame_input(&join.secret_file)?;
    let Place { pass, key_file } = &join.place;
    PassFile::create(pass, key_file, &card, &join.account, secret)?;
    println!("{}", opened.fingerprint);
    Ok(())
}

fn fetch_passes(place: &Place) -> Result<(), Failure> {
    let mut file = PassFile::open(&place.pass, &place.key_file)?;
    block_on(async {
        for which in [Which::Running, Which::Next] {
            let fetched = fetch::fetch(&mut file, which).await?;
            let how = if fetched.new { "fetched" } else { "there already" };
            println!("period {}: {how}", fetched.period.0);
        }
        Ok(())
    })
}

fn serve(run: &Run, globals: &Globals) -> Result<(), Failure> {
    if !run.local.ip().is_loopback() {
        return Err(NotLocal(run.local)).blame(Category::Usage);
    }
    let file = PassFile::open(&run.place.pass, &run.place.key_file)?;
    let mut rng = entropy::rng()?;
    let secret = BASE64URL_NOPAD.encode(Secret::<16>::random(&mut rng).expose());
    if let Some(path) = &run.local_secret {
        write_new(path, &secret, 0o600)?;
    }
    let (gateway, rotation) = (run.gateway.clone(), run.epochs);
    let habits = Habits { gateway, rotation, fetches: !run.no_fetch };
    let (driver, current) = Driver::new(file, &habits, rng)?;
    let said = globals.format.is_none();
    block_on(async {
        // Whoever is told that this serves may stop it at once.
        let mut signals = Signals::listen().map_err(ServiceError::from)?;
        let server = Server::bind(run.local, None).await.map_err(ServiceError::from)?;
        let server = server.with_bounds(Bounds { silence: None, ..Bounds::default() });
        let address = server.address().map_err(ServiceError::from)?;
        let (orders, ordered) = mpsc::channel(16);
        let door = Arc::new(Door::new(secret, address));
        eprintln!("serving at http://{address}");
        if said {
            println!("{}", door.opening());
        }
        let mut seen = current.clone();
        let local = Local { door, current, orders };
        let trigger = Trigger::new();
        let drain = Duration::from_secs(1);
        let serving = tokio::spawn(server.serve(proxy::router(local), trigger.shutdown(), drain));
        tokio::spawn(async move {
            if seen.wait_for(Option::is_some).await.is_ok() {
                eprintln!("connected");
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
