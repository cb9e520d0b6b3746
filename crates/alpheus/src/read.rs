//! `alpheus read`: events of a stream, one by one, by a consumer whom its owner lets.

use crate::commands::{Format, Globals};
use crate::failure::{Blame, Category, Failure, printed};
use crate::network::client::Client;
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::network::tls::Meant;
use crate::network::wire::{FramesAsked, FramesGiven, KeysAsked, KeysGiven};
use crate::owner::grant::calendar;
use crate::query::sealed::consumer;
use crate::replay::inputs::read_schema;
use crate::runtime::results::cell;
use alpheus_encrypted_stream::decode::decode;
use alpheus_encrypted_stream::error::NotReadable;
use alpheus_encrypted_stream::frame::Frame;
use alpheus_encrypted_stream::grant::RawReader;
use alpheus_policy::ids::StreamId;
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Release;
use alpheus_policy::planner::event_columns;
use alpheus_policy::schema::Schema;
use alpheus_policy::select::ReleasePlan;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus read --identity pki/doctor --controller https://localhost:7401 \\
      --server https://localhost:7400 --stream 9f… --schema examples/fitness/schema.yaml
  alpheus read --identity pki/doctor --controller https://localhost:7401 \\
      --server https://localhost:7400 --stream 9f… --schema schema.yaml --format csv

What the stream's owner lets you read, `alpheus owner grant` says; a day's key comes once
the day has passed.";

/// Arguments of `alpheus read`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder that says who reads
    #[arg(long, value_name = "FOLDER")]
    identity: PathBuf,
    /// Where the controller that guards the stream is reached
    #[arg(long, value_name = "URL")]
    controller: String,
    /// Where the service is reached, which keeps the stream's ciphertext
    #[arg(long, value_name = "URL")]
    server: String,
    /// The stream
    #[arg(long, value_name = "ID")]
    stream: StreamId,
    /// What it is a stream of: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be used, nothing is granted, or what comes does not decrypt.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let identity = IdentityFolder::open(&args.identity, Role::Consumer)?;
    let (consumer, certificate, _) = consumer(&identity)?;
    let schema = read_schema(&args.schema)?;
    let layout = Layout::of(&schema).blame_input(&args.schema)?;
    let meant = Meant { role: Role::Controller, name: None };
    let guard = Client::to(&identity, &args.controller, meant)?;
    let asked = KeysAsked { stream: args.stream, certificate: certificate.clone() };
    let given: KeysGiven = guard.exchange("/v1/keys", &asked, Duration::ZERO)?;
    let keys = RawReader::new(&consumer, (args.stream, schema.id(), layout.words), &given.keys);
    let keys = keys.blame(Category::Check)?;
    let service = Client::new(&identity, &args.server)?;
    let (release, select) = event_columns(&schema, &layout);
    let mut events =
        Events { keys, release, select, seen: HashMap::new(), lost: 0, beyond: 0, alien: 0 };
    let mut asked = FramesAsked { signed: given.signed, owner: given.owner, certificate, after: 0 };
    let mut sink = Sink::new(globals.format.unwrap_or_default(), &events.select);
    loop {
        let given: FramesGiven = service.exchange("/v1/frames", &asked, Duration::ZERO)?;
        for frame in &given.frames {
            let Some(row) = events.row(frame)? else { continue };
            if printed(sink.write(row))?.is_break() {
                return Ok(());
            }
        }
        if given.next == asked.after {
            break;
        }
        asked.after = given.next;
    }
    printed(sink.end()).map(drop)?;
    events.tell(&schema);
    events.check()
}

/// Events as they are decrypted, and what is missing among them.
struct Events {
    keys: RawReader,
    release: Release,
    select: ReleasePlan,
    /// By session: the time of its last frame.
    seen: HashMap<u64, u64>,
    /// Frames that follow one that did not come.
    lost: u64,
    /// Events of days without a key.
    beyond: u64,
    /// What is no event of this stream.
    alien: u64,
}

impl Events {
    /// An event's time and columns; none of a border, or of a day without a key.
    fn row(&mut self, bytes: &[u8]) -> Result<Option<Vec<Value>>, Failure> {
        let frame = Frame::parse(bytes).blame(Category::Check)?;
        let before = self.seen.insert(frame.session(), frame.t().0);
        if let (Some(before), Some(link)) = (before, frame.link()) {
            self.lost += u64::from(before != link.previous.0);
        }
        let words = match self.keys.read(&frame) {
            Ok(Some(words)) => words,
            Ok(None) => return Ok(None),
            Err(NotReadable::OtherDay { .. }) => {
                self.beyond += 1;
                return Ok(None);
            }
            Err(_) => {
                self.alien += 1;
                return Ok(None);
            }
        };
        let mut rows = vec![0; self.release.outputs()];
        self.release.add(&words, &mut rows);
        let outputs = decode(&self.select, &rows).blame(Category::Check)?;
        let values = outputs.into_iter().map(|own| serde_json::to_value(own).unwrap_or_default());
        Ok(Some(std::iter::once(Value::from(frame.t().0 / 1000)).chain(values).collect()))
    }

    /// What the rows do not say.
    fn tell(&self, schema: &Schema) {
        let days: Vec<u64> = self.keys.days().collect();
        if let (Some(first), Some(last)) = (days.first(), days.last()) {
            eprintln!("{} from {} to {}", schema.name, calendar(*first), calendar(*last));
        }
        if self.lost > 0 {
            eprintln!("at {} places the service has not handed out all that was sent", self.lost);
        }
        if self.beyond > 0 {
            eprintln!("{} events follow one of a day without a key, and are left out", self.beyond);
        }
    }

    /// Whether all that came was of the stream.
    fn check(&self) -> Result<(), Failure> {
        match self.alien {
            0 => Ok(()),
            some => Err(NotThisStream(some)).blame(Category::Check),
        }
    }
}

/// The service has handed out what no device of this stream sent.
#[derive(Debug, thiserror::Error)]
#[error("{0} events are none of this stream: their check words are not zero; what is printed is")]
struct NotThisStream(u64);

/// Rows on standard output.
struct Sink {
    format: Format,
    columns: Vec<String>,
    begun: bool,
}

impl Sink {
    fn new(format: Format, select: &ReleasePlan) -> Sink {
        let names = select.items.iter().map(|item| item.alias.clone());
        Sink {
            format,
            columns: std::iter::once("at".to_owned()).chain(names).collect(),
            begun: false,
        }
    }

    fn write(&mut self, row: Vec<Value>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let header = !std::mem::replace(&mut self.begun, true);
        match self.format {
            Format::Json => {
                let row: Map<String, Value> = self.columns.iter().cloned().zip(row).collect();
                writeln!(out, "{}", Value::Object(row))
            }
            Format::Csv | Format::Table => {
                let separator = if self.format == Format::Csv { b',' } else { b'\t' };
                let mut csv = csv::WriterBuilder::new().delimiter(separator).from_writer(&mut out);
                if header {
                    csv.write_record(&self.columns)?;
                }
                csv.write_record(row.into_iter().map(cell))?;
                csv.flush()
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        io::stdout().lock().flush()
    }
}
