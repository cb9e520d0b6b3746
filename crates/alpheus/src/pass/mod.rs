//! `alpheus pass`: an access pass before a web service. One pass gives one
//! session at a time, and the service cannot tell whose.
//!
//! - [`init`], [`card`]: keys and the public card of a deployment,
//! - [`issuer`]: accounts get passes,
//! - [`verifier`]: logins and spent tags, durable, in shards,
//! - [`gateway`]: sessions, the reverse proxy, forward authentication; no key,
//! - [`client`]: the pass, logins, re-ups, the local proxy,
//! - [`scan`]: login codes at gates,
//! - [`link`], [`forward`], [`ledger`], [`clock`], [`settings`]: what they share.

pub mod card;
pub mod client;
pub mod clock;
pub mod forward;
pub mod gateway;
pub mod init;
pub mod issuer;
pub mod ledger;
pub mod link;
pub mod refusal;
pub mod scan;
pub mod serve;
pub mod settings;
pub mod verifier;

use crate::commands::Globals;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  alpheus pass init deployment --issuer https://localhost:7501 --gateway https://localhost:7443
  alpheus pass account ada --accounts accounts.txt
  alpheus pass issuer --identity pki/issuer --deployment deployment --accounts accounts.txt --state run/issuer --api 127.0.0.1:7501 --first
  alpheus pass verifier --identity pki/verifier --deployment deployment --state run/verifier --api 127.0.0.1:7502
  alpheus pass gateway --identity pki/gateway --card deployment/card.json --verifiers https://localhost:7502 --upstream http://127.0.0.1:8000 --api 127.0.0.1:7443
  alpheus pass client run --pass ada.pass --key-file ada.key
  alpheus pass scan --identity pki/gate --card deployment/card.json --verifiers https://localhost:7502 CODE

docs/pass.md is a guide of ten minutes.";

/// Arguments of `alpheus pass`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a deployment: the issuer's key, and the card that everybody pins
    Init(init::Args),
    /// Say what a card says, and its fingerprint
    Card(card::Args),
    /// Add an account to a file, and print what it shows to the issuer
    Account(issuer::accounts::Args),
    /// Give passes to accounts
    Issuer(issuer::Args),
    /// Check logins and keep what is spent; several processes share the work
    Verifier(verifier::Args),
    /// Serve sessions: reverse proxy, and forward authentication for nginx and others
    Gateway(gateway::Args),
    /// Hold a pass: fetch it, log in, and let any browser or player use it
    Client(client::Args),
    /// Check a login code at a gate
    Scan(scan::Args),
}

/// Runs the command.
///
/// # Errors
/// A setting is missing or wrong, a file, a store or an address cannot be had.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        What::Init(args) => init::run(args),
        What::Card(args) => card::run(args, globals),
        What::Account(args) => issuer::accounts::run(args),
        What::Issuer(args) => issuer::run(args, globals),
        What::Verifier(args) => verifier::run(args, globals),
        What::Gateway(args) => gateway::run(args, globals),
        What::Client(args) => client::run(args, globals),
        What::Scan(args) => scan::run(args, globals),
    }
}
