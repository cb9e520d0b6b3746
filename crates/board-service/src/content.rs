//! A message from a file or from standard input. It is never an argument: other users of the machine
//! see arguments, and shells keep them.

use alpheus_anonymous_board::configuration::Board;
use alpheus_node::failure::{Blame, Category, Failure};
use std::io::Read;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Where a message comes from.
#[derive(Clone, Debug, clap::Args)]
pub struct MessageArgs {
    /// The file with the message; without it, the message is read from standard input. A line break
    /// at its end is not part of it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// A message cannot be written to this board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    /// Empty.
    #[error("the message is empty; give it in a file or on standard input")]
    Empty,
    /// Too long.
    #[error(
        "the message has more than the {0} bytes that fit into a row of this board; shorten it"
    )]
    TooLong(u16),
}

impl MessageArgs {
    /// Reads the message.
    ///
    /// # Errors
    /// If it cannot be read, or does not fit.
    pub fn read(&self, board: &Board) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let limit = board.format.max_message;
        // One byte more than fits, and the line break.
        let most = u64::from(limit) + 2;
        let mut message = Zeroizing::new(Vec::with_capacity(usize::from(limit) + 2));
        match &self.file {
            Some(path) => {
                let file = std::fs::File::open(path).blame_io(path)?;
                file.take(most).read_to_end(&mut message).blame_io(path)?;
            }
            None => {
                std::io::stdin().take(most).read_to_end(&mut message).blame(Category::Io)?;
            }
        }
        if message.last() == Some(&b'\n') {
            message.pop();
        }
        if message.is_empty() {
            return Err(MessageError::Empty).blame(Category::Input);
        }
        let fits = message.len() <= usize::from(limit);
        fits.then_some(message).ok_or(MessageError::TooLong(limit)).blame(Category::Input)
    }
}
