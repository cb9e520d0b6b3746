//! `alpheus otlp capture`: keeps what exporters send in a file, from which `alpheus otlp import` makes
//! a schema.

use crate::doors::DoorArgs;
use crate::receiver::Sink;
use crate::recorder::Recorder;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::service::shutdown;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus otlp capture --output captured.pb

Set the endpoint of the program's exporter to http://localhost:4318 (OTLP over HTTP) or
http://localhost:4317 (gRPC), and press Ctrl-C when it has sent all its metrics. The file has
values in the clear: delete it after `alpheus otlp import`.";

/// Arguments of `alpheus otlp capture`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file to write; it must not exist
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Where exporters send.
    #[command(flatten)]
    doors: DoorArgs,
}

/// Runs the command until Ctrl-C.
///
/// # Errors
/// The file exists, or cannot be written; an address cannot be used.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    args.doors.check()?;
    let recorder = Recorder::create(&args.output)?;
    let settings = globals.settings(Vec::new())?;
    let stop = shutdown::on_signal().blame(Category::Io)?;
    let sink = Sink::Recorder(recorder.clone());
    args.doors.bind()?.serve(&sink, (&settings, globals), stop.clone(), stop)?;
    note!("{} requests in {}", recorder.requests(), args.output.display());
    Ok(())
}
