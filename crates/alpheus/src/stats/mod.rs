//! `alpheus stats`: statistics from samples of people who stay anonymous, whose number
//! stays hidden until an aggregate closes, and of whom none counts more than a quota.
//!
//! - [`init`], [`keys`], [`card`]: keys of all parties and the deployment's public card,
//! - [`registrar`], [`smoother`], [`aggregator`]: the roles as processes,
//! - [`role`]: what those have in common,
//! - [`plan`], [`define`]: what is measured,
//! - [`client`], [`person`]: who contributes,
//! - [`counts`]: counts, for which no smoother is needed,
//! - [`ways`], [`names`]: what crosses between parties,
//! - [`results`], [`units`]: what comes out,
//! - [`clock`]: the machine's, or a replay's,
//! - [`replay`]: a recorded file through all of it,
//! - [`settings`]: what the processes can be told.

pub mod aggregator;
pub mod card;
pub mod client;
pub mod clock;
pub mod counts;
pub mod define;
pub mod init;
pub mod keys;
pub mod names;
pub mod person;
pub mod plan;
pub mod registrar;
pub mod replay;
pub mod results;
pub mod role;
pub mod settings;
pub mod smoother;
#[cfg(test)]
mod testing;
pub mod units;
pub mod ways;

use crate::commands::Globals;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  alpheus stats init roads --registrar https://localhost:7701 --aggregator https://localhost:7702 --smoother https://localhost:7711,https://localhost:7721 --threshold 1 --authority pki/ca.pem
  alpheus stats smoother --identity pki/smoother-1 --card roads/card.json --keys roads/smoother-1 --state run/smoother-1 --api 127.0.0.1:7711 --peers 127.0.0.1:7721
  alpheus stats define speed.yaml --card roads/card.json --key roads/definer.key
  alpheus stats client speed.yaml --card roads/card.json --account ada --secret-file ada.secret --state run/ada --input ada.txt
  alpheus stats results --card roads/card.json
  alpheus stats replay --input speed.csv --source source.yaml --define define.yaml --output out.csv";

/// Arguments of `alpheus stats`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make the keys of a deployment, a folder for each party, and its card
    Init(init::Args),
    /// Have smoothers sign what is to be measured
    Define(define::Args),
    /// Give accounts their credentials
    Registrar(registrar::Args),
    /// Give out slots, keep deposits, decrypt sums with the other smoothers
    Smoother(smoother::Args),
    /// Check and close aggregates, and publish results
    Aggregator(aggregator::Args),
    /// Give an account's samples, and see that they are counted
    Client(client::Args),
    /// Show results
    Results(results::Args),
    /// Run a recorded file through all roles, each a process started here
    Replay(replay::Args),
}

/// Runs the command.
///
/// # Errors
/// A setting is missing or wrong, a file, a store or an address cannot be had, a party
/// refuses.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        What::Init(args) => init::run(args),
        What::Define(args) => define::run(args, globals),
        What::Registrar(args) => registrar::run(args, globals),
        What::Smoother(args) => smoother::run(args, globals),
        What::Aggregator(args) => aggregator::run(args, globals),
        What::Client(args) => client::run(args, globals),
        What::Results(args) => results::run(args, globals),
        What::Replay(args) => replay::run(args, globals),
    }
}
