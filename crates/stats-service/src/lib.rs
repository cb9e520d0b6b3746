//! `alpheus stats`: statistics over anonymous samples. The number of samples stays hidden until an
//! aggregate closes, and no account can contribute more than its quota.
//!
//! - [`init`], [`keys`], [`card`]: the keys of all parties and the deployment's public card,
//! - [`registrar`], [`smoother`], [`aggregator`]: the roles as processes,
//! - [`role`]: the setup they share,
//! - [`plan`], [`define`]: plans and definitions of aggregates,
//! - [`client`], [`contributor_state`], [`client_ledger`]: contributors,
//! - [`counts`]: counts, which need no smoothers,
//! - [`parties`], [`links`], [`names`]: connections between parties,
//! - [`results_reader`], [`results`], [`row`], [`units`]: published results,
//! - [`replay`]: a recorded file through a local deployment,
//! - [`settings`]: the settings of the processes.

pub mod aggregator;
pub mod card;
pub mod client;
mod client_ledger;
pub mod contributor_state;
pub mod counts;
pub mod define;
pub mod error_ids;
pub mod init;
pub mod keys;
pub mod links;
pub mod membership;
pub mod names;
pub mod parties;
pub mod plan;
mod refusal;
pub mod registrar;
pub mod replay;
pub mod results;
pub mod results_reader;
pub mod role;
pub mod row;
pub mod settings;
pub mod smoother;
#[cfg(test)]
mod test_deployment;
pub mod units;

use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;

const EXAMPLES: &str = "\
Examples:
  alpheus stats init roads --registrar https://localhost:7701 \\
      --aggregator https://localhost:7702 \\
      --smoother https://localhost:7711,https://localhost:7721 --threshold 1 \\
      --authority pki/ca.pem
  alpheus stats smoother --identity pki/smoother-1 --card roads/card.json \\
      --keys roads/smoother-1 --state run/smoother-1 --api 127.0.0.1:7711 \\
      --peers 127.0.0.1:7721
  alpheus stats define speed.yaml --card roads/card.json --key roads/definer.key
  alpheus stats client speed.yaml --card roads/card.json --account ada \\
      --secret-file ada.secret --state run/ada --input ada.txt
  alpheus stats results --card roads/card.json
  alpheus stats replay --input speed.csv --source source.yaml --define define.yaml \\
      --output out.csv";

/// Arguments of `alpheus stats`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create a deployment: a folder of keys for each party, and its card
    Init(init::Args),
    /// Define aggregates: have the smoothers sign them
    Define(define::Args),
    /// Run the registrar, which issues credentials to accounts
    Registrar(registrar::Args),
    /// Run a smoother: an aggregation node that grants slots, stores deposits and jointly decrypts sums
    Smoother(smoother::Args),
    /// Run the aggregator, which checks and closes aggregates and publishes results
    Aggregator(aggregator::Args),
    /// Contribute an account's samples, and check that they count
    Client(client::Args),
    /// Show results
    Results(results::Args),
    /// Replay a recorded file through a local deployment, with one process per role
    Replay(replay::Args),
}

/// Runs the command.
///
/// # Errors
/// A setting is missing or wrong; a file, store or address is unavailable; or a party refuses.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.command {
        Command::Init(args) => init::run(args),
        Command::Define(args) => define::run(args, globals),
        Command::Registrar(args) => registrar::run(args, globals),
        Command::Smoother(args) => smoother::run(args, globals),
        Command::Aggregator(args) => aggregator::run(args, globals),
        Command::Client(args) => client::run(args, globals),
        Command::Results(args) => results::run(args, globals),
        Command::Replay(args) => replay::run(args, globals),
    }
}
