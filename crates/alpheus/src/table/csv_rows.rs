//! Rows of a recorded file, as a table takes them: time, groups, cells.

use super::schema::{TableSchema, WideFile};
use crate::replay::cells::parse_time;
use crate::replay::refused::RowFault;
use alpheus_policy::decimal::parse_scaled;
use alpheus_policy::time::Timestamp;
use alpheus_verifiable_table::layout::Row;
use csv::StringRecord;
use std::io::Read;

/// One row of a table.
pub struct Reading {
    /// In microseconds since 1970.
    pub time: i64,
    /// Each group's value.
    pub groups: Vec<String>,
    /// Each column's cell.
    pub cells: Row,
    /// The line of the file, from 1.
    pub line: u64,
}

/// Why a file cannot be taken; nothing of it is then.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The header lacks a column.
    #[error("the first line names no column `{0}`, which the schema has")]
    NoColumn(String),
    /// The header names a column twice.
    #[error("the first line names the column `{0}` twice: name one of them otherwise")]
    TwoColumns(String),
    /// The first wide column stands after the last.
    #[error(
        "the schema's wide columns run from `{0}` to `{1}`, but these stand the other way round"
    )]
    Order(String, String),
    /// It cannot be read.
    #[error("the input breaks off: {0}")]
    Csv(#[from] csv::Error),
    /// A row's time.
    #[error("line {line}: {fault}")]
    Time {
        /// The line.
        line: u64,
        /// What is wrong.
        fault: RowFault,
    },
    /// A cell is no number.
    #[error("line {line}, column `{column}`: not a decimal number; correct the file")]
    Number {
        /// The line.
        line: u64,
        /// The column.
        column: String,
    },
    /// A cell is out of bounds.
    #[error(
        "line {line}, column `{column}`: the value is out of the bounds {min} to {max} that the schema declares; correct the file, or create the table anew with wider bounds"
    )]
    Bounds {
        /// The line.
        line: u64,
        /// The column.
        column: String,
        /// The least that it may be.
        min: String,
        /// The greatest.
        max: String,
    },
    /// A cell is empty that may not be.
    #[error(
        "line {line}, column `{column}`: the cell is empty; fill it, or declare the column `optional: true` in a new table"
    )]
    Empty {
        /// The line.
        line: u64,
        /// The column.
        column: String,
    },
}

/// No row is later, in microseconds.
const LATEST: i64 = Timestamp::LIMIT.0.cast_signed();

/// Where in a record everything stands.
struct Places {
    time: usize,
    groups: Vec<usize>,
    columns: Vec<usize>,
}

/// Hands every reading to `each`, which may stop.
///
/// # Errors
/// [`CsvError`] at the first line that is wrong, or what `each` says.
pub fn read<E: From<CsvError>>(
    input: impl Read,
    schema: &TableSchema,
    mut each: impl FnMut(Reading) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = csv::ReaderBuilder::new().from_reader(input);
    let header = reader.headers().map_err(CsvError::from)?.clone();
    let places = places(&header, schema)?;
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(CsvError::from)? {
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |at: usize| record.get(at).unwrap_or_default();
        let time = parse_time(cell(places.time), &schema.time);
        let time = time.map_err(|fault| CsvError::Time { line, fault })?;
        let time = i64::try_from(time.0).unwrap_or(i64::MAX);
        let groups: Vec<String> = places.groups.iter().map(|at| cell(*at).to_owned()).collect();
        let parsed = |column: usize, at: usize| parse(cell(at), schema, column, line);
        if let Some(wide) = &schema.wide {
            let step = i64::try_from(wide.step).unwrap_or(i64::MAX).saturating_mul(1_000_000);
            let mut time = time;
            for at in &places.columns {
                if time >= LATEST {
                    let fault = RowFault::TimeOutOfRange;
                    return Err(CsvError::Time { line, fault }.into());
                }
                each(Reading { time, groups: groups.clone(), cells: vec![parsed(0, *at)?], line })?;
                time = time.saturating_add(step);
            }
        } else {
            let cells = places.columns.iter().enumerate().map(|(column, at)| parsed(column, *at));
            each(Reading { time, groups, cells: cells.collect::<Result<_, _>>()?, line })?;
        }
    }
    Ok(())
}

