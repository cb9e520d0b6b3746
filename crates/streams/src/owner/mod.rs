//! `alpheus owner`: what people do with their streams, at the controller that
//! guards them.

mod backup;
pub mod budgets;
mod device;
pub mod erasure;
pub mod grant;
pub mod identity;
pub mod log;
mod moves;

pub use device::DeviceFile;

use crate::ca;
use crate::deployment::{self, OWNER_SEED};
use crate::links;
use crate::wire::{ControllerView, Handover};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::{Annotation, Placement};
use alpheus_encrypted_stream::certificate::{Recipient, fingerprint};
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::ledger::LogLine;
use alpheus_encrypted_stream::withdrawal::Erasure;
use alpheus_input::files::{read_policies, read_schema};
use alpheus_input::tables::print_tables;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::local_time::{iso_time, local_time};
use alpheus_node::network::answer::EmptyAnswer;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::{Name, Role};
use alpheus_node::note;
use alpheus_node::pki::Folder;
use alpheus_node::settings::Format;
use alpheus_policy::ids::StreamId;
use alpheus_policy::schema::Schema;
use alpheus_policy::show::Table;
use alpheus_time::{Timestamp, Window};
use backup::{Backup, Restore, back_up, restore};
use identity::OwnerIdentity;
use log::{in_order, in_words};
use rand_core::Rng;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus owner add --identity pki/alice --controller https://localhost:7401 \\
      --schema examples/fitness/schema.yaml --policies examples/fitness/policies.yaml \\
      --metadata region=California --producer watch --device watch.json > alice.stream
  alpheus owner log --identity pki/alice --controller https://localhost:7401 \\
      --stream $(cat alice.stream)

The --help of each command has its own examples.";

const ADD: &str = "\
Examples:
  alpheus owner add --identity pki/alice --controller https://localhost:7401 \\
      --schema examples/fitness/schema.yaml --policies examples/fitness/policies.yaml \\
      --metadata region=California --producer watch --device watch.json > alice.stream";

const CHOOSE: &str = "\
Examples:
  alpheus owner choose --identity pki/alice --controller https://localhost:7401 \\
      --stream $(cat alice.stream) --schema examples/fitness/schema.yaml \\
      --policies examples/fitness/policies.yaml --metadata region=California";

const STREAMS: &str = "\
Examples:
  alpheus owner streams --identity pki/alice --controller https://localhost:7401";

const LOG: &str = "\
Examples:
  alpheus owner log --identity pki/alice --controller https://localhost:7401 \\
      --stream $(cat alice.stream)";

const BUDGETS: &str = "\
Examples:
  alpheus owner budgets --identity pki/alice --controller https://localhost:7401 \\
      --stream $(cat alice.stream) --format json";

const MOVE: &str = "\
Examples:
  alpheus owner move --identity pki/alice --controller https://localhost:7401 \\
      --stream $(cat alice.stream) --to https://localhost:7402
  alpheus owner move --identity pki/bob --lost --stream $(cat bob.stream) \\
      --to https://localhost:7402 --device meter.json --producer meter \\
      --schema examples/fitness/schema.yaml --policies examples/fitness/policies.yaml \\
      --metadata region=Texas";

const GRANT: &str = "\
Examples:
  alpheus owner grant --identity pki/alice --controller https://localhost:7401 \\
      --stream $(cat alice.stream) --reader doctor/consumer.txt --from 2026-11-01 \\
      --to 2026-11-30
  alpheus owner grant --identity pki/alice --controller https://localhost:7401 \\
      --stream $(cat alice.stream) --reader doctor/consumer.txt --stop";

const REVOKE: &str = "\
Examples:
  alpheus owner revoke --identity pki/alice --controller https://localhost:7401 \\
      --stream $(cat alice.stream)";

const ERASE: &str = "\
Examples:
  alpheus owner erase --identity pki/alice --controller https://localhost:7401 \\
      --stream $(cat alice.stream) --device watch.json --statement erased.txt";

