//! `alpheus board post`: writes a message, or a cover.

pub(crate) mod background;

use crate::card::{self, VerifiedCard};
use crate::client::{Client, PostedWrite};
use crate::content::MessageArgs;
use crate::entry::{Entry, EntryArgs};
use crate::moments;
use alpheus_anonymous_board::transcript::Crowd;
use alpheus_anonymous_board::writer::{Content, Fate};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::listeners::block_on;
use alpheus_node::note;
use alpheus_node::settings::Format;
use alpheus_time::Span;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use zeroize::Zeroizing;

const EXAMPLES: &str = "\
Examples:
  echo 'Hello' | alpheus board post --card board.json --key ada.key
  alpheus board post --file hello.txt --card board.json --key ada.key --background
  alpheus board post --file hello.txt --card board.json --pass ada.pass --key-file ada.key
  alpheus board post --cover --card board.json --key ada.key

The command contacts each server at a random time. It waits until the epoch ends, complains if a
server left the write out, and reports what became of it. A cover looks like any other write and
adds no message: it makes the crowd larger.

Anyone who writes only when they have something to say, or returns when a message is lost, stands
out. `alpheus board member` writes in every epoch, and repeats a lost message by itself.";

/// How long a person waits for the moments that are drawn.
const MAX_WAIT: Span = Span(10_000_000);

/// Arguments of `alpheus board post`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    message: MessageArgs,
    /// Write a cover instead of a message
    #[arg(long, conflicts_with = "file")]
    cover: bool,
    /// The board's card
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
    #[command(flatten)]
    entry: EntryArgs,
    /// The smallest crowd to write in. Send nothing if the last published table had fewer writes
    /// than this and the board's minimum is lower
    #[arg(long, value_name = "NUMBER")]
    crowd: Option<u32>,
    /// Contact each server at a random time within this many seconds [default: 4 % of an epoch, and
    /// at most 10]
    #[arg(long, value_name = "SECONDS")]
    within: Option<u32>,
    /// Return once the write is prepared; wait and complain in the background
    #[arg(long, conflicts_with = "no_wait")]
    background: bool,
    /// Do not wait: nothing is kept, and no complaint is sent if a server leaves the write out
    #[arg(long)]
    no_wait: bool,
    /// Report the write before waiting
    #[arg(long, hide = true)]
    report_first: bool,
}

/// The printed report.
#[derive(Debug, Serialize)]
struct PostReport {
    epoch: u64,
    write: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fate: Option<&'static str>,
    #[serde(flatten)]
    crowd: Option<CrowdReport>,
}

/// The crowd of a write. All three are upper bounds.
#[derive(Debug, Serialize)]
struct CrowdReport {
    /// The writes in the table.
    writes: usize,
    /// How many writes the databases listed when they closed.
    listed: usize,
    /// The most quotas that came to one database.
    came: usize,
}

impl From<Crowd> for CrowdReport {
    fn from(crowd: Crowd) -> Self {
        let Crowd { accepted, listed, came } = crowd;
        Self { writes: accepted, listed, came }
    }
}

/// Some database has not confirmed the write, and nobody waits to see whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not every database has confirmed the write, so it may or may not be in the table; without --no-wait the command finds out"
)]
pub(crate) struct UnconfirmedError;

/// Runs the command.
///
/// # Errors
/// If a server refuses or does not answer, or the message is lost.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let card = card::open(&args.card)?;
    let message = match args.cover {
        true => Zeroizing::new(Vec::new()),
        false => args.message.read(&card.board)?,
    };
    if args.background {
        return background::run(&message);
    }
    let content = if args.cover { Content::Cover } else { Content::Message(&message) };
    let format = globals.format.unwrap_or_default();
    let (said, fate) = block_on(async {
        let client = Client::new(&card)?;
        let posted = args.post(&client, &card, content).await?;
        let (epoch, write) = (posted.written.epoch(), posted.written.name().0.to_string());
        let mut said = PostReport { epoch: epoch.0, write, fate: None, crowd: None };
        if args.report_first {
            print(&said, format)?;
        }
        if args.no_wait && !posted.received.are_complete() {
            return Err(UnconfirmedError).blame(Category::Check);
        }
        if args.no_wait {
            return Ok((said, None));
        }
        let (reading, fates) = client.settle(epoch, &[posted]).await?;
        let fate = fates.first().copied();
        (said.fate, said.crowd) = (fate.map(word), Some(reading.crowd.into()));
        Ok((said, fate))
    })?;
    if !args.report_first {
        print(&said, format)?;
    }
    if let Some(crowd) = &said.crowd {
        let CrowdReport { writes, listed, came } = crowd;
        note!("in a crowd of at most {writes} writes ({listed} were listed, {came} arrived)");
    }
    check(fate)
}

/// Fails if the message is not in the table.
fn check(fate: Option<Fate>) -> Result<(), Failure> {
    match fate {
        Some(Fate::Lost) => Err(Failure::new(
            Category::Check,
            "the message collided with others in its row and is lost",
        )
        .with_help(
            "if you come back to repeat it, servers may see that it was yours; `alpheus board member` repeats messages unseen",
        )),
        Some(Fate::LeftOut) => Err(Failure::new(
            Category::Check,
            "a server left the write out, or made its audit fail; the table was published without it",
        )
        .with_help(
            "do not write the same message again: the server that left it out may be waiting for it",
        )),
        _ => Ok(()),
    }
}

impl Args {
    /// Writes, or leaves a knock where a write cannot be made.
    async fn post(
        &self,
        client: &Client,
        card: &VerifiedCard,
        content: Content<'_>,
    ) -> Result<PostedWrite, Failure> {
        if let Some(wanted) = self.crowd {
            client.expect_crowd(wanted).await?;
        }
        let view = match client.view().await {
            Ok(view) => view,
            Err(error) => {
                let epoch = client.now()?;
                let mut entry: Entry = self.entry.open(card, epoch).await?;
                client.knock(epoch, &mut entry).await;
                return Err(error.into());
            }
        };
        let mut entry = self.entry.open(card, view.epoch()).await?;
        let spread = match self.within {
            Some(seconds) => {
                moments::at_most(&card.board, view.epoch(), Span(u64::from(seconds) * 1_000_000))
            }
            None => moments::spread(&card.board, view.epoch()).min(MAX_WAIT),
        };
        Ok(client.post(&view, content, &mut entry, spread, &mut entropy::rng()?).await?)
    }
}

/// A fate in words.
#[must_use]
pub const fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Delivered => "delivered",
        Fate::Recovered => "recovered",
        Fate::Lost => "lost",
        Fate::Covered => "cover",
        Fate::LeftOut => "left out",
    }
}

fn print(said: &PostReport, format: Format) -> Result<(), Failure> {
    let fate = said.fate.unwrap_or("posted");
    let text = match format {
        Format::Table => format!("epoch {}: {fate}", said.epoch),
        Format::Csv => format!("epoch,write,fate\n{},{},{fate}", said.epoch, said.write),
        Format::Json => serde_json::to_string(said).blame(Category::Io)?,
    };
    writeln!(std::io::stdout(), "{text}").blame(Category::Io)
}
