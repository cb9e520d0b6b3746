//! `alpheus bench`: our figures beside floors, measured in one run so that they
//! can be compared.
//!
//! A floor is a small kernel of its own in [`floors`] that does only the
//! unavoidable work. Processor time, medians over samples of ours and the floor
//! in turns; the log in wall-clock time.

#[cfg(feature = "board")]
mod board;
mod encrypt;
mod end_to_end;
mod floors;
mod hosts;
mod log;
mod masks;
mod measure;
mod neighbours;
#[cfg(feature = "pass")]
mod pass;
mod program;
mod report;
#[cfg(feature = "stats")]
mod stats;
mod sums;
#[cfg(feature = "table")]
mod tables;

use crate::commands::{Format, Globals};
use crate::failure::{Blame, Category, Failure};
use crate::replay::inputs::read_schema;
use alpheus_policy::schema::Schema;
use clap::{Subcommand, ValueEnum};
use measure::Effort;
use report::{Environment, Report};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus bench streams
  alpheus bench streams --format json > bench/results/streams.json
  alpheus bench streams --only masks --only transformer
  alpheus bench streams --quick --strict
  alpheus bench hosts --controllers 100
  alpheus bench pass --clients 12000 --epochs 40
  alpheus bench board --writes 500
  alpheus bench stats --only kernel
  alpheus bench tables --only X128";

/// Arguments of `alpheus bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Encrypted streams: events, masks, sums, the log
    #[command(after_help = EXAMPLES)]
    Streams(Streams),
    #[cfg(feature = "board")]
    /// The anonymous board: a write at a database, its writer, the rate of delivery
    Board(board::Args),
    /// Many controllers, each a process: what a window takes and how long
    Hosts(hosts::Args),
    #[cfg(feature = "pass")]
    /// Access passes: logins, re-ups, a crowd of clients, the gateway
    Pass(pass::Args),
    #[cfg(feature = "stats")]
    /// Accountable statistics: an upload at client and servers, an aggregate's end
    Stats(stats::Args),
    #[cfg(feature = "table")]
    /// Verifiable tables: each part of the work, and what checking adds
    Tables(tables::Args),
}

/// Arguments of `alpheus bench streams`.
#[derive(Debug, clap::Args)]
struct Streams {
    /// Measure only this part; may be repeated
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// Fewer and shorter samples, and at most 10,000 streams
    #[arg(long)]
    quick: bool,
    /// Fail if a goal is not met
    #[arg(long)]
    strict: bool,
    /// End to end: only this application
    #[arg(long, value_name = "NAME", value_parser = end_to_end::APPLICATIONS)]
    application: Option<String>,
    /// End to end: over this schema, which has all that the application's has, and more
    #[arg(long, value_name = "FILE", requires = "application")]
    schema: Option<PathBuf>,
    /// End to end: so many producers, or several numbers between commas
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    producers: Option<Vec<u32>>,
    /// End to end: medians over so many windows
    #[arg(long, value_name = "NUMBER")]
    windows: Option<NonZeroUsize>,
    /// Where the log is measured; by default the directory for temporary files
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Encoding and encrypting an event
    Encrypt,
    /// A controller's masks
    Masks,
    /// Set-up and windows of one controller among very many
    Neighbours,
    /// The transformer's sums
    Transformer,
    /// The embedded log
    Log,
    /// Devices to results, beside plaintext jobs
    EndToEnd,
    /// What ledgers, stores and memory grow by with each window
    Growth,
}

