//! A reader: checks that a table is the one that all databases published for the settled set, and
//! decodes it.

use crate::configuration::{Board, Epoch, Party};
use crate::messages::BurnReason;
use crate::row::Row;
use crate::transcript::{Crowd, Transcript};

/// Why a table is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The epoch is burnt.
    #[error("the epoch is burnt: {0}")]
    Burnt(BurnReason),
    /// Some statements are missing.
    #[error("not all databases have published the epoch yet; ask again later")]
    NotPublished,
    /// The servers' statements contradict each other.
    #[error(
        "the servers' statements contradict each other; keep them and show them to the operators"
    )]
    Contradiction,
    /// The bytes are not the published table.
    #[error("the table is not the one that the databases signed; ask another database")]
    OtherTable,
}

/// A decoded table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The epoch.
    pub epoch: Epoch,
    /// The number of writes in it, covers included. The crowd that hides a writer is at most that.
    pub size: u32,
    /// The same beside what came to the databases.
    pub crowd: Crowd,
    /// The messages, in row order.
    pub messages: Vec<Vec<u8>>,
    /// Messages that were alone in their row.
    pub alone: usize,
    /// Messages recovered from rows that hold two. A writer can put two messages into one write by
    /// adding them up.
    pub recovered: usize,
    /// Rows that hold no legible message.
    pub illegible: usize,
    /// More rows are written than there are writes, or far more are illegible than chance explains:
    /// a server may have corrupted the table.
    pub flagged: bool,
    /// Less than half of what had come to this database is in the table, so the crowd may be of
    /// somebody else's choice. An honest database publishes no such table of its own.
    pub thinned: Option<Party>,
}

/// Checks and decodes a table.
///
/// # Errors
/// [`ReadError`].
pub fn read(board: &Board, transcript: &Transcript, table: &[u8]) -> Result<Reading, ReadError> {
    let databases = board.databases();
    if !databases.iter().all(|by| transcript.published_table(*by).is_some()) {
        return Err(transcript.burn_reason().map_or(ReadError::NotPublished, ReadError::Burnt));
    }
    let set = transcript.set().and_then(Result::ok).ok_or(ReadError::Contradiction)?;
    let (published, named) = transcript.agreed_table().ok_or(ReadError::Contradiction)?;
    let settled = board.grid().is_some() || transcript.settled_set() == Some(set.digest);
    let settled = settled && transcript.is_cleared();
    if !settled || published != set.digest || transcript.agreed_latch() != Some(set.digest) {
        return Err(ReadError::Contradiction);
    }
    if table.len() != board.shape().bytes() || Transcript::table_digest(&set.digest, table) != named
    {
        return Err(ReadError::OtherTable);
    }
    let size = u32::try_from(set.accepted.len()).unwrap_or(u32::MAX);
    let crowd = transcript.crowd().unwrap_or_default();
    let reading = rows(board, transcript.epoch(), size, table);
    Ok(Reading { crowd, thinned: transcript.thinned(), ..reading })
}

fn rows(board: &Board, epoch: Epoch, size: u32, table: &[u8]) -> Reading {
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
    let (crowd, thinned) = (Crowd::default(), None);
    Reading { epoch, size, crowd, messages, alone, recovered, illegible, flagged, thinned }
}

/// The expected number of rows shared by three writers or more (without recovery: two or more), if
/// each of `size` writes goes to an independently drawn row.
fn expected_illegible(board: &Board, size: u32) -> f64 {
    let rows = f64::from(board.rows);
    let load = f64::from(size) / rows;
    let legible = 1.0 + load + if board.format.recovery { load * load / 2.0 } else { 0.0 };
    rows * (1.0 - (-load).exp() * legible).max(0.0)
}
