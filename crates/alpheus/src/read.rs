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
use alpheus_encrypted_stream::annotation::owner_id;
use alpheus_encrypted_stream::decode::decode;
use alpheus_encrypted_stream::error::NotReadable;
use alpheus_encrypted_stream::frame::{Frame, FrameView};
use alpheus_encrypted_stream::grant::RawReader;
use alpheus_encrypted_stream::keys::DAY;
use alpheus_policy::ids::{ConsumerId, OwnerId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Release;
use alpheus_policy::planner::event_columns;
use alpheus_policy::schema::Schema;
use alpheus_policy::select::ReleasePlan;
use alpheus_policy::time::Timestamp;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus read --identity pki/doctor --controller https://localhost:7401 \\
      --server https://localhost:7400 --stream 9f… --schema examples/fitness/schema.yaml
  alpheus read --identity pki/doctor --controller https://localhost:7401 \\
      --controller-name first --server https://localhost:7400 --stream 9f… --owner 3c… \\
      --schema schema.yaml --format csv

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
    /// The name on the controller's certificate; by default whichever has one
    #[arg(long, value_name = "NAME")]
    controller_name: Option<String>,
    /// Where the service is reached, which keeps the stream's ciphertext
    #[arg(long, value_name = "URL")]
    server: String,
    /// The stream
    #[arg(long, value_name = "ID")]
    stream: StreamId,
    /// Whose it is, as `alpheus owner grant` tells its owner; by default whoever has granted
    #[arg(long, value_name = "ID")]
    owner: Option<OwnerId>,
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
    let meant = Meant { role: Role::Controller, name: args.controller_name.clone() };
    let guard = Client::to(&identity, &args.controller, meant)?;
    let asked = KeysAsked { stream: args.stream, certificate: certificate.clone() };
    let given: KeysGiven = guard.exchange("/v1/keys", &asked, Duration::ZERO)?;
    by_the_owner(&given, (args.stream, consumer.id()), args.owner).blame(Category::Check)?;
    let keys = RawReader::new(&consumer, (args.stream, schema.id(), layout.words), &given.keys);
    let keys = keys.blame(Category::Check)?;
    let service = Client::new(&identity, &args.server)?;
    let (release, select) = event_columns(&schema, &layout);
    let mut events = Events::new(keys, release, select);
    let mut asked = FramesAsked { signed: given.signed, owner: given.owner, certificate, after: 0 };
    let mut sink = Sink::new(globals.format.unwrap_or_default(), &events.select);
    loop {
        let given: FramesGiven = service.exchange("/v1/frames", &asked, Duration::ZERO)?;
        for frame in &given.frames {
            let Some(row) = events.row(frame).blame(Category::Check)? else { continue };
            if printed(sink.write(row))?.is_break() {
                return Ok(());
            }
        }
        match goes_on(asked.after, given.next).blame(Category::Check)? {
            Some(next) => asked.after = next,
            None => break,
        }
    }
    printed(sink.end()).map(drop)?;
    events.tell(&schema);
    events.check()
}

/// Runs of a device that are told apart: one a day, and one for each start.
const MOST_SESSIONS: usize = 1 << 16;

/// A service that would have its reader read for ever.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum NoEnd {
    #[error("the service goes back in its log, from {after} to {next}: it cannot be read from")]
    Back { after: u64, next: u64 },
    #[error(
        "the service hands out more than {MOST_SESSIONS} runs of the device, which no device has; grant fewer days, or ask who runs the service"
    )]
    Sessions,
}

/// Where to go on in the service's log; none at its end.
fn goes_on(after: u64, next: u64) -> Result<Option<u64>, NoEnd> {
    match next.cmp(&after) {
        Ordering::Less => Err(NoEnd::Back { after, next }),
        Ordering::Equal => Ok(None),
        Ordering::Greater => Ok(Some(next)),
    }
}

/// Why what a controller hands out is not what an owner has granted.
#[derive(Debug, thiserror::Error)]
enum NotTheOwners {
    #[error("what the controller shows is not signed by the owner that it names; ask the owner")]
    Unsigned,
    #[error("what the controller shows is for another stream or another reader")]
    Other,
    #[error("the stream was granted by {found}, not by {wanted}; ask the owner which is theirs")]
    Owner { found: OwnerId, wanted: OwnerId },
}

/// The grant bears its owner's signature, is of this stream and for this reader; and the
/// owner is who the reader thinks, if it says so.
fn by_the_owner(
    given: &KeysGiven,
    (stream, reader): (StreamId, ConsumerId),
    wanted: Option<OwnerId>,
) -> Result<(), NotTheOwners> {
    let grant = given.signed.open(&given.owner).map_err(|_| NotTheOwners::Unsigned)?;
    if (grant.stream, grant.reader) != (stream, reader) {
        return Err(NotTheOwners::Other);
    }
    let found = owner_id(&given.owner);
    match wanted.filter(|wanted| *wanted != found) {
        Some(wanted) => Err(NotTheOwners::Owner { found, wanted }),
        None => Ok(()),
    }
}

