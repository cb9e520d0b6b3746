//! `alpheus board post`: writes a message, or a cover.

use crate::card::{self, VerifiedCard};
use crate::client::Client;
use crate::entry::{Entry, EntryError, by_pass};
use crate::keys;
use alpheus_anonymous_board::configuration::Epoch;
use alpheus_anonymous_board::writer::{Content, Fate};
use alpheus_crypto::sign::SigningKey;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::listeners::block_on;
use alpheus_node::settings::Format;
use alpheus_pass_service::client::passfile::PassFile;
use serde::Serialize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus board post 'Hello' --card board.json --key ada.key
  alpheus board post --cover --card board.json --key ada.key
  alpheus board post 'Hello' --card board.json --key ada.key --wait
  alpheus board post 'Hello' --card board.json --pass ada.pass --key-file ada.key

With --wait the command waits until the epoch ends, complains if a server left the write out, and
reports its fate. Without --wait nothing is kept and no complaint is sent. A cover looks like any
other write and adds no message: it makes the crowd larger.";

/// Arguments of `alpheus board post`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The message
    #[arg(required_unless_present = "cover", conflicts_with = "cover")]
    message: Option<String>,
    /// Write a cover instead of a message
    #[arg(long)]
    cover: bool,
    /// The board's card
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
    /// The member's key
    #[arg(long, value_name = "FILE", required_unless_present = "pass", conflicts_with = "pass")]
    key: Option<PathBuf>,
    /// The pass to present, for a board that admits by pass
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pass: Option<PathBuf>,
    /// The key that opens the pass file
    #[arg(long, value_name = "FILE", requires = "pass")]
    key_file: Option<PathBuf>,
    /// Wait until the epoch is published
    #[arg(long)]
    wait: bool,
}

/// The printed report.
#[derive(Debug, Serialize)]
struct PostReport {
    epoch: u64,
    write: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fate: Option<&'static str>,
}

/// Runs the command.
///
/// # Errors
/// If a server refuses or does not answer, or the message is lost.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let card = card::open(&args.card)?;
    let key = args.key.as_ref().map(|path| keys::load(path)).transpose()?;
    let content = match &args.message {
        Some(message) => Content::Message(message.as_bytes()),
        None => Content::Cover,
    };
    let said = block_on(async {
        let client = Client::new(&card)?;
        let view = client.view().await?;
        let mut entry = args.entry(&card, key.as_ref(), view.epoch()).await?;
        let posted = client.post(&view, content, &mut entry, &mut entropy::rng()?).await?;
        let (epoch, write) = (posted.written.epoch(), posted.written.name().0.to_string());
        let mut said = PostReport { epoch: epoch.0, write, fate: None };
        if args.wait {
            let (_, fates) = client.settle(epoch, &[posted]).await?;
            said.fate = fates.first().map(|fate| word(*fate));
        }
        Ok(said)
    })?;
    print(&said, globals.format.unwrap_or_default())?;
    let (lost, left_out) = (word(Fate::Lost), word(Fate::LeftOut));
    let (failed, help) = match said.fate {
        Some(fate) if fate == lost => (
            "the message collided with others in its row and is lost",
            "post it again in the next epoch",
        ),
        Some(fate) if fate == left_out => (
            "a server left the write out, or made its audit fail; the table was published without it",
            "do not write the same message again: the server that left it out may be waiting for it",
        ),
        _ => return Ok(()),
    };
    Err(Failure::new(Category::Check, failed).with_help(help))
}

impl Args {
    async fn entry<'a>(
        &self,
        card: &VerifiedCard,
        key: Option<&'a SigningKey>,
        epoch: Epoch,
    ) -> Result<Entry<'a>, Failure> {
        match (key, &self.pass, &self.key_file) {
            (Some(key), _, _) => Ok(Entry::Member(key)),
            (None, Some(pass), Some(key_file)) => {
                by_pass(card, epoch, PassFile::open(pass, key_file)?).await
            }
            // Clap rejects this combination.
            _ => Err(EntryError::NoDoor).blame(Category::Usage),
        }
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
    match format {
        Format::Table => println!("epoch {}: {fate}", said.epoch),
        Format::Csv => println!("epoch,write,fate\n{},{},{fate}", said.epoch, said.write),
        Format::Json => println!("{}", serde_json::to_string_pretty(said).blame(Category::Io)?),
    }
    Ok(())
}
