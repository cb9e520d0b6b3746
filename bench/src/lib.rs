//! `alpheus-bench`: our figures and their floors, measured in one run so that they
//! can be compared.
//!
//! A floor is a small separate kernel in [`floors`] that does only the
//! unavoidable work. Figures are processor time, medians over alternating samples of ours and
//! the floor. The log is measured in wall-clock time.

mod board;
mod encrypt;
mod end_to_end;
mod epochs;
mod floors;
mod handshakes;
mod hosts;
mod init;
mod log;
mod masks;
mod measure;
mod neighbours;
mod pass;
mod plans;
mod program;
mod report;
mod seals;
mod stats;
mod sums;
mod tables;
mod verified_windows;

use alpheus_input::files::read_schema;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::service::children;
use alpheus_node::settings::Format;
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
  alpheus-bench streams
  alpheus-bench streams --format json > bench/results/streams.json
  alpheus-bench streams --only masks --only transformer
  alpheus-bench streams --quick --strict
  alpheus-bench epochs --presence 3,10
  alpheus-bench hosts --controllers 100
  alpheus-bench init --files data/csv --strict
  alpheus-bench pass --clients 12000 --epochs 40
  alpheus-bench board --writes 500
  alpheus-bench stats --only kernel
  alpheus-bench tables --only X128";

/// Arguments of `alpheus-bench`.
#[derive(Debug, clap::Parser)]
#[command(name = "alpheus-bench", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// Options of every command
    #[command(flatten)]
    pub globals: Globals,
    /// The program to measure; by default `alpheus` beside this one
    #[arg(long, global = true, value_name = "FILE")]
    pub program: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Encrypted streams: events, masks, sums, the log
    #[command(after_help = EXAMPLES)]
    Streams(Streams),
    /// The anonymous board: a write at a database, its writer, the rate of delivery
    Board(board::Args),
    /// Membership epochs, simulated: windows that open and what they cost, over presence
    Epochs(epochs::Args),
    /// Many controllers, each a process: cost and delay of a window
    Hosts(hosts::Args),
    /// From a file to a first answer: `alpheus init` on a large file, and on real ones
    Init(init::Args),
    /// Access passes: logins, re-ups, a crowd of clients, the gateway
    Pass(pass::Args),
    /// Accountable statistics: an upload at client and servers, an aggregate's end
    Stats(stats::Args),
    /// Verifiable tables: each part of the work, and the cost of checking
    Tables(tables::Args),
}

/// Arguments of `alpheus-bench streams`.
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
    /// End to end: over this schema, which extends the application's
    #[arg(long, value_name = "FILE", requires = "application")]
    schema: Option<PathBuf>,
    /// End to end: number of producers, or several numbers separated by commas
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    producers: Option<Vec<u32>>,
    /// End to end: number of windows for the medians
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
    /// Parts of sums and receipts of verified windows
    Verified,
    /// Secrets sealed, and TLS, by X25519 with ML-KEM-768, beside X25519 alone
    Seals,
    /// Devices to results, compared with plaintext jobs
    EndToEnd,
    /// Growth of ledgers, stores and memory with each window
    Growth,
    /// Bytes of a stream in an hour, beside plaintext, encrypted fields and DAP
    Wire,
}

