//! `alpheus board init`: a board's card.

use crate::board::card::{Card, Door};
use crate::board::keys;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::init::write_new;
use crate::pass::{card as passes, clock};
use alpheus_anonymous_board::admission::Admission;
use alpheus_anonymous_board::configuration::{Configuration, Schedule, Servers, Time};
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_credential::schedule::Epoch as PassEpoch;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus board init board.json --first https://first.example --first-key HEX --second https://second.example --second-key HEX --auditor https://auditor.example --auditor-key HEX --members members.txt
  alpheus board init board.json --servers 3 --server https://a.example --server-key HEX --server https://b.example --server-key HEX --server https://c.example --server-key HEX --members members.txt
  alpheus board init board.json --servers 3 --server https://a.example --server-key HEX --server https://b.example --server-key HEX --server https://c.example --server-key HEX --passes deployment/card.json --door https://door.example --door-key HEX
  alpheus board init board.json --first https://localhost:7601 --first-key HEX --second https://localhost:7602 --second-key HEX --auditor https://localhost:7603 --auditor-key HEX --members members.txt --authority pki/ca.pem --epoch 60 --complaints 10

Each server with an operator of its own: a board whose servers are one person's hides nothing from
that person.";

/// Writes below which nothing is revealed, if nobody says otherwise.
const FEWEST: u32 = 16;
const SECOND: u64 = 1_000_000;

/// Arguments of `alpheus board init`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The card, which is not there yet
    file: PathBuf,
    #[command(flatten)]
    audited: Option<Audited>,
    #[command(flatten)]
    equal: Option<Equal>,
    /// Who may write, once in each epoch: a public key in each line
    #[arg(long, value_name = "FILE", required_unless_present = "passes")]
    members: Option<PathBuf>,
    /// In place of members: the card of passes; who shows one writes once in each epoch,
    /// and nobody learns who it was. The board's epochs are the passes'
    #[arg(long, value_name = "CARD", conflicts_with_all = ["members", "epoch"], requires_all = ["door", "door_key"])]
    passes: Option<PathBuf>,
    /// Where the doorkeeper is, who checks passes
    #[arg(long, value_name = "URL", requires = "passes")]
    door: Option<String>,
    /// Its public key, as `alpheus board key` printed it
    #[arg(long, value_name = "HEX", value_parser = public, requires = "passes")]
    door_key: Option<VerifyingKey>,
    /// Authorities of the servers' certificates, in PEM form
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    #[command(flatten)]
    size: Size,
}

/// Two databases and an auditor.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "audited", conflicts_with = "equal")]
struct Audited {
    /// Where the first database is
    #[arg(long, value_name = "URL", requires_all = ["second", "auditor", "first_key"])]
    first: String,
    /// Its operator's public key, as `alpheus board key` printed it
    #[arg(long, value_name = "HEX", value_parser = public)]
    first_key: VerifyingKey,
    /// Where the second database is
    #[arg(long, value_name = "URL")]
    second: String,
    /// Its operator's public key
    #[arg(long, value_name = "HEX", value_parser = public)]
    second_key: VerifyingKey,
    /// Where the auditor is
    #[arg(long, value_name = "URL")]
    auditor: String,
    /// Its operator's public key
    #[arg(long, value_name = "HEX", value_parser = public)]
    auditor_key: VerifyingKey,
}

/// Equal servers.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "equal")]
struct Equal {
    /// How many equal servers keep the board, in place of two databases and an auditor: all
    /// but one of them may work together
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(3..=6))]
    servers: u8,
    /// Where one of them is; once for each
    #[arg(long, value_name = "URL", required = true)]
    server: Vec<String>,
    /// Its operator's public key; in the same order
    #[arg(long, value_name = "HEX", value_parser = public, required = true)]
    server_key: Vec<VerifyingKey>,
}

