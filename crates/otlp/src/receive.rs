//! The running receiver: intake, and the device that encrypts.

use crate::doors::DoorArgs;
use crate::intake::{Event, Intake};
use crate::mapping::{CompiledMapping, Mapping};
use crate::receiver::Sink;
use alpheus_input::rows::Cell;
use alpheus_node::clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::service::shutdown::{self, Trigger};
use alpheus_node::settings::Settings;
use alpheus_streams::produce::device::{Device, DeviceArgs};
use alpheus_streams::produce::lines::Line;
use alpheus_streams::produce::live_device::Pace;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// How long it waits for events before it looks whether to stop.
const WAIT: Duration = Duration::from_millis(100);
/// Maximum number of events read ahead.
const AHEAD: usize = 1024;

/// Arguments of `alpheus otlp`.
#[derive(Debug, clap::Args)]
pub struct ReceiverArgs {
    /// Whose events they are, and where they go.
    #[command(flatten)]
    device: DeviceArgs,
    /// The mapping from metrics to attributes: otlp.json, from `alpheus otlp import`
    #[arg(long, value_name = "FILE", required = true)]
    mapping: Option<PathBuf>,
    /// Where exporters send.
    #[command(flatten)]
    doors: DoorArgs,
}

/// Runs the receiver until it is asked to stop.
///
/// # Errors
/// A setting, a file or an address cannot be used; the store fails; the service does not know
/// the stream.
pub fn run(args: &ReceiverArgs, globals: &Globals) -> Result<(), Failure> {
    args.doors.check()?;
    let path = Settings::needed(&args.mapping, "mapping")?;
    let mapping = read(&path)?;
    let device = Device::open(&args.device, globals)?;
    let compiled = CompiledMapping::of(&mapping, device.schema()).blame_input(&path)?;
    let attributes = device.schema().attributes.len();
    let intake = Intake::open(device.store(), compiled, clock::now()).blame(Category::Io)?;
    intake.register(&globals.metrics);
    let (settings, doors) = (globals.settings(Vec::new())?, args.doors.bind()?);
    let (ended, broken) = (Arc::new(AtomicBool::new(false)), Trigger::new());
    let lines = read_ahead(intake.clone(), attributes, Arc::clone(&ended));
    let (stop, is_broken) = (shutdown::on_signal().blame(Category::Io)?, broken.shutdown());
    let stopping = stop.clone();
    let running = std::thread::spawn(move || {
        let ran = device.run(lines, Pace::AtOnce, &stop);
        broken.stop();
        ran
    });
    let served = doors.serve(&Sink::Intake(intake), (&settings, globals), is_broken, stopping);
    ended.store(true, Ordering::Relaxed);
    let panicked = || Err("the device panicked; this is a bug in Alpheus");
    let ran = running.join().unwrap_or_else(|_| panicked().blame(Category::Io));
    let summary = ran.and_then(|summary| served.map(|()| summary))?;
    note!("{} events sent", summary.events);
    Ok(())
}

fn read(path: &Path) -> Result<Mapping, Failure> {
    serde_json::from_str(&read_text(path)?).blame_input(path)
}

/// Events as lines, each with its record, until the receiver ends.
fn read_ahead(
    intake: Intake,
    attributes: usize,
    ended: Arc<AtomicBool>,
) -> Receiver<Result<Line, Failure>> {
    let (sender, receiver) = sync_channel(AHEAD);
    std::thread::spawn(move || {
        let mut last = 0;
        while !ended.load(Ordering::Relaxed) {
            let events = match intake.after(last, WAIT) {
                Ok(events) => events,
                Err(error) => {
                    let _ = sender.send(Err(Failure::new(Category::Io, error)));
                    return;
                }
            };
            for (number, event) in events {
                last = number;
                let record = Some(intake.record(number));
                let cells = cells(&event, attributes);
                let line = Line { place: format!("event {number}"), time: None, cells, record };
                if sender.send(Ok(line)).is_err() {
                    return;
                }
            }
        }
    });
    receiver
}

fn cells(event: &Event, attributes: usize) -> Vec<Cell> {
    let mut cells = vec![Cell::Absent; attributes];
    for (position, value) in event {
        if let Some(cell) = cells.get_mut(usize::from(*position)) {
            *cell = Cell::Number(*value);
        }
    }
    cells
}
