//! `alpheus demo`: the guided first minutes. Dozens of owners, each with a device
//! and a privacy controller, a service that holds neither values nor keys, and
//! everything that makes the difference happening before one's eyes.

mod play;
mod stage;
mod steps;
mod truth;
mod world;

use crate::commands::Globals;
use crate::failure::Failure;
use clap::value_parser;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus demo
  alpheus demo --check
  alpheus demo --input fitness.csv.gz --owners 30

--input takes a recording of fitness activities with the columns that
examples/real/fitness/source.yaml names; without it, plausible data are made up.";

/// Arguments of `alpheus demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A recording of fitness activities, CSV; .gz is unpacked
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Runs without pauses, and fails unless all happened and matched
    #[arg(long)]
    pub check: bool,
    /// How many owners take part, each with one stream and one controller
    #[arg(long, value_name = "N", default_value_t = 36, value_parser = value_parser!(u32).range(20..=1000))]
    pub owners: u32,
}

/// Runs the command.
///
/// # Errors
/// [`Category::Check`](crate::failure::Category::Check) if something did not
/// happen as the demo says; otherwise if a file cannot be used or a store fails.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    match steps::play(args) {
        // Whoever reads us has read enough; but nobody then knows that all matched.
        Err(failure) if failure.is_broken_pipe() && !args.check => Ok(()),
        other => other,
    }
}
