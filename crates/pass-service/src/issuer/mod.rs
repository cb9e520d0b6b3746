//! `alpheus pass issuer`: knows the accounts, and issues one pass per account and period.
//! It does not learn how a pass is used.

pub mod accounts;
pub mod limits;
pub mod oidc;

use crate::refusal::Refusal;
use crate::settings::PassSettings;
use crate::{card, init};
use accounts::{AccountError, Accounts, AccountsFile, Evidence};
use alpheus_access_pass::private_token::{DIRECTORY, DIRECTORY_TYPE, TOKEN_TYPE, token_key};
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::error::IssuerError;
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::ledger::{LedgerError, StateOrigin, Step};
use alpheus_anonymous_credential::schedule::Period;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::fence;
use alpheus_node::globals::Globals;
use alpheus_node::ledger::{FencedLedger, OpenedLedger};
use alpheus_node::listeners::{Listener, block_on, serve};
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::door::in_time;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::service::http::Peer;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::settings::TlsFiles;
use alpheus_node::settings::{Flags, Settings, path_flag};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::{get, post};
use chacha20::ChaCha20Rng;
use data_encoding::BASE64;
use limits::{Limits, RateError};
use oidc::{Provider, ProviderSettings};
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::timeout;

const EXAMPLES: &str = "\
Examples:
  alpheus pass issuer --identity pki/issuer --deployment deployment --accounts accounts.txt \\
      --state run/issuer --api 127.0.0.1:7501 --new-state
  alpheus pass issuer --identity pki/issuer --deployment deployment \\
      --accounts-command 'exec check-account' --state run/issuer --api 127.0.0.1:7501
  alpheus pass issuer --identity pki/issuer --deployment deployment \\
      --oidc-provider https://login.example --oidc-client alpheus \\
      --oidc-authority /etc/ssl/certs/ca-certificates.crt --state run/issuer \\
      --api 127.0.0.1:7501

The program given by --accounts-command reads the account's name and secret as two lines from its
standard input. If they match, it prints the account's identifier as one line, and exits with 0. The
identifier is the same for every spelling of the name: a number or a UUID of the directory. Passes
are counted by this identifier. With a provider they are counted by `sub` of its ID tokens.

Use --new-state for the very first start only, never in a unit file: an issuer that has lost its
records would issue second passes. Start a copy of its state with --restored-state.";

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
    /// A command that checks accounts, and prints an account's identifier
    #[arg(long, value_name = "COMMAND", conflicts_with = "oidc_provider")]
    accounts_command: Option<String>,
    /// The OpenID Connect provider that knows the accounts, as its tokens write it (`iss`)
    #[arg(long, value_name = "URL", conflicts_with = "accounts", requires = "oidc_client")]
    oidc_provider: Option<String>,
    /// This issuer's client at the provider (`aud` of the tokens)
    #[arg(long, value_name = "ID", requires = "oidc_provider")]
    oidc_client: Option<String>,
    /// The authorities that the provider's certificate may come from
    #[arg(long, value_name = "FILE", requires = "oidc_provider")]
    oidc_authority: Option<PathBuf>,
    /// How many requests one address may make in a minute; the default is 60
    #[arg(long, value_name = "NUMBER")]
    requests_per_minute: Option<u32>,
    /// The folder of its records of issued passes
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The address for subscribers
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// This issuer has never issued a pass
    #[arg(long, conflicts_with = "restored_state")]
    new_state: bool,
    /// The state may be an older copy: issue passes only for periods that nobody could have
    /// requested before
    #[arg(long)]
    restored_state: bool,
}

/// The state does not match what its operator declared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("there is no state in this folder, and it was not declared new")]
    Absent,
    #[error("this folder already holds a state, though it was declared new")]
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
    let limits = Limits::new(pass.requests_per_minute.unwrap_or(OF_ADDRESS), Instant::now());
    let accounts = accounts(pass)?;
    let store = globals.open_store(&settings)?;
    let fence = fence::move_out_of(&Settings::needed(&settings.state, "state")?);
    let found = FencedLedger::open(store, &fence, None)?;
    let begins = found.begins();
    let OpenedLedger { mut ledger, records, origin, .. } = found;
    let origin = declared_origin(args, begins, origin)?;
    let key = init::issuer_key(&deployment)?;
    let issuer = Issuer::restore(key, pinned.clone(), records, origin, clock::now());
    let issuer = issuer.blame(Category::Input)?.commit(&mut ledger).blame(Category::Io)?;
    let (issued, refused) = (Counter::default(), Counter::default());
    globals.metrics.with(|registry| {
        registry.register("pass_issued", "Passes issued, repeats included", issued.clone());
        registry.register("pass_issue_refused", "Requests for a pass refused", refused.clone());
    });
    let directory = ([(header::CONTENT_TYPE, DIRECTORY_TYPE)], directory(&pinned));
    let desk = Desk { issuer, ledger, rng: entropy::rng()?, pinned, pruned: None };
    let trigger = Trigger::new();
    let broken = trigger.shutdown();
    let api = Api {
        desk: Arc::new(Mutex::new(desk)),
        accounts: Arc::new(accounts),
        limits: Arc::new(limits),
        slots: Arc::new(Semaphore::new(MAX_CONCURRENT)),
        trigger: Arc::new(trigger),
        issued,
        refused,
    };
    let router = Router::new().route("/v1/pass", post(issue)).with_state(api);
    let router = router.route(DIRECTORY, get(directory));
    let router = in_time(router, MAX_BODY);
    let address = Settings::needed(&settings.api, "api")?;
    let tls = Some(TlsFiles { client_ca: None, ..identity.tls() });
    let listeners = || Ok(vec![Listener { address, tls, router, streams: false, revoked: None }]);
    serve(listeners, &settings, globals, broken, |at| note!("serving at {}", at.join(" ")))
}

