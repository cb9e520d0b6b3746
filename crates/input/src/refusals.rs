//! Rows of a recorded file that were refused: counted, with the first few places.

pub use super::time_form::TimeForm;
use std::collections::BTreeMap;
use thiserror::Error;

/// Why one row (or, in a wide file, one reading) was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum RowError {
    /// More or fewer cells than the header.
    #[error("the row has a different number of cells than the header")]
    CellCount,
    /// A quoted cell does not end on its line, or continues after its end.
    #[error(
        "a quoted cell does not end on its line; close it right before the next comma, and write a quote within it twice"
    )]
    BrokenQuotes,
    /// Not UTF-8.
    #[error("the row is not UTF-8")]
    NotUtf8,
    /// No stream key.
    #[error("the stream key is empty")]
    NoStreamKey,
    /// No owner.
    #[error("the owner is empty")]
    NoOwner,
    /// Not a time.
    #[error("the time is {0}")]
    BadTime(TimeForm),
    /// A time that the cipher cannot express.
    #[error("the time lies before 1970 or after 2112; check `time.unit` in the source file")]
    TimeOutOfRange,
    /// Not a number.
    #[error("not a decimal number")]
    NotANumber,
    /// Not a truth value.
    #[error("not true, false, yes, no, 1 or 0")]
    NotABoolean,
    /// Outside the schema's bounds.
    #[error("the value lies outside the schema's bounds for this attribute")]
    OutOfBounds,
    /// A mandatory cell is empty.
    #[error(
        "a mandatory attribute is empty; mark it `optional: true` in the schema if that is normal"
    )]
    Missing,
    /// A value that the schema's metadata attribute does not allow.
    #[error("the metadata value is none of those that the schema declares")]
    UnknownSymbol,
    /// A stream without metadata that every stream has.
    #[error("the metadata cell is empty; mark it `optional: true` in the schema if that is normal")]
    NoMetadata,
    /// A stream's metadata must not change.
    #[error(
        "the stream's metadata differ from those of its first row; if an owner has several, let `stream` name a column with a text for each of them, and `owner` the column of the owner"
    )]
    MetadataChanged,
    /// Too many rows at one time: no microsecond before the next tick is free.
    #[error("too many rows at one time: no free microsecond before the next tick")]
    TickFull,
}

/// A refused row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRow {
    /// Line, from 1.
    pub line: u64,
    /// The faulty column, if there is one: its name, or its number from 1 if names are
    /// stream keys; for values out of bounds also the allowed range.
    pub column: Option<String>,
    /// Why.
    pub fault: RowError,
}

/// Refused rows: all counted, the first few of each kind kept.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    counts: BTreeMap<RowError, (u64, Vec<RefusedRow>)>,
}

impl Refusals {
    const KEPT: usize = 5;

    /// Records one.
    pub fn push(&mut self, refused: RefusedRow) {
        let (count, kept) = self.counts.entry(refused.fault).or_default();
        *count += 1;
        if kept.len() < Self::KEPT {
            kept.push(refused);
        }
    }

    /// The total number.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().map(|(count, _)| count).sum()
    }

    /// Each kind with its count and its first few places.
    pub fn kinds(&self) -> impl Iterator<Item = (RowError, u64, &[RefusedRow])> {
        self.counts.iter().map(|(fault, (count, kept))| (*fault, *count, kept.as_slice()))
    }
}
