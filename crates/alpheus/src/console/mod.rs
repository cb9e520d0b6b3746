//! `alpheus console`: a page in the browser over a running deployment. For a
//! consumer it shows what may be asked and what comes of it; for an owner, who
//! learnt what about them, and it lets them stop it; for anybody, what accountable statistics
//! have come to.
//!
//! The page is part of this program and is served on this machine only: the
//! browser needs no certificate, and the service, which nobody need trust, has
//! no say in what the page does. Requests go on to the deployment over mutual
//! TLS, as the holder of the identity.

#[cfg(feature = "stats")]
mod aggregates;
mod gate;
mod learn;
mod own;
mod page;

use crate::ca::{OWNER_SEED, read_seed};
use crate::commands::Globals;
use crate::entropy;
use crate::failure::Failure;
use crate::network::answer::ApiError;
use crate::network::client::{Client, Problem, RequestError};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::network::tls::Meant;
use crate::query::sealed::Opener;
use crate::service::shutdown::Trigger;
use crate::service::{self, Settings};
use alpheus_crypto::sign::SigningKey;
use axum::Router;
use axum::http::StatusCode;
use gate::Gate;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus console --identity pki/analyst --server https://localhost:7400
  alpheus console --identity pki/alice --controller https://localhost:7401
  alpheus console --statistics roads/card.json --plan speed.yaml

It prints an address to open in a browser on this machine. The address holds a key: whoever
has it can do what the identity may, until the command ends.";

/// Whose page it is.
#[cfg(feature = "stats")]
const WHOM: [&str; 3] = ["server", "controller", "statistics"];
/// Whose page it is.
#[cfg(not(feature = "stats"))]
const WHOM: [&str; 2] = ["server", "controller"];

/// Arguments of `alpheus console`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[group(id = "whom", required = true, args = WHOM)]
pub struct Args {
    /// The folder that says who looks: a consumer's, or an owner's
    #[arg(long, value_name = "FOLDER", required_unless_present_any = &WHOM[2..])]
    identity: Option<PathBuf>,
    /// A consumer: the service that answers queries
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// An owner: the controller that guards the streams
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    controller: Option<String>,
    /// The name on the controller's certificate; by default whichever has one
    #[arg(long, value_name = "NAME", requires = "controller")]
    controller_name: Option<String>,
    /// Anybody: the card of a statistics deployment
    #[cfg(feature = "stats")]
    #[arg(long, value_name = "FILE")]
    statistics: Option<PathBuf>,
    /// A plan of these statistics: its place alone, in its unit
    #[cfg(feature = "stats")]
    #[arg(long, value_name = "FILE", requires = "statistics")]
    plan: Option<PathBuf>,
    /// The port on this machine; by default any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

/// Runs the command.
///
/// # Errors
/// The identity cannot be used, or the port cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (router, title) = args.page()?;
    let gate = Gate::new(&mut entropy::rng()?);
    let key = gate.key().to_owned();
    let router: Router = gate.guard(router).merge(page::router(title));
    let listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)));
    // Of the deployment's settings only these are about a page on this machine.
    let drain_seconds = Some(1);
    let settings = Settings { listen, drain_seconds, ..Settings::default() };
    let started = |address: SocketAddr| println!("http://{address}/#{key}");
    let (health, metrics, never) = (&globals.health, &globals.metrics, Trigger::new());
    service::run(&settings, router, health, metrics, never.shutdown(), started)?;
    Ok(())
}

impl Args {
    /// What is served, and the page's main script.
    fn page(&self) -> Result<(Router, &'static str), Failure> {
        #[cfg(feature = "stats")]
        if let Some(card) = &self.statistics {
            let plan = self.plan.as_deref().map(crate::stats::plan::Plan::open).transpose()?;
            return Ok((aggregates::router(crate::stats::card::open(card)?, plan), "aggregates"));
        }
        let folder = Settings::needed(&self.identity, "identity")?;
        match (&self.server, &self.controller) {
            (Some(server), _) => {
                let identity = IdentityFolder::open(&folder, Role::Consumer)?;
                let name = identity.name().name.clone();
                let opener = Opener::new(&identity)?;
                Ok((learn::router(Client::new(&identity, server)?, opener, name), "results"))
            }
            (None, controller) => {
                let identity = IdentityFolder::open(&folder, Role::Owner)?;
                let (name, base) = (identity.name().name.clone(), controller.as_deref());
                let meant = Meant { role: Role::Controller, name: self.controller_name.clone() };
                let client = Client::to(&identity, base.unwrap_or_default(), meant)?;
                let key = SigningKey::from_seed(&read_seed(&identity.path(OWNER_SEED))?);
                Ok((own::router(client, name, key), "streams"))
            }
        }
    }
}

/// Asks the deployment where blocking is allowed.
async fn ask<T: Send + 'static>(
    client: &Client,
    ask: impl FnOnce(&Client) -> Result<T, RequestError> + Send + 'static,
) -> Result<T, ApiError> {
    let client = client.clone();
    let asked = tokio::task::spawn_blocking(move || ask(&client)).await;
    let asked = asked.map_err(|_| ApiError::failed("the request was cut short"))?;
    asked.map_err(|error| match error {
        RequestError::Refused(Problem { rule, detail, help, status }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            let error = ApiError::new(status, &rule, detail);
            help.into_iter().fold(error, ApiError::with_help)
        }
        other => {
            let why = std::error::Error::source(&other).map(|source| format!(": {source}"));
            let said = format!("{other}{}", why.unwrap_or_default());
            ApiError::new(StatusCode::BAD_GATEWAY, "unreachable", said)
        }
    })
}
