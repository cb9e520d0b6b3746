//! The content of a recorded file, and why a whole file cannot be read.

use super::refusals::Refusals;
use super::source::SourceError;
use super::streams::RecordedStream;
use alpheus_time::Timestamp;
use thiserror::Error;

/// The content of a file.
pub struct Recording {
    /// Streams in order of first appearance.
    pub streams: Vec<RecordedStream>,
    /// The refused rows.
    pub refused: Refusals,
    /// Rows read, good and bad.
    pub rows: u64,
    /// Rows without a time that the source file lets be left out.
    pub untimed: u64,
    /// Rows that equal an earlier one in every cell. They are kept.
    pub duplicates: u64,
}

impl Recording {
    /// The time of its first event; 0 if there is none.
    #[must_use]
    pub fn begins(&self) -> Timestamp {
        let first = self.streams.iter().filter_map(RecordedStream::range).map(|(first, _)| first);
        first.min().unwrap_or(Timestamp(0))
    }
}

/// Why a whole file cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The header lacks a column.
    #[error(
        "the source file maps the column {name:?}, which is not among the {columns} columns of the input's first line; add a header to the input, or map an existing column"
    )]
    NoColumn {
        /// The column.
        name: String,
        /// The number of columns. Names are not repeated: without a header they are data.
        columns: usize,
    },
    /// Two columns of the same name.
    #[error(
        "the input's first line has several columns named {name:?}; give each a unique name, since the source file maps columns by name"
    )]
    TwoColumns {
        /// The name.
        name: String,
    },
    /// Columns of the same name that would be one stream.
    #[error(
        "columns {first} and {second} of the input have the same name, but each is a stream; give each a unique name"
    )]
    TwoStreams {
        /// The first one, counted from 1. Stream names may be personal.
        first: usize,
        /// The other.
        second: usize,
    },
    /// The first wide column stands after the last.
    #[error(
        "the source file's wide columns run from {from:?} to {to:?}, but in the input they are in reverse order"
    )]
    ColumnOrder {
        /// The first.
        from: String,
        /// The last.
        to: String,
    },
    /// The source file cannot be used.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The input breaks off.
    #[error("the input cannot be read: {0}; provide the complete file")]
    Io(std::io::Error),
    /// The input cannot be read any further.
    #[error("the input cannot be read after line {line}: {source}; provide the complete file")]
    Csv {
        /// Last line that was read.
        line: u64,
        /// What the reader parser_message.
        source: csv::Error,
    },
}
