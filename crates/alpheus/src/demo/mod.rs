//! `alpheus demo`: the guided first minutes. Dozens of owners, each with a device
//! and a privacy controller, and a service that holds neither values nor keys.

mod cheat;
mod play;
mod stage;
mod steps;
mod truth;
mod world;

use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;
use clap::value_parser;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus demo
  alpheus demo --check
  alpheus demo --input fitness.csv.gz --owners 30

--input takes a recording of fitness activities with the columns that
examples/real/fitness/source.yaml names. Without it, the demo generates plausible data.";

/// Arguments of `alpheus demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A recording of fitness activities: CSV, JSON lines or Parquet, or compressed as .gz
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Run without pauses, and fail unless every step succeeded and every result matched
    #[arg(long)]
    pub check: bool,
    /// Number of owners, each with one stream and one controller
    #[arg(long, value_name = "N", default_value_t = 36, value_parser = value_parser!(u32).range(20..=1000))]
    pub owners: u32,
}

/// Runs the command.
///
/// # Errors
/// [`Category::Check`](alpheus_node::failure::Category::Check) if a step had another outcome
/// than announced; otherwise if a file cannot be used or a store fails.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    match steps::play(args) {
        // The reader has read enough; with --check, though, the result is then unknown.
        Err(failure) if failure.is_broken_pipe() && !args.check => Ok(()),
        other => other,
    }
}
