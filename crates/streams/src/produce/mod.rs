//! `alpheus produce`: one stream's device as a process. It reads lines, encrypts
//! each as an event and delivers the frames to the service, whatever connections fail.
//!
//! - [`lines`]: CSV or JSON lines as cells of the schema,
//! - [`outbox`]: durable frames that the service has not confirmed,
//! - [`refused_sessions`]: what the service says of frames that count for nothing,
//! - [`sender`]: delivers them to the service.
//!
//! A process that was killed opens a new session. Events of the old one after its
//! last border are lost, which others notice and count.

pub mod lines;
pub mod outbox;
pub mod refused_sessions;
pub mod sender;

use crate::ingest::DeviceIdentity;
use crate::links;
use crate::owner::DeviceFile;
use crate::revocations::open_identity;
use crate::runtime::devices::value_of;
use crate::runtime::producing::{StreamProducer, StreamSession};
use crate::settings;
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::producer::{EventError, MAX_SILENCE, Producer, Start, TickProducer};
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::network::identity::CERTIFICATE;
use alpheus_node::network::role::Role;
use alpheus_node::retry::{Backoff, RetryPolicy};
use alpheus_node::service::expiry::watch_certificate;
use alpheus_node::service::shutdown::{self, Shutdown};
use alpheus_node::settings::{Settings, path_flag};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::{Frames, Schema};
use alpheus_time::{Span, Timestamp};
use lines::{Line, LineFormat, Lines};
use outbox::Outbox;
use rand_chacha::ChaCha20Rng;
use refused_sessions::RefusedSessions;
use sender::{Sender, ServiceClient};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus produce --identity pki/watch --device watch.json --state run/watch \\
      --schema examples/fitness/schema.yaml --server https://localhost:7400 --input -
  alpheus produce --identity pki/meter --device meter.json --state run/meter \\
      --schema meter.yaml --server https://localhost:7400 --input readings.csv \\
      --time-column unix_ms

For a schema with `frames: ticks` the identity folder has the device's key and certificate:
device.seed and device.txt, from `alpheus ca issue`.

Lines are JSON objects, or CSV with a header, named like the attributes. Without
--time-column, an event gets the time at which its line is read.";

/// How long frames are collected before they are written to the outbox.
const GATHER: Duration = Duration::from_millis(100);
/// Maximum number of frames collected.
const MAX_GATHERED: usize = 256;
/// Borders that are made before they are written to the outbox.
const BORDERS: u64 = 256;
/// Whole ticks that passed unseen: then the device slept.
const ASLEEP: u64 = 2;
/// Pause before a session is opened that takes the place of a refused one.
const REOPENING: RetryPolicy =
    RetryPolicy::doubling(Duration::from_secs(1), Duration::from_secs(60));
/// Maximum number of lines read ahead.
const AHEAD: usize = 1024;

/// Arguments of `alpheus produce`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The device's identity folder
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The device's file, from `alpheus owner add`: it holds the stream's key
    #[arg(long, value_name = "FILE")]
    device: PathBuf,
    /// The folder for frames that the service has not confirmed
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The stream's schema: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The service's URL
    #[arg(long, value_name = "URL")]
    server: Option<String>,
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
    let settings = globals.settings(vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("state", path_flag(args.state.as_ref())),
        ("schema", path_flag(args.schema.as_ref())),
        ("server", args.server.clone()),
    ])?;
    let folder = Settings::needed(&settings.identity, "identity")?;
    let identity = open_identity(&folder, Role::Producer)?;
    watch_certificate(&globals.metrics, &globals.health, &identity.path(CERTIFICATE));
    let schema = settings::schema(&settings)?;
    let layout = Layout::of(&schema).blame(Category::Input)?;
    let (stream, master) = DeviceFile::read(&args.device, &schema)?;
    let client = links::service(&Settings::needed(&settings.server, "server")?, &identity)?;
    let (producer, client) = match schema.frames {
        Frames::Events => {
            let own = Producer::for_schema(&master, stream, &schema, &layout);
            (
                StreamProducer::Events(Box::new(own.blame(Category::Input)?)),
                ServiceClient::new(client),
            )
        }
        Frames::Ticks { .. } => {
            let DeviceIdentity { secrets, certificate } = DeviceIdentity::open(&identity)?;
            let own = TickProducer::for_schema(&master, stream, &schema, &layout, secrets);
            let client = ServiceClient::new(client).introducing(certificate);
            (StreamProducer::Ticks(Box::new(own.blame(Category::Input)?)), client)
        }
    };
    let store = globals.open_store(&settings)?;
    let mut rng = entropy::rng()?;
    let (outbox, is_new) = Outbox::open(store, stream, &mut rng).blame(Category::Io)?;
    let reached = outbox.reached().blame(Category::Io)?;
    let sender = Sender::start(client, outbox.clone(), globals.health.part("service"))
        .blame(Category::Io)?;
    sender.refused().register(&globals.metrics);
    let encoder = Encoder::new(&schema, &layout).blame(Category::Input)?;
    let lines = Lines::open(&args.input, args.input_format, args.time_column.as_deref(), &schema)?;
    let (timed, stop) = (args.time_column.is_some(), shutdown::on_signal().blame(Category::Io)?);
    let (seen, refused) = (stop.clone(), sender.refused());
    let device = LiveDevice { encoder, schema, outbox, rng, is_new, reached, timed, refused, stop };
    let ran = device.run(producer, read_ahead(lines));
    // A failed sender explains more than the closed outbox.
    let summary = match ran {
        Err(failure) if !sender.has_ended() => return Err(failure),
        ran => sender.finish(&seen).and(ran)?,
    };
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

