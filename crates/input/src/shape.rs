//! What each column of a recorded file is.

use super::recording::ReadError;
use super::source::{Columns, Source, Wide};
use alpheus_policy::schema::{Attribute, Schema};
use csv::StringRecord;
use std::collections::HashMap;

/// How rows become events.
pub(crate) enum Shape {
    /// Position of the column of each attribute of the schema.
    Long(Vec<Option<usize>>),
    /// Each of these columns is a stream.
    Streams { attribute: usize, columns: Vec<usize> },
    /// Each of these columns is a moment.
    Moments { attribute: usize, first: usize, last: usize, step: u64 },
}

impl Shape {
    /// The attribute that a column holds.
    pub(crate) fn attribute(&self, at: usize) -> Option<usize> {
        match self {
            Shape::Long(columns) => columns.iter().position(|column| *column == Some(at)),
            Shape::Streams { attribute, columns } => columns.contains(&at).then_some(*attribute),
            Shape::Moments { attribute, first, last, .. } => {
                (*first..=*last).contains(&at).then_some(*attribute)
            }
        }
    }

    pub(crate) fn resolve(
        source: &Source,
        schema: &Schema,
        header: &StringRecord,
    ) -> Result<Shape, ReadError> {
        let attribute =
            |name: &str| schema.attributes.iter().position(|a| a.name == name).unwrap_or(0);
        let Some(Wide { attribute: name, columns, leave_out }) = &source.wide else {
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
                let times = source.time.names().map(|name| position(header, name));
                let times: Vec<usize> = times.collect::<Result<_, _>>()?;
                let others = leave_out.iter().map(|name| position(header, name));
                let others: Vec<usize> = others.collect::<Result<_, _>>()?;
                let taken = |column: &usize| !times.contains(column) && !others.contains(column);
                let columns: Vec<usize> = (0..header.len()).filter(taken).collect();
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

/// The position of the only column of a name.
///
/// # Errors
/// If there is none, or more than one.
pub(crate) fn position(header: &StringRecord, name: &str) -> Result<usize, ReadError> {
    let mut found = (0..header.len()).filter(|column| &header[*column] == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column),
        (Some(_), Some(_)) => Err(ReadError::TwoColumns { name: name.to_owned() }),
        (None, _) => Err(ReadError::NoColumn { name: name.to_owned(), columns: header.len() }),
    }
}
