//! `alpheus owner`: what a person does about their streams, at the controller
//! that guards them.

mod backup;
pub(crate) mod budgets;
mod device;
mod erasure;
pub(crate) mod grant;
pub(crate) mod log;

pub use device::DeviceFile;

use crate::ca::{OWNER_SEED, read_seed};
use crate::commands::Globals;
use crate::entropy;
use crate::failure::{Blame, Category, Failure, printed};
use crate::network::client::Client;
use crate::network::identity::{IdentityFolder, from_hex};
use crate::network::role::{Name, Role, host_named};
use crate::network::tls::Meant;
use crate::network::wire::{Choice, Done, Handover, Withdraw};
use crate::query::print_tables;
use crate::replay::inputs::{read_schema, read_text};
use crate::runtime::embedded::wall_clock;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::{Signed, Verified};
use alpheus_encrypted_stream::annotation::{Annotation, Placement, owner_id};
use alpheus_encrypted_stream::certificate::{Certificate, fingerprint};
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::ledger::LogLine;
use alpheus_encrypted_stream::withdrawal::Erasure;
use alpheus_policy::ids::StreamId;
use alpheus_policy::policy::Policies;
use alpheus_policy::schema::Schema;
use alpheus_policy::show::Table;
use alpheus_policy::time::{Timestamp, Window};
use backup::{Backup, Restore, back_up, restore};
use log::{in_order, in_words};
use rand_core::Rng;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus owner add --identity pki/alice --controller https://localhost:7401 \\
      --schema examples/fitness/schema.yaml --policies examples/fitness/policies.yaml \\
      --metadata group=riders --producer watch --device watch.json
  alpheus owner log --identity pki/alice --controller https://localhost:7401 --stream 9f…
  alpheus owner budgets --identity pki/alice --controller https://localhost:7401 --stream 9f… --format json
  alpheus owner grant --identity pki/alice --controller https://localhost:7401 --stream 9f… \\
      --reader doctor/consumer.txt --from 2026-11-01 --to 2026-11-30
  alpheus owner grant --identity pki/alice --controller https://localhost:7401 --stream 9f… \\
      --reader doctor/consumer.txt --stop
  alpheus owner revoke --identity pki/alice --controller https://localhost:7401 --stream 9f…
  alpheus owner erase --identity pki/alice --controller https://localhost:7401 --stream 9f… \\
      --device watch.json --statement erased.txt
  alpheus owner backup --identity pki/alice --device watch.json --key-file alice.key --to alice.backup
  alpheus owner restore --from alice.backup --key-file alice.key --identity pki/alice-again";

/// Arguments of `alpheus owner`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a stream, hand its key to the controller, write the device's file
    #[command(after_help = EXAMPLES)]
    Add(Add),
    /// Choose anew what may be learnt
    #[command(after_help = EXAMPLES)]
    Choose(Choose),
    /// List one's streams
    #[command(after_help = EXAMPLES)]
    Streams(Reach),
    /// List who asked about a stream, what for, and how it ended
    #[command(after_help = EXAMPLES)]
    Log(One),
    /// See what noise has cost of one's budgets for a stream
    #[command(after_help = EXAMPLES)]
    Budgets(One),
    /// Let a consumer read days of a stream itself, or no more of them
    #[command(after_help = EXAMPLES)]
    Grant(grant::Args),
    /// Withdraw consent for a stream, for good
    #[command(after_help = EXAMPLES)]
    Revoke(One),
    /// Have a stream's key destroyed: what was sent of it can never be read again
    #[command(after_help = EXAMPLES)]
    Erase(erasure::Erase),
    /// Keep the owner's folder and devices' files in one locked file
    #[command(after_help = EXAMPLES)]
    Backup(Backup),
    /// Make the folder again from such a file
    #[command(after_help = EXAMPLES)]
    Restore(Restore),
}

/// Who asks, and where.
#[derive(Debug, clap::Args)]
struct Reach {
    /// The folder that says who it is, with the owner's key
    #[arg(long, value_name = "FOLDER")]
    identity: PathBuf,
    /// Where the controller is reached
    #[arg(long, value_name = "URL")]
    controller: String,
    /// The name on the controller's certificate; by default whichever has one
    #[arg(long, value_name = "NAME")]
    controller_name: Option<String>,
}

