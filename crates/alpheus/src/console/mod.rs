//! `alpheus console`: a web app for a running deployment. Consumers see what they may ask, and the
//! results. Owners see who learned what about them, and decide. Operators see how the service
//! does. Anyone can see the results of accountable statistics.
//!
//! The page is part of this program and is served only on this machine. The browser needs
//! no certificate, and the untrusted service cannot change what the page does. Requests are
//! forwarded to the deployment over mutual TLS, with the identity of the command.

mod access_key;
#[cfg(feature = "stats")]
mod aggregates;
mod choices;
mod consumer;
mod decisions;
mod findings;
mod owner;
mod page;

use access_key::AccessKey;
use alpheus_node::entropy;
use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;
use alpheus_node::network::answer::ApiError;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::revocations::{open_identity, open_identity_of};
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::service;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::settings::Settings;
use alpheus_streams::links;
use alpheus_streams::owner::identity::OwnerIdentity;
use alpheus_streams::query::opener::Opener;
use axum::Router;
use axum::http::StatusCode;
use clap::ArgGroup;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

const EXAMPLES: &str = "\
Examples:
  alpheus console --identity pki/analyst --server https://localhost:7400
  alpheus console --identity pki/alice --controller https://localhost:7401
  alpheus console --identity pki/operator --server https://localhost:7400
  alpheus console --statistics roads/card.json --plan speed.yaml

It prints an address to open in a browser on this machine. The address contains a key, which opens
one tab. Then it prints another address, for a second tab. Anyone who opens one can act as the
identity until the command ends.";

/// The sources that a page can have.
#[cfg(feature = "stats")]
const SOURCES: [&str; 3] = ["server", "controller", "statistics"];
/// The sources that a page can have.
#[cfg(not(feature = "stats"))]
const SOURCES: [&str; 2] = ["server", "controller"];

#[cfg(feature = "stats")]
const USAGE: &str = "\
alpheus console [OPTIONS] --identity <FOLDER> <--server <URL>|--controller <URL>>
       alpheus console [OPTIONS] --statistics <FILE>";
#[cfg(not(feature = "stats"))]
const USAGE: &str =
    "alpheus console [OPTIONS] --identity <FOLDER> <--server <URL>|--controller <URL>>";

/// Arguments of `alpheus console`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(group = ArgGroup::new("source").required(true).multiple(true).args(SOURCES))]
// The group of all arguments, which clap makes by itself, would have any of them be a source.
#[group(skip)]
pub struct Args {
    /// The identity folder of a consumer, an owner or an operator
    #[arg(long, value_name = "FOLDER", required_unless_present_any = &SOURCES[2..])]
    identity: Option<PathBuf>,
    /// For a consumer or an operator: the URL of the service
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// For an owner: the URL of the controller
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    controller: Option<String>,
    /// The name on the controller's certificate; by default any
    #[arg(long, value_name = "NAME", requires = "controller")]
    controller_name: Option<String>,
    /// For anyone: the card of a statistics deployment
    #[cfg(feature = "stats")]
    #[arg(long, value_name = "FILE")]
    statistics: Option<PathBuf>,
    /// A plan of these statistics: show only its place, in its unit
    #[cfg(feature = "stats")]
    #[arg(long, value_name = "FILE", requires = "statistics")]
    plan: Option<PathBuf>,
    /// The local port; by default any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

/// Runs the command.
///
/// # Errors
/// The identity or the port cannot be used.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let router = args.routes()?;
    let place: Arc<OnceLock<SocketAddr>> = Arc::default();
    let known = Arc::clone(&place);
    let say = move |key: &str| {
        let address = known.get().map(ToString::to_string).unwrap_or_default();
        note!("to open another tab: http://{address}/#{key}");
    };
    let gate = AccessKey::new(entropy::rng()?, say);
    let key = gate.key();
    let router: Router = page::protected(gate.guard(router).merge(page::router()));
    let listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)));
    // Other settings concern the deployment, not a page on this machine.
    let drain_seconds = Some(1);
    let settings = Settings { listen, drain_seconds, ..Settings::default() };
    let started = |address: SocketAddr| {
        let _ = place.set(address);
        println!("http://{address}/#{key}");
    };
    let (watched, never) = ((&globals.health, &globals.metrics), Trigger::new());
    service::run(&settings, (router, Arc::new(|_| true)), watched, never.shutdown(), started)?;
    Ok(())
}

impl Args {
    /// The page's requests. They depend on the identity.
    fn routes(&self) -> Result<Router, Failure> {
        #[cfg(feature = "stats")]
        if let Some(card) = &self.statistics {
            let plan =
                self.plan.as_deref().map(alpheus_stats_service::plan::Plan::open).transpose()?;
            return Ok(aggregates::router(alpheus_stats_service::card::open(card)?, plan));
        }
        let folder = Settings::needed(&self.identity, "identity")?;
        let Some(server) = &self.server else { return self.owners_routes(&folder) };
        let identity = open_identity_of(&folder, (Role::Consumer, &[Role::Operator]))?;
        let name = identity.name().name.clone();
        let client = links::service(server, &identity)?.http().clone();
        if identity.name().role == Role::Operator {
            return Ok(consumer::operators_router(client, name));
        }
        Ok(consumer::router(client, Opener::new(&identity)?, name))
    }

    fn owners_routes(&self, folder: &Path) -> Result<Router, Failure> {
        let identity = open_identity(folder, Role::Owner)?;
        let base = self.controller.as_deref().unwrap_or_default();
        let client = links::controller(base, self.controller_name.as_deref(), &identity)?;
        let owner = OwnerIdentity::open(&identity)?;
        Ok(owner::router(client.http().clone(), owner, identity))
    }
}

/// What the page gets when the deployment has refused or does not answer.
fn failed(error: RequestError) -> ApiError {
    match error {
        RequestError::Refused(problem) => problem.into(),
        other => ApiError::new(StatusCode::BAD_GATEWAY, "unreachable", other.to_string()),
    }
}
