//! `alpheus produce`: one stream's device as a process. It reads lines, encrypts
//! each as an event, and gets the frames to the service, however often the line
//! is cut.
//!
//! - [`lines`]: CSV or JSON lines as cells of the schema,
//! - [`outbox`]: frames that are not known to have arrived, durable,
//! - [`sender`]: carries them to the service.
//!
//! A process that was killed opens a new session; what the old one had not
//! closed with a border is lost, and counted by whoever misses it.

pub mod lines;
pub mod outbox;
pub mod sender;

use crate::commands::Globals;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::client::Client;
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::owner::DeviceFile;
use crate::replay::inputs::read_schema;
use crate::replay::rows::Cell;
use crate::runtime::embedded::wall_clock;
use crate::service::shutdown::{self, Shutdown};
use crate::service::{Settings, path_flag};
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::producer::{EventError, LONGEST_SILENCE, Producer, Session, Start};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::{Span, Timestamp};
use lines::{Line, LineFormat, Lines};
use outbox::Outbox;
use rand_chacha::ChaCha20Rng;
use sender::Sender;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus produce --identity pki/watch --device watch.json --state run/watch \\
      --schema examples/fitness/schema.yaml --server https://localhost:7400 --input -
  alpheus produce --identity pki/meter --device meter.json --state run/meter \\
      --schema meter.yaml --server https://localhost:7400 --input readings.csv --time unix_ms

Lines are JSON objects, or CSV with a header, with the attributes' names; a line
without a time happens when it is read.";

/// Frames wait so long for company before they are written down.
const GATHER: Duration = Duration::from_millis(100);
/// And no more than so many.
const COMPANY: usize = 256;
/// Borders that are made before they are written down.
const BORDERS: u64 = 256;
/// Lines that are read ahead.
const AHEAD: usize = 1024;

/// Arguments of `alpheus produce`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder that says who it is
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The device's file, from `alpheus owner add`: it holds the stream's key
    #[arg(long, value_name = "FILE")]
    device: PathBuf,
    /// Where frames wait that have not arrived
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// What the stream is a stream of: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Where the service is reached
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The lines; `-` is standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// How lines are written; by default by the file's ending, else JSON
    #[arg(long, value_enum)]
    lines: Option<LineFormat>,
    /// The column with each line's time, in Unix milliseconds; by default the clock's
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
}

/// Runs the command until its input ends.
///
/// # Errors
/// A setting is missing or wrong; a file cannot be used; the service does not
/// know the stream.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("schema", path_flag(args.schema.as_ref())),
        ("server", args.server.clone()),
    ])?;
    let folder = Settings::needed(&settings.identity, "identity")?;
    let identity = IdentityFolder::open(&folder, Role::Producer)?;
    let schema = read_schema(&Settings::needed(&settings.schema, "schema")?)?;
    let layout = Layout::of(&schema).blame(Category::Input)?;
    let (stream, master) = DeviceFile::read(&args.device, &schema)?;
    let client = Client::new(&identity, &Settings::needed(&settings.server, "server")?)?;
    let store = settings.open_store(&globals.health, &globals.metrics)?;
    let mut rng = entropy::rng()?;
    let (outbox, is_new) = Outbox::open(store, stream, &mut rng).blame(Category::Io)?;
    let sender = Sender::start(client, outbox.clone(), globals.health.part("service"))
        .blame(Category::Io)?;
    let producer =
        Producer::for_schema(&master, stream, &schema, &layout).blame(Category::Input)?;
    let encoder = Encoder::new(&schema, &layout).blame(Category::Input)?;
    let lines = Lines::open(&args.input, args.lines, args.time.as_deref(), &schema)?;
    let (timed, stop) = (args.time.is_some(), shutdown::on_signal().blame(Category::Io)?);
    let producer = Some(producer);
    let seen = stop.clone();
    let device = Live { producer, encoder, schema, outbox, rng, is_new, timed, stop };
    let ran = device.run(read_ahead(lines));
    // Why nothing is sent any more says more than that no more is taken.
    let summary = match ran {
        Err(failure) if !sender.has_ended() => return Err(failure),
        ran => sender.finish(&seen).and(ran)?,
    };
    eprintln!("{} events sent, {} lines refused", summary.events, summary.refused);
    Ok(())
}