#[derive(Debug, clap::Args)]
struct One {
    #[command(flatten)]
    reach: Reach,
    /// The stream
    #[arg(long, value_name = "ID")]
    stream: StreamId,
}

/// What may be learnt.
#[derive(Debug, clap::Args)]
struct Wish {
    /// What the stream is a stream of: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// What the owner chooses; the owner is known there by the certificate's name
    #[arg(long, value_name = "FILE")]
    policies: PathBuf,
    /// A public fact about the stream
    #[arg(long, value_name = "NAME=VALUE")]
    metadata: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Add {
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    wish: Wish,
    /// The name on the certificate of the device that will send
    #[arg(long, value_name = "NAME")]
    producer: String,
    /// Where to write the device's file: it holds the stream's key
    #[arg(long, value_name = "FILE")]
    device: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Choose {
    #[command(flatten)]
    one: One,
    #[command(flatten)]
    wish: Wish,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be used, or the controller does not take it.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        What::Add(add) => add_stream(add),
        What::Choose(choose) => choose_anew(choose),
        What::Streams(reach) => list(reach, globals),
        What::Log(one) => show_log(one, globals),
        What::Budgets(one) => budgets::show(one, globals),
        What::Grant(args) => grant::grant(args),
        What::Revoke(one) => revoke(one),
        What::Erase(args) => erasure::erase(args),
        What::Backup(args) => back_up(args),
        What::Restore(args) => restore(args),
    }
}

/// An owner at their controller.
struct Owner {
    name: String,
    key: SigningKey,
    client: Client,
}

impl Owner {
    fn open(reach: &Reach) -> Result<(Owner, IdentityFolder), Failure> {
        let identity = IdentityFolder::open(&reach.identity, Role::Owner)?;
        let key = SigningKey::from_seed(&read_seed(&identity.path(OWNER_SEED))?);
        let meant = Meant { role: Role::Controller, name: reach.controller_name.clone() };
        let client = Client::to(&identity, &reach.controller, meant)?;
        Ok((Owner { name: identity.name().name.clone(), key, client }, identity))
    }

    /// The controllers that live there, as the authority certified them; each of the
    /// host that shows it.
    fn controllers(
        &self,
        identity: &IdentityFolder,
    ) -> Result<Vec<Verified<Certificate>>, Failure> {
        let deployment = identity.deployment()?;
        let known: Vec<String> = self.client.get("/v1/controllers", Duration::ZERO)?;
        let certified = known.iter().map(|text| {
            let certificate = from_hex(text).ok_or("what the controller shows is no certificate");
            let certificate = certificate.blame(Category::Check)?;
            let certificate = deployment.controller(&certificate).blame(Category::Check)?;
            if self.client.peer().is_none_or(|peer| peer.name != host_named(&certificate.name)) {
                let what = "the controller shows the certificate of another host than it is itself";
                return Err(what).blame(Category::Check);
            }
            Ok(certificate)
        });
        certified.collect()
    }