#[derive(Default)]
struct Summary {
    events: u64,
    refused: u64,
}

/// A running device.
struct LiveDevice {
    encoder: Encoder,
    schema: Schema,
    outbox: Outbox,
    rng: ChaCha20Rng,
    is_new: bool,
    /// The last session and its last border, if the next one names them.
    reached: Option<(u64, Timestamp)>,
    /// Whether lines have times.
    timed: bool,
    /// Sessions that the service does not take.
    refused: RefusedSessions,
    /// The request to stop.
    stop: Shutdown,
}

impl LiveDevice {
    /// Sends all lines, and borders between them; closes the session at the end.
    fn run(
        mut self,
        producer: StreamProducer,
        lines: Receiver<Result<Line, Failure>>,
    ) -> Result<Summary, Failure> {
        let mut summary = Summary::default();
        let Some(first) = self.first(&lines) else { return Ok(summary) };
        let (mut frames, mut next) = (Vec::new(), Some(first));
        let mut session = self.open(producer, next.as_ref(), &mut frames)?;
        loop {
            if self.refused.take(session.number()) {
                session = self.reopen(session, &mut frames)?;
            }
            if let Some(line) = next.take() {
                match line.and_then(|line| self.event(&mut session, line, &mut frames)) {
                    Ok(()) => summary.events += 1,
                    Err(refused) if refused.category() == Category::Input => {
                        tracing::warn!(%refused, "a line was refused");
                        summary.refused += 1;
                    }
                    Err(failure) => return Err(failure),
                }
                if frames.len() < MAX_GATHERED {
                    // More lines may be waiting: write them together.
                    next = lines.try_recv().ok();
                    if next.is_some() {
                        continue;
                    }
                }
            }
            self.keep(&session, &mut frames)?;
            match lines.recv_timeout(GATHER) {
                Ok(line) => next = Some(line),
                // With times in the lines, the clock does not count: the next line may be
                // older than now.
                Err(RecvTimeoutError::Timeout) if self.timed => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.borders(&mut session, clock::now(), &mut frames)?;
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
        producer: StreamProducer,
        first: Option<&Result<Line, Failure>>,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<StreamSession, Failure> {
        let now = clock::now();
        let (start, at) = if self.is_new {
            let said = first.and_then(|line| line.as_ref().ok()).and_then(|line| line.time);
            (Start::First, said.unwrap_or(now).floor(self.schema.tick))
        } else {
            (Start::Again { now }, producer.next_tick(now))
        };
        let (rng, mut sink) = (&mut self.rng, |frame: &[u8]| frames.push(frame.to_vec()));
        let opened = producer.open(start, at, self.reached, rng, &mut sink);
        let session = opened.map_err(|(_, error)| error).blame(Category::Input)?;
        self.is_new = false;
        self.keep(&session, frames)?;
        wait_for(at);
        Ok(session)
    }

    /// The service does not take the session any more. After a part of a pause, another opens,
    /// since many devices may be in this at once. Until then events are lost.
    fn reopen(
        &mut self,
        session: StreamSession,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<StreamSession, Failure> {
        self.reached = session.reached();
        let (producer, lost) = session.abandon();
        tracing::warn!(lost, "the service does not take this session; opening a new one");
        std::thread::sleep(Backoff::new(REOPENING).jittered(&mut self.rng));
        self.open(producer, None, frames)
    }

    /// The first line; none if the input ends or the process is to stop.
    fn first(&self, lines: &Receiver<Result<Line, Failure>>) -> Option<Result<Line, Failure>> {
        loop {
            match lines.recv_timeout(GATHER) {
                Ok(first) => return Some(first),
                Err(RecvTimeoutError::Timeout) if !self.stop.is_stopping() => {}
                Err(_) => return None,
            }
        }
    }

    /// All borders up to `to`, written in portions: after a long pause there are many.
    fn borders(
        &mut self,
        session: &mut StreamSession,
        to: Timestamp,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        let asleep = to.0.saturating_sub(session.next_border().0) / self.schema.tick.0 >= ASLEEP;
        if asleep && !self.timed {
            // The process did not run, so nothing happened here.
            let (rng, mut sink) = (&mut self.rng, |frame: &[u8]| frames.push(frame.to_vec()));
            return session.sleep_until(to, rng, &mut sink).blame(Category::Input);
        }
        while session.next_border() <= to {
            let some = Span(self.schema.tick.0.saturating_mul(BORDERS));
            let piece = to.min(session.next_border().plus(some));
            let (rng, mut sink) = (&mut self.rng, |frame: &[u8]| frames.push(frame.to_vec()));
            session.advance(piece, rng, &mut sink).blame(Category::Input)?;
            if frames.len() >= MAX_GATHERED {
                self.keep(session, frames)?;
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        session: &mut StreamSession,
        line: Line,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        let (last, tick) = (session.last(), self.schema.tick);
        let at = match line.time {
            Some(said) => time_of_line(said, last, tick)
                .map_err(|late| Failure::new(Category::Input, late).at(line.place.clone()))?,
            None => after(clock::now(), last, tick),
        };
        if at.0.saturating_sub(last.0) / tick.0 <= MAX_SILENCE {
            // A larger jump of the clock is refused below.
            self.borders(session, at, frames)?;
        }
        let values: Vec<Value<'_>> = line.cells.iter().map(value_of).collect();
        let (encoder, rng) = (&self.encoder, &mut self.rng);
        let sent = session.event(
            at,
            rng,
            |rng, vector| encoder.encode(&values, rng, |word, addend| vector.add(word, addend)),
            &mut |frame| frames.push(frame.to_vec()),
        );
        sent.map_err(|error| match error {
            EventError::Encoding(error) => error.to_string(),
            other => other.to_string(),
        })
        .map_err(|error| Failure::new(Category::Input, error).at(line.place))
    }

    fn keep(&mut self, session: &StreamSession, frames: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
        if frames.is_empty() {
            return Ok(());
        }
        self.reached = session.reached();
        self.outbox.put(std::mem::take(frames), self.reached).blame(Category::Io)
    }

    /// Ends the session at the end of its tick, for which it waits.
    fn close(&mut self, session: StreamSession, frames: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
        let at = session.next_border();
        wait_for(at);
        let reached = session.reached().map(|(number, _)| (number, at));
        let (rng, mut sink) = (&mut self.rng, |frame: &[u8]| frames.push(frame.to_vec()));
        let closed = session.close(at, rng, &mut sink);
        closed.map_err(|(_, error)| error).blame(Category::Input)?;
        self.outbox.put(std::mem::take(frames), reached).blame(Category::Io)
    }
}

/// A line whose time is too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its time is not after the last event's, or it is before the session was opened: sort lines by time; after a start, older lines are not sent"
)]
pub(crate) struct LateLineError;

/// The time of an event whose line has a time in milliseconds: that time, or just after
/// the last event of the same millisecond.
fn time_of_line(said: Timestamp, last: Timestamp, tick: Span) -> Result<Timestamp, LateLineError> {
    let at = after(said, last, tick);
    let same = at.floor(Span(1000)) == said.floor(Span(1000)) && at.floor(tick) == said.floor(tick);
    if same { Ok(at) } else { Err(LateLineError) }
}

/// The first time from `wanted` on that is after `last` and not on a tick.
fn after(wanted: Timestamp, last: Timestamp, tick: Span) -> Timestamp {
    let at = if wanted > last { wanted } else { last.plus(Span(1)) };
    if at.0.is_multiple_of(tick.0) { at.plus(Span(1)) } else { at }
}

/// Waits until the time `at`.
pub fn wait_for(at: Timestamp) {
    loop {
        let left = clock::until(at);
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_line_is_refused_and_not_moved() {
        let tick = Span::seconds(1);
        let at = |millis: u64, micros: u64| Timestamp(1000 * millis + micros);
        let last = at(5_500, 0);
        assert_eq!(time_of_line(at(5_600, 0), last, tick), Ok(at(5_600, 0)));
        // Several in one millisecond stand in their order.
        assert_eq!(time_of_line(at(5_500, 0), last, tick), Ok(at(5_500, 1)));
        assert_eq!(time_of_line(at(6_000, 0), last, tick), Ok(at(6_000, 1)), "not on a border");
        for late in [at(5_499, 0), at(4_000, 0), at(0, 0)] {
            assert_eq!(time_of_line(late, last, tick), Err(LateLineError));
        }
        // A thousand in one millisecond, and no more.
        assert_eq!(time_of_line(at(5_500, 0), at(5_500, 999), tick), Err(LateLineError));
        // Not into the next window, however short the tick.
        assert_eq!(time_of_line(at(5_500, 0), at(5_500, 9), Span(10)), Err(LateLineError));
    }
}
