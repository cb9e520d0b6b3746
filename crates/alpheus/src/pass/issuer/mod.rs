//! `alpheus pass issuer`: knows accounts, and gives each one pass for each period.
//! It learns nothing about what a pass is used for.

pub mod accounts;

use crate::commands::Globals;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::answer::ApiError;
use crate::network::door::in_time;
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::pass::ledger::{FencedLedger, Found};
use crate::pass::serve::{Listener, serve};
use crate::pass::{card, clock, init};
use crate::service::shutdown::Trigger;
use crate::service::tls::TlsFiles;
use crate::service::{Flags, Settings, path_flag};
use accounts::{AccountError, Accounts, AccountsFile};
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::error::IssueRefused;
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::ledger::{LedgerError, Log, Step};
use alpheus_anonymous_credential::schedule::Period;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use data_encoding::BASE64;
use prometheus_client::metrics::counter::Counter;
use rand_chacha::ChaCha20Rng;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

const EXAMPLES: &str = "\
Examples:
  alpheus pass issuer --identity pki/issuer --deployment deployment --accounts accounts.txt --state run/issuer --api 127.0.0.1:7501 --first
  alpheus pass issuer --identity pki/issuer --deployment deployment --accounts-command 'exec check-account' --state run/issuer --api 127.0.0.1:7501

The command gets the account's name and secret as two lines on its standard input, and ends
with 0 if they belong together. --first belongs to the first start alone, and in no unit file: an
issuer that has forgotten whom it gave a pass would give a second one. A copy of the state from
before the first pass looks like a first start, too: start it with --doubtful.";

/// Arguments of `alpheus pass issuer`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder that says who it is
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The folder that `alpheus pass init` made
    #[arg(long, value_name = "FOLDER")]
    deployment: Option<PathBuf>,
    /// The file of accounts
    #[arg(long, value_name = "FILE", conflicts_with = "accounts_command")]
    accounts: Option<PathBuf>,
    /// A command that knows the accounts
    #[arg(long, value_name = "COMMAND")]
    accounts_command: Option<String>,
    /// Where it keeps who has a pass
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Where subscribers reach it
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// This issuer never gave a pass before
    #[arg(long, conflicts_with = "doubtful")]
    first: bool,
    /// The state may be an older copy: give passes only for periods that nobody could ask for yet
    #[arg(long)]
    doubtful: bool,
}

/// The state is not what it should be.
#[derive(Debug, thiserror::Error)]
enum StateError {
    #[error("there is no state here, and none was said to be new")]
    Absent,
    #[error("there is a state here that was said to be new")]
    NotFirst,
    #[error("the state is an older copy than its fence has seen, or has lost its fence")]
    Doubtful,
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A setting is missing or wrong; the state is not whole.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(flags(args))?;
    let pass = settings.pass.clone().unwrap_or_default();
    let identity = Settings::needed(&settings.identity, "identity")?;
    let identity = IdentityFolder::open(&identity, Role::Issuer)?;
    let deployment = Settings::needed(&pass.deployment, "pass.deployment")?;
    let pinned = card::open(&deployment.join(card::CARD))?.1.pinned;
    let accounts = match (pass.accounts, pass.accounts_command) {
        (_, Some(command)) => Accounts::Command(command),
        (accounts, None) => {
            Accounts::File(AccountsFile::new(Settings::needed(&accounts, "pass.accounts")?))
        }
    };
    let store = settings.open_store(&globals.health, &globals.metrics)?;
    let fence = Settings::needed(&settings.state, "state")?.join("fence");
    let found = FencedLedger::open(store, &fence, None)?;
    let Found { mut ledger, records, untouched, fenced, log, .. } = found;
    // Killed as it began, between its ledger and the fence, it never gave anything.
    let new = untouched || (!fenced && Issuer::has_only_begun(&records));
    let log = which_log(args, new, log)?;
    let key = init::issuer_key(&deployment)?;
    let issuer = Issuer::restore(key, pinned.clone(), records, log, clock::now());
    let issuer = issuer.blame(Category::Input)?.commit(&mut ledger).blame(Category::Io)?;
    let (issued, refused) = (Counter::default(), Counter::default());
    globals.metrics.with(|registry| {
        registry.register("pass_issued", "Passes issued, repeats included", issued.clone());
        registry.register("pass_issue_refused", "Requests for a pass refused", refused.clone());
    });
    let desk = Desk { issuer, ledger, rng: entropy::rng()?, pinned, pruned: None };
    let trigger = Trigger::new();
    let broken = trigger.shutdown();
    let api = Api {
        desk: Arc::new(Mutex::new(desk)),
        accounts: Arc::new(accounts),
        slots: Arc::new(Semaphore::new(AT_ONCE)),
        trigger: Arc::new(trigger),
        issued,
        refused,
    };
    let router = Router::new().route("/v1/pass", post(issue)).with_state(api);
    let router = in_time(router, LARGEST);
    let address = Settings::needed(&settings.api, "api")?;
    let tls = Some(TlsFiles { client_ca: None, ..identity.tls() });
    let listeners = || Ok(vec![Listener { address, tls, router, streams: false }]);
    serve(listeners, &settings, globals, broken, |at| eprintln!("serving at {}", at.join(" ")))
}