    /// The choice that a wish spells, signed. A later one has a higher version:
    /// versions are seconds.
    fn choice(
        &self,
        wish: &Wish,
        schema: &Schema,
        stream: StreamId,
    ) -> Result<Signed<Annotation>, Failure> {
        let policies = Policies::from_yaml(&read_text(&wish.policies)?, schema);
        let policies = policies.blame_input(&wish.policies)?;
        let metadata = wish.metadata.iter().map(|given| {
            let pair = given.split_once('=').ok_or("metadata is given as name=value");
            pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        });
        let annotation = Annotation {
            stream,
            owner: owner_id(&self.key.verifying_key()),
            schema: schema.id(),
            version: u32::try_from(wall_clock().0 / 1_000_000).unwrap_or(u32::MAX),
            valid_from: Timestamp(0),
            valid_to: Timestamp::LIMIT,
            metadata: metadata.collect::<Result<_, _>>().blame(Category::Usage)?,
            policy: policies.of_owner(&self.name).clone(),
        };
        Ok(Signed::new(&annotation, &self.key))
    }
}

fn add_stream(add: &Add) -> Result<(), Failure> {
    let (owner, identity) = Owner::open(&add.reach)?;
    Name::new(Role::Producer, add.producer.clone()).blame(Category::Usage)?;
    let schema = read_schema(&add.wish.schema)?;
    let mut rng = entropy::rng()?;
    let (mut id, master) = ([0; 16], MasterSecret::random(&mut rng));
    rng.fill_bytes(&mut id);
    let stream = StreamId(id);
    let annotation = owner.choice(&add.wish, &schema, stream)?;
    let certificate = owner.controllers(&identity)?.into_iter().next();
    let certificate =
        certificate.ok_or("the controller shows no certificate").blame(Category::Check)?;
    let key = owner.key.verifying_key();
    let purpose = Purpose { stream, schema: schema.id(), owner: owner_id(&key) };
    // The device's file first: a stream whose key is lost can never be sent.
    DeviceFile::new(stream, &schema, &master).write(&add.device)?;
    let placement = Placement {
        stream,
        version: 1,
        controller: fingerprint(&certificate),
        producer: add.producer.clone(),
    };
    let handover = Handover {
        sealed: purpose.seal(&certificate, &master, &mut rng).blame(Category::Check)?,
        annotation,
        owner: key,
        placement: Signed::new(&placement, &owner.key),
    };
    owner.client.exchange::<Done>("/v1/streams", &handover, Duration::ZERO)?;
    println!("{stream}");
    Ok(())
}

fn choose_anew(choose: &Choose) -> Result<(), Failure> {
    let (owner, _) = Owner::open(&choose.one.reach)?;
    let schema = read_schema(&choose.wish.schema)?;
    let annotation = owner.choice(&choose.wish, &schema, choose.one.stream)?;
    let choice = Choice { annotation, owner: owner.key.verifying_key() };
    owner.client.exchange::<Done>("/v1/choices", &choice, Duration::ZERO)?;
    Ok(())
}

fn list(reach: &Reach, globals: &Globals) -> Result<(), Failure> {
    let (owner, _) = Owner::open(reach)?;
    let streams: Vec<String> = owner.client.get("/v1/streams", Duration::ZERO)?;
    let table = Table {
        title: "Your streams here".to_owned(),
        columns: vec!["stream".to_owned()],
        rows: streams.into_iter().map(|stream| vec![stream]).collect(),
    };
    let out = &mut io::stdout().lock();
    printed(print_tables(&[table], globals.format.unwrap_or_default(), out)).map(drop)
}

fn show_log(one: &One, globals: &Globals) -> Result<(), Failure> {
    let (owner, _) = Owner::open(&one.reach)?;
    let path = format!("/v1/streams/{}/log", one.stream);
    let mut lines: Vec<LogLine> = owner.client.get(&path, Duration::ZERO)?;
    let schema: Schema = owner.client.get("/v1/schema", Duration::ZERO)?;
    lines.sort_by_key(in_order);
    let row = |line: &LogLine| {
        vec![(line.at.0 / 1_000_000).to_string(), in_words(line, &schema, seconds)]
    };
    let table = Table {
        title: "Who learnt what, and what you said; times in Unix seconds".to_owned(),
        columns: vec!["at".to_owned(), "what".to_owned()],
        rows: lines.iter().map(row).collect(),
    };
    let out = &mut io::stdout().lock();
    printed(print_tables(&[table], globals.format.unwrap_or_default(), out)).map(drop)
}

/// Unix seconds, as the rows of results.
fn seconds(window: Window) -> String {
    format!("{} to {}", window.start.0 / 1_000_000, window.end.0 / 1_000_000)
}

fn revoke(one: &One) -> Result<(), Failure> {
    let (owner, _) = Owner::open(&one.reach)?;
    let asked = Withdraw::new(&owner.key, one.stream, false);
    owner.client.exchange::<Option<Signed<Erasure>>>("/v1/withdrawals", &asked, Duration::ZERO)?;
    Ok(())
}
