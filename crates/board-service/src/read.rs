//! `alpheus board read`: an epoch's messages, checked against the servers' signatures.

use crate::card;
use crate::client::{BoardError, Client};
use alpheus_anonymous_board::configuration::Epoch;
use alpheus_anonymous_board::reader::{ReadError, Reading};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::listeners::block_on;
use alpheus_node::note;
use alpheus_node::settings::Format;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus board read --card board.json
  alpheus board read --card board.json --epoch 12 --format json

Without --epoch the command reads the latest published epoch. The crowd is an upper bound: nobody
can tell how many of its writes one party has made under many names.";

/// How many epochs back to look for a published one.
const MAX_EPOCHS_BACK: u64 = 64;

/// Arguments of `alpheus board read`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The board's card
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
    /// The epoch's number
    #[arg(long, value_name = "NUMBER")]
    epoch: Option<u64>,
}

#[derive(Debug, Serialize)]
struct EpochReport {
    epoch: u64,
    writes: u32,
    /// How many writes the databases listed when they closed.
    listed: usize,
    /// The most quotas that came to one database: writes, rejected ones and knocks.
    came: usize,
    delivered: usize,
    recovered: usize,
    illegible: usize,
    flagged: bool,
    messages: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// If nothing is published, a server does not answer, or a check fails.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let card = card::open(&args.card)?;
    let reading = block_on(async {
        let client = Client::new(&card)?;
        Ok(match args.epoch {
            Some(epoch) => one(&client, Epoch(epoch)).await?,
            None => last(&client).await?,
        })
    })?;
    print(&reading, globals.format.unwrap_or_default())
}

/// Reads one epoch from the first database that has its table.
async fn one(client: &Client, epoch: Epoch) -> Result<Reading, BoardError> {
    let (transcript, board) = (client.transcript(epoch).await?, client.board());
    let mut failed = None;
    for by in board.databases().iter().copied() {
        match client.table(by, &transcript).await {
            Ok((reading, _)) => return Ok(reading),
            // Another database may have the table that they signed.
            Err(error @ BoardError::NotRead(ReadError::OtherTable)) => failed = Some(error),
            Err(error @ BoardError::NotRead(_)) => return Err(error),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(transcript
        .burn_reason()
        .map(|why| ReadError::Burnt(why).into())
        .or(failed)
        .unwrap_or(ReadError::NotPublished.into()))
}

async fn last(client: &Client) -> Result<Reading, BoardError> {
    let now = client.now()?.0;
    for epoch in (now.saturating_sub(MAX_EPOCHS_BACK)..=now).rev().map(Epoch) {
        let transcript = client.transcript(epoch).await?;
        if transcript.agreed_table().is_some() {
            return one(client, epoch).await;
        }
    }
    Err(ReadError::NotPublished.into())
}

fn warn(reading: &Reading) {
    if reading.flagged {
        note!(
            "warning: far more rows are occupied or illegible than chance explains; a server may have corrupted the table"
        );
    }
    if let Some(by) = reading.thinned {
        note!(
            "warning: this table has less than half of what the {by} received by its own count; somebody may have chosen the crowd"
        );
    }
}

fn print(reading: &Reading, format: Format) -> Result<(), Failure> {
    let text = |message: &Vec<u8>| String::from_utf8_lossy(message).into_owned();
    let shown = EpochReport {
        epoch: reading.epoch.0,
        writes: reading.size,
        listed: reading.crowd.listed,
        came: reading.crowd.came,
        delivered: reading.alone,
        recovered: reading.recovered,
        illegible: reading.illegible,
        flagged: reading.flagged,
        messages: reading.messages.iter().map(text).collect(),
    };
    warn(reading);
    let mut out = std::io::stdout().lock();
    match format {
        Format::Json => {
            let text = serde_json::to_string_pretty(&shown).blame(Category::Io)?;
            writeln!(out, "{text}").blame(Category::Io)
        }
        Format::Csv => {
            let mut rows = csv::Writer::from_writer(out);
            rows.write_record(["epoch", "message"]).blame(Category::Io)?;
            for message in &shown.messages {
                rows.write_record([&shown.epoch.to_string(), message]).blame(Category::Io)?;
            }
            rows.flush().blame(Category::Io)
        }
        Format::Table => {
            note!(
                "epoch {}: a crowd of at most {} writes, covers included ({} were listed, {} arrived); {} messages",
                shown.epoch,
                shown.writes,
                shown.listed,
                shown.came,
                shown.messages.len()
            );
            for message in &shown.messages {
                // Control characters in messages must not reach the terminal.
                let clean: String =
                    message.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
                writeln!(out, "{clean}").blame(Category::Io)?;
            }
            Ok(())
        }
    }
}