fn flags(args: &Args) -> Flags {
    vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("api", args.api.map(|api| api.to_string())),
        ("pass.deployment", path_flag(args.deployment.as_ref())),
        ("pass.accounts", path_flag(args.accounts.as_ref())),
        ("pass.accounts-command", args.accounts_command.clone()),
    ]
}

/// An issuer does not guess: giving an account a second pass is what it is
/// there to prevent.
fn which_log(args: &Args, untouched: bool, found: Log) -> Result<Log, Failure> {
    let (error, help) = match (args.first, args.doubtful, untouched, found) {
        (true, _, true, _) => return Ok(Log::New),
        (_, true, ..) => return Ok(Log::Doubtful),
        (false, _, false, Log::Whole) => return Ok(Log::Whole),
        (true, _, false, _) => (StateError::NotFirst, "start without --first"),
        (false, _, true, _) => (
            StateError::Absent,
            "--first if this issuer never gave a pass; else restore the state, or say --doubtful",
        ),
        (false, _, false, _) => (
            StateError::Doubtful,
            "restore the latest state, or say --doubtful: passes then only for later periods",
        ),
    };
    Err(Failure::new(Category::Input, error).with_help(help))
}

/// The largest body: a request for a pass.
const LARGEST: usize = 1024;
/// So many requests are looked at together: each may start a command.
const AT_ONCE: usize = 16;
/// So long a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(15);

struct Desk {
    issuer: Issuer,
    ledger: FencedLedger,
    rng: ChaCha20Rng,
    pinned: Pinned,
    /// In which period it last forgot what is over.
    pruned: Option<Period>,
}

impl Desk {
    fn issue(&mut self, account: &[u8], body: &[u8]) -> Result<Step<Vec<u8>>, IssueRefused> {
        self.issuer.issue(clock::now(), account, body, &mut self.rng)
    }

    /// Forgets what is over, once a period.
    fn prune(&mut self) -> Result<(), LedgerError> {
        let (schedule, now) = (&self.pinned.schedule, clock::now());
        let period = schedule.epoch_at(now).map(|epoch| schedule.period_of(epoch));
        if period != self.pruned {
            self.issuer.prune(now).commit(&mut self.ledger)?;
            self.pruned = period;
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Api {
    desk: Arc<Mutex<Desk>>,
    accounts: Arc<Accounts>,
    slots: Arc<Semaphore>,
    trigger: Arc<Trigger>,
    issued: Counter,
    refused: Counter,
}

/// `POST /v1/pass`: account and secret by basic authentication, a request as body.
async fn issue(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let busy = || {
        let detail = "too many ask at the same time; try again";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
    };
    let slot = timeout(PATIENCE, Arc::clone(&api.slots).acquire_owned()).await;
    let slot = slot.ok().and_then(Result::ok).ok_or_else(busy)?;
    let answered = tokio::task::spawn_blocking({
        let api = api.clone();
        move || {
            let _slot = slot;
            api.issue(&headers, &body)
        }
    });
    let answered = answered.await.map_err(|_| ApiError::failed("the request was cut short"))?;
    let count = if answered.is_ok() { &api.issued } else { &api.refused };
    count.inc();
    answered
}

impl Api {
    fn issue(&self, headers: &HeaderMap, body: &[u8]) -> Result<Vec<u8>, ApiError> {
        let (name, secret) = credentials(headers).ok_or(AccountError::Unknown)?;
        self.accounts.check(&name, &secret)?;
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let step = desk.issue(name.as_bytes(), body)?;
        let answer = step.commit(&mut desk.ledger);
        answer.and_then(|answer| desk.prune().map(|()| answer)).map_err(|error| {
            // What this issuer knows now may not be what its ledger holds.
            self.trigger.stop();
            tracing::error!(%error, "the issuer stops");
            ApiError::failed(error.to_string())
        })
    }
}

/// Account and secret of basic authentication.
pub(crate) fn credentials(headers: &HeaderMap) -> Option<(String, zeroize::Zeroizing<String>)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let decoded = BASE64.decode(value.strip_prefix("Basic ")?.as_bytes()).ok()?;
    let text = String::from_utf8(decoded).ok().map(zeroize::Zeroizing::new)?;
    let (name, secret) = text.split_once(':')?;
    Some((name.to_owned(), zeroize::Zeroizing::new(secret.to_owned())))
}

impl From<AccountError> for ApiError {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Unknown => {
                ApiError::new(StatusCode::UNAUTHORIZED, "account", error.to_string())
            }
            error => {
                tracing::error!(%error, "accounts cannot be looked up");
                ApiError::failed("accounts cannot be looked up now; the issuer's log says why")
            }
        }
    }
}
