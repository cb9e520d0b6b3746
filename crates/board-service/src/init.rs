//! `alpheus board init`: creates a board's card.

use crate::card::{Card, Content, Door};
use crate::keys;
use alpheus_anonymous_board::admission::Admission;
use alpheus_anonymous_board::configuration::{Configuration, Schedule, Servers};
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_credential::schedule::Epoch as PassEpoch;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, write_new};
use alpheus_pass_service::card as passes;
use alpheus_time::{Span, Timestamp};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus board init board.json --first https://first.example --first-key $(cat first.pub) \\
      --second https://second.example --second-key $(cat second.pub) \\
      --auditor https://auditor.example --auditor-key $(cat auditor.pub) \\
      --members members.txt
  alpheus board init board.json --servers 3 --server https://a.example \\
      --server-key $(cat a.pub) --server https://b.example --server-key $(cat b.pub) \\
      --server https://c.example --server-key $(cat c.pub) --members members.txt
  alpheus board init board.json --servers 3 --server https://a.example \\
      --server-key $(cat a.pub) --server https://b.example --server-key $(cat b.pub) \\
      --server https://c.example --server-key $(cat c.pub) --passes deployment/card.json \\
      --door https://door.example --door-key $(cat door.pub)
  alpheus board init board.json --first https://localhost:7601 --first-key $(cat first.pub) \\
      --second https://localhost:7602 --second-key $(cat second.pub) \\
      --auditor https://localhost:7603 --auditor-key $(cat auditor.pub) --members members.txt \\
      --authority pki/ca.pem --epoch 60 --complaints 10

Each server needs its own operator: a board whose servers all belong to one person hides nothing
from that person.";

/// The two kinds of boards. Each group of servers is required in its own kind only.
const USAGE: &str = "\
alpheus board init [OPTIONS] --first <URL> --first-key <HEX> --second <URL> --second-key <HEX> --auditor <URL> --auditor-key <HEX> <FILE>
       alpheus board init [OPTIONS] --servers <NUMBER> --server <URL> --server-key <HEX> <FILE>";

/// The default for the number of writes below which nothing is revealed.
const DEFAULT_MIN_WRITES: u32 = 16;
const SECOND: u64 = 1_000_000;

/// Arguments of `alpheus board init`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct Args {
    /// The card to create; it must not exist yet
    file: PathBuf,
    #[command(flatten)]
    audited: Option<AuditedArgs>,
    #[command(flatten)]
    equal: Option<EqualArgs>,
    /// The members, who may each write once per epoch: one public key per line
    #[arg(long, value_name = "FILE", required_unless_present = "passes")]
    members: Option<PathBuf>,
    /// In place of members: the card of a pass deployment. Each pass allows one anonymous write per
    /// epoch. The board's epochs are those of the passes
    #[arg(long, value_name = "CARD", conflicts_with_all = ["members", "epoch"], requires_all = ["door", "door_key"])]
    passes: Option<PathBuf>,
    /// The address of the doorkeeper, which checks passes
    #[arg(long, value_name = "URL", requires = "passes")]
    door: Option<String>,
    /// The doorkeeper's public key, as `alpheus board key` printed it
    #[arg(long, value_name = "HEX", value_parser = public, requires = "passes")]
    door_key: Option<VerifyingKey>,
    /// Certificate authorities of the servers, in PEM form
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    #[command(flatten)]
    size: Size,
}

/// Two databases and an auditor.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "audited", conflicts_with = "equal")]
struct AuditedArgs {
    /// The address of the first database
    #[arg(long, value_name = "URL", requires_all = ["second", "auditor", "first_key"])]
    first: String,
    /// The public key of its operator, as `alpheus board key` printed it
    #[arg(long, value_name = "HEX", value_parser = public)]
    first_key: VerifyingKey,
    /// The address of the second database
    #[arg(long, value_name = "URL")]
    second: String,
    /// The public key of its operator
    #[arg(long, value_name = "HEX", value_parser = public)]
    second_key: VerifyingKey,
    /// The address of the auditor
    #[arg(long, value_name = "URL")]
    auditor: String,
    /// The public key of its operator
    #[arg(long, value_name = "HEX", value_parser = public)]
    auditor_key: VerifyingKey,
}

/// EqualArgs servers.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "equal")]
struct EqualArgs {
    /// Number of equal servers, in place of two databases and an auditor; writers stay anonymous
    /// even if all servers but one collude
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(3..=6))]
    servers: u8,
    /// The address of an equal server; repeat for each
    #[arg(long, value_name = "URL", required = true)]
    server: Vec<String>,
    /// The public key of its operator; repeat in the same order
    #[arg(long, value_name = "HEX", value_parser = public, required = true)]
    server_key: Vec<VerifyingKey>,
}