/// Who keeps the board does not follow from the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Keepers {
    /// Not as many as said.
    #[error("--servers says how often --server and --server-key are there")]
    Count,
    /// Nobody.
    #[error("a board needs --first, --second and --auditor, or --servers")]
    Nobody,
}

impl Args {
    /// Where the servers are, and their keys.
    fn keepers(&self) -> Result<(Vec<String>, Servers), Keepers> {
        match (&self.audited, &self.equal) {
            (Some(three), _) => {
                let at = [&three.first, &three.second, &three.auditor].map(String::clone);
                let keys = [three.first_key, three.second_key, three.auditor_key];
                Ok((at.to_vec(), Servers::Audited(keys)))
            }
            (None, Some(Equal { servers, server, server_key })) => {
                let many = usize::from(*servers);
                if server.len() != many || server_key.len() != many {
                    return Err(Keepers::Count);
                }
                Ok((server.clone(), Servers::Coalition(server_key.clone())))
            }
            (None, None) => Err(Keepers::Nobody),
        }
    }
}

impl Args {
    /// Says who may write, and by which epochs if passes do.
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
        let pinned = passes::open(passes)?.1.pinned;
        let schedule = pinned.schedule;
        let running = schedule.epoch_at(clock::now()).unwrap_or(PassEpoch(0));
        configuration.schedule.start = Time(schedule.starts(running).0);
        configuration.schedule.length = schedule.epoch;
        let door = Door { at: at.clone(), key, passes: pinned.fingerprint() };
        configuration.admission = door.keeper(configuration).digest();
        Ok(Some(door))
    }
}

/// How large and how long.
#[derive(Clone, Debug, clap::Args)]
pub struct Size {
    /// Writes that an epoch takes; with the last of them it closes
    #[arg(long, value_name = "NUMBER", default_value = "1000", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub writers: u32,
    /// Rows of the table; by default what delivers 95 % of so many writes
    #[arg(long, value_name = "NUMBER")]
    pub rows: Option<u32>,
    /// Writes below which nothing is revealed; by default 16, or as many as there may be
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..))]
    pub fewest: Option<u32>,
    /// How long an epoch takes writes
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub epoch: u64,
    /// How long writers may complain that they are not in the set
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub complaints: u64,
    /// How long the rest may take before an epoch is burnt
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub patience: u64,
}

fn public(text: &str) -> Result<VerifyingKey, keys::BadKeyFile> {
    keys::public(text).ok_or(keys::BadKeyFile::Public(1))
}

impl Size {
    /// A configuration of this size, from now on.
    ///
    /// # Errors
    /// If the operating system has no randomness.
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
            fewest: self.fewest.unwrap_or_else(|| self.writers.min(FEWEST)),
            schedule: Schedule {
                start: Time(clock::now().0),
                length: self.epoch * SECOND,
                complaints: self.complaints * SECOND,
                patience: self.patience * SECOND,
            },
            servers,
            admission,
        })
    }
}

/// Runs the command.
///
/// # Errors
/// If a file cannot be read, the card exists, or makes no sense.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (at, servers) = args.keepers().blame(Category::Usage)?;
    // What admits is filled in below: a door is bound to the board's name.
    let none = Digest([0; 32]);
    let mut configuration = args.size.configuration(Format::RECOVERED, servers, none)?;
    let door = args.admission(&mut configuration)?;
    let authority = args.authority.as_ref();
    let authority =
        authority.map(|path| std::fs::read_to_string(path).blame_io(path)).transpose()?;
    // Its one use is this signature: another configuration is another board.
    let operator = SigningKey::from_seed(&Secret::random(&mut entropy::rng()?));
    let card = Card::new(&configuration, at, authority, door, &operator);
    let opened = card.open().blame(Category::Usage)?;
    let text = serde_json::to_string_pretty(&card).blame(Category::Io)?;
    write_new(&args.file, &text, 0o644)?;
    println!("{}", opened.board.fingerprint());
    Ok(())
}
