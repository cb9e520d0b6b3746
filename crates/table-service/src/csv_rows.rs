//! Rows of a recorded file, as time, groups and cells of a table.

use super::schema::{TableSchema, WideFile};
use alpheus_discover::cells::BrokenQuotes;
use alpheus_discover::form::Form;
use alpheus_input::refusals::RowError;
use alpheus_input::source::{SourceError, TimeReader};
use alpheus_policy::decimal::parse_scaled;
use alpheus_time::Timestamp;
use alpheus_verifiable_table::layout::Row;
use csv::StringRecord;
use std::borrow::Cow;
use std::io::Read;

/// One row of a table.
pub struct Reading {
    /// Microseconds since 1970.
    pub time: i64,
    /// The value of each group.
    pub groups: Vec<String>,
    /// The cell of each column.
    pub cells: Row,
    /// The line in the file, from 1.
    pub line: u64,
}

/// Why a file is rejected as a whole.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The header lacks a column.
    #[error("the header has no column `{0}`, which the schema requires")]
    NoColumn(String),
    /// The header names a column twice.
    #[error("the header has the column `{0}` twice; rename one of them")]
    TwoColumns(String),
    /// The first wide column comes after the last.
    #[error(
        "the schema's wide columns run from `{0}` to `{1}`, but the header has them in the opposite order"
    )]
    Order(String, String),
    /// The input cannot be read.
    #[error("the input is not valid CSV: {0}")]
    Csv(#[from] csv::Error),
    /// The input breaks off.
    #[error("the input cannot be read: {0}; provide the complete file")]
    Io(std::io::Error),
    /// The schema's time cannot be used.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A row does not fit the header.
    #[error("line {line}: {fault}")]
    Row {
        /// The line.
        line: u64,
        /// The reason.
        fault: RowError,
    },
    /// A row's time is invalid.
    #[error("line {line}: {fault}")]
    Time {
        /// The line.
        line: u64,
        /// The reason.
        fault: RowError,
    },
    /// A cell is not a number.
    #[error("line {line}, column `{column}`: not a decimal number; correct the file")]
    Number {
        /// The line.
        line: u64,
        /// The column.
        column: String,
    },
    /// A cell is out of bounds.
    #[error(
        "line {line}, column `{column}`: the value is outside the schema's bounds {min} to {max}; correct the file, or create a new table with wider bounds"
    )]
    Bounds {
        /// The line.
        line: u64,
        /// The column.
        column: String,
        /// The least allowed value.
        min: String,
        /// The greatest allowed value.
        max: String,
    },
    /// A required cell is empty.
    #[error(
        "line {line}, column `{column}`: the cell is empty; fill it in, or create a new table that declares the column `optional: true`"
    )]
    Empty {
        /// The line.
        line: u64,
        /// The column.
        column: String,
    },
}

/// The latest time of a row, in microseconds.
const MAX_TIME: i64 = Timestamp::LIMIT.0.cast_signed();

/// Positions of fields in a record.
struct Positions {
    time: Vec<usize>,
    groups: Vec<usize>,
    columns: Vec<usize>,
}

/// Passes every reading to `each`, which may stop with an error.
///
/// # Errors
/// [`CsvError`] at the first invalid line, or an error of `each`.
pub fn read<E: From<CsvError>>(
    mut input: impl Read,
    schema: &TableSchema,
    mut each: impl FnMut(Reading) -> Result<(), E>,
) -> Result<(), E> {
    if let Some(form) = &schema.file {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).map_err(CsvError::Io)?;
        return read_form(&bytes, form, schema, each);
    }
    let mut reader = csv::ReaderBuilder::new().from_reader(input);
    let header = reader.headers().map_err(CsvError::from)?.clone();
    let rows = RowParser::new(&header, schema)?;
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(CsvError::from)? {
        let line = record.position().map_or(0, csv::Position::line);
        rows.row(line, &record, &mut each)?;
    }
    Ok(())
}

/// Reads a file whose form the schema describes.
fn read_form<E: From<CsvError>>(
    bytes: &[u8],
    form: &Form,
    schema: &TableSchema,
    mut each: impl FnMut(Reading) -> Result<(), E>,
) -> Result<(), E> {
    let text = form.encoding.decode(bytes);
    let mut opened = form.open(&text);
    let header = StringRecord::from(opened.names);
    let rows = RowParser::new(&header, schema)?;
    let (mut row, mut record) = (Vec::new(), StringRecord::new());
    loop {
        let read = opened.rows.read(&mut row);
        let line = opened.rows.line();
        let refused = |fault| CsvError::Row { line, fault };
        match read {
            Ok(false) => return Ok(()),
            Err(BrokenQuotes) => return Err(refused(RowError::BrokenQuotes).into()),
            Ok(true) if row.iter().all(|cell| cell.is_empty()) => continue,
            Ok(true) if !form.fit(&mut row, header.len()) => {
                return Err(refused(RowError::CellCount).into());
            }
            Ok(true) => {}
        }
        record.clear();
        row.iter().for_each(|cell| record.push_field(cell));
        rows.row(line, &record, &mut each)?;
    }
}

