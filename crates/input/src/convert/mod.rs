//! JSON lines and Parquet as delimited text, so that one reader reads all.
//!
//! The first line has the names, and each row is one line: line breaks in cells become spaces.
//! Cells hold the text that was written, so no digit is lost; of binary numbers, the shortest text
//! that is read as the same number. Members of objects within objects have the names of both with
//! a dot between them. Null and what lacks are empty.

mod json;
#[cfg(feature = "parquet")]
mod parquet;

use alpheus_discover::encoding::Encoding;
use std::collections::HashMap;
use std::io::{self, Chain, Cursor, Read};
use thiserror::Error;

/// Bytes that are looked at to see what a file is.
const START: usize = 512;

/// Why a file cannot be converted.
#[derive(Debug, Error)]
pub enum ConvertError {
    /// JSON of another form.
    #[error(
        "the file is JSON, but neither one object per line nor a list of objects; write one object per reading on each line"
    )]
    NotRows,
    /// Two members of one row with the same name.
    #[error("line {line}: two members of the object have the same name; rename one of them")]
    TwoMembers {
        /// The line, or the row of a list.
        line: u64,
    },
    /// Objects in objects without end.
    #[error("line {line}: objects are nested too deeply")]
    TooDeep {
        /// The line, or the row of a list.
        line: u64,
    },
    /// Not Parquet, or broken.
    #[error("the file is Parquet that cannot be read: {0}; write it again, or as CSV")]
    Parquet(String),
    /// A column of a kind that is no number, time, truth value or text.
    #[error(
        "the Parquet column {name:?} holds {kind}, which is not supported; leave it out, or convert it"
    )]
    ParquetColumn {
        /// Its name.
        name: String,
        /// What it holds.
        kind: String,
    },
    /// This program was built without Parquet.
    #[error("the file is Parquet, and this program was built without it; write the file as CSV")]
    NoParquet,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Json,
    Parquet,
}

impl Kind {
    fn of(start: &[u8]) -> Kind {
        if start.starts_with(b"PAR1") {
            return Kind::Parquet;
        }
        let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        let behind = |mark: &[u8]| text.strip_prefix(mark).map(<[u8]>::trim_ascii_start);
        let object =
            behind(b"{").is_some_and(|rest| rest.starts_with(b"\"") || rest.starts_with(b"}"));
        let list = behind(b"[").is_some_and(|rest| rest.starts_with(b"{"));
        if object || list { Kind::Json } else { Kind::Text }
    }
}

/// Delimited text as it is; JSON lines, a list of JSON objects, and Parquet as such text.
///
/// # Errors
/// A [`ConvertError`] if JSON or Parquet is not rows of cells.
pub fn to_text(bytes: Vec<u8>) -> Result<Vec<u8>, ConvertError> {
    match Kind::of(&bytes) {
        Kind::Text => Ok(bytes),
        Kind::Json => json::to_text(&Encoding::of(&bytes).decode(&bytes)),
        #[cfg(feature = "parquet")]
        Kind::Parquet => parquet::to_text(bytes),
        #[cfg(not(feature = "parquet"))]
        Kind::Parquet => Err(ConvertError::NoParquet),
    }
}

/// The cells of one line of JSON, by the names of their columns, as [`to_text`] makes them of a
/// whole file. For lines that come one by one.
///
/// # Errors
/// A [`ConvertError`] if the line is no object, or not one of cells.
pub fn cells_of_line(text: &str, line: u64) -> Result<HashMap<String, String>, ConvertError> {
    json::members(text, line)
}

/// Reads a file as delimited text. Text is passed on as it comes.
pub(crate) enum TextReader<R> {
    /// Not looked at.
    New(R),
    /// Text.
    Text(Chain<Cursor<Vec<u8>>, R>),
    /// What it was converted to.
    Made(Cursor<Vec<u8>>),
    /// It could not be read or converted.
    Failed,
}

impl<R: Read> TextReader<R> {
    fn begin(mut input: R) -> io::Result<Self> {
        let mut start = Vec::new();
        input.by_ref().take(START as u64).read_to_end(&mut start)?;
        if Kind::of(&start) == Kind::Text {
            return Ok(TextReader::Text(Cursor::new(start).chain(input)));
        }
        input.read_to_end(&mut start)?;
        let text =
            to_text(start).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(TextReader::Made(Cursor::new(text)))
    }
}

impl<R: Read> Read for TextReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let TextReader::New(_) = self
            && let TextReader::New(input) = std::mem::replace(self, TextReader::Failed)
        {
            *self = TextReader::begin(input)?;
        }
        match self {
            TextReader::Text(text) => text.read(into),
            TextReader::Made(made) => made.read(into),
            TextReader::New(_) | TextReader::Failed => Ok(0),
        }
    }
}

/// Rows as delimited text: names, then cells. Texts are quoted.
struct Writer(csv::Writer<Vec<u8>>);

impl Writer {
    fn new() -> Self {
        let quoted = csv::QuoteStyle::NonNumeric;
        Writer(csv::WriterBuilder::new().quote_style(quoted).flexible(true).from_writer(Vec::new()))
    }

    fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        for cell in cells {
            let cell = cell.as_ref();
            // Writing to memory does not fail.
            let _ = if cell.contains(['\n', '\r']) {
                self.0.write_field(cell.replace(['\n', '\r'], " "))
            } else {
                self.0.write_field(cell)
            };
        }
        let _ = self.0.write_record(None::<&[u8]>);
    }

    fn end(self) -> Vec<u8> {
        self.0.into_inner().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_recognised_by_their_beginning() {
        for (start, kind) in [
            (&b"PAR1\x15"[..], Kind::Parquet),
            (b"{\"a\":1}\n", Kind::Json),
            (b"\xef\xbb\xbf { \"a\": 1}", Kind::Json),
            (b"[\n {\"a\":1}]", Kind::Json),
            (b"[06/Mar/2018] a", Kind::Text),
            (b"{a},b\n", Kind::Text),
            (b"a,b\n", Kind::Text),
            (b"", Kind::Text),
        ] {
            assert_eq!(Kind::of(start), kind, "{start:?}");
        }
    }

    #[test]
    fn text_passes_as_it_is_and_errors_come_once() {
        let read = |bytes: &[u8]| {
            let mut out = Vec::new();
            TextReader::New(bytes).read_to_end(&mut out).map(|_| out)
        };
        let long = "a,b\n".repeat(1000);
        assert_eq!(read(long.as_bytes()).unwrap(), long.as_bytes());
        assert_eq!(read(b"{\"a\":1,\"b\":\"x\"}").unwrap(), b"\"a\",\"b\"\n1,\"x\"\n");
        let error = read(b"{\"a\": [1,\n 2]}").unwrap_err();
        assert!(error.to_string().contains("one object per line"), "{error}");
    }
}
