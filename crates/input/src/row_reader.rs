//! Takes the rows of a recorded file one by one, and refuses those that do not fit.

use super::cell_form::CellForm;
use super::cells::{Cell, allowed, parse_cell};
use super::metadata::MetadataColumns;
use super::recording::{ReadError, Recording};
use super::refusals::{Refusals, RefusedRow, RowError};
use super::shape::{Shape, position};
use super::source::{Source, TimeReader};
use super::streams::StreamBuilder;
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use csv::StringRecord;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};

/// Takes rows one by one. Columns are resolved to positions.
pub(crate) struct RowReader<'a> {
    schema: &'a Schema,
    source: &'a Source,
    time: Vec<usize>,
    clock: TimeReader,
    cells: CellForm,
    stream: Option<usize>,
    owner: Option<usize>,
    metadata: MetadataColumns<'a>,
    shape: Shape,
    header: StringRecord,
    streams: Vec<StreamBuilder>,
    index: HashMap<String, usize>,
    refused: Refusals,
    /// Rows read, good and bad.
    pub(crate) rows: u64,
    /// Rows without a time, where the source file lets them be left out.
    untimed: u64,
    duplicates: u64,
    known: HashSet<u64>,
    joined: String,
}

impl<'a> RowReader<'a> {
    pub(crate) fn new(
        source: &'a Source,
        schema: &'a Schema,
        header: &StringRecord,
    ) -> Result<Self, ReadError> {
        let column = |name: &str| position(header, name);
        Ok(RowReader {
            time: source.time.names().map(column).collect::<Result<_, _>>()?,
            clock: TimeReader::new(&source.time)?,
            cells: CellForm::new(source, schema),
            stream: source.stream.as_deref().map(column).transpose()?,
            owner: source.owner.as_deref().map(column).transpose()?,
            metadata: MetadataColumns::resolve(source, schema, column)?,
            shape: Shape::resolve(source, schema, header)?,
            header: header.clone(),
            streams: Vec::new(),
            index: HashMap::new(),
            refused: Refusals::default(),
            rows: 0,
            untimed: 0,
            duplicates: 0,
            known: HashSet::new(),
            joined: String::new(),
            schema,
            source,
        })
    }

    /// Counts a refused row.
    pub(crate) fn refuse(&mut self, line: u64, column: Option<usize>, fault: RowError) {
        let column = column.map(|at| {
            let name = match self.shape {
                // In such files the header holds stream keys.
                Shape::Streams { .. } if !self.time.contains(&at) => (at + 1).to_string(),
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

    /// Takes a row that is as wide as the header.
    pub(crate) fn row(&mut self, line: u64, record: &StringRecord) {
        let is_timed = self.join_time(record);
        if !is_timed && self.cells.may_be_untimed() {
            self.untimed += 1;
            return;
        }
        let time = match self.clock.read(&self.joined) {
            Ok(time) => time,
            Err(fault) => return self.refuse(line, self.time.first().copied(), fault),
        };
        let mut hasher = DefaultHasher::new();
        record.iter().for_each(|cell| cell.hash(&mut hasher));
        self.duplicates += u64::from(!self.known.insert(hasher.finish()));
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

    /// Joins the cells of the time with spaces; false if all are missing.
    fn join_time(&mut self, record: &StringRecord) -> bool {
        self.joined.clear();
        let mut some = false;
        for at in &self.time {
            let cell = &record[*at];
            some |= !self.cells.is_missing(cell);
            if !self.joined.is_empty() {
                self.joined.push(' ');
            }
            self.joined.push_str(cell);
        }
        some
    }

    fn key(&mut self, line: u64, record: &StringRecord) -> Option<String> {
        if let Some(single) = &self.source.single {
            return Some(single.clone());
        }
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
        for (index, (attribute, column)) in self.schema.attributes.iter().zip(columns).enumerate() {
            let text = column.map_or("", |column| &record[column]);
            match parse_cell(&self.cells.plain(text, index), attribute) {
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
        let text = self.cells.plain(&record[column], attribute).into_owned();
        if text.is_empty() {
            return;
        }
        match parse_cell(&text, &self.schema.attributes[attribute]) {
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

    /// All that was read, for windows that are multiples of `tick`.
    pub(crate) fn finish(mut self, tick: Span) -> Recording {
        let base = self.source.base.map(|seconds| Timestamp(seconds * 1_000_000));
        let streams = std::mem::take(&mut self.streams);
        let streams =
            streams.into_iter().map(|stream| stream.settle(tick, base, &mut self.refused));
        Recording {
            streams: streams.filter(|stream| !stream.is_empty()).collect(),
            refused: self.refused,
            rows: self.rows,
            untimed: self.untimed,
            duplicates: self.duplicates,
        }
    }
}