const REQUEST: &str = "\
Examples:
  alpheus owner request --identity alice > alice/request.txt";

const BACKUP: &str = "\
Examples:
  alpheus owner backup --identity pki/alice --device watch.json --key-file alice.key \\
      --to alice.backup";

const RESTORE: &str = "\
Examples:
  alpheus owner restore --from alice.backup --key-file alice.key --identity pki/alice-again";

/// Arguments of `alpheus owner`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create a stream, hand its key to the controller and write the device's file
    #[command(after_help = ADD)]
    Add(Add),
    /// Change the choice of what may be learned
    #[command(after_help = CHOOSE)]
    Choose(Choose),
    /// List your streams
    #[command(after_help = STREAMS)]
    Streams(ControllerArgs),
    /// List who queried a stream, for what, and with which outcome
    #[command(after_help = LOG)]
    Log(StreamArgs),
    /// Show how much of a stream's privacy budgets is spent
    #[command(after_help = BUDGETS)]
    Budgets(StreamArgs),
    /// Let a consumer read a stream's raw data on given days, or end that access
    ///
    /// Raw data are the sums of ticks, or events if the schema says `frames: events`.
    #[command(after_help = GRANT)]
    Grant(grant::Args),
    /// Move a stream to another controller, with what its budgets have spent
    ///
    /// The previous controller answers for no window that ends after the border, which is a time, and the
    /// next one for none that begins before it. If the command is interrupted, run it again.
    #[command(after_help = MOVE)]
    Move(moves::Move),
    /// Withdraw consent for a stream, permanently
    #[command(after_help = REVOKE)]
    Revoke(StreamArgs),
    /// Have a stream's key destroyed, so that its past data can never be read again
    #[command(after_help = ERASE)]
    Erase(erasure::Erase),
    /// Write the request for the owner's certificate, which `alpheus ca certify` signs
    #[command(after_help = REQUEST)]
    Request(Request),
    /// Back up the identity folder and devices' files into one encrypted file
    #[command(after_help = BACKUP)]
    Backup(Backup),
    /// Restore the identity folder from a backup
    #[command(after_help = RESTORE)]
    Restore(Restore),
}

/// The owner and the controller.
#[derive(Debug, clap::Args)]
struct ControllerArgs {
    /// The owner's identity folder, with the signing key
    #[arg(long, value_name = "FOLDER")]
    identity: PathBuf,
    /// The controller's URL
    #[arg(long, value_name = "URL")]
    controller: String,
    /// The name on the controller's certificate; by default any
    #[arg(long, value_name = "NAME")]
    controller_name: Option<String>,
}

#[derive(Debug, clap::Args)]
struct StreamArgs {
    #[command(flatten)]
    reach: ControllerArgs,
    /// The stream
    #[arg(long, value_name = "ID")]
    stream: StreamId,
}

/// What may be learned.
#[derive(Debug, clap::Args)]
struct ChoiceArgs {
    /// The stream's schema: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// The owner's choices; an entry with the certificate's name applies to this owner
    #[arg(long, value_name = "FILE")]
    policies: PathBuf,
    /// A public fact about the stream
    #[arg(long, value_name = "NAME=VALUE")]
    metadata: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Add {
    #[command(flatten)]
    reach: ControllerArgs,
    #[command(flatten)]
    wish: ChoiceArgs,
    /// The name on the certificate of the sending device
    #[arg(long, value_name = "NAME")]
    producer: String,
    /// Where to write the device's file, which holds the stream's key
    #[arg(long, value_name = "FILE")]
    device: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Choose {
    #[command(flatten)]
    one: StreamArgs,
    #[command(flatten)]
    wish: ChoiceArgs,
}

#[derive(Debug, clap::Args)]
struct Request {
    /// The owner's identity folder; a signing key is created in it unless there is one
    #[arg(long, value_name = "FOLDER")]
    identity: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be used, or the controller refuses.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        Command::Add(add) => add_stream(add),
        Command::Choose(choose) => change_choice(choose),
        Command::Streams(reach) => list(reach, globals),
        Command::Log(one) => show_log(one, globals),
        Command::Budgets(one) => budgets::show(one, globals),
        Command::Grant(args) => grant::grant(args),
        Command::Move(args) => moves::run(args),
        Command::Revoke(one) => revoke(one),
        Command::Erase(args) => erasure::erase(args),
        Command::Request(args) => request(args),
        Command::Backup(args) => back_up(args),
        Command::Restore(args) => restore(args),
    }
}

/// An owner at their controller.
struct Owner {
    identity: OwnerIdentity,
    client: BlockingClient,
}

impl Owner {
    fn open(reach: &ControllerArgs) -> Result<(Owner, IdentityFolder), Failure> {
        let folder = open_identity(&reach.identity, Role::Owner)?;
        let owner = Owner::at((&reach.controller, reach.controller_name.as_deref()), &folder)?;
        Ok((owner, folder))
    }

