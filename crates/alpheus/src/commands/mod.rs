//! The command line: what every command shares, and which commands there are.
//!
//! A command's arguments and its `run` live in the module that does the work
//! (`replay::Args`, `replay::run`); here is one variant and one arm for each.

pub mod completions;
pub mod manual;
pub mod private_copy;

use crate::errors;
use alpheus_node::failure::{Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::proxy;
use alpheus_node::service;
#[cfg(any(feature = "board", feature = "pass", feature = "stats", feature = "worker"))]
use alpheus_node::settings::Part;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  the command ran, and a check failed
  2  the command line is wrong
  3  refused by a policy
  4  an input file cannot be parsed
  5  I/O or permission error
  6  undecided: the command would have to guess what matters
  130  stopped early on request (Ctrl-C, SIGTERM)

Each command's --help has examples. `alpheus errors ID` explains a failure.";

/// Learn from personal data without ever holding it.
#[derive(Debug, Parser)]
#[command(name = "alpheus", version, propagate_version = true, after_help = AFTER_HELP)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub globals: Globals,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A guided tour: owners, a service, queries, refusals
    Demo(crate::demo::Args),
    /// Run a whole deployment on this machine: service, controllers, owners, devices, consoles
    Up(crate::up::Args),
    /// Run a recorded file through the whole system, in event time
    Replay(alpheus_streams::replay::Args),
    /// Generate plausible data for an example
    Generate(crate::generate::Args),
    /// Check that files are valid: schemas, policies, sources, settings, queries
    Check(crate::check::Args),
    /// Turn a file of readings into a schema, policies, a query and a first answer
    Init(crate::init::Args),
    /// Turn a data contract into a schema and policies
    Import(crate::import::Args),
    /// Explain a query offline, or run it on a service and read its results
    #[command(visible_alias = "explain")]
    Query(alpheus_streams::query::Args),
    /// Check what the controllers of a query's windows have signed
    Verify(crate::verify::Args),
    /// Report what could be learned, what was released and what it cost, for an impact assessment
    Evidence(crate::evidence::Args),
    /// Find the smallest change that makes a refused query allowed
    Suggest(crate::suggest::Args),
    #[cfg(feature = "sql")]
    /// Query a running service at a prompt, with history and completion
    Sql(crate::sql::Args),
    /// Run the service: log, sums and queries, without any data key
    Server(alpheus_streams::server::Args),
    #[cfg(feature = "worker")]
    /// Sum events in Kafka for the service, as one of a group of processes
    Worker(alpheus_worker::Args),
    /// Guard owners' streams: keys, policies, ledger
    Controller(alpheus_streams::controller::Args),
    /// Add streams, choose what may be learned, see who learned what, revoke, erase
    Owner(alpheus_streams::owner::Args),
    /// Read what a stream's device has sent (ticks or single events), with its owner's permission
    Read(alpheus_streams::read::Args),
    /// Encrypt lines of input as a device's events, and send them
    Produce(alpheus_streams::produce::Args),
    #[cfg(feature = "otlp")]
    /// Encrypt a program's OpenTelemetry metrics, or create a schema from them
    Otlp(alpheus_otlp::Args),
    /// See results, or who learned what about you, in a browser
    Console(crate::console::Args),
    #[cfg(feature = "pass")]
    /// Protect a service with unlinkable passes
    Pass(alpheus_pass_service::Args),
    #[cfg(feature = "board")]
    /// Write to a public board anonymously
    Board(alpheus_board_service::Args),
    #[cfg(feature = "stats")]
    /// Compute averages over anonymous contributions
    Stats(alpheus_stats_service::Args),
    #[cfg(feature = "table")]
    /// Keep an encrypted table on an untrusted server, and verify its answers
    Table(alpheus_table_service::Args),
    /// Diagnose a deployment and its connections, and print the command that fixes each fault
    Doctor(crate::doctor::Args),
    /// Back up a process while it runs, in one locked file
    Backup(crate::backup::Args),
    /// Create new folders from a backup, and explain what that means
    Restore(crate::restore::Args),
    /// Explain an error by the id that a command printed
    Errors(crate::errors::Args),
    /// Create a PKI for trials
    Ca(crate::ca::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Write manual pages
    #[command(hide = true)]
    Manual(manual::Args),
    /// Copy keys for a container, readable by its user alone
    #[command(hide = true)]
    PrivateCopy(private_copy::Args),
}

/// The settings keys that the parts read.
const PARTS: &[&str] = &[
    #[cfg(feature = "board")]
    alpheus_board_service::settings::BoardSettings::KEY,
    #[cfg(feature = "pass")]
    alpheus_pass_service::settings::PassSettings::KEY,
    #[cfg(feature = "stats")]
    alpheus_stats_service::settings::StatsSettings::KEY,
    alpheus_streams::settings::KEYS[0],
    alpheus_streams::settings::KEYS[1],
    alpheus_streams::settings::KEYS[2],
    alpheus_streams::settings::KEYS[3],
    alpheus_streams::settings::KEYS[4],
    alpheus_streams::settings::KEYS[5],
    alpheus_streams::settings::KEYS[6],
    #[cfg(feature = "table")]
    alpheus_table_service::settings::TableSettings::KEY,
    #[cfg(feature = "worker")]
    alpheus_worker::worker::WorkerSettings::KEY,
];

/// Runs the command of `args` (the program's name first) and prints a failure on standard
/// error.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    alpheus_node::service::children::go_along();
    alpheus_node::service::shutdown::outlive_hang_up();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            errors::report(&failure);
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { mut globals, command } = cli;
    globals.parts = PARTS;
    globals.follow_clock()?;
    let settings = globals.settings(Vec::new())?;
    globals.format = settings.format;
    if let Some(proxy) = &settings.proxy {
        proxy::connect_through(proxy.clone());
    }
    let monitor = service::watch(&settings, &globals.health, &globals.metrics)?;
    if let Some(monitor) = &monitor {
        note!("/healthz and /metrics at {}", monitor.address());
    }
    perform(command, &globals)
}

