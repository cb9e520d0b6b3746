//! A reader: checks that a table is the one that all databases published for the set that
//! all servers settled, and reads it.

use crate::configuration::{Epoch, Pinned};
use crate::messages::Why;
use crate::row::Row;
use crate::transcript::Transcript;

/// Why a table is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// The epoch is burnt.
    #[error("the epoch is burnt: {0}")]
    Burnt(Why),
    /// Not all statements are there.
    #[error("the epoch is not published by all databases yet; ask again later")]
    NotPublished,
    /// The servers' statements do not fit together.
    #[error(
        "the servers' statements contradict each other; keep them and show them to the operators"
    )]
    Contradiction,
    /// The bytes are another table.
    #[error("the table is not the one that the databases signed; ask another one")]
    OtherTable,
}

/// A table, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The epoch.
    pub epoch: Epoch,
    /// How many writes are in it, covers included: the crowd that each of them hides in.
    pub size: u32,
    /// The messages, in the order of rows.
    pub messages: Vec<Vec<u8>>,
    /// Messages that stood alone.
    pub alone: usize,
    /// Messages that were recovered from rows that hold two. One write may hold two, if its
    /// writer added them up.
    pub recovered: usize,
    /// Rows that hold nothing legible.
    pub illegible: usize,
    /// More rows are written than there are writes, or far more are illegible than
    /// chance makes: a server may have spoiled the table.
    pub flagged: bool,
}

/// Checks and reads a table.
///
/// # Errors
/// [`NotRead`].
pub fn read(board: &Pinned, transcript: &Transcript, table: &[u8]) -> Result<Reading, NotRead> {
    let databases = board.databases();
    if !databases.iter().all(|by| transcript.published(*by).is_some()) {
        return Err(transcript.burnt().map_or(NotRead::NotPublished, NotRead::Burnt));
    }
    let set = transcript.set().and_then(Result::ok).ok_or(NotRead::Contradiction)?;
    let (published, named) = transcript.all_published().ok_or(NotRead::Contradiction)?;
    let settled = board.grid().is_some() || transcript.settled() == Some(set.digest);
    if !settled || published != set.digest || transcript.all_latched() != Some(set.digest) {
        return Err(NotRead::Contradiction);
    }
    if table.len() != board.shape().bytes() || Transcript::table_digest(&set.digest, table) != named
    {
        return Err(NotRead::OtherTable);
    }
    let size = u32::try_from(set.accepted.len()).unwrap_or(u32::MAX);
    Ok(rows(board, transcript.epoch(), size, table))
}

fn rows(board: &Pinned, epoch: Epoch, size: u32, table: &[u8]) -> Reading {
    let (mut messages, mut alone, mut recovered) = (Vec::new(), 0, 0);
    let (mut illegible, mut written) = (0, 0);
    for row in table.chunks_exact(board.shape().width()) {
        match board.format.decode(row) {
            Row::Empty => continue,
            Row::One(message) => {
                alone += 1;
                messages.push(message);
            }
            Row::Two(mut both) => {
                recovered += 2;
                both.sort();
                messages.extend(both);
            }
            Row::Lost => illegible += 1,
        }
        written += 1;
    }
    let expected = expected_illegible(board, size);
    let bound = expected + 6.0 * expected.sqrt() + 3.0;
    let flagged = written > size as usize || illegible as f64 > bound;
    Reading { epoch, size, messages, alone, recovered, illegible, flagged }
}

/// Rows that three writers or more share, or two without recovery, if each of `size`
/// writes into a row of its own drawing.
fn expected_illegible(board: &Pinned, size: u32) -> f64 {
    let rows = f64::from(board.rows);
    let load = f64::from(size) / rows;
    let legible = 1.0 + load + if board.format.recovery { load * load / 2.0 } else { 0.0 };
    rows * (1.0 - (-load).exp() * legible).max(0.0)
}