/// Turns rows into readings.
struct RowParser<'a> {
    schema: &'a TableSchema,
    positions: Positions,
    clock: TimeReader,
}

impl<'a> RowParser<'a> {
    fn new(header: &StringRecord, schema: &'a TableSchema) -> Result<Self, CsvError> {
        let clock = TimeReader::new(&schema.time)?;
        Ok(RowParser { schema, positions: positions(header, schema)?, clock })
    }

    fn row<E: From<CsvError>>(
        &self,
        line: u64,
        record: &StringRecord,
        each: &mut impl FnMut(Reading) -> Result<(), E>,
    ) -> Result<(), E> {
        let cell = |at: usize| record.get(at).unwrap_or_default();
        let times: Vec<&str> = self.positions.time.iter().map(|at| cell(*at)).collect();
        let is_untimed =
            |form: &Form| form.untimed && times.iter().all(|time| form.is_missing(time));
        if self.schema.file.as_ref().is_some_and(is_untimed) {
            return Ok(());
        }
        let time = self.clock.read(&times.join(" "));
        let time = time.map_err(|fault| CsvError::Time { line, fault })?;
        let mut time = i64::try_from(time.0).unwrap_or(i64::MAX);
        let groups: Vec<String> =
            self.positions.groups.iter().map(|at| cell(*at).to_owned()).collect();
        let columns = &self.positions.columns;
        let parsed = |column: usize, at: usize| parse(cell(at), self.schema, column, line);
        let Some(wide) = &self.schema.wide else {
            let cells = columns.iter().enumerate().map(|(column, at)| parsed(column, *at));
            let cells = cells.collect::<Result<_, _>>()?;
            return each(Reading { time, groups, cells, line });
        };
        let step = i64::try_from(wide.step).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        for at in columns {
            if time >= MAX_TIME {
                let fault = RowError::TimeOutOfRange;
                return Err(CsvError::Time { line, fault }.into());
            }
            each(Reading { time, groups: groups.clone(), cells: vec![parsed(0, *at)?], line })?;
            time = time.saturating_add(step);
        }
        Ok(())
    }
}

fn positions(header: &StringRecord, schema: &TableSchema) -> Result<Positions, CsvError> {
    let position = |name: &str| {
        let at = header.iter().position(|column| column == name);
        let at = at.ok_or_else(|| CsvError::NoColumn(name.to_owned()))?;
        let twice = header.iter().filter(|column| *column == name).count() > 1;
        if twice { Err(CsvError::TwoColumns(name.to_owned())) } else { Ok(at) }
    };
    let columns = match &schema.wide {
        None => {
            schema.columns.iter().map(|column| position(&column.name)).collect::<Result<_, _>>()?
        }
        Some(WideFile { from, to, .. }) => {
            let (first, last) = (position(from)?, position(to)?);
            if first > last {
                return Err(CsvError::Order(from.clone(), to.clone()));
            }
            (first..=last).collect()
        }
    };
    let groups = schema.groups.iter().map(|group| position(group)).collect::<Result<_, _>>()?;
    let time = schema.time.names().map(position).collect::<Result<_, _>>()?;
    Ok(Positions { time, groups, columns })
}

/// A cell's number. Errors never contain it.
fn parse(
    text: &str,
    schema: &TableSchema,
    column: usize,
    line: u64,
) -> Result<Option<i64>, CsvError> {
    let Some(declared) = schema.columns.get(column) else { return Ok(None) };
    let name = || declared.name.clone();
    let form = schema.file.as_ref();
    let plain = form.map_or(Some(Cow::Borrowed(text)), |form| form.marks().plain(text));
    let text = if form.is_some_and(|form| form.is_missing(text)) {
        Cow::Borrowed("")
    } else {
        plain.unwrap_or(Cow::Borrowed(text))
    };
    let text = text.as_ref();
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
    fn a_step_beyond_the_latest_time_is_refused() {
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
    fn an_error_names_the_line_and_a_fix_but_not_the_value() {
        for (text, expected) in [
            ("g,b,t\n", "no column `a`"),
            ("g,b,t,a,a\n", "the column `a` twice"),
            (
                "g,b,t,a\nx,1,5,77\n",
                "line 2, column `a`: the value is outside the schema's bounds 0 to 9",
            ),
            ("g,b,t,a\nx,1,5,1\nx,1,6,\n", "line 3, column `a`: the cell is empty"),
            ("g,b,t,a\nx,1,5,fish\n", "line 2, column `a`: not a decimal number"),
            ("g,b,t,a\nx,1,noon,1\n", "line 2: the time is neither a number of seconds"),
            ("g,b,t,a\nx,1\n", "not valid CSV"),
        ] {
            let error = all(LONG, text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("77") && !error.contains("fish"));
        }
    }
}