fn flags(args: &Args) -> Flags {
    vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("api", args.api.map(|api| api.to_string())),
        ("pass.deployment", path_flag(args.deployment.as_ref())),
        ("pass.accounts", path_flag(args.accounts.as_ref())),
        ("pass.accounts-command", args.accounts_command.clone()),
        ("pass.oidc-provider", args.oidc_provider.clone()),
        ("pass.oidc-client", args.oidc_client.clone()),
        ("pass.oidc-authority", path_flag(args.oidc_authority.as_ref())),
        ("pass.requests-per-minute", args.requests_per_minute.map(|most| most.to_string())),
    ]
}

/// Where accounts come from.
fn accounts(pass: PassSettings) -> Result<Accounts, Failure> {
    if let Some(command) = pass.accounts_command {
        return Ok(Accounts::Command(command));
    }
    let Some(url) = pass.oidc_provider else {
        let file = Settings::needed(&pass.accounts, "pass.accounts")?;
        return Ok(Accounts::File(AccountsFile::new(file)));
    };
    let client = Settings::needed(&pass.oidc_client, "pass.oidc-client")?;
    let read = |path: PathBuf| std::fs::read_to_string(&path).blame_io(&path);
    let authority = pass.oidc_authority.map(read).transpose()?;
    let provider = Provider::discover(ProviderSettings { url, client, authority });
    block_on(provider).map(Accounts::Provider)
}

/// The issuer does not guess the origin: it exists to prevent second passes.
fn declared_origin(args: &Args, begins: bool, found: StateOrigin) -> Result<StateOrigin, Failure> {
    let (error, help) = match (args.new_state, args.restored_state, begins, found) {
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
/// Requests from one address in a minute. A subscriber needs two in a period.
const OF_ADDRESS: u32 = 60;
/// Concurrent requests. Each may start a command.
const MAX_CONCURRENT: usize = 16;
/// How long a request waits for its turn.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(15);

struct Desk {
    issuer: Issuer,
    ledger: FencedLedger,
    rng: ChaCha20Rng,
    pinned: PinnedConfiguration,
    /// The period in which old records were last removed.
    pruned: Option<Period>,
}

impl Desk {
    fn issue(
        &mut self,
        applicant: Applicant<'_>,
        body: &[u8],
    ) -> Result<Step<Vec<u8>>, IssuerError> {
        self.issuer.issue(applicant, body, clock::now(), &mut self.rng)
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
    limits: Arc<Limits>,
    slots: Arc<Semaphore>,
    trigger: Arc<Trigger>,
    issued: Counter,
    refused: Counter,
}

/// `POST /v1/pass`: account and secret by basic authentication or an ID token as bearer, and a
/// request as body.
async fn issue(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Vec<u8>, Refusal> {
    if let Err(often) = api.limits.from(peer.address.ip(), Instant::now()) {
        api.refused.inc();
        return Err(often.into());
    }
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
        let evidence = evidence(headers).ok_or(AccountError::Unknown)?;
        // Before a command is run: secrets that people choose can be guessed.
        if let Evidence::Secret(name, _) = &evidence {
            self.limits.of(name, Instant::now())?;
        }
        let identified = self.accounts.identify(&evidence)?;
        if let Evidence::IdToken(_) = &evidence {
            self.limits.of(&identified.account, Instant::now())?;
        }
        let (account, name) = (identified.account.as_bytes(), identified.name.as_bytes());
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let step = desk.issue(Applicant { account, name }, body)?;
        let answer = step.commit(&mut desk.ledger);
        answer.and_then(|answer| desk.prune().map(|()| answer)).map_err(|error| {
            // The issuer's memory may now differ from its ledger.
            self.trigger.stop();
            tracing::error!(%error, "the issuer stops");
            ApiError::failed(error.to_string()).into()
        })
    }
}

fn evidence(headers: &HeaderMap) -> Option<Evidence> {
    if let Some((name, secret)) = credentials(headers) {
        return Some(Evidence::Secret(name, secret));
    }
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let token = value.strip_prefix("Bearer ")?;
    Some(Evidence::IdToken(zeroize::Zeroizing::new(token.to_owned())))
}

/// The directory of an issuer of Privacy Pass (RFC 9578, section 4): where to ask, and the key.
fn directory(pinned: &PinnedConfiguration) -> String {
    let keys = json!([{ "token-type": TOKEN_TYPE, "token-key": token_key(pinned) }]);
    json!({ "issuer-request-uri": "/v1/pass", "token-keys": keys }).to_string()
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
            AccountError::Unknown | AccountError::Token(_) | AccountError::Way(_) => {
                ApiError::new(StatusCode::UNAUTHORIZED, "account", error.to_string())
            }
            error => {
                tracing::error!(%error, "accounts cannot be looked up");
                ApiError::failed("accounts cannot be looked up now; see the issuer's log")
            }
        }
    }
}

impl From<RateError> for Refusal {
    fn from(error: RateError) -> Self {
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate", error.to_string()).into()
    }
}

impl From<AccountError> for Refusal {
    fn from(error: AccountError) -> Self {
        ApiError::from(error).into()
    }
}
