//! Reads a recorded CSV file into one sorted run of events per stream.
//!
//! A bad row is refused with its line and column and never stops the good rows
//! around it. No error contains a cell's content.

pub use super::cells::Cell;
use super::lines::{BROKEN, Lines};
pub use super::recording::{ReadError, Recording};
use super::refusals::RowError;
use super::row_reader::RowReader;
use super::source::Source;
pub use super::streams::{RecordedEvent, RecordedStream};
use alpheus_discover::cells::BrokenQuotes;
use alpheus_discover::form::Form;
use alpheus_policy::schema::Schema;
use alpheus_time::Span;
use csv::StringRecord;
use std::io::Read;

/// Reads a file as its source file says, for windows that are multiples of `tick`.
///
/// # Errors
/// A [`ReadError`] if the header does not fit or the file breaks off; a bad row
/// is no error, but is counted in [`Recording::refused`].
pub fn read(
    mut input: impl Read,
    source: &Source,
    schema: &Schema,
    tick: Span,
) -> Result<Recording, ReadError> {
    if let Some(form) = &source.file {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).map_err(ReadError::Io)?;
        return read_form(&bytes, form, source, schema, tick);
    }
    let mut csv = csv::ReaderBuilder::new().flexible(true).from_reader(Lines::new(input));
    let header = csv.headers().map_err(|source| ReadError::Csv { line: 0, source })?.clone();
    let mut reader = RowReader::new(source, schema, &header)?;
    let mut record = StringRecord::new();
    loop {
        let read = csv.read_record(&mut record);
        // Empty lines were skipped; the row is the line just read.
        let line = csv.position().line().saturating_sub(1);
        match read {
            Ok(false) => break,
            Ok(true) if record.len() == 1 && &record[0] == BROKEN => {
                reader.refuse(line, None, RowError::BrokenQuotes);
            }
            Ok(true) if record.len() != header.len() => {
                reader.refuse(line, None, RowError::CellCount)
            }
            Ok(true) => reader.row(line, &record),
            Err(error) if matches!(error.kind(), csv::ErrorKind::Utf8 { .. }) => {
                reader.refuse(line, None, RowError::NotUtf8);
            }
            Err(source) => return Err(ReadError::Csv { line, source }),
        }
        reader.rows += 1;
    }
    Ok(reader.finish(tick))
}

/// Reads a file whose form the source file describes.
fn read_form(
    bytes: &[u8],
    form: &Form,
    source: &Source,
    schema: &Schema,
    tick: Span,
) -> Result<Recording, ReadError> {
    let text = form.encoding.decode(bytes);
    let mut opened = form.open(&text);
    let header = StringRecord::from(opened.names);
    let mut reader = RowReader::new(source, schema, &header)?;
    let (mut row, mut record) = (Vec::new(), StringRecord::new());
    loop {
        let read = opened.rows.read(&mut row);
        let line = opened.rows.line();
        match read {
            Ok(false) => break,
            Err(BrokenQuotes) => reader.refuse(line, None, RowError::BrokenQuotes),
            Ok(true) if row.iter().all(|cell| cell.is_empty()) => continue,
            Ok(true) if !form.fit(&mut row, header.len()) => {
                reader.refuse(line, None, RowError::CellCount);
            }
            Ok(true) => {
                record.clear();
                row.iter().for_each(|cell| record.push_field(cell));
                reader.row(line, &record);
            }
        }
        reader.rows += 1;
    }
    Ok(reader.finish(tick))
}
