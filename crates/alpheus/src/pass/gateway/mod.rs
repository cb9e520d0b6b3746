//! `alpheus pass gateway`: serves sessions. It holds no issuer's key and stores
//! nothing; a thief of it learns which requests make one session, and no more.
//!
//! - [`sessions`]: who may ask what, until when,
//! - [`api`]: logins, re-ups, connections, logouts,
//! - [`proxy`]: everything else.

pub mod api;
mod proxy;
pub mod sessions;

use crate::commands::Globals;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::pass::card;
use crate::pass::link::{Base, Link};
use crate::pass::serve::{Listener, serve};
use crate::pass::settings::PassSettings;
use crate::pass::verifier::shards::{FOR_CLIENTS, Shards};
use crate::service::health::State;
use crate::service::shutdown::Trigger;
use crate::service::tls::TlsFiles;
use crate::service::{Flags, Settings, path_flag};
use alpheus_access_pass::error::Denied;
use alpheus_access_pass::gateway::{Gateway, Limits};
use alpheus_anonymous_credential::configuration::Pinned;
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
  alpheus pass gateway --identity pki/gateway --card deployment/card.json --verifiers https://localhost:7502 --upstream http://127.0.0.1:8000 --api 127.0.0.1:7443
  alpheus pass gateway --identity pki/gateway --card deployment/card.json --verifiers https://localhost:7502 --api 127.0.0.1:7443 --plain --check 127.0.0.1:7444

The first protects a service by itself, and cuts streams when their session ends. The second
is asked by nginx, Traefik, Caddy or Envoy at http://127.0.0.1:7444; see docs/pass.md.";

/// How often what is over is forgotten.
const PRUNE: Duration = Duration::from_secs(5);

/// Arguments of `alpheus pass gateway`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder that says who it is
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The deployment's public card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// All verifiers, in order, between commas
    #[arg(long, value_name = "URLS")]
    verifiers: Option<String>,
    /// The service behind it
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Where clients reach it
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// Where other proxies ask whether a request may go on; keep it private
    #[arg(long, value_name = "ADDRESS")]
    check: Option<SocketAddr>,
    /// No TLS, on this machine only: something in front has it
    #[arg(long)]
    plain: bool,
    /// Requests of one session at the same time [default: 16]
    #[arg(long, value_name = "NUMBER")]
    concurrent: Option<u32>,
    /// How long running requests may go on after their session [default: 2000]
    #[arg(long, value_name = "MILLISECONDS")]
    overlap_milliseconds: Option<u64>,
}

/// A gateway without TLS for everybody to reach.
#[derive(Debug, thiserror::Error)]
#[error("without TLS a gateway listens on this machine only; {0} is for others too")]
struct Bare(SocketAddr);

/// Requests that were let through or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    /// `admitted`, or the rule.
    pub outcome: &'static str,
}

/// What requests need, shared by all of them.
pub struct Api {
    /// The configuration.
    pub pinned: Pinned,
    /// Who may ask what.
    pub sessions: Arc<Sessions>,
    /// The ways to the verifiers.
    pub shards: Shards,
    /// The way to the service behind it.
    pub upstream: Option<Link>,
    /// Whether a proxy in front says where requests come from; else nobody may.
    pub fronted: bool,
    /// Counts requests.
    pub outcomes: Family<Outcome, Counter>,
}

impl Api {
    fn count(&self, denied: Option<&Denied>) {
        let outcome = denied.map_or("admitted", |denied| denied.rule());
        self.outcomes.get_or_create(&Outcome { outcome }).inc();
    }
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A setting is missing or wrong, an address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(flags(args))?;
    let pass = settings.pass.clone().unwrap_or_default();
    let folder = Settings::needed(&settings.identity, "identity")?;
    let identity = IdentityFolder::open(&folder, Role::Gateway)?;
    let pinned = card::open(&Settings::needed(&pass.card, "pass.card")?)?.1.pinned;
    let address = Settings::needed(&settings.api, "api")?;
    let plain = pass.plain.unwrap_or(false);
    if plain && !address.ip().is_loopback() {
        return Err(Bare(address)).blame(Category::Usage);
    }
    let upstream = pass.upstream.as_deref().map(|upstream| -> Result<Link, Failure> {
        let authority = std::fs::read_to_string(identity.path(crate::network::identity::AUTHORITY));
        Link::new(Base::anywhere(upstream).blame(Category::Usage)?, authority.ok().as_deref())
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
    let known = sessions.clone();
    let api = Api { pinned, sessions: known, shards, upstream, fronted: plain, outcomes };
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
        eprintln!("serving at {}", at.join(" "));
    })
}

fn listeners(
    address: SocketAddr,
    tls: Option<TlsFiles>,
    check: Option<SocketAddr>,
    api: Arc<Api>,
) -> Vec<Listener> {
    let mut listeners = vec![Listener { address, tls, router: router(api.clone()), streams: true }];
    let checks = |address| Listener { address, tls: None, router: checks(api), streams: false };
    listeners.extend(check.map(checks));
    listeners
}

/// What clients reach.
pub fn router(api: Arc<Api>) -> Router {
    Router::new().nest(api::PATH, api::router()).fallback(proxy::serve).with_state(api)
}

/// What other proxies ask.
pub fn checks(api: Arc<Api>) -> Router {
    Router::new()
        .route("/check", any(proxy::check))
        .route("/path", any(proxy::check_path))
        .route("/path/{*path}", any(proxy::check_path))
        .with_state(api)
}

fn limits(pass: &PassSettings) -> Limits {
    let usual = Limits::default();
    let overlap = pass.overlap_milliseconds.map(|milliseconds| milliseconds.saturating_mul(1000));
    Limits {
        concurrent: pass.concurrent.unwrap_or(usual.concurrent),
        overlap: overlap.unwrap_or(usual.overlap),
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
