//! `alpheus produce`: one stream's device as a process. It reads lines, encrypts
//! each as an event and delivers the frames to the service, whatever connections fail.
//!
//! - [`device`]: a device's key, store and service,
//! - [`lines`]: CSV or JSON lines as cells of the schema,
//! - [`live`]: the running device, which encrypts lines and makes borders,
//! - [`outbox`]: durable frames that the service has not confirmed,
//! - [`refused_sessions`]: what the service says of frames that count for nothing,
//! - [`sender`]: delivers them to the service.
//!
//! A process that was killed opens a new session. Events of the old one after its
//! last border are lost, which others notice and count. Only those that a record of the
//! store holds are sent again.

pub mod device;
pub mod lines;
pub mod live;
pub mod outbox;
pub mod refused_sessions;
pub mod sender;

pub use live::LateLineError;

use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::service::shutdown;
use device::{Device, DeviceArgs};
use lines::{Line, LineFormat, Lines};
use live::Pace;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};

const EXAMPLES: &str = "\
Examples:
  alpheus produce --identity pki/watch --device watch.json --state run/watch \\
      --schema examples/fitness/schema.yaml --server https://localhost:7400 --input -
  alpheus produce --identity pki/meter --device meter.json --state run/meter \\
      --schema meter.yaml --server https://localhost:7400 --input readings.csv \\
      --time-column unix_ms

Unless the schema says `frames: events`, the identity folder has the device's key and certificate:
device.seed and device.txt, from `alpheus ca issue`.

Lines are JSON objects, or CSV with a header, named like the attributes. Without
--time-column, an event gets the time at which its line is read.";

/// Maximum number of lines read ahead.
const AHEAD: usize = 1024;

/// Arguments of `alpheus produce`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Whose events they are, and where they go.
    #[command(flatten)]
    device: DeviceArgs,
    /// The lines to send; `-` is standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Format of the lines; by default that of the file's extension, otherwise JSON
    #[arg(long, value_enum)]
    input_format: Option<LineFormat>,
    /// The column with each line's time in Unix milliseconds; by default the clock is used
    #[arg(long, value_name = "COLUMN")]
    time_column: Option<String>,
}

/// Runs the command until its input ends.
///
/// # Errors
/// A setting is missing or wrong; a file cannot be used; the service does not
/// know the stream.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let device = Device::open(&args.device, globals)?;
    let column = args.time_column.as_deref();
    let lines = Lines::open(&args.input, args.input_format, column, device.schema())?;
    let pace = if column.is_some() { Pace::Stated } else { Pace::Live };
    let summary =
        device.run(read_ahead(lines), pace, &shutdown::on_signal().blame(Category::Io)?)?;
    eprintln!("{} events sent, {} lines refused", summary.events, summary.refused);
    Ok(())
}

/// Reads lines on a separate thread, so that borders are on time even without input.
fn read_ahead(mut lines: Lines) -> Receiver<Result<Line, Failure>> {
    let (sender, receiver) = sync_channel(AHEAD);
    std::thread::spawn(move || {
        while let Some(line) = lines.next() {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
