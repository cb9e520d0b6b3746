//! `alpheus board member`: makes exactly one write in every epoch, a queued message or a cover, and
//! does the same in either case. So nobody can tell when its member has something to say, or comes
//! back because a message was lost.
//!
//! - [`store`]: its files,
//! - `slot`: the write of one epoch, from its drawn moment to the table,
//! - `ending`: what then becomes of its message.

mod message_fate;
mod slot;
pub mod store;

use crate::card;
use crate::client::Client;
use crate::entry::EntryArgs;
use crate::moments::{LAST, between, part, wait_until};
use alpheus_anonymous_board::configuration::{Board, Epoch};
use alpheus_node::clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::listeners::block_on;
use alpheus_node::note;
use alpheus_time::Timestamp;
use slot::Slots;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::MemberFolder;

const EXAMPLES: &str = "\
Examples:
  alpheus board member --card board.json --key ada.key --state run/ada
  alpheus board member --card board.json --pass ada.pass --key-file ada.key --state run/ada
  alpheus board member --card board.json --key ada.key --state run/ada --crowd 50 --repeats 1

Leave it running: each member that writes in every epoch protects all others. `alpheus board queue`
gives it a message. In each epoch it writes at a random time, and contacts each server at another.
It keeps what it needs to continue after a restart, and complains if a server leaves its write out.
A message that was lost to a collision is written again in a later epoch.";

/// The part of an epoch in which a member draws its moment, in percent.
const WINDOW: (u64, u64) = (5, 75);

/// Arguments of `alpheus board member`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The board's card
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
    #[command(flatten)]
    entry: EntryArgs,
    /// The folder for its queue and its state
    #[arg(long, value_name = "FOLDER")]
    state: PathBuf,
    /// The smallest crowd for a message. Write covers as long as the last published table had fewer
    /// writes than this and the board's minimum is lower
    #[arg(long, value_name = "NUMBER")]
    crowd: Option<u32>,
    /// How often a message that collided with others is repeated. Each repetition tells anyone who
    /// could read the lost message that its writer took part in both epochs
    #[arg(long, value_name = "NUMBER", default_value = "3")]
    repeats: u32,
}

/// Another process uses the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another process writes for this member; stop it first, or use another folder")]
pub(crate) struct InUseError;

/// Runs the command until it is stopped.
///
/// # Errors
/// A file is missing or wrong, or cannot be written.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    let card = card::open(&args.card)?;
    let folder = MemberFolder::open(&args.state)?;
    let _lock = lock(&args.state)?;
    block_on(async {
        let slots = Arc::new(Slots {
            client: Client::new(&card)?,
            entry: args.entry.clone(),
            card,
            folder,
            crowd: args.crowd,
            repeats: args.repeats,
        });
        note!("writing in every epoch");
        every_epoch(slots).await
    })
}

fn lock(folder: &Path) -> Result<File, Failure> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.blame_io(&path)?;
    file.try_lock().map_err(|_| InUseError).blame(Category::Usage)?;
    Ok(file)
}

async fn every_epoch(slots: Arc<Slots>) -> Result<(), Failure> {
    // Epochs in which an earlier process wrote.
    let mut last = None;
    for epoch in slots.folder.writes()? {
        last = Some(epoch);
        spawn(&slots, epoch);
    }
    let schedule = slots.client.board().schedule;
    loop {
        let current = schedule.epoch_at(clock::now());
        let Some(epoch) = current.filter(|current| last < Some(*current)) else {
            let next = last.map_or(Epoch(0), |last| Epoch(last.0.saturating_add(1)));
            wait_until(schedule.start_of(next)).await;
            continue;
        };
        last = Some(epoch);
        if let Some(moment) = moment(slots.client.board(), epoch)? {
            wait_until(moment).await;
            spawn(&slots, epoch);
        }
    }
}

/// Writes in an epoch, unless a write was made, and waits for its end.
fn spawn(slots: &Arc<Slots>, epoch: Epoch) {
    let slots = Arc::clone(slots);
    tokio::spawn(async move {
        if let Err(failure) = slots.run(epoch).await {
            tracing::error!(%failure, epoch = epoch.0, "this epoch's write fails");
        }
    });
}

/// Draws the moment of an epoch's write. None if it is too late for one.
fn moment(board: &Board, epoch: Epoch) -> Result<Option<Timestamp>, Failure> {
    let (first, last) = (part(board, epoch, WINDOW.0), part(board, epoch, WINDOW.1));
    let now = clock::now();
    if now >= part(board, epoch, LAST) {
        return Ok(None);
    }
    // A member that starts late draws from the rest.
    let from = first.max(now.min(last));
    Ok(Some(between(from, last)?))
}

/// One line for each step, the same for messages and covers.
fn report(epoch: Epoch, text: &str) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "epoch {}: {text}", epoch.0).blame(Category::Io)
}