/// Reads lines on a thread of its own, so that borders stand on time while none come.
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

#[derive(Default)]
struct Summary {
    events: u64,
    refused: u64,
}

/// A device that is alive.
struct Live {
    producer: Option<Producer>,
    encoder: Encoder,
    schema: Schema,
    outbox: Outbox,
    rng: ChaCha20Rng,
    is_new: bool,
    /// Lines say when they happened.
    timed: bool,
    /// Somebody has asked it to end.
    stop: Shutdown,
}

impl Live {
    /// Sends all lines, and borders between them; closes the session at the end.
    fn run(mut self, lines: Receiver<Result<Line, Failure>>) -> Result<Summary, Failure> {
        let mut summary = Summary::default();
        let Some(first) = self.first(&lines) else { return Ok(summary) };
        let (mut frames, mut next) = (Vec::new(), Some(first));
        let mut session = self.open(next.as_ref(), &mut frames)?;
        loop {
            if let Some(line) = next.take() {
                match line.and_then(|line| self.event(&mut session, line, &mut frames)) {
                    Ok(()) => summary.events += 1,
                    Err(refused) if refused.category() == Category::Input => {
                        tracing::warn!(%refused, "a line was refused");
                        summary.refused += 1;
                    }
                    Err(failure) => return Err(failure),
                }
                if frames.len() < COMPANY {
                    // More may be waiting: one write for all of them.
                    next = lines.try_recv().ok();
                    if next.is_some() {
                        continue;
                    }
                }
            }
            self.keep(&mut frames)?;
            match lines.recv_timeout(GATHER) {
                Ok(line) => next = Some(line),
                // Where lines say when they happened, the clock does not: the next may
                // be from before now.
                Err(RecvTimeoutError::Timeout) if self.timed => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.borders(&mut session, wall_clock(), &mut frames)?;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.stop.is_stopping() {
                break;
            }
        }
        self.close(session, &mut frames)?;
        Ok(summary)
    }

    /// Opens a session: before the first line if the stream is new, else at the
    /// next tick, for which it waits.
    fn open(
        &mut self,
        first: Option<&Result<Line, Failure>>,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<Session, Failure> {
        let now = wall_clock();
        let producer = self.producer.take().ok_or("it is online").blame(Category::Check)?;
        let (start, at) = if self.is_new {
            let said = first.and_then(|line| line.as_ref().ok()).and_then(|line| line.time);
            (Start::First, said.unwrap_or(now).floor(self.schema.tick))
        } else {
            (Start::Again { now }, producer.next_tick(now))
        };
        let opened =
            producer.open(start, at, &mut self.rng, &mut |frame| frames.push(frame.to_vec()));
        let session = opened.map_err(|refused| refused.error.to_string()).blame(Category::Input)?;
        self.keep(frames)?;
        wait_for(at);
        Ok(session)
    }

    /// The first line; none if the input ends, or is not waited for any more.
    fn first(&self, lines: &Receiver<Result<Line, Failure>>) -> Option<Result<Line, Failure>> {
        loop {
            match lines.recv_timeout(GATHER) {
                Ok(first) => return Some(first),
                Err(RecvTimeoutError::Timeout) if !self.stop.is_stopping() => {}
                Err(_) => return None,
            }
        }
    }

    /// All borders up to `to`, written down some at a time: after a long pause they
    /// are many.
    fn borders(
        &mut self,
        session: &mut Session,
        to: Timestamp,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        while session.next_border() <= to {
            let some = Span(self.schema.tick.0.saturating_mul(BORDERS));
            let piece = to.min(session.next_border().plus(some));
            session
                .advance(piece, &mut |frame| frames.push(frame.to_vec()))
                .blame(Category::Input)?;
            if frames.len() >= COMPANY {
                self.keep(frames)?;
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        session: &mut Session,
        line: Line,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        let (last, tick) = (session.last(), self.schema.tick);
        let at = match line.time {
            Some(said) => said_at(said, last, tick)
                .map_err(|late| Failure::new(Category::Input, late).at(line.place.clone()))?,
            None => after(wall_clock(), last, tick),
        };
        if at.0.saturating_sub(last.0) / tick.0 <= LONGEST_SILENCE {
            // A clock that jumped further is refused below.
            self.borders(session, at, frames)?;
        }
        let values: Vec<Value<'_>> = line.cells.iter().map(Cell::value).collect();
        let (encoder, rng) = (&self.encoder, &mut self.rng);
        let sent = session.event(
            at,
            |vector| encoder.encode(&values, rng, |word, addend| vector.add(word, addend)),
            &mut |frame| frames.push(frame.to_vec()),
        );
        sent.map_err(|error| match error {
            EventError::Encoding(error) => error.to_string(),
            other => other.to_string(),
        })
        .map_err(|error| Failure::new(Category::Input, error).at(line.place))
    }

    fn keep(&mut self, frames: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
        if frames.is_empty() {
            return Ok(());
        }
        self.outbox.put(std::mem::take(frames)).blame(Category::Io)
    }

    /// Ends the session at the end of its tick, for which it waits.
    fn close(&mut self, session: Session, frames: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
        let at = session.next_border();
        wait_for(at);
        let closed = session.close(at, &mut |frame| frames.push(frame.to_vec()));
        closed.map_err(|refused| refused.error.to_string()).blame(Category::Input)?;
        self.keep(frames)
    }
}

/// A line that comes too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its time is not after the last event's, or before the session was opened: lines go in the order of their times, and what is older than a start is not sent after it"
)]
struct Late;

/// When a line's event stands that says its time, in milliseconds: then, or after
/// the last of the same millisecond.
fn said_at(said: Timestamp, last: Timestamp, tick: Span) -> Result<Timestamp, Late> {
    let at = after(said, last, tick);
    let same = at.floor(Span(1000)) == said.floor(Span(1000)) && at.floor(tick) == said.floor(tick);
    if same { Ok(at) } else { Err(Late) }
}

/// The first time from `wanted` on that is after `last` and on no tick.
fn after(wanted: Timestamp, last: Timestamp, tick: Span) -> Timestamp {
    let at = if wanted > last { wanted } else { last.plus(Span(1)) };
    if at.0.is_multiple_of(tick.0) { at.plus(Span(1)) } else { at }
}

/// Waits until the clock shows `at`.
pub(crate) fn wait_for(at: Timestamp) {
    let left = at.0.saturating_sub(wall_clock().0);
    std::thread::sleep(Duration::from_micros(left));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_line_is_refused_and_not_moved() {
        let tick = Span::seconds(1);
        let at = |millis: u64, micros: u64| Timestamp(1000 * millis + micros);
        let last = at(5_500, 0);
        assert_eq!(said_at(at(5_600, 0), last, tick), Ok(at(5_600, 0)));
        // Several in one millisecond stand in their order.
        assert_eq!(said_at(at(5_500, 0), last, tick), Ok(at(5_500, 1)));
        assert_eq!(said_at(at(6_000, 0), last, tick), Ok(at(6_000, 1)), "not on a border");
        for late in [at(5_499, 0), at(4_000, 0), at(0, 0)] {
            assert_eq!(said_at(late, last, tick), Err(Late));
        }
        // A thousand in one millisecond, and no more.
        assert_eq!(said_at(at(5_500, 0), at(5_500, 999), tick), Err(Late));
        // Not into the next window, however short the tick.
        assert_eq!(said_at(at(5_500, 0), at(5_500, 9), Span(10)), Err(Late));
    }
}
