//! `alpheus read`: reads single events or ticks of a stream, as a consumer with the owner's
//! permission.

mod columns;
mod sessions;
mod ticks;

use crate::deployment;
use crate::links;
use crate::query::opener::consumer;
use crate::wire::{FramesRequest, FramesResponse, KeysRequest, KeysResponse};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment, fingerprint};
use alpheus_encrypted_stream::decode::decode;
use alpheus_encrypted_stream::error::{CertificateError, RawReadError};
use alpheus_encrypted_stream::frame::Frame;
use alpheus_encrypted_stream::grant::{GrantedStream, RawReader};
use alpheus_input::calendar::Day;
use alpheus_input::files::read_schema;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::{Name, Role, host_named};
use alpheus_node::note;
use alpheus_node::settings::Format;
use alpheus_policy::ids::{ConsumerId, ControllerId, OwnerId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Release;
use alpheus_policy::schema::{Frames, Schema};
use alpheus_policy::select::ReleasePlan;
use alpheus_stream_runtime::results::cell;
use alpheus_time::{Span, Timestamp};
use columns::{event_columns, tick_columns};
use serde_json::{Map, Value};
use sessions::{EndlessReadError, Sessions};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus read --identity pki/doctor --controller https://localhost:7401 \\
      --server https://localhost:7400 --stream $(cat alice.stream) \\
      --schema examples/fitness/schema.yaml
  alpheus read --identity pki/doctor --controller https://localhost:7401 \\
      --controller-name first --server https://localhost:7400 --stream $(cat alice.stream) \\
      --owner $(cat alice.id) --schema schema.yaml --format csv

The stream's owner permits this with `alpheus owner grant`. A day's key is available once
the day is over.";

/// Arguments of `alpheus read`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The consumer's identity folder
    #[arg(long, value_name = "FOLDER")]
    identity: PathBuf,
    /// URL of the controller that guards the stream
    #[arg(long, value_name = "URL")]
    controller: String,
    /// The name on the controller's certificate; by default any
    #[arg(long, value_name = "NAME")]
    controller_name: Option<String>,
    /// URL of the service, which stores the stream's ciphertext
    #[arg(long, value_name = "URL")]
    server: String,
    /// The stream
    #[arg(long, value_name = "ID")]
    stream: StreamId,
    /// The owner's id, as `alpheus owner grant` prints it; by default any owner is accepted
    #[arg(long, value_name = "ID")]
    owner: Option<OwnerId>,
    /// The stream's schema: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be used, no access is granted, or frames do not decrypt.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let identity = open_identity(&args.identity, Role::Consumer)?;
    let (consumer, certificate, _) = consumer(&identity)?;
    let deployment = deployment::of(&identity)?;
    let schema = read_schema(&args.schema)?;
    let layout = Layout::of(&schema).blame_input(&args.schema)?;
    let guard = links::controller(&args.controller, args.controller_name.as_deref(), &identity)?;
    let key = consumer.hybrid().clone();
    let asked = KeysRequest { stream: args.stream, certificate: certificate.clone(), key };
    let given: KeysResponse = guard.call("/v1/keys", &asked, Duration::ZERO)?;
    let read = (args.stream, consumer.id());
    let owner = check_grant(&given, &deployment, read, args.owner).blame(Category::Check)?;
    let controller = sender(&given.controller, &deployment, guard.peer()).blame(Category::Check)?;
    let granted = GrantedStream { stream: args.stream, schema: schema.id(), owner, controller };
    let handed = std::slice::from_ref(&given.keys);
    let keys = consumer.raw_reader((&granted, layout.words), handed);
    let keys = keys.blame(Category::Check)?;
    let service = links::service(&args.server, &identity)?;
    let mut events = Events::new(keys, &schema, &layout);
    let mut asked =
        FramesRequest { signed: given.signed, owner: given.owner, certificate, after: 0 };
    let mut sink = Sink::new(globals.format.unwrap_or_default(), &events.select);
    loop {
        let given: FramesResponse = service.call("/v1/frames", &asked, Duration::ZERO)?;
        for frame in &given.frames {
            let Some(row) = events.row(frame).blame(Category::Check)? else { continue };
            if printed(sink.write(row))?.is_break() {
                return Ok(());
            }
        }
        match next_offset(asked.after, given.next).blame(Category::Check)? {
            Some(next) => asked.after = next,
            None => break,
        }
    }
    printed(sink.end()).map(drop)?;
    events.print_summary(&schema);
    events.check()
}

/// Where to continue in the service's log; none at its end.
fn next_offset(after: u64, next: u64) -> Result<Option<u64>, EndlessReadError> {
    match next.cmp(&after) {
        Ordering::Less => Err(EndlessReadError::Back { after, next }),
        Ordering::Equal => Ok(None),
        Ordering::Greater => Ok(Some(next)),
    }
}

/// Why a controller's answer does not match the owner's grant.
#[derive(Debug, thiserror::Error)]
enum GrantMismatchError {
    #[error(
        "the grant that the controller sent is not signed by the owner that it names; ask the owner"
    )]
    Unsigned,
    #[error("the controller sent a grant with an invalid certificate of its owner: {0}")]
    Uncertified(#[from] CertificateError),
    #[error("the grant that the controller sent is for another stream or another reader")]
    Other,
    #[error("the grant is signed by {found}, not by {wanted}; ask the owner for the right id")]
    Owner { found: OwnerId, wanted: OwnerId },
}