fn places(header: &StringRecord, schema: &TableSchema) -> Result<Places, CsvError> {
    let place = |name: &str| {
        let at = header.iter().position(|column| column == name);
        let at = at.ok_or_else(|| CsvError::NoColumn(name.to_owned()))?;
        let twice = header.iter().filter(|column| *column == name).count() > 1;
        if twice { Err(CsvError::TwoColumns(name.to_owned())) } else { Ok(at) }
    };
    let columns = match &schema.wide {
        None => {
            schema.columns.iter().map(|column| place(&column.name)).collect::<Result<_, _>>()?
        }
        Some(WideFile { from, to, .. }) => {
            let (first, last) = (place(from)?, place(to)?);
            if first > last {
                return Err(CsvError::Order(from.clone(), to.clone()));
            }
            (first..=last).collect()
        }
    };
    let groups = schema.groups.iter().map(|group| place(group)).collect::<Result<_, _>>()?;
    Ok(Places { time: place(&schema.time.column)?, groups, columns })
}

/// A cell's number, of which nothing is ever said in an error.
fn parse(
    text: &str,
    schema: &TableSchema,
    column: usize,
    line: u64,
) -> Result<Option<i64>, CsvError> {
    let Some(declared) = schema.columns.get(column) else { return Ok(None) };
    let name = || declared.name.clone();
    if text.is_empty() {
        let empty = || CsvError::Empty { line, column: name() };
        return if declared.optional { Ok(None) } else { Err(empty()) };
    }
    let value = parse_scaled(text, declared.scale);
    let value = value.map_err(|_| CsvError::Number { line, column: name() })?;
    let bound = |text: &str| parse_scaled(text, declared.scale).unwrap_or(0);
    if (bound(&declared.min)..=bound(&declared.max)).contains(&value) {
        return Ok(Some(value));
    }
    let (min, max) = (declared.min.clone(), declared.max.clone());
    Err(CsvError::Bounds { line, column: name(), min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "name: T\ntime: { column: t }\ngroups: [g]\ncolumns:\n  - { name: a, min: 0, max: 9, scale: 1 }\n  - { name: b, min: -3, max: 3, optional: true }\n";
    const WIDE: &str = "name: T\ntime: { column: t }\ncolumns: [{ name: a, min: 0, max: 9, optional: true }]\nwide: { from: x, to: z, step: 60 }\n";

    fn all(schema: &str, text: &str) -> Result<Vec<(i64, Vec<String>, Row)>, CsvError> {
        let (schema, mut found) = (TableSchema::parse(schema).unwrap(), Vec::new());
        read(text.as_bytes(), &schema, |r: Reading| {
            found.push((r.time, r.groups, r.cells));
            Ok::<_, CsvError>(())
        })?;
        Ok(found)
    }

    #[test]
    fn a_step_beyond_all_time_is_refused() {
        let far = WIDE.replace("60", "10000000000000");
        let error = all(&far, "t,x,y,z\n1,4,,6\n").unwrap_err();
        assert!(matches!(error, CsvError::Time { line: 2, .. }), "{error}");
        let schema = TableSchema::parse(&WIDE.replace("60", "0"));
        assert!(schema.is_err_and(|error| error.to_string().contains("at least 1")));
    }

    #[test]
    fn long_and_wide_files_are_read() {
        let long = all(LONG, "g,b,t,a\nx,,5,0.25\ny,-3,6,9\n").unwrap();
        let expected = [
            (5_000_000, vec!["x".to_owned()], vec![Some(3), None]),
            (6_000_000, vec!["y".to_owned()], vec![Some(90), Some(-3)]),
        ];
        assert_eq!(long, expected);
        let wide = all(WIDE, "t,x,y,z\n1,4,,6\n").unwrap();
        let cells = |at: i64, cell| (at * 1_000_000, Vec::new(), vec![cell]);
        assert_eq!(wide, [cells(1, Some(4)), cells(61, None), cells(121, Some(6))]);
    }

    #[test]
    fn a_wrong_line_is_named_with_a_remedy_and_without_its_value() {
        for (text, said) in [
            ("g,b,t\n", "no column `a`"),
            ("g,b,t,a,a\n", "the column `a` twice"),
            (
                "g,b,t,a\nx,1,5,77\n",
                "line 2, column `a`: the value is out of the bounds 0 to 9 that the schema declares",
            ),
            ("g,b,t,a\nx,1,5,1\nx,1,6,\n", "line 3, column `a`: the cell is empty"),
            ("g,b,t,a\nx,1,5,fish\n", "line 2, column `a`: not a decimal number"),
            ("g,b,t,a\nx,1,noon,1\n", "line 2: the time is not a number"),
            ("g,b,t,a\nx,1\n", "breaks off"),
        ] {
            let error = all(LONG, text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
            assert!(!error.contains("77") && !error.contains("fish"));
        }
    }
}
