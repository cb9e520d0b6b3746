//! `alpheus pass issuer`: knows the accounts, and issues one pass per account and period.
//! It does not learn how a pass is used.

pub mod accounts;

use crate::refusal::Refusal;
use crate::settings::PassSettings;
use crate::{card, init};
use accounts::{AccountError, Accounts, AccountsFile};
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::error::IssuerError;
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::ledger::{LedgerError, StateOrigin, Step};
use alpheus_anonymous_credential::schedule::Period;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::ledger::{FencedLedger, OpenedLedger};
use alpheus_node::listeners::{Listener, serve};
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::door::in_time;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::settings::TlsFiles;
use alpheus_node::settings::{Flags, Settings, path_flag};
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
  alpheus pass issuer --identity pki/issuer --deployment deployment --accounts accounts.txt --state run/issuer --api 127.0.0.1:7501 --new-state
  alpheus pass issuer --identity pki/issuer --deployment deployment --accounts-command 'exec check-account' --state run/issuer --api 127.0.0.1:7501

The command reads the account's name and secret as two lines from its standard input, and exits
with 0 if they match. Use --new-state for the very first start only, never in a unit file: an issuer
that has lost its records would issue second passes. A copy of the state from before the first
pass also looks like a first start: start it with --restored-state.";

/// Arguments of `alpheus pass issuer`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The issuer's identity
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The folder that `alpheus pass init` created
    #[arg(long, value_name = "FOLDER")]
    deployment: Option<PathBuf>,
    /// The file of accounts
    #[arg(long, value_name = "FILE", conflicts_with = "accounts_command")]
    accounts: Option<PathBuf>,
    /// A command that checks accounts
    #[arg(long, value_name = "COMMAND")]
    accounts_command: Option<String>,
    /// The folder of its records of issued passes
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The address for subscribers
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// This issuer has never issued a pass
    #[arg(long, conflicts_with = "restored_state")]
    new_state: bool,
    /// The state may be an older copy: issue passes only for periods that nobody could request yet
    #[arg(long)]
    restored_state: bool,
}

/// The state does not match what its operator declared.
#[derive(Debug, thiserror::Error)]
enum StateError {
    #[error("there is no state in this folder, and it was not declared new")]
    Absent,
    #[error("there is a state in this folder, though it was declared new")]
    NotNew,
    #[error("the state is older than its fence, or its fence is missing")]
    Restored,
}

/// Runs the command until it is stopped.
///
/// # Errors
/// A setting is missing or invalid, or the state is incomplete.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(flags(args))?;
    let pass = settings.part::<PassSettings>()?;
    let identity = Settings::needed(&settings.identity, "identity")?;
    let identity = IdentityFolder::open(&identity, Role::Issuer)?;
    let deployment = Settings::needed(&pass.deployment, "pass.deployment")?;
    let pinned = card::Card::load(&deployment.join(card::CARD))?.1.pinned;
    let accounts = match (pass.accounts, pass.accounts_command) {
        (_, Some(command)) => Accounts::Command(command),
        (accounts, None) => {
            Accounts::File(AccountsFile::new(Settings::needed(&accounts, "pass.accounts")?))
        }
    };
    let store = globals.open_store(&settings)?;
    let fence = Settings::needed(&settings.state, "state")?.join("fence");
    let found = FencedLedger::open(store, &fence, None)?;
    let OpenedLedger { mut ledger, records, untouched, fenced, origin, .. } = found;
    // An issuer that was killed before its first fence was written has issued nothing.
    let new = untouched || (!fenced && Issuer::has_issued_nothing(&records));
    let origin = declared_origin(args, new, origin)?;
    let key = init::issuer_key(&deployment)?;
    let issuer = Issuer::restore(key, pinned.clone(), records, origin, clock::now());
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
        slots: Arc::new(Semaphore::new(MAX_CONCURRENT)),
        trigger: Arc::new(trigger),
        issued,
        refused,
    };
    let router = Router::new().route("/v1/pass", post(issue)).with_state(api);
    let router = in_time(router, MAX_BODY);
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

/// The issuer does not guess the origin: it exists to prevent second passes.
fn declared_origin(
    args: &Args,
    untouched: bool,
    found: StateOrigin,
) -> Result<StateOrigin, Failure> {
    let (error, help) = match (args.new_state, args.restored_state, untouched, found) {
        (true, _, true, _) => return Ok(StateOrigin::New),
        (_, true, ..) => return Ok(StateOrigin::Restored),
        (false, _, false, StateOrigin::Intact) => return Ok(StateOrigin::Intact),
        (true, _, false, _) => (StateError::NotNew, "start without --new-state"),
        (false, _, true, _) => (
            StateError::Absent,
            "start with --new-state if this issuer has never issued a pass; otherwise restore the state, or start with --restored-state",
        ),
        (false, _, false, _) => (
            StateError::Restored,
            "restore the latest state, or start with --restored-state to issue passes for later periods only",
        ),
    };
    Err(Failure::new(Category::Input, error).with_help(help))
}

/// The largest body is a request for a pass.
const MAX_BODY: usize = 1024;
/// Concurrent requests. Each may start a command.
const MAX_CONCURRENT: usize = 16;
/// How long a request waits for its turn.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(15);

struct Desk {
    issuer: Issuer,
    ledger: FencedLedger,
    rng: ChaCha20Rng,
    pinned: Pinned,
    /// The period in which old records were last removed.
    pruned: Option<Period>,
}

impl Desk {
    fn issue(&mut self, account: &[u8], body: &[u8]) -> Result<Step<Vec<u8>>, IssuerError> {
        self.issuer.issue(account, body, clock::now(), &mut self.rng)
    }

    /// Removes old records, once per period.
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

/// `POST /v1/pass`: account and secret by basic authentication, and a request as body.
async fn issue(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    let busy = || {
        let detail = "too many requests at the same time; try again";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
    };
    let slot = timeout(QUEUE_TIMEOUT, Arc::clone(&api.slots).acquire_owned()).await;
    let slot = slot.ok().and_then(Result::ok).ok_or_else(busy)?;
    let answer = tokio::task::spawn_blocking({
        let api = api.clone();
        move || {
            let _slot = slot;
            api.issue(&headers, &body)
        }
    });
    let answer = answer.await.map_err(|_| ApiError::failed("the request was interrupted"))?;
    let count = if answer.is_ok() { &api.issued } else { &api.refused };
    count.inc();
    answer
}

impl Api {
    fn issue(&self, headers: &HeaderMap, body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let (name, secret) = credentials(headers).ok_or(AccountError::Unknown)?;
        self.accounts.check(&name, &secret)?;
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let step = desk.issue(name.as_bytes(), body)?;
        let answer = step.commit(&mut desk.ledger);
        answer.and_then(|answer| desk.prune().map(|()| answer)).map_err(|error| {
            // The issuer's memory may now differ from its ledger.
            self.trigger.stop();
            tracing::error!(%error, "the issuer stops");
            ApiError::failed(error.to_string()).into()
        })
    }
}

/// Account and secret of basic authentication.
#[must_use]
pub fn credentials(headers: &HeaderMap) -> Option<(String, zeroize::Zeroizing<String>)> {
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
                ApiError::failed("accounts cannot be looked up now; see the issuer's log")
            }
        }
    }
}

impl From<AccountError> for Refusal {
    fn from(error: AccountError) -> Self {
        ApiError::from(error).into()
    }
}
