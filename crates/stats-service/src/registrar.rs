//! `alpheus stats registrar`: issues each account its credentials, once per period.

use crate::card::VerifiedCard;
use crate::keys;
use crate::refusal::Refuse;
use crate::role::{RoleArgs, RoleContext};
use alpheus_accountable_statistics::registrar::Registrar;
use alpheus_accountable_statistics::role_error::RegistrationError;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_crypto::ledger::{StateOrigin, Step};
use alpheus_node::clock::Clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::ledger::{FencedLedger, OpenedLedger};
use alpheus_node::listeners::{Listener, serve};
use alpheus_node::network::answer::{ApiError, decode, encode};
use alpheus_node::network::door::in_time;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::settings::TlsFiles;
use alpheus_node::settings::{Settings, path_flag};
use alpheus_pass_service::issuer::accounts::{AccountError, Accounts, AccountsFile};
use alpheus_pass_service::issuer::credentials;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use chacha20::ChaCha20Rng;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const EXAMPLES: &str = "\
Examples:
  alpheus stats registrar --identity pki/registrar --card roads/card.json \\
      --keys roads/registrar --accounts accounts.txt --state run/registrar \\
      --api 127.0.0.1:7701

`alpheus pass account ada --accounts accounts.txt` adds an account and prints its secret. If a
registrar starts with an older copy of its state, it issues credentials for later periods only.";

/// The maximum size of a request, which asks for up to 65 credentials.
const MAX_REQUEST: usize = 64 << 10;

/// Arguments of `alpheus stats registrar`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    role: RoleArgs,
    /// The file of accounts
    #[arg(long, value_name = "FILE")]
    accounts: Option<PathBuf>,
}

struct Desk {
    registrar: Registrar,
    ledger: FencedLedger,
    rng: ChaCha20Rng,
}

#[derive(Clone)]
struct Api {
    desk: Arc<Mutex<Desk>>,
    accounts: Arc<Accounts>,
    clock: Clock,
    trigger: Arc<Trigger>,
}

/// Runs the command until a shutdown signal.
///
/// # Errors
/// A setting is missing or wrong, or the store or the address is unavailable.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let own = vec![("stats.accounts", path_flag(args.accounts.as_ref()))];
    let seat = args.role.open(Role::Registrar, own, globals)?;
    let RoleContext { settings, stats, identity, card, keys, clock, address, found } = seat;
    let accounts = AccountsFile::new(Settings::needed(&stats.accounts, "stats.accounts")?);
    let desk = restore(found, &card, &keys, &clock)?;
    let trigger = Trigger::new();
    let broken = trigger.shutdown();
    let (desk, trigger) = (Arc::new(Mutex::new(desk)), Arc::new(trigger));
    let api = Api { desk, accounts: Arc::new(Accounts::File(accounts)), clock, trigger };
    let router = Router::new().route("/v1/credentials", post(register)).with_state(api);
    let router = in_time(router, MAX_REQUEST);
    let tls = Some(TlsFiles { client_ca: None, ..identity.tls() });
    let listeners = || Ok(vec![Listener { address, tls, router, streams: false, revoked: None }]);
    serve(listeners, &settings, globals, broken, |at| note!("serving at {}", at.join(" ")))
}

/// The keys in the order of the configuration's credentials.
fn issuing_keys(card: &VerifiedCard, folder: &Path) -> Result<Vec<IssuerKey>, Failure> {
    let slots = (0..card.smoothers.len()).map(keys::slots_of);
    let files = std::iter::once(keys::UPLOADS.to_owned()).chain(slots);
    files.map(|file| keys::issuing(&folder.join(file))).collect()
}

fn restore(
    found: OpenedLedger,
    card: &VerifiedCard,
    folder: &Path,
    clock: &Clock,
) -> Result<Desk, Failure> {
    let origin = found.since_it_began();
    let OpenedLedger { mut ledger, records, .. } = found;
    if origin == StateOrigin::Restored {
        note!(
            "the state is older than its fence: this registrar issues credentials for later periods only"
        );
    }
    let keys = issuing_keys(card, folder)?;
    let restored = Registrar::restore(&card.pinned, keys, origin, &records, clock.now());
    let (registrar, step) = restored.blame(Category::Input)?;
    step.commit(&mut ledger).blame(Category::Io)?;
    Ok(Desk { registrar, ledger, rng: entropy::rng()? })
}

impl Refuse for RegistrationError {
    fn refusal(self) -> ApiError {
        let why = self;
        ApiError::new(StatusCode::CONFLICT, "not-registered", why.to_string())
    }
}

/// `POST /v1/credentials`: account and secret by basic authentication, requests as body.
async fn register(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Vec<u8>, ApiError> {
    let answered = tokio::task::spawn_blocking(move || api.register(&headers, &body));
    answered.await.map_err(|_| ApiError::failed("the request was aborted"))?
}

impl Api {
    fn register(&self, headers: &HeaderMap, body: &[u8]) -> Result<Vec<u8>, ApiError> {
        let (name, secret) = credentials(headers).ok_or(AccountError::Unknown)?;
        let account = self.accounts.check(&name, &secret)?;
        let requests: Vec<Vec<u8>> = decode(body)?;
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let Desk { registrar, ledger, rng } = &mut *desk;
        let now = self.clock.now();
        let step =
            registrar.handle(account.as_bytes(), &requests, now, rng).map_err(Refuse::refusal)?;
        let past = registrar.poll(now);
        let step = step.then(|answers| past.then(|()| Step::new(Vec::new(), answers)));
        let answers = step.commit(ledger).map_err(|error| {
            // Its memory may differ from its ledger now.
            self.trigger.stop();
            tracing::error!(%error, "the registrar stops");
            ApiError::failed(error.to_string())
        })?;
        encode(&answers)
    }
}
