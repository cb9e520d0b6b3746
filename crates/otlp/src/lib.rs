//! Metrics of OpenTelemetry as encrypted events. A program's exporter sends them to a receiver
//! beside it, which encrypts them as a device does.
//!
//! - [`message`], `json`: OTLP's messages,
//! - [`point`]: points of all kinds as amounts of parts,
//! - [`series`]: what a point adds to what was counted before it,
//! - [`mapping`]: which attributes of a schema a metric becomes,
//! - [`intake`]: makes what arrives durable, [`receiver`]: takes it over HTTP and gRPC,
//! - [`recorder`], [`record`], [`capture`], [`draft`], [`import`]: a schema from what was seen,
//! - [`doors`], [`receive`]: the running receiver.
//!
//! # Privacy
//! What arrives lies in the receiver's state in the clear until it is encrypted, and what is known
//! of cumulative series for as long as they run. The state belongs to the device.

pub mod capture;
pub mod doors;
pub mod draft;
pub mod import;
pub mod intake;
mod json;
pub mod mapping;
pub mod message;
pub mod point;
pub mod receive;
pub mod receiver;
pub mod record;
pub mod recorder;
mod request_bounds;
pub mod series;

use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;

const EXAMPLES: &str = "\
Examples:
  alpheus otlp capture --output captured.pb
  alpheus otlp import captured.json --output checkout --name Checkout
  alpheus otlp --identity pki/till --device till.json --state run/till \\
      --schema checkout/schema.yaml --mapping checkout/otlp.json --server https://localhost:7400

Set the endpoint of the program's exporter to http://localhost:4318 (OTLP over HTTP) or
http://localhost:4317 (gRPC). Each point counts in the window in which it arrives.";

/// Arguments of `alpheus otlp`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true)]
pub struct Args {
    #[command(flatten)]
    receive: receive::ReceiverArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What else there is.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Keep what exporters send in a file, for `import`
    Capture(record::Args),
    /// Write a schema, policies and a mapping from captured metrics
    Import(import::Args),
}

/// Runs the command.
///
/// # Errors
/// See [`receive::run`], [`record::run`] and [`import::run`].
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.command {
        Some(Command::Capture(args)) => record::run(args, globals),
        Some(Command::Import(args)) => import::run(args, globals),
        None => receive::run(&args.receive, globals),
    }
}
