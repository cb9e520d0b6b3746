//! `alpheus board queue`: gives a message to a running `alpheus board member`, or shows what became
//! of earlier ones.

use crate::card;
use crate::content::MessageArgs;
use crate::member::store::{MemberFolder, Outcome};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::settings::Format;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  echo 'Hello' | alpheus board queue --card board.json --state run/ada
  alpheus board queue --file hello.txt --card board.json --state run/ada
  alpheus board queue --list --card board.json --state run/ada

The message goes into the member's own write of one of the next epochs. Nothing is sent now.";

/// Arguments of `alpheus board queue`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    message: MessageArgs,
    /// The board's card
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
    /// The member's folder, as given to `alpheus board member`
    #[arg(long, value_name = "FOLDER")]
    state: PathBuf,
    /// Show how many messages wait, and what became of earlier ones
    #[arg(long, conflicts_with = "file")]
    list: bool,
}

#[derive(Debug, Serialize)]
struct QueueReport {
    waiting: usize,
    ended: Vec<Outcome>,
}

/// Runs the command.
///
/// # Errors
/// If the message does not fit, or a file cannot be read or written.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let card = card::open(&args.card)?;
    let folder = MemberFolder::open(&args.state)?;
    if !args.list {
        folder.queue(&args.message.read(&card.board)?)?;
    }
    let ended = folder.ended()?.into_iter().map(|(_, outcome)| outcome).collect();
    let report = QueueReport { waiting: folder.queued()?.len(), ended };
    print(&report, globals.format.unwrap_or_default())
}

fn line(outcome: Outcome) -> (&'static str, u64) {
    match outcome {
        Outcome::Delivered(epoch) => ("delivered", epoch),
        Outcome::Lost(epoch) => ("lost", epoch),
        Outcome::Unsafe(epoch) => ("unsafe to repeat", epoch),
    }
}

fn print(report: &QueueReport, format: Format) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let text = match format {
        Format::Json => serde_json::to_string_pretty(report).blame(Category::Io)? + "\n",
        Format::Csv => {
            let lines = report.ended.iter().map(|outcome| {
                let (word, epoch) = line(*outcome);
                format!("{word},{epoch}\n")
            });
            std::iter::once("outcome,epoch\n".to_owned()).chain(lines).collect()
        }
        Format::Table => {
            let lines = report.ended.iter().map(|outcome| {
                let (word, epoch) = line(*outcome);
                format!("epoch {epoch}: {word}\n")
            });
            lines.chain([format!("{} waiting\n", report.waiting)]).collect()
        }
    };
    write!(out, "{text}").blame(Category::Io)
}