/// Events as they are decrypted, and what is missing among them.
struct Events {
    keys: RawReader,
    release: Release,
    select: ReleasePlan,
    sessions: Sessions,
    /// Events of days without a key.
    beyond: u64,
    /// What is no event of this stream.
    alien: u64,
}

impl Events {
    fn new(keys: RawReader, release: Release, select: ReleasePlan) -> Events {
        let sessions = Sessions { days: keys.days().collect(), ..Sessions::default() };
        Events { keys, release, select, sessions, beyond: 0, alien: 0 }
    }

    /// An event's time and columns; none of a border, of a day without a key, or of what is
    /// no event of this stream, which is counted.
    fn row(&mut self, bytes: &[u8]) -> Result<Option<Vec<Value>>, NoEnd> {
        let Ok(frame) = Frame::parse(bytes) else {
            self.alien += 1;
            return Ok(None);
        };
        self.sessions.note(&frame)?;
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
        // Whoever carries the words may have changed them to none that the schema has.
        let Ok(outputs) = decode(&self.select, &rows) else {
            self.alien += 1;
            return Ok(None);
        };
        let values = outputs.into_iter().map(|own| serde_json::to_value(own).unwrap_or_default());
        Ok(Some(std::iter::once(Value::from(frame.t().0 / 1000)).chain(values).collect()))
    }

    /// What the rows do not say.
    fn tell(&self, schema: &Schema) {
        let days = &self.sessions.days;
        if let (Some(first), Some(last)) = (days.first(), days.last()) {
            eprintln!("{} from {} to {}", schema.name, calendar(*first), calendar(*last));
        }
        self.sessions.missing().tell();
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

/// The runs of a device as far as frames have come: what follows what shows what is missing
/// inside, borders show where one begins and ends.
#[derive(Default)]
struct Sessions {
    /// Days with a key.
    days: BTreeSet<u64>,
    /// Days of which something came.
    reached: BTreeSet<u64>,
    seen: HashMap<u64, Session>,
    /// Frames that follow one that did not come.
    lost: u64,
}

struct Session {
    /// Its first frame that came opens it, or follows one from before the days.
    headed: bool,
    /// It was closed, or goes on after the days.
    tailed: bool,
    last: Timestamp,
}

/// What did not come, as far as it can be seen.
#[derive(Debug, PartialEq, Eq)]
struct Missing {
    /// Places within what came of a session.
    inside: u64,
    /// Sessions without a beginning, and without an end.
    heads: usize,
    tails: usize,
    /// Days of which there is nothing.
    days: usize,
}

impl Sessions {
    fn note(&mut self, frame: &FrameView<'_>) -> Result<(), NoEnd> {
        let (t, link) = (frame.t(), frame.link());
        let keyed = |at: Timestamp| self.days.contains(&(at.0 / DAY));
        let tailed = matches!(frame, Frame::Closing { .. }) || !keyed(t);
        let headed = link.is_none_or(|link| !keyed(link.previous));
        // A border is of the time before it.
        self.reached.extend(link.map(|_| t.0.saturating_sub(1) / DAY));
        let many = self.seen.len();
        match self.seen.get_mut(&frame.session()) {
            None if many >= MOST_SESSIONS => return Err(NoEnd::Sessions),
            None => {
                self.seen.insert(frame.session(), Session { headed, tailed, last: t });
            }
            Some(session) => {
                let follows = link.is_some_and(|link| link.previous == session.last);
                self.lost += u64::from(!follows);
                (session.last, session.tailed) = (t, session.tailed || tailed);
            }
        }
        Ok(())
    }

    fn missing(&self) -> Missing {
        Missing {
            inside: self.lost,
            heads: self.seen.values().filter(|session| !session.headed).count(),
            tails: self.seen.values().filter(|session| !session.tailed).count(),
            days: self.days.difference(&self.reached).count(),
        }
    }
}

impl Missing {
    fn tell(&self) {
        let Missing { inside, heads, tails, days } = self;
        if *inside > 0 {
            eprintln!("at {inside} places the service has not handed out all that was sent");
        }
        if *heads > 0 {
            eprintln!("of {heads} runs of the device the service has not handed out the beginning");
        }
        if *tails > 0 {
            eprintln!(
                "{tails} runs of the device have no end: it was cut off, or the service keeps it"
            );
        }
        if *days > 0 {
            eprintln!("of {days} days nothing came: the device was off, or the service keeps it");
        }
    }
}

/// The service has handed out what no device of this stream sent.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} frames are none of this stream: malformed, with a check word that is not zero, or with values that the schema does not have; what is printed is"
)]
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

#[cfg(test)]
mod tests;
