//! `alpheus replay`: runs a recorded file through the whole system, in event time.

pub mod bounds;
mod edges;
pub mod feed;
mod fingerprint;
pub mod groups;
pub mod inputs;
pub mod larger;
mod limits;
mod margins;
mod output;
mod run;
pub mod windows;

pub use limits::{MaxRefused, no_window};
pub use output::counted;
pub(crate) use output::report_refused;

use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;
use alpheus_policy::query::{MaskChoice, MembershipChoice};
use alpheus_stream_runtime::embedded_deployment::Controllers;
use clap::ValueEnum;
use std::path::PathBuf;
use std::str::FromStr;

const EXAMPLES: &str = "\
Examples:
  alpheus replay --schema schema.yaml --source source.yaml --input data.csv.gz \\
      --policies policies.yaml --query stats.sql --output results.csv
  alpheus replay --schema schema.yaml --source source.yaml --input data.csv.gz \\
      --policies policies.yaml --query stats.sql --controllers 8 --masks epoch \\
      --state state --output results.json
  alpheus replay --schema schema.yaml --source source.yaml --input data.csv.gz \\
      --policies policies.yaml --query stats.sql --query daily.sql --output results
  alpheus replay --schema schema.yaml --source source.yaml --input data.csv.gz \\
      --policies policies.yaml --output - --query \\
      'SELECT AVG(heart_rate) WINDOW TUMBLING (SIZE 1 MINUTE) FROM FitnessTracker BETWEEN 10 AND 1000'

Every role takes part: devices encrypt, controllers check their owners' policies
and release tokens, the service sums ciphertexts. Only event time is simulated.
An interrupted run with --state continues where it stopped. If queries have windows of
different lengths, streams are online for whole windows of the longest. The shorter
windows then have rows without data at both ends.";

/// Arguments of `alpheus replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The schema, as YAML or .avsc
    #[arg(long, value_name = "FILE")]
    pub schema: PathBuf,
    /// How the columns of the input become events
    #[arg(long, value_name = "FILE")]
    pub source: PathBuf,
    /// The recording: delimited text, JSON lines or Parquet, or compressed as .gz
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// The owners' choices; by default the first option that the schema offers
    #[arg(long, value_name = "FILE")]
    pub policies: Option<PathBuf>,
    /// A query: a file, or the text itself; several may run at once if they lock different attributes
    #[arg(long, value_name = "FILE|SQL", required = true)]
    pub query: Vec<PathBuf>,
    /// Number of privacy controllers, or `per-owner`
    #[arg(long, value_name = "per-owner|N", default_value = "1")]
    pub controllers: ControllerCount,
    /// How controllers share masks; by default chosen by their number
    #[arg(long, value_enum)]
    pub masks: Option<Masks>,
    /// When members are chosen; by default as the query says
    #[arg(long, value_enum)]
    pub membership: Option<Membership>,
    /// Length of a tick, such as `10s`; by default the longest up to a day that divides all windows
    #[arg(long, value_name = "DURATION")]
    pub tick: Option<String>,
    /// Folder for logs, ledgers and keys, to continue after an interruption
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Maximum share of rows that may be rejected; if more are, nothing is replayed
    #[arg(long, value_name = "PERCENT", default_value = "0.1%")]
    pub max_refused: MaxRefused,
    /// Where to write results: .csv or .json, a directory for several queries, or `-` for standard
    /// output, as CSV or with `--format json`
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
}

/// How controllers share masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Masks {
    /// Every pair, every window
    Clique,
    /// A sparse random graph, drawn for each window (Ács-Castelluccia)
    Dream,
    /// Sparse random graphs, drawn once per epoch (Zeph)
    Epoch,
    /// Each controller picks a few others: the least setup for many controllers
    Neighbours,
}

impl From<Masks> for MaskChoice {
    fn from(masks: Masks) -> MaskChoice {
        match masks {
            Masks::Clique => MaskChoice::Clique,
            Masks::Dream => MaskChoice::Dream,
            Masks::Epoch => MaskChoice::Epoch,
            Masks::Neighbours => MaskChoice::Neighbours,
        }
    }
}

/// When it is fixed who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Membership {
    /// With the query
    Fixed,
    /// After each window, from those whose streams were online
    Epochs,
}

impl From<Membership> for MembershipChoice {
    fn from(membership: Membership) -> MembershipChoice {
        match membership {
            Membership::Fixed => MembershipChoice::Fixed,
            Membership::Epochs => MembershipChoice::Epochs,
        }
    }
}

/// `--controllers`.
#[derive(Clone, Copy, Debug)]
pub struct ControllerCount(pub Controllers);

impl FromStr for ControllerCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "per-owner" {
            return Ok(ControllerCount(Controllers::PerOwner));
        }
        match text.parse() {
            Ok(0) | Err(_) => Err("expected `per-owner` or a positive number".to_owned()),
            Ok(count) => Ok(ControllerCount(Controllers::Count(count))),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// If a file cannot be read or parsed, the query is refused, or a store fails.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    run::replay(args, globals)
}
