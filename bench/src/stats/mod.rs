//! Accountable statistics: what an upload costs its client, the aggregator and a smoother, every
//! one of them checked in full; what an aggregate costs at its end; the paper's tables 2 to 4 beside.
//!
//! Servers are processes of their own, measured by the operating system's count of their
//! processor time; the clients are in this process and share the machine.

mod aggregate;
mod command;
mod kernel;
mod load;
mod servers;

use crate::measure::Effort;
use crate::report::{Environment, Report};
use alpheus_node::failure::Failure;
use alpheus_node::note;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus-bench stats
  alpheus-bench stats --only kernel --only aggregate
  alpheus-bench stats --uploads 3000 --format json > bench/results/stats.json";

/// Arguments of `alpheus-bench stats`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Measure only this part; may be repeated
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// Uploads to the servers
    #[arg(long, value_name = "NUMBER", default_value = "1000", value_parser = clap::value_parser!(u32).range(100..=100_000))]
    uploads: u32,
    /// Tuples of an aggregate that ends
    #[arg(long, value_name = "NUMBER", default_value = "10000", value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    tuples: u32,
    /// Fail if a goal is not met
    #[arg(long)]
    pub(super) strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// A tuple: made, and checked alone and in batches, at several widths
    Kernel,
    /// An aggregate that ends: its trees, partial decryptions, logarithms
    Aggregate,
    /// All roles as processes, behind HTTP
    Servers,
    /// The client's command, as people run it
    Command,
}

/// Measures everything.
///
/// # Errors
/// If a server does not start or refuses what it should take.
pub(super) fn measure(args: &Args) -> Result<Report, Failure> {
    let environment = Environment::here();
    let effort = Effort { sample: Duration::from_millis(50), repeats: 7 };
    let wanted = |part, what: &str| {
        let wanted = args.only.is_empty() || args.only.contains(&part);
        if wanted {
            note!("{what}");
        }
        wanted
    };
    let mut figures = Vec::new();
    if wanted(Part::Kernel, "kernel") {
        figures.extend(kernel::figures(effort)?);
    }
    if wanted(Part::Aggregate, "aggregate") {
        figures.extend(aggregate::figures(args.tuples)?);
    }
    if wanted(Part::Servers, "servers") {
        figures.extend(servers::figures(args.uploads)?);
    }
    if wanted(Part::Command, "the client's command") {
        figures.extend(command::figures()?);
    }
    Ok(Report { environment, figures, series: Vec::new() })
}
