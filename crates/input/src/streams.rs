//! One stream of a recorded file: its events in order, each with a time of its own.

use super::cells::Cell;
use super::refusals::{Refusals, RefusedRow, RowError};
use alpheus_time::{Span, Timestamp};
use std::collections::BTreeMap;

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

/// The events of a stream, in the order of the file.
pub(crate) struct StreamBuilder {
    pub(crate) key: String,
    pub(crate) owner: String,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) events: Vec<(Timestamp, u64, usize)>,
    pub(crate) cells: Vec<Cell>,
}

impl StreamBuilder {
    /// Sorts by time, shifts, and gives each event a microsecond of its own
    /// strictly between two ticks.
    pub(crate) fn settle(
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