/// The arguments do not define the board's servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ServersError {
    /// Wrong number of servers.
    #[error("give --server and --server-key as often as --servers says")]
    Count,
    /// No servers.
    #[error("a board needs either --servers, or all of --first, --second and --auditor")]
    Nobody,
}

impl Args {
    /// The servers' addresses and keys.
    fn servers(&self) -> Result<(Vec<String>, Servers), ServersError> {
        match (&self.audited, &self.equal) {
            (Some(three), _) => {
                let at = [&three.first, &three.second, &three.auditor].map(String::clone);
                let keys = [three.first_key, three.second_key, three.auditor_key];
                Ok((at.to_vec(), Servers::Audited(keys)))
            }
            (None, Some(EqualArgs { servers, server, server_key })) => {
                let many = usize::from(*servers);
                if server.len() != many || server_key.len() != many {
                    return Err(ServersError::Count);
                }
                Ok((server.clone(), Servers::Coalition(server_key.clone())))
            }
            (None, None) => Err(ServersError::Nobody),
        }
    }
}

impl Args {
    /// Sets who may write, and for passes the epochs.
    fn admission(
        &self,
        configuration: &mut Configuration,
    ) -> Result<Option<Door<String>>, Failure> {
        if let Some(members) = &self.members {
            configuration.admission = keys::members(members)?.digest();
        }
        let (Some(passes), Some(at), Some(key)) = (&self.passes, &self.door, self.door_key) else {
            return Ok(None);
        };
        let pinned = passes::Card::load(passes)?.1.pinned;
        let schedule = pinned.schedule;
        let running = schedule.epoch_at(clock::now()).unwrap_or(PassEpoch(0));
        configuration.schedule.start = Timestamp(schedule.starts(running).0);
        configuration.schedule.length = schedule.epoch;
        let door = Door { at: at.clone(), key, passes: pinned.fingerprint() };
        configuration.admission = door.keeper(configuration).digest();
        Ok(Some(door))
    }
}

/// Size and schedule.
#[derive(Clone, Debug, clap::Args)]
pub struct Size {
    /// Maximum number of writes in an epoch; the epoch closes with the last of them
    #[arg(long, value_name = "NUMBER", default_value = "1000", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub writers: u32,
    /// Rows of the table; by default enough to deliver 95 % of the writes
    #[arg(long, value_name = "NUMBER")]
    pub rows: Option<u32>,
    /// Minimum number of writes: below it nothing is revealed; by default 16, or --writers if that
    /// is smaller
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..))]
    pub min_writes: Option<u32>,
    /// How long an epoch accepts writes
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub epoch: u64,
    /// How long writers may complain that their write is missing
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub complaints: u64,
    /// How long publishing may take before the epoch is burnt
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub timeout: u64,
}

fn public(text: &str) -> Result<VerifyingKey, keys::KeyFileError> {
    keys::public(text).ok_or(keys::KeyFileError::Public(1))
}

impl Size {
    /// A configuration of this size that starts now.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn configuration(
        &self,
        format: Format,
        servers: Servers,
        admission: Digest,
    ) -> Result<Configuration, Failure> {
        Ok(Configuration {
            board: *Secret::<32>::random(&mut entropy::rng()?).expose(),
            format,
            rows: self.rows.unwrap_or_else(|| format.rows_for(self.writers)),
            writers: self.writers,
            min_writes: self.min_writes.unwrap_or_else(|| self.writers.min(DEFAULT_MIN_WRITES)),
            schedule: Schedule {
                start: Timestamp(clock::now().0),
                length: Span(self.epoch * SECOND),
                complaints: Span(self.complaints * SECOND),
                patience: Span(self.timeout * SECOND),
            },
            servers,
            admission,
        })
    }
}

/// Runs the command.
///
/// # Errors
/// If a file cannot be read, the card exists, or the arguments are invalid.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (at, servers) = args.servers().blame(Category::Usage)?;
    // The admission is set below: a doorkeeper is bound to the board's name.
    let none = Digest([0; 32]);
    let mut configuration = args.size.configuration(Format::RECOVERED, servers, none)?;
    let door = args.admission(&mut configuration)?;
    let authority = args.authority.as_ref();
    let authority =
        authority.map(|path| std::fs::read_to_string(path).blame_io(path)).transpose()?;
    // The key signs only this card: another configuration is another board.
    let operator = SigningKey::from_seed(&Secret::random(&mut entropy::rng()?));
    let card = Card::new(&Content::new(&configuration, at, authority, door, &operator), &operator);
    let opened = card.open().blame(Category::Usage)?;
    let text = serde_json::to_string_pretty(&card).blame(Category::Io)?;
    write_new(&args.file, &text, Readers::Everybody)?;
    println!("{}", opened.board.fingerprint());
    Ok(())
}