    fn at((url, name): (&str, Option<&str>), folder: &IdentityFolder) -> Result<Owner, Failure> {
        let identity = OwnerIdentity::open(folder)?;
        let client = links::controller(url, name, folder)?;
        Ok(Owner { identity, client })
    }

    /// The controllers of that host, as the authority certified them.
    fn controllers(&self, identity: &IdentityFolder) -> Result<Vec<Recipient>, Failure> {
        let known: Vec<ControllerView> = self.client.get_json("/v1/controllers", Duration::ZERO)?;
        erasure::certified(&known, identity, self.client.peer())
    }

    /// The signed choice. A later one has a higher version: versions are Unix seconds.
    fn choice(
        &self,
        wish: &ChoiceArgs,
        schema: &Schema,
        stream: StreamId,
        is_new: bool,
    ) -> Result<Signed<Annotation>, Failure> {
        let policies = read_policies(&wish.policies, schema)?;
        let metadata = wish.metadata.iter().map(|given| {
            let pair = given.split_once('=').ok_or("metadata must be given as NAME=VALUE");
            pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        });
        let metadata = metadata.collect::<Result<_, _>>().blame(Category::Usage)?;
        let policy = policies.of_owner(self.identity.certified.name()).clone();
        let now = clock::now();
        let from = if is_new { identity::first_day(&policy, now) } else { Timestamp(0) };
        if from > now {
            note!(
                "the stream counts from {} on: the choice limits the sets of a day, and another host may have used some of today's",
                local_time(from.0 / 1000)
            );
        }
        let stream = (stream, schema.id());
        Ok(self.identity.choice_from(from, stream, version_at(now), metadata, policy))
    }
}

/// The version of a choice: the time, in Unix seconds.
#[must_use]
pub fn version_at(now: Timestamp) -> u32 {
    u32::try_from(now.0 / 1_000_000).unwrap_or(u32::MAX)
}

/// Prints the request. The key never leaves the folder.
fn request(args: &Request) -> Result<(), Failure> {
    let folder = IdentityFolder::open(&args.identity, Role::Owner)?;
    if !folder.path(OWNER_SEED).exists() {
        let seed = Secret::random(&mut entropy::rng()?);
        Folder::existing(&args.identity).write_secret(OWNER_SEED, &seed)?;
    }
    print!("{}", ca::request_text(&identity::request(&folder)?));
    Ok(())
}

fn add_stream(add: &Add) -> Result<(), Failure> {
    let (owner, identity) = Owner::open(&add.reach)?;
    Name::new(Role::Producer, add.producer.clone()).blame(Category::Usage)?;
    let schema = read_schema(&add.wish.schema)?;
    let mut rng = entropy::rng()?;
    let (mut id, master) = ([0; 16], MasterSecret::random(&mut rng));
    rng.fill_bytes(&mut id);
    let stream = StreamId(id);
    let annotation = owner.choice(&add.wish, &schema, stream, true)?;
    let controller = owner.controllers(&identity)?.into_iter().next();
    let controller =
        controller.ok_or("the controller presented no certificate").blame(Category::Check)?;
    let OwnerIdentity { key, certified } = &owner.identity;
    let purpose = Purpose { stream, schema: schema.id(), owner: certified.id() };
    // The device's file comes first: a stream without its key can never be sent.
    DeviceFile::new(stream, &schema, &master).write(&add.device)?;
    let placement = Placement {
        stream,
        version: 1,
        controller: fingerprint(controller.certificate()),
        producer: add.producer.clone(),
        moved: None,
    };
    let authority = deployment::of(&identity)?.authority().to_owned();
    let sealed = purpose.seal(&authority, &controller, &master, &mut rng);
    let handover = Handover {
        sealed: sealed.blame(Category::Check)?,
        annotation,
        owner: certified.certificate().clone(),
        placement: Signed::new(&placement, key),
    };
    owner.client.call::<EmptyAnswer>("/v1/streams", &handover, Duration::ZERO)?;
    println!("{stream}");
    Ok(())
}

fn change_choice(choose: &Choose) -> Result<(), Failure> {
    let (owner, _) = Owner::open(&choose.one.reach)?;
    let schema = read_schema(&choose.wish.schema)?;
    let annotation = owner.choice(&choose.wish, &schema, choose.one.stream, false)?;
    let choice = owner.identity.submission(annotation);
    owner.client.call::<EmptyAnswer>("/v1/choices", &choice, Duration::ZERO)?;
    Ok(())
}

fn list(reach: &ControllerArgs, globals: &Globals) -> Result<(), Failure> {
    let (owner, _) = Owner::open(reach)?;
    let streams: Vec<String> = owner.client.get_json("/v1/streams", Duration::ZERO)?;
    let table = Table {
        title: "Your streams here".to_owned(),
        columns: vec!["stream".to_owned()],
        rows: streams.into_iter().map(|stream| vec![stream]).collect(),
    };
    let out = &mut io::stdout().lock();
    printed(print_tables(&[table], globals.format.unwrap_or_default(), out)).map(drop)
}

fn show_log(one: &StreamArgs, globals: &Globals) -> Result<(), Failure> {
    let (owner, _) = Owner::open(&one.reach)?;
    let path = format!("/v1/streams/{}/log", one.stream);
    let mut lines: Vec<LogLine> = owner.client.get_json(&path, Duration::ZERO)?;
    let schema: Schema = owner.client.get_json("/v1/schema", Duration::ZERO)?;
    lines.sort_by_key(in_order);
    let format = globals.format.unwrap_or_default();
    let time = |at: Timestamp| match format {
        Format::Table => local_time(at.0 / 1000),
        Format::Json | Format::Csv => iso_time(at.0 / 1000),
    };
    let window = |window: Window| format!("{} to {}", time(window.start), time(window.end));
    let row = |line: &LogLine| vec![time(line.at), in_words(line, &schema, window)];
    let table = Table {
        title: "Who learned what, and your decisions".to_owned(),
        columns: vec!["at".to_owned(), "event".to_owned()],
        rows: lines.iter().map(row).collect(),
    };
    let out = &mut io::stdout().lock();
    printed(print_tables(&[table], format, out)).map(drop)
}

/// A window in UTC.
fn in_utc(window: Window) -> String {
    format!("{} to {}", iso_time(window.start.0 / 1000), iso_time(window.end.0 / 1000))
}

fn revoke(one: &StreamArgs) -> Result<(), Failure> {
    let (owner, _) = Owner::open(&one.reach)?;
    let asked = owner.identity.withdrawal(one.stream, false);
    owner.client.call::<Option<Signed<Erasure>>>("/v1/withdrawals", &asked, Duration::ZERO)?;
    note!(
        "consent for stream {} is revoked for good: no window that opens from now on has its data",
        one.stream
    );
    Ok(())
}
