//! `alpheus produce`: one stream's device as a process. It reads lines, encrypts
//! each as an event and delivers the frames to the service, whatever connections fail.
//!
//! - [`clock_steps`]: what a device makes of a clock that is set,
//! - [`device`]: a device's key, store and service,
//! - [`lines`]: CSV or JSON lines as cells of the schema,
//! - [`live_device`]: the running device, which encrypts lines and makes borders,
//! - [`outbox`]: durable frames that the service has not confirmed,
//! - [`pace`]: keeping to the times of lines,
//! - [`progress`]: how far everything has arrived, for a replay,
//! - [`recorded_stream`]: a stream of a recording, which a source file describes,
//! - [`refused_sessions`]: what the service says of frames that count for nothing,
//! - [`sender`]: delivers them to the service.
//!
//! A process that was killed opens a new session. Events of the old one after its
//! last border are lost, which others notice and count. Only those that a record of the
//! store holds are sent again.

mod clock_steps;
pub mod device;
pub mod lines;
pub mod live_device;
pub mod outbox;
mod pace;
mod progress;
mod recorded_stream;
pub mod refused_sessions;
pub mod sender;

pub use live_device::LateLineError;

use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::service::shutdown;
use alpheus_policy::document::parse_duration;
use alpheus_time::Span;
use device::{Device, DeviceArgs};
use lines::{Line, LineFormat, Lines};
use live_device::Pace;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};

const EXAMPLES: &str = "\
Examples:
  alpheus produce --identity pki/watch --device watch.json --state run/watch \\
      --schema examples/fitness/schema.yaml --server https://localhost:7400 --input -
  alpheus produce --identity pki/meter --device meter.json --state run/meter \\
      --schema meter.yaml --server https://localhost:7400 --input readings.csv \\
      --time-column unix_ms
  alpheus produce --identity pki/meter --device meter.json --state run/meter \\
      --schema meter.yaml --server https://localhost:7400 --input readings.csv \\
      --source source.yaml --key meter-7 --whole-windows 1hr

Unless the schema says `frames: events`, the identity folder has the device's key and certificate:
device.seed and device.txt, from `alpheus ca issue`.

Lines are JSON objects, or CSV with a header. Their names are those of the attributes. Numbers may
be quoted. A member of a nested object has both names, joined with a dot: meta.time. Without
--time-column, an event gets the time at which its line is read. With --source, the input is a
recording as `alpheus replay` reads it: any columns, times and marks, and rows in any order.";

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
    /// How the columns of the input become events: the input is a recording
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input_format", "time_column"])]
    source: Option<PathBuf>,
    /// With --source: the key of the stream that is sent, if the recording has several
    #[arg(long, value_name = "KEY", requires = "source")]
    key: Option<String>,
    /// With times in the lines: send no event before its time
    #[arg(long)]
    paced: bool,
    /// With times in the lines: be online for whole windows of this length, as in `alpheus
    /// replay`, so that the first and the last one count
    #[arg(long, value_name = "DURATION")]
    whole_windows: Option<String>,
    /// Says in a file how far everything has arrived, for a replay whose clock waits for it
    #[arg(long, value_name = "FILE", hide = true)]
    progress: Option<PathBuf>,
}

/// Runs the command until its input ends.
///
/// # Errors
/// A setting is missing or wrong; a file cannot be used; the service does not
/// know the stream.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let device = Device::open(&args.device, globals)?.in_whole(args.whole()?)?;
    let device = device.telling(args.progress.as_deref())?;
    let lines = match &args.source {
        Some(source) => {
            recorded_stream::lines(&args.input, source, args.key.as_deref(), device.schema())?
        }
        None => {
            let column = args.time_column.as_deref();
            read_ahead(Lines::open(&args.input, args.input_format, column, device.schema())?)
        }
    };
    let pace = match (args.has_times(), args.paced) {
        (true, true) => Pace::Paced,
        (true, false) => Pace::Stated,
        (false, _) => Pace::Live,
    };
    let summary = device.run(lines, pace, &shutdown::on_signal().blame(Category::Io)?)?;
    note!("{} events sent, {} lines refused", summary.events, summary.refused);
    Ok(())
}

impl Args {
    fn has_times(&self) -> bool {
        self.time_column.is_some() || self.source.is_some()
    }

    fn whole(&self) -> Result<Option<Span>, Failure> {
        let wrong = |flag, what: &str| Failure::new(Category::Usage, what.to_owned()).at(flag);
        if !self.has_times() {
            let what = "the lines have no times";
            let help = "name their column with --time-column, or describe the input with --source";
            return match (self.paced, &self.whole_windows) {
                (true, _) => Err(wrong("--paced", what).with_help(help)),
                (_, Some(_)) => Err(wrong("--whole-windows", what).with_help(help)),
                _ => Ok(None),
            };
        }
        let Some(text) = &self.whole_windows else { return Ok(None) };
        let span = parse_duration(text).filter(|span| span.0 > 0);
        let what = "not a duration such as `10s` or `1hr`";
        span.map(Some).ok_or_else(|| wrong("--whole-windows", what))
    }
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
