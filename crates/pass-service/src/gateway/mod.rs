//! `alpheus pass gateway`: serves sessions. It holds no issuer's key and stores nothing. An
//! attacker who takes it over learns which requests belong to one session, and no more.
//!
//! - [`sessions`]: which requests are admitted, and until when,
//! - [`api`]: logins, re-ups, connections, logouts,
//! - [`proxy`]: all other requests.

pub mod api;
mod proxy;
pub mod sessions;

use crate::card;
use crate::links;
use crate::settings::PassSettings;
use crate::verifier::shards::{FOR_CLIENTS, Shards};
use alpheus_access_pass::error::GatewayError;
use alpheus_access_pass::gateway::{Gateway, Limits};
use alpheus_access_pass::private_token::TokenChallenge;
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::listeners::{Listener, serve};
use alpheus_node::network::base::Base;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::identity::AUTHORITY;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::service::health::State;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::settings::TlsFiles;
use alpheus_node::settings::{Flags, Settings, path_flag};
use alpheus_time::Span;
use axum::Router;
use axum::routing::any;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use sessions::Sessions;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus pass gateway --identity pki/gateway --card deployment/card.json \\
      --verifiers https://localhost:7502 --upstream http://127.0.0.1:8000 \\
      --api 127.0.0.1:7443
  alpheus pass gateway --identity pki/gateway --card deployment/card.json \\
      --verifiers https://localhost:7502 --api 127.0.0.1:7443 --plain --check 127.0.0.1:7444

The first is the reverse proxy of a service, and cuts streams when their session ends. The second
answers forward authentication of nginx, Traefik, Caddy or Envoy at http://127.0.0.1:7444; see
docs/pass.md.";

/// How often sessions that have ended are removed.
const PRUNE: Duration = Duration::from_secs(5);

/// Arguments of `alpheus pass gateway`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The gateway's identity
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The deployment's public card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// All verifiers in the order of shards, separated by commas
    #[arg(long, value_name = "URLS")]
    verifiers: Option<String>,
    /// The service behind the gateway
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// The address for clients
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// The address for forward authentication by other proxies; keep it private
    #[arg(long, value_name = "ADDRESS")]
    check: Option<SocketAddr>,
    /// Serve without TLS, on this machine only, behind a proxy that has TLS
    #[arg(long)]
    plain: bool,
    /// Concurrent requests of one session [default: 16]
    #[arg(long, value_name = "NUMBER")]
    concurrent: Option<u32>,
    /// How long running requests may continue after their session ends [default: 2000]
    #[arg(long, value_name = "MILLISECONDS")]
    overlap_milliseconds: Option<u64>,
}

/// A gateway without TLS that other machines can reach.
#[derive(Debug, thiserror::Error)]
#[error("without TLS a gateway may listen on a loopback address only; {0} is not one")]
pub(crate) struct PlainAddressError(SocketAddr);

/// The label of the metric for requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    /// `admitted`, or the rule that was broken.
    pub outcome: &'static str,
}

/// The state that requests share.
pub struct Api {
    /// The configuration.
    pub pinned: PinnedConfiguration,
    /// The sessions.
    pub sessions: Arc<Sessions>,
    /// The links to the verifiers.
    pub shards: Shards,
    /// The link to the service behind the gateway.
    pub upstream: Option<HttpClient>,
    /// Whether a proxy in front sets headers about a request's origin. Otherwise they are
    /// removed.
    pub fronted: bool,
    /// Hosts of issuer and gateway, as the card names them.
    pub hosts: [String; 2],
    /// Counts requests.
    pub outcomes: Family<Outcome, Counter>,
}

impl Api {
    /// What a request without a pass lacks, in the terms of Privacy Pass.
    fn token_challenge(&self) -> Option<TokenChallenge> {
        let epoch = self.pinned.schedule.epoch_at(clock::now())?;
        let [issuer, gateway] = &self.hosts;
        Some(TokenChallenge::new(&self.pinned, epoch, issuer, gateway))
    }

    fn count(&self, denied: Option<&GatewayError>) {
        let outcome = denied.map_or("admitted", |denied| denied.rule());
        self.outcomes.get_or_create(&Outcome { outcome }).inc();
    }
}

