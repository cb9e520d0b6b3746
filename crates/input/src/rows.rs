//! Reads a recorded CSV file into one sorted run of events per stream.
//!
//! A bad row is refused with its line and column and never stops the good rows
//! around it. No error contains a cell's content.

pub use super::cells::Cell;
use super::cells::{allowed, parse_cell, parse_time};
use super::lines::{BROKEN, Lines};
use super::metadata::MetadataColumns;
use super::refusals::{Refusals, RefusedRow, RowError};
use super::source::{Columns, Source, Wide};
use alpheus_policy::schema::{Attribute, Schema};
use alpheus_time::{Span, Timestamp};
use csv::StringRecord;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use thiserror::Error;

/// The content of a file.
pub struct Recording {
    /// Streams in order of first appearance.
    pub streams: Vec<RecordedStream>,
    /// The refused rows.
    pub refused: Refusals,
    /// Rows read, good and bad.
    pub rows: u64,
}

impl Recording {
    /// The time of its first event; 0 if there is none.
    #[must_use]
    pub fn begins(&self) -> Timestamp {
        let first = self.streams.iter().filter_map(|stream| stream.times.first());
        first.min().copied().unwrap_or(Timestamp(0))
    }
}

/// One stream of a recorded file. Its key may be personal, so it is never shown.
pub struct RecordedStream {
    /// Its key in the file.
    pub key: String,
    /// Its owner's key.
    pub owner: String,
    /// Its public metadata.
    pub metadata: BTreeMap<String, String>,
    times: Vec<Timestamp>,
    lines: Vec<u64>,
    cells: Vec<Cell>,
}

/// One event of a recorded stream.
pub struct RecordedEvent<'a> {
    /// The time, strictly ascending within the stream and never on a tick.
    pub time: Timestamp,
    /// Line of the file, from 1.
    pub line: u64,
    /// In order of the schema's attributes.
    pub cells: &'a [Cell],
}

impl RecordedStream {
    /// Its events in order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = RecordedEvent<'_>> {
        (0..self.times.len()).map(|index| self.event(index))
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether every one of its rows was refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The event at a position.
    #[must_use]
    pub fn event(&self, index: usize) -> RecordedEvent<'_> {
        let width = self.cells.len() / self.times.len();
        RecordedEvent {
            time: self.times[index],
            line: self.lines[index],
            cells: &self.cells[index * width..(index + 1) * width],
        }
    }

    /// Time of its first and last event.
    #[must_use]
    pub fn range(&self) -> Option<(Timestamp, Timestamp)> {
        Some((*self.times.first()?, *self.times.last()?))
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
    /// The input cannot be read any further.
    #[error("the input cannot be read after line {line}: {source}; provide the complete file")]
    Csv {
        /// Last line that was read.
        line: u64,
        /// What the reader parser_message.
        source: csv::Error,
    },
}

/// Reads a file as its source file says, for windows that are multiples of `tick`.
///
/// # Errors
/// A [`ReadError`] if the header does not fit or the file breaks off; a bad row
/// is no error, but is counted in [`Recording::refused`].
pub fn read(
    input: impl Read,
    source: &Source,
    schema: &Schema,
    tick: Span,
) -> Result<Recording, ReadError> {
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

/// Columns of the file, resolved to positions.
struct RowReader<'a> {
    schema: &'a Schema,
    source: &'a Source,
    time: usize,
    stream: Option<usize>,
    owner: Option<usize>,
    metadata: MetadataColumns<'a>,
    shape: Shape,
    header: StringRecord,
    streams: Vec<StreamBuilder>,
    index: HashMap<String, usize>,
    refused: Refusals,
    rows: u64,
}

enum Shape {
    /// Position of the column of each attribute of the schema.
    Long(Vec<Option<usize>>),
    /// Each of these columns is a stream.
    Streams { attribute: usize, columns: Vec<usize> },
    /// Each of these columns is a moment.
    Moments { attribute: usize, first: usize, last: usize, step: u64 },
}

struct StreamBuilder {
    key: String,
    owner: String,
    metadata: BTreeMap<String, String>,
    events: Vec<(Timestamp, u64, usize)>,
    cells: Vec<Cell>,
}

impl<'a> RowReader<'a> {
    fn new(
        source: &'a Source,
        schema: &'a Schema,
        header: &StringRecord,
    ) -> Result<Self, ReadError> {
        let column = |name: &str| position(header, name);
        Ok(RowReader {
            time: column(&source.time.column)?,
            stream: source.stream.as_deref().map(column).transpose()?,
            owner: source.owner.as_deref().map(column).transpose()?,
            metadata: MetadataColumns::resolve(source, schema, column)?,
            shape: Shape::resolve(source, schema, header)?,
            header: header.clone(),
            streams: Vec::new(),
            index: HashMap::new(),
            refused: Refusals::default(),
            rows: 0,
            schema,
            source,
        })
    }