fn perform(command: Command, globals: &Globals) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => crate::demo::run(&args, globals),
        Command::Up(args) => crate::up::run(&args, globals),
        Command::Replay(args) => alpheus_streams::replay::run(&args, globals),
        Command::Check(args) => crate::check::run(&args, globals),
        Command::Init(args) => crate::init::run(&args, globals),
        Command::Import(args) => crate::import::run(&args, globals),
        Command::Query(args) => alpheus_streams::query::run(&args, globals),
        Command::Evidence(args) => crate::evidence::run(&args, globals),
        Command::Suggest(args) => crate::suggest::run(&args, globals),
        #[cfg(feature = "sql")]
        Command::Sql(args) => crate::sql::run(&args, globals),
        Command::Generate(args) => crate::generate::run(&args, globals),
        Command::Server(args) => alpheus_streams::server::run(&args, globals),
        #[cfg(feature = "worker")]
        Command::Worker(args) => alpheus_worker::run(&args, globals),
        Command::Controller(args) => alpheus_streams::controller::run(&args, globals),
        Command::Owner(args) => alpheus_streams::owner::run(&args, globals),
        Command::Read(args) => alpheus_streams::read::run(&args, globals),
        Command::Verify(args) => crate::verify::run(&args, globals),
        Command::Produce(args) => alpheus_streams::produce::run(&args, globals),
        #[cfg(feature = "otlp")]
        Command::Otlp(args) => alpheus_otlp::run(&args, globals),
        Command::Console(args) => crate::console::run(&args, globals),
        #[cfg(feature = "pass")]
        Command::Pass(args) => alpheus_pass_service::run(&args, globals),
        #[cfg(feature = "board")]
        Command::Board(args) => alpheus_board_service::run(&args, globals),
        #[cfg(feature = "stats")]
        Command::Stats(args) => alpheus_stats_service::run(&args, globals),
        #[cfg(feature = "table")]
        Command::Table(args) => alpheus_table_service::run(&args, globals),
        Command::Doctor(args) => crate::doctor::run(&args, globals),
        Command::Backup(args) => crate::backup::run(&args, globals),
        Command::Restore(args) => crate::restore::run(&args, globals),
        Command::Errors(args) => crate::errors::run(&args, globals),
        Command::Ca(args) => crate::ca::run(&args, globals),
        Command::Completions(args) => completions::run(args),
        Command::Manual(args) => manual::run(&args),
        Command::PrivateCopy(args) => private_copy::run(&args),
    }
}

/// Commands that the program may be built without, each a feature of this package, and whether it has them.
const OPTIONAL: [(&str, bool); 7] = [
    ("board", cfg!(feature = "board")),
    ("otlp", cfg!(feature = "otlp")),
    ("pass", cfg!(feature = "pass")),
    ("sql", cfg!(feature = "sql")),
    ("stats", cfg!(feature = "stats")),
    ("table", cfg!(feature = "table")),
    ("worker", cfg!(feature = "worker")),
];

/// The command that was asked for, if the program was built without it.
fn left_out<'a>(error: &clap::Error, optional: &[(&'a str, bool)]) -> Option<&'a str> {
    let Some(ContextValue::String(asked)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    optional.iter().find(|(name, has)| name == asked && !has).map(|(name, _)| *name)
}

/// Help and version are no errors; everything else is.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => {
            if let Some(name) = left_out(error, &OPTIONAL) {
                note!(
                    "this program was built without `{name}`; `cargo build --release --package alpheus` builds all commands"
                );
            }
            errors::report_usage();
            ExitCode::from(Category::Usage.exit_code())
        }
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
    fn a_command_that_the_program_was_built_without_is_known() {
        let refused = |name| Cli::try_parse_from(["alpheus", name]).map(|_| ()).unwrap_err();
        let of = |name, has| left_out(&refused(name), &[("tables", has)]);
        assert_eq!((of("tables", false), of("tables", true)), (Some("tables"), None));
        assert_eq!((of("tabels", false), of("demo-", false)), (None, None));
        // Each of them is a command.
        for (name, has) in OPTIONAL {
            assert_eq!(Cli::command().find_subcommand(name).is_some(), has, "{name}");
        }
    }

    #[test]
    fn every_command_shows_examples() {
        for command in Cli::command().get_subcommands() {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Examples:"), "`alpheus {}` shows none", command.get_name());
        }
    }
}