/// Runs the command until it is stopped.
///
/// # Errors
/// A setting is missing or invalid, or an address is not available.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(flags(args))?;
    let pass = settings.part::<PassSettings>()?;
    let folder = Settings::needed(&settings.identity, "identity")?;
    let identity = open_identity(&folder, Role::Gateway)?;
    let card = card::Card::load(&Settings::needed(&pass.card, "pass.card")?)?.1;
    let hosts = [card.issuer, card.gateway].map(|address| host(&address));
    let pinned = card.pinned;
    let address = Settings::needed(&settings.api, "api")?;
    let plain = pass.plain.unwrap_or(false);
    if plain && !address.ip().is_loopback() {
        return Err(PlainAddressError(address)).blame(Category::Usage);
    }
    let upstream = pass.upstream.as_deref().map(|upstream| -> Result<HttpClient, Failure> {
        let authority = std::fs::read_to_string(identity.path(AUTHORITY)).ok();
        let base = Base::anywhere(upstream).blame(Category::Usage)?;
        links::upstream(base, authority.as_deref())
    });
    let verifiers = Settings::needed(&pass.verifiers, "pass.verifiers")?;
    let mut rng = entropy::rng()?;
    let sessions = Sessions::new(Gateway::new(pinned.clone(), limits(&pass), &mut rng), rng);
    let outcomes = Family::default();
    globals.metrics.with(|registry| {
        let help = "Requests and connections, admitted or refused by rule";
        registry.register("pass_gateway_requests", help, outcomes.clone());
    });
    let shards = Shards::new(&verifiers, &identity, FOR_CLIENTS)?;
    let upstream = upstream.transpose()?;
    let shared = sessions.clone();
    let api = Api { pinned, sessions: shared, shards, upstream, fronted: plain, hosts, outcomes };
    let api = Arc::new(api);
    let tls = settings.tls.clone();
    let tls = tls.unwrap_or_else(|| TlsFiles { client_ca: None, ..identity.tls() });
    let tls = (!plain).then_some(tls);
    let listeners = move || Ok(listeners(address, tls, pass.check, api));
    let trigger = Trigger::new();
    globals.health.part("gateway").set(State::Ready);
    serve(listeners, &settings, globals, trigger.shutdown(), |at| {
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PRUNE).await;
                sessions.prune();
            }
        });
        note!("serving at {}", at.join(" "));
    })
}

/// The host of an address, with its port unless it is the usual one.
fn host(address: &str) -> String {
    Base::anywhere(address).map_or_else(|_| address.to_owned(), |base| base.authority())
}

fn listeners(
    address: SocketAddr,
    tls: Option<TlsFiles>,
    check: Option<SocketAddr>,
    api: Arc<Api>,
) -> Vec<Listener> {
    let clients =
        Listener { address, tls, router: router(api.clone()), streams: true, revoked: None };
    let mut listeners = vec![clients];
    let checks = |address| Listener {
        address,
        tls: None,
        router: checks(api),
        streams: false,
        revoked: None,
    };
    listeners.extend(check.map(checks));
    listeners
}

/// The routes for clients.
pub fn router(api: Arc<Api>) -> Router {
    Router::new().nest(api::PATH, api::router()).fallback(proxy::serve).with_state(api)
}

/// The routes for forward authentication.
pub fn checks(api: Arc<Api>) -> Router {
    Router::new()
        .route("/check", any(proxy::check))
        .route("/path", any(proxy::check_path))
        .route("/path/{*path}", any(proxy::check_path))
        .with_state(api)
}

fn limits(pass: &PassSettings) -> Limits {
    let default = Limits::default();
    let overlap =
        pass.overlap_milliseconds.map(|milliseconds| Span(milliseconds.saturating_mul(1000)));
    Limits {
        concurrent: pass.concurrent.unwrap_or(default.concurrent),
        overlap: overlap.unwrap_or(default.overlap),
    }
}

fn flags(args: &Args) -> Flags {
    vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("api", args.api.map(|api| api.to_string())),
        ("pass.card", path_flag(args.card.as_ref())),
        ("pass.verifiers", args.verifiers.clone()),
        ("pass.upstream", args.upstream.clone()),
        ("pass.check", args.check.map(|check| check.to_string())),
        ("pass.plain", args.plain.then(|| "true".to_owned())),
        ("pass.concurrent", args.concurrent.map(|number| number.to_string())),
        ("pass.overlap-milliseconds", args.overlap_milliseconds.map(|ms| ms.to_string())),
    ]
}