    fn refuse(&mut self, line: u64, column: Option<usize>, fault: RowError) {
        let column = column.map(|at| {
            let name = match self.shape {
                // In such files the header holds stream keys.
                Shape::Streams { .. } if at != self.time => (at + 1).to_string(),
                _ => self.header.get(at).unwrap_or_default().to_owned(),
            };
            match self.shape.attribute(at).map(|index| &self.schema.attributes[index]) {
                Some(attribute) if fault == RowError::OutOfBounds => {
                    format!("{name}, which takes {}", allowed(attribute))
                }
                _ => name,
            }
        });
        self.refused.push(RefusedRow { line, column, fault });
    }

    fn row(&mut self, line: u64, record: &StringRecord) {
        let time = match parse_time(&record[self.time], &self.source.time) {
            Ok(time) => time,
            Err(fault) => return self.refuse(line, Some(self.time), fault),
        };
        match &self.shape {
            Shape::Long(columns) => {
                let columns = columns.clone();
                self.long_row(line, time, record, &columns);
            }
            Shape::Streams { attribute, columns } => {
                let (attribute, columns) = (*attribute, columns.clone());
                for column in columns {
                    let key = self.header[column].to_owned();
                    self.reading(line, time, record, (attribute, column), &key);
                }
            }
            Shape::Moments { attribute, first, last, step } => {
                let (attribute, first, last, step) = (*attribute, *first, *last, *step);
                let Some(key) = self.key(line, record) else { return };
                for (moment, column) in (first..=last).enumerate() {
                    let time = time.plus(Span::seconds(moment as u64 * step));
                    self.reading(line, time, record, (attribute, column), &key);
                }
            }
        }
    }

    fn key(&mut self, line: u64, record: &StringRecord) -> Option<String> {
        let column = self.stream?;
        if record[column].is_empty() {
            self.refuse(line, Some(column), RowError::NoStreamKey);
            return None;
        }
        Some(record[column].to_owned())
    }

    fn long_row(
        &mut self,
        line: u64,
        time: Timestamp,
        record: &StringRecord,
        columns: &[Option<usize>],
    ) {
        let Some(key) = self.key(line, record) else { return };
        let mut cells = Vec::with_capacity(columns.len());
        for (attribute, column) in self.schema.attributes.iter().zip(columns) {
            let text = column.map_or("", |column| &record[column]);
            match parse_cell(text, attribute) {
                Ok(cell) => cells.push(cell),
                Err(fault) => return self.refuse(line, *column, fault),
            }
        }
        self.push(line, time, record, &key, cells);
    }

    fn reading(
        &mut self,
        line: u64,
        time: Timestamp,
        record: &StringRecord,
        (attribute, column): (usize, usize),
        key: &str,
    ) {
        if record[column].is_empty() {
            return;
        }
        match parse_cell(&record[column], &self.schema.attributes[attribute]) {
            Ok(cell) => {
                let mut cells = vec![Cell::Absent; self.schema.attributes.len()];
                cells[attribute] = cell;
                self.push(line, time, record, key, cells);
            }
            Err(fault) => self.refuse(line, Some(column), fault),
        }
    }

    fn push(
        &mut self,
        line: u64,
        time: Timestamp,
        record: &StringRecord,
        key: &str,
        cells: Vec<Cell>,
    ) {
        let index = match self.index.get(key) {
            Some(index) => {
                let known = &self.streams[*index].metadata;
                if let Err((column, fault)) = self.metadata.same(record, key, known) {
                    return self.refuse(line, column, fault);
                }
                *index
            }
            None if self.owner.is_some_and(|owner| record[owner].is_empty()) => {
                return self.refuse(line, self.owner, RowError::NoOwner);
            }
            None => match self.metadata.of(record, key) {
                Ok(metadata) => self.new_stream(record, key, metadata),
                Err((column, fault)) => return self.refuse(line, column, fault),
            },
        };
        let stream = &mut self.streams[index];
        stream.events.push((time, line, stream.events.len()));
        stream.cells.extend(cells);
    }