/// Checks the owner's signature, the stream and the reader of a grant, and the owner if
/// the reader expects one.
fn check_grant(
    given: &KeysResponse,
    deployment: &Deployment,
    (stream, reader): (StreamId, ConsumerId),
    wanted: Option<OwnerId>,
) -> Result<OwnerId, GrantMismatchError> {
    let owner = deployment.owner(&given.owner)?;
    let grant = given.signed.open(owner.key()).map_err(|_| GrantMismatchError::Unsigned)?;
    if (grant.stream, grant.reader) != (stream, reader) {
        return Err(GrantMismatchError::Other);
    }
    let found = owner.id();
    match wanted.filter(|wanted| *wanted != found) {
        Some(wanted) => Err(GrantMismatchError::Owner { found, wanted }),
        None => Ok(found),
    }
}

/// The controller that sealed the keys. It must be one of the host that answered.
fn sender(
    certificate: &Signed<Certificate>,
    deployment: &Deployment,
    peer: Option<Name>,
) -> Result<ControllerId, CertificateError> {
    let certificate = deployment.controller(certificate)?;
    match peer.is_some_and(|peer| peer.name == host_named(&certificate.party.name)) {
        true => Ok(fingerprint(&certificate)),
        false => Err(CertificateError::OtherName),
    }
}

/// Decrypts events and counts what is missing.
struct Events {
    keys: RawReader,
    release: Release,
    select: ReleasePlan,
    sessions: Sessions,
    /// Events of days without a key.
    without_key: u64,
    /// Frames that are not of this stream.
    foreign: u64,
    /// The tick of a schema with one frame a tick.
    tick: Option<Span>,
    /// Times in which the device slept.
    asleep: u64,
    /// The end of the last tick that was read, by session.
    read_to: HashMap<u64, Timestamp>,
}

impl Events {
    fn new(keys: RawReader, schema: &Schema, layout: &Layout) -> Events {
        let (release, select) = match schema.frames {
            Frames::Events => event_columns(schema, layout),
            Frames::Ticks { .. } => tick_columns(schema, layout),
        };
        let tick = (!schema.frames.is_events()).then_some(schema.tick);
        let sessions = Sessions::of_days(keys.days());
        Events {
            keys,
            release,
            select,
            sessions,
            without_key: 0,
            foreign: 0,
            tick,
            asleep: 0,
            read_to: HashMap::new(),
        }
    }

    /// An event's time and columns; none for a border. Events of days without a key and
    /// frames of other streams give none either and are counted.
    fn row(&mut self, bytes: &[u8]) -> Result<Option<Vec<Value>>, EndlessReadError> {
        if let Some(tick) = self.tick {
            return self.tick_row(bytes, tick);
        }
        let Ok(frame) = Frame::parse(bytes) else {
            self.foreign += 1;
            return Ok(None);
        };
        self.sessions.note((&frame).into())?;
        let words = match self.keys.read(&frame) {
            Ok(Some(words)) => words,
            Ok(None) => return Ok(None),
            Err(RawReadError::OtherDay { .. }) => {
                self.without_key += 1;
                return Ok(None);
            }
            Err(_) => {
                self.foreign += 1;
                return Ok(None);
            }
        };
        Ok(self.columns(frame.t(), &words))
    }

    /// The columns of an event or a tick.
    fn columns(&mut self, at: Timestamp, words: &[u64]) -> Option<Vec<Value>> {
        let mut rows = vec![0; self.release.outputs()];
        self.release.add(words, &mut rows);
        // The service may have changed the words to values that the schema does not have.
        let Ok(outputs) = decode(&self.select, &rows) else {
            self.foreign += 1;
            return None;
        };
        let values = outputs.into_iter().map(|own| serde_json::to_value(own).unwrap_or_default());
        Some(std::iter::once(Value::from(at.0 / 1000)).chain(values).collect())
    }

    /// Prints a summary, with what is missing, on standard error.
    fn print_summary(&self, schema: &Schema) {
        let days = &self.sessions.days;
        if let (Some(first), Some(last)) = (days.first(), days.last()) {
            note!("{} from {} to {}", schema.name, Day(*first), Day(*last));
        }
        self.sessions.missing().print();
        if self.asleep > 0 {
            note!("the device slept {} times, or the service says so", self.asleep);
        }
        if self.without_key > 0 && self.tick.is_none() {
            note!(
                "{} events follow an event of a day without a key and are left out",
                self.without_key
            );
        }
        if self.without_key > 0 && self.tick.is_some() {
            note!(
                "{} ticks start or end in a day without a key and are left out; the last tick of a day ends in the next",
                self.without_key
            );
        }
    }

    /// Fails if any frame was not of the stream.
    fn check(&self) -> Result<(), Failure> {
        match self.foreign {
            0 => Ok(()),
            some => Err(ForeignFramesError(some)).blame(Category::Check),
        }
    }
}

/// The service sent frames that the stream's device did not send.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} frames do not belong to this stream: malformed, with a check word that is not zero, or with values outside the schema; the printed rows do belong to it"
)]
struct ForeignFramesError(u64);

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

#[cfg(test)]
mod tests;