/// What was to be measured does not work.
#[derive(Debug, thiserror::Error)]
enum BenchFailed {
    /// A schema of the bench, or the producer made for it.
    #[error("a schema that is part of this program does not make a working producer")]
    Schema,
    /// A frame or a plan.
    #[error("the transformer refused what a producer of this program made")]
    Transformer,
    /// The store.
    #[error(transparent)]
    Store(#[from] alpheus_transport::Error),
    /// The plain file.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The embedded deployment.
    #[error(transparent)]
    Runtime(#[from] crate::runtime::embedded::RuntimeError),
    /// The service of one.
    #[error(transparent)]
    Service(#[from] crate::runtime::service::ServiceError),
    /// The controllers of one.
    #[error(transparent)]
    Host(#[from] crate::runtime::hosts::HostError),
    /// A device.
    #[error(transparent)]
    Device(#[from] crate::runtime::devices::DeviceError),
    /// A query of an example, or its plan.
    #[error("a query of an application was refused; --schema needs all that the application's has")]
    Query,
    /// A window without a result.
    #[error("a window did not open: {0}")]
    Window(String),
    /// Jobs that should compute the same.
    #[error("the results of encrypted and plaintext jobs differ")]
    Differs,
}

/// At least one goal is not met.
#[derive(Debug, thiserror::Error)]
#[error("{0} goals are not met")]
struct NotMet(usize);

/// Runs the command.
///
/// # Errors
/// If something to be measured does not work, or with `--strict` a goal is not met.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (report, strict) = match &args.what {
        What::Streams(streams) => {
            let wider = streams.schema.as_deref().map(read_schema).transpose()?;
            (measure(streams, wider.as_ref()).blame(Category::Io)?, streams.strict)
        }
        #[cfg(feature = "board")]
        What::Board(board) => (board::measure(board)?, board.strict),
        What::Hosts(hosts) => (hosts::measure(hosts)?, false),
        #[cfg(feature = "pass")]
        What::Pass(pass) => (pass::measure(pass)?, pass.strict),
        #[cfg(feature = "stats")]
        What::Stats(stats) => (stats::measure(stats)?, stats.strict),
        #[cfg(feature = "table")]
        What::Tables(tables) => (tables::measure(tables), tables.strict),
    };
    print(&report, globals.format.unwrap_or_default())?;
    let missed = report.figures.iter().filter(|figure| figure.met == Some(false)).count();
    if strict && missed > 0 { Err(NotMet(missed)).blame(Category::Check) } else { Ok(()) }
}

fn measure(args: &Streams, wider: Option<&Schema>) -> Result<Report, BenchFailed> {
    let environment = Environment::here();
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let (sample, repeats, most_streams) =
        if args.quick { (2, 5, 10_000) } else { (10, 21, 100_000) };
    let effort = Effort { sample: Duration::from_millis(sample), repeats };
    let say = |what: &str| eprintln!("{what}");
    let mut figures = Vec::new();
    if wanted(Part::Encrypt) {
        figures.extend(encrypt::figures(effort, say)?);
    }
    if wanted(Part::Masks) {
        figures.extend(masks::figures(effort, say));
    }
    if wanted(Part::Neighbours) {
        figures.extend(neighbours::figures(effort, say));
    }
    if wanted(Part::Transformer) {
        figures.extend(sums::figures(effort, most_streams, say)?);
    }
    if wanted(Part::Log) {
        let directory = args.directory.clone().unwrap_or_else(std::env::temp_dir);
        figures.extend(log::figures(&directory, repeats.div_ceil(4), say)?);
    }
    if wanted(Part::EndToEnd) {
        let directory = args.directory.clone().unwrap_or_else(std::env::temp_dir);
        let (producers, windows): (&[u32], _) =
            if args.quick { (&[100], 3) } else { (&[300, 1_200], 15) };
        let extent = end_to_end::Extent {
            producers: args.producers.as_deref().unwrap_or(producers),
            windows: args.windows.map_or(windows, NonZeroUsize::get),
            application: args.application.as_deref(),
            wider,
        };
        figures.extend(end_to_end::figures(&directory, &extent, say)?);
    }
    if wanted(Part::Growth) {
        let directory = args.directory.clone().unwrap_or_else(std::env::temp_dir);
        let windows = if args.quick { 256 } else { 1_024 };
        let windows = args.windows.map_or(windows, NonZeroUsize::get);
        figures.extend(end_to_end::growth(&directory, windows, say)?);
    }
    Ok(Report { environment, figures, series: Vec::new() })
}

fn print(report: &Report, format: Format) -> Result<(), Failure> {
    let shown = match format {
        Format::Table => report.to_string(),
        Format::Json => serde_json::to_string_pretty(report).blame(Category::Io)? + "\n",
        Format::Csv => report.to_csv(),
    };
    std::io::stdout().write_all(shown.as_bytes()).blame(Category::Io)
}
