//! `alpheus pass`: access passes for a web service. One pass allows one session at a
//! time, and the service cannot tell whose session it is.
//!
//! - [`init`], [`card`]: keys and public card of a deployment,
//! - [`issuer`]: issues passes to accounts,
//! - [`verifier`]: logins and spent tags, durable, in shards,
//! - [`gateway`]: sessions, reverse proxy, forward authentication; holds no issuer's key,
//! - [`client`]: pass, logins, re-ups, local proxy,
//! - [`scan`]: login codes at gates,
//! - [`command`], [`forward`], [`refusal`], [`settings`]: shared by several of them.

pub mod card;
pub mod client;
pub mod command;
pub mod error_ids;
pub mod forward;
pub mod gateway;
pub mod init;
pub mod issuer;
pub mod links;
pub mod refusal;
pub mod scan;
pub mod settings;
pub mod verifier;

use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;

const EXAMPLES: &str = "\
Examples:
  alpheus pass init deployment --issuer https://localhost:7501 --gateway https://localhost:7443
  alpheus pass account ada --accounts accounts.txt
  alpheus pass issuer --identity pki/issuer --deployment deployment --accounts accounts.txt \\
      --state run/issuer --api 127.0.0.1:7501 --new-state
  alpheus pass verifier --identity pki/verifier --deployment deployment --state run/verifier \\
      --api 127.0.0.1:7502
  alpheus pass gateway --identity pki/gateway --card deployment/card.json \\
      --verifiers https://localhost:7502 --upstream http://127.0.0.1:8000 \\
      --api 127.0.0.1:7443
  alpheus pass client run --pass ada.pass --key-file ada.key --local 127.0.0.1:7600
  alpheus pass scan --identity pki/gate --card deployment/card.json \\
      --verifiers https://localhost:7502 < code.txt

docs/pass.md is a ten-minute guide.";

/// Arguments of `alpheus pass`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create a deployment: the issuer's key, and the card that every client pins
    Init(init::Args),
    /// Print a card's content and fingerprint
    Card(card::Args),
    /// Add an account to a file, and print its secret
    Account(issuer::accounts::Args),
    /// Issue passes to accounts
    Issuer(issuer::Args),
    /// Check logins and store spent tags; several processes share the work
    Verifier(verifier::Args),
    /// Serve sessions: reverse proxy, or forward authentication for nginx and others
    Gateway(gateway::Args),
    /// Use a pass: fetch it, log in, and share the session with local programs
    Client(client::Args),
    /// Check a login code at a gate
    Scan(scan::Args),
}

/// Runs the command.
///
/// # Errors
/// A setting is missing or invalid, or a file, a store or an address is not available.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.command {
        Command::Init(args) => init::run(args),
        Command::Card(args) => card::run(args, globals),
        Command::Account(args) => issuer::accounts::run(args),
        Command::Issuer(args) => issuer::run(args, globals),
        Command::Verifier(args) => verifier::run(args, globals),
        Command::Gateway(args) => gateway::run(args, globals),
        Command::Client(args) => client::run(args, globals),
        Command::Scan(args) => scan::run(args, globals),
    }
}