/// A measurement failed.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    /// A schema of the bench, or the producer made for it.
    #[error("a built-in schema does not make a working producer; this is a bug")]
    Schema,
    /// A frame or a plan.
    #[error("the transformer rejected a frame of a built-in producer; this is a bug")]
    Transformer,
    /// A handshake of TLS with itself.
    #[error("a handshake failed: {0}")]
    Handshake(Box<dyn std::error::Error + Send + Sync>),
    /// A topic's name.
    #[error(transparent)]
    Name(#[from] alpheus_transport::NameError),
    /// The store.
    #[error(transparent)]
    Store(#[from] alpheus_transport::Error),
    /// The plain file.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The embedded deployment.
    #[error(transparent)]
    Runtime(#[from] alpheus_stream_runtime::error::RuntimeError),
    /// The service of one.
    #[error(transparent)]
    Service(#[from] alpheus_stream_runtime::service::ServiceError),
    /// The controllers of one.
    #[error(transparent)]
    Host(#[from] alpheus_stream_runtime::controller_host::HostError),
    /// A device.
    #[error(transparent)]
    Device(#[from] alpheus_stream_runtime::devices::DeviceError),
    /// A query of an example, or its plan.
    #[error(
        "a query of an application was rejected; --schema must extend the application's schema"
    )]
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
struct GoalError(usize);

/// Runs the command.
///
/// # Errors
/// If a measurement fails, or with `--strict` a goal is not met.
pub fn run(args: &Args) -> Result<(), Failure> {
    let globals = &args.globals;
    let beside = || std::env::current_exe().map(|own| own.with_file_name("alpheus"));
    let program = args.program.clone().map_or_else(beside, Ok).blame(Category::Io)?;
    children::set_program(program);
    let (report, strict) = match &args.command {
        Command::Streams(streams) => {
            let wider = streams.schema.as_deref().map(read_schema).transpose()?;
            (measure(streams, wider.as_ref()).blame(Category::Io)?, streams.strict)
        }
        Command::Board(board) => (board::measure(board)?, board.strict),
        Command::Epochs(epochs) => (epochs::measure(epochs), false),
        Command::Hosts(hosts) => (hosts::measure(hosts)?, false),
        Command::Init(init) => (init::measure(init)?, init.strict),
        Command::Pass(pass) => (pass::measure(pass)?, pass.strict),
        Command::Stats(stats) => (stats::measure(stats)?, stats.strict),
        Command::Tables(tables) => (tables::measure(tables), tables.strict),
    };
    print(&report, globals.format.unwrap_or_default())?;
    let missed = report.figures.iter().filter(|figure| figure.met == Some(false)).count();
    if strict && missed > 0 { Err(GoalError(missed)).blame(Category::Check) } else { Ok(()) }
}

/// Figures of a part that needs nothing but time, and may fail.
type Fallible = fn(Effort, fn(&str)) -> Result<Vec<report::Figure>, BenchError>;

const FALLIBLE: [(Part, Fallible); 2] =
    [(Part::Encrypt, encrypt::figures), (Part::Seals, handshakes::figures)];

/// Figures of a part that needs nothing but time.
type Alone = fn(Effort, fn(&str)) -> Vec<report::Figure>;

fn measure(args: &Streams, wider: Option<&Schema>) -> Result<Report, BenchError> {
    let environment = Environment::here();
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let (sample, repeats, most) = if args.quick { (2, 5, 10_000) } else { (10, 21, 100_000) };
    let effort = Effort { sample: Duration::from_millis(sample), repeats };
    let say: fn(&str) = |what| note!("{what}");
    let directory = args.directory.clone().unwrap_or_else(std::env::temp_dir);
    let mut figures = Vec::new();
    for (_, figures_of) in FALLIBLE.into_iter().filter(|(part, _)| wanted(*part)) {
        figures.extend(figures_of(effort, say)?);
    }
    let alone: [(Part, Alone); 3] = [
        (Part::Masks, masks::figures),
        (Part::Neighbours, neighbours::figures),
        (Part::Seals, seals::figures),
    ];
    for (_, figures_of) in alone.into_iter().filter(|(part, _)| wanted(*part)) {
        figures.extend(figures_of(effort, say));
    }
    if wanted(Part::Transformer) {
        figures.extend(sums::figures(effort, most, say)?);
    }
    if wanted(Part::Verified) {
        figures.extend(verified_windows::figures(effort, say));
        figures.extend(end_to_end::verified(&directory, args.quick, say)?);
    }
    if wanted(Part::Log) {
        figures.extend(log::figures(&directory, repeats.div_ceil(4), say)?);
    }
    if wanted(Part::EndToEnd) {
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
        let windows = if args.quick { 256 } else { 1_024 };
        let windows = args.windows.map_or(windows, NonZeroUsize::get);
        figures.extend(end_to_end::growth(&directory, windows, say)?);
    }
    if wanted(Part::Wire) {
        figures.extend(end_to_end::wire(&directory, say)?);
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