    fn new_stream(
        &mut self,
        record: &StringRecord,
        key: &str,
        metadata: BTreeMap<String, String>,
    ) -> usize {
        self.streams.push(StreamBuilder {
            key: key.to_owned(),
            owner: self.owner.map_or(key, |column| &record[column]).to_owned(),
            metadata,
            events: Vec::new(),
            cells: Vec::new(),
        });
        self.index.insert(key.to_owned(), self.streams.len() - 1);
        self.streams.len() - 1
    }

    fn finish(mut self, tick: Span) -> Recording {
        let base = self.source.base.map(|seconds| Timestamp(seconds * 1_000_000));
        let streams = std::mem::take(&mut self.streams);
        let streams =
            streams.into_iter().map(|stream| stream.settle(tick, base, &mut self.refused));
        Recording {
            streams: streams.filter(|stream| !stream.is_empty()).collect(),
            refused: self.refused,
            rows: self.rows,
        }
    }
}

impl StreamBuilder {
    /// Sorts by time, shifts, and gives each event a microsecond of its own
    /// strictly between two ticks.
    fn settle(
        mut self,
        tick: Span,
        base: Option<Timestamp>,
        refused: &mut Refusals,
    ) -> RecordedStream {
        self.events.sort_by_key(|(time, ..)| *time);
        let start = self.events.first().map_or(Timestamp(0), |(time, ..)| time.floor(tick));
        let width = self.cells.len() / self.events.len().max(1);
        let mut stream = RecordedStream {
            key: self.key,
            owner: self.owner,
            metadata: self.metadata,
            times: Vec::with_capacity(self.events.len()),
            lines: Vec::with_capacity(self.events.len()),
            cells: Vec::with_capacity(self.cells.len()),
        };
        for (time, line, index) in self.events {
            let shifted = base.map_or(time, |base| Timestamp(time.0 - start.0 + base.0));
            let after = if shifted == shifted.floor(tick) { shifted.0 + 1 } else { shifted.0 };
            let free = stream.times.last().map_or(after, |last| after.max(last.0 + 1));
            let end = shifted.floor(tick).plus(tick);
            if free >= end.0 || end >= Timestamp::LIMIT {
                let fault =
                    if free >= end.0 { RowError::TickFull } else { RowError::TimeOutOfRange };
                refused.push(RefusedRow { line, column: None, fault });
                continue;
            }
            stream.times.push(Timestamp(free));
            stream.lines.push(line);
            stream.cells.extend_from_slice(&self.cells[index * width..(index + 1) * width]);
        }
        stream
    }
}

impl Shape {
    /// The attribute that a column holds.
    fn attribute(&self, at: usize) -> Option<usize> {
        match self {
            Shape::Long(columns) => columns.iter().position(|column| *column == Some(at)),
            Shape::Streams { attribute, columns } => columns.contains(&at).then_some(*attribute),
            Shape::Moments { attribute, first, last, .. } => {
                (*first..=*last).contains(&at).then_some(*attribute)
            }
        }
    }

    fn resolve(
        source: &Source,
        schema: &Schema,
        header: &StringRecord,
    ) -> Result<Shape, ReadError> {
        let attribute =
            |name: &str| schema.attributes.iter().position(|a| a.name == name).unwrap_or(0);
        let Some(Wide { attribute: name, columns }) = &source.wide else {
            let column = |a: &Attribute| {
                source.attributes.get(&a.name).map(|name| position(header, name)).transpose()
            };
            return Ok(Shape::Long(
                schema.attributes.iter().map(column).collect::<Result<_, _>>()?,
            ));
        };
        let attribute = attribute(name);
        match columns {
            Columns::Streams => {
                let time = position(header, &source.time.column)?;
                let columns: Vec<usize> =
                    (0..header.len()).filter(|column| *column != time).collect();
                let mut known = HashMap::new();
                for column in &columns {
                    if let Some(first) = known.insert(&header[*column], column + 1) {
                        return Err(ReadError::TwoStreams { first, second: column + 1 });
                    }
                }
                Ok(Shape::Streams { attribute, columns })
            }
            Columns::Moments { from, to, step } => {
                let (first, last) = (position(header, from)?, position(header, to)?);
                if first > last {
                    return Err(ReadError::ColumnOrder { from: from.clone(), to: to.clone() });
                }
                Ok(Shape::Moments { attribute, first, last, step: *step })
            }
        }
    }
}

fn position(header: &StringRecord, name: &str) -> Result<usize, ReadError> {
    let mut found = (0..header.len()).filter(|column| &header[*column] == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column),
        (Some(_), Some(_)) => Err(ReadError::TwoColumns { name: name.to_owned() }),
        (None, _) => Err(ReadError::NoColumn { name: name.to_owned(), columns: header.len() }),
    }
}
