//! The command line: what every command shares, and which commands there are.
//!
//! A command's arguments and its `run` live in the module that does the work
//! (`replay::Args`, `replay::run`); here is one variant and one arm for each.

pub mod completions;

use crate::failure::{Category, Failure};
use crate::service::health::Health;
use crate::service::metrics::Metrics;
use crate::service::{self, Flags, Said, ServiceError, Settings};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  ran, and what it checked does not hold
  2  the command line is wrong
  3  a policy refuses what was asked
  4  a file that was given cannot be understood
  5  the machine did not let us read, write, listen or connect
  130  asked to stop before the end (Ctrl-C, SIGTERM), and did so in order

Each command's --help has examples.";

/// Learn from personal data without ever holding it.
#[derive(Debug, Parser)]
#[command(name = "alpheus", version, propagate_version = true, after_help = AFTER_HELP)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub struct Cli {
    /// What every command understands.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command understands.
#[derive(Clone, Debug, Args)]
pub struct Globals {
    /// How to print results on standard output
    #[arg(
        long,
        global = true,
        value_enum,
        env = "ALPHEUS_FORMAT",
        help_heading = "Common options"
    )]
    pub format: Option<Format>,
    /// What to log on standard error: off, error, warn, info, debug, or per module as in `warn,alpheus=info` [default: warn]
    #[arg(
        long,
        global = true,
        env = "ALPHEUS_LOG",
        value_name = "FILTER",
        help_heading = "Common options"
    )]
    pub log: Option<String>,
    /// Configuration file; flags and ALPHEUS_* variables win over it
    #[arg(
        long,
        global = true,
        env = "ALPHEUS_CONFIG",
        value_name = "FILE",
        help_heading = "Common options"
    )]
    pub config: Option<PathBuf>,
    /// Serve /healthz and /metrics at this address while the command runs
    #[arg(
        long,
        global = true,
        env = "ALPHEUS_LISTEN",
        value_name = "ADDRESS",
        help_heading = "Common options"
    )]
    pub listen: Option<SocketAddr>,
    /// What `/healthz` tells
    #[arg(skip)]
    pub health: Health,
    /// What `/metrics` tells
    #[arg(skip)]
    pub metrics: Metrics,
}

impl Globals {
    /// The settings, with what the command's own flags say.
    ///
    /// # Errors
    /// The first setting that is wrong.
    pub fn settings(&self, flags: Flags) -> Result<Settings, Failure> {
        self.said().settings(flags).map_err(|error| ServiceError::from(error).into())
    }

    fn said(&self) -> Said<'_> {
        Said {
            config: self.config.as_deref(),
            format: self.format,
            log: self.log.as_deref(),
            listen: self.listen,
        }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For eyes
    #[default]
    Table,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The guided first minutes: owners, a service, queries, refusals
    Demo(crate::demo::Args),
    /// Run a recorded file through the whole system, in event time
    Replay(crate::replay::Args),
    /// Make plausible data for an example
    Generate(crate::generate::Args),
    /// Say what a query would reveal, before anything runs
    #[command(visible_alias = "explain")]
    Query(crate::query::Args),
    #[cfg(feature = "bench")]
    /// Measure our figures beside floors, in one run
    Bench(crate::bench::Args),
    /// Run the service: log, sums, queries; no key to any data
    Server(crate::server::Args),
    /// Guard owners' streams: keys, policies, ledger
    Controller(crate::controller::Args),
    /// Add streams, choose what may be learnt, see who learnt what, revoke, erase
    Owner(crate::owner::Args),
    /// Read a stream's events one by one, where its owner lets you
    Read(crate::read::Args),
    /// Encrypt lines of input as a device's events, and send them
    Produce(crate::produce::Args),
    /// See results, or who learnt what about you, in a browser
    Console(crate::console::Args),
    #[cfg(feature = "pass")]
    /// Protect a service with passes that nobody can link
    Pass(crate::pass::Args),
    #[cfg(feature = "board")]
    /// Write to a public board without anybody knowing who wrote what
    Board(crate::board::Args),
    #[cfg(feature = "stats")]
    /// Learn averages of what nobody has told anybody
    Stats(crate::stats::Args),
    #[cfg(feature = "table")]
    /// Keep an encrypted table on a server that is not trusted, and check its answers
    Table(crate::table::Args),
    /// Make a PKI to try things with
    Ca(crate::ca::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

/// Runs the command that `args` spell (the program's name first) and says on
/// standard error how it failed, if it did.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    crate::service::children::go_along();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody is left to tell if standard error is gone too.
            let _ = writeln!(std::io::stderr(), "{failure}");
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { mut globals, command } = cli;
    let settings = globals.settings(Vec::new())?;
    globals.format = settings.format;
    let monitor = service::watch(&settings, &globals.health, &globals.metrics)?;
    if let Some(monitor) = &monitor {
        // Nobody is left to tell if standard error is gone.
        let _ = writeln!(std::io::stderr(), "/healthz and /metrics at {}", monitor.address());
    }
    match command {
        Command::Demo(args) => crate::demo::run(&args, &globals),
        Command::Replay(args) => crate::replay::run(&args, &globals),
        Command::Query(args) => crate::query::run(&args, &globals),
        Command::Generate(args) => crate::generate::run(&args, &globals),
        #[cfg(feature = "bench")]
        Command::Bench(args) => crate::bench::run(&args, &globals),
        Command::Server(args) => crate::server::run(&args, &globals),
        Command::Controller(args) => crate::controller::run(&args, &globals),
        Command::Owner(args) => crate::owner::run(&args, &globals),
        Command::Read(args) => crate::read::run(&args, &globals),
        Command::Produce(args) => crate::produce::run(&args, &globals),
        Command::Console(args) => crate::console::run(&args, &globals),
        #[cfg(feature = "pass")]
        Command::Pass(args) => crate::pass::run(&args, &globals),
        #[cfg(feature = "board")]
        Command::Board(args) => crate::board::run(&args, &globals),
        #[cfg(feature = "stats")]
        Command::Stats(args) => crate::stats::run(&args, &globals),
        #[cfg(feature = "table")]
        Command::Table(args) => crate::table::run(&args, &globals),
        Command::Ca(args) => crate::ca::run(&args, &globals),
        Command::Completions(args) => completions::run(args),
    }
}

/// Help and version were asked for and are no error; all else is.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(Category::Usage.exit_code()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_examples() {
        for command in Cli::command().get_subcommands() {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Examples:"), "`alpheus {}` shows none", command.get_name());
        }
    }
}
