//! Why a file is no table of readings, and what to do.

use thiserror::Error;

/// Why a file cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DiscoverError {
    /// Nothing in it.
    #[error("the file is empty; give a file with readings")]
    Empty,
    /// Not text.
    #[error("the file is {kind}, not text; {fix}")]
    Binary {
        /// What it is.
        kind: &'static str,
        /// What to do.
        fix: &'static str,
    },
    /// Text of another kind.
    #[error("the file is {kind}, not a table; {fix}")]
    Other {
        /// What it is.
        kind: &'static str,
        /// What to do.
        fix: &'static str,
    },
    /// One column, or prose.
    #[error(
        "the lines do not split into the same number of cells at any of `,` `;` tab `|` or spaces; give a table with one row per line and the same columns in each"
    )]
    NoTable,
    /// Lines of several kinds.
    #[error(
        "the file holds records of several kinds: lines begin with different codes ({codes}) and have different numbers of cells ({widths}), so it is not a table. Convert it with a program that knows the format to one row per reading, with its time and owner"
    )]
    Records {
        /// The first cells.
        codes: String,
        /// The numbers of cells.
        widths: String,
    },
    /// A header and nothing else.
    #[error("the file has a header and no row with a reading; give a file with data")]
    NoRows,
    /// Nothing to count.
    #[error(
        "the file has times but no column to measure or to count{found}; give a file with readings"
    )]
    NothingToMeasure {
        /// What a column that may be one has, if any.
        found: String,
    },
    /// No time.
    #[error(
        "no column holds calendar times{elapsed}; add a column with the date of each row, such as 2024-05-01 12:30:00, or name the column with `--time` if there is one"
    )]
    NoTime {
        /// The column that may count from a start, if any.
        elapsed: String,
    },
    /// Numbers of the periods of a day.
    #[error(
        "`{name}` seems to number the {periods} periods of each day, of {minutes} minutes each, and no format reads these; add a column with the time at which each begins, such as 2024-05-01 12:30:00, use `--owner {word}` if it names the owner of a row, or `--leave-out {word}` if it is neither"
    )]
    Periods {
        /// The column.
        name: String,
        /// Its name on a command line.
        word: String,
        /// How many there are on a day.
        periods: i128,
        /// How long each is.
        minutes: i128,
    },
    /// A column that is not in the file.
    #[error("the file has no column {name:?}{meant}; its columns are: {columns}")]
    NoColumn {
        /// The name that was given.
        name: String,
        /// What may be meant, as a part of the sentence.
        meant: String,
        /// The names that there are.
        columns: String,
    },
    /// An owner's column that measures.
    #[error(
        "the column {name:?} holds numbers with decimals, which measure rather than name, so it cannot be the owner; name another column with `--owner`, or use `--owner none` if all rows belong to one owner"
    )]
    OwnerMeasures {
        /// The column.
        name: String,
    },
    /// Times of two units in one column.
    #[error(
        "the column {name:?} holds numbers in two units, such as seconds and milliseconds since 1970; use one unit"
    )]
    MixedEpochs {
        /// The column.
        name: String,
    },
    /// No row's time has the format.
    #[error(
        "the format `{format}` reads no value of {columns}{looks}; correct `--time-format`, or leave it out"
    )]
    FormatReadsNothing {
        /// The format.
        format: String,
        /// The columns of the time.
        columns: String,
        /// What they look like.
        looks: String,
    },
    /// A decimal mark with which numbers no longer read.
    #[error(
        "with `{mark}` as the decimal separator, some numbers of {columns} cannot be read, though they can without `--decimal`; leave it out, or correct the file"
    )]
    DecimalLoses {
        /// The mark.
        mark: String,
        /// The columns.
        columns: String,
    },
    /// A time column that cannot be read.
    #[error(
        "the column {name:?} holds no times that can be read; give their format with `--time-format`, as in strftime, such as `%y` for years of two digits, or `days` for the numbers of days, visits or years"
    )]
    UnreadableTime {
        /// The column.
        name: String,
    },
}

/// What bytes are that are no text.
///
/// # Errors
/// The error for empty files, for formats with a known beginning, and for other bytes.
pub(crate) fn check_bytes(bytes: &[u8]) -> Result<(), DiscoverError> {
    let csv = "save its sheet as CSV and give that";
    const KNOWN: [(&[u8], &str, &str); 6] = [
        (
            b"PK\x03\x04",
            "a spreadsheet or another ZIP archive",
            "save the sheet as CSV, or unpack the archive, and give that",
        ),
        (b"PAR1", "Parquet", "write it as CSV and give that"),
        (b"\x1f\x8b", "compressed with gzip", "let its name end in .gz, or unpack it"),
        (b"%PDF", "a PDF", "give the data as CSV"),
        (b"SQLite format 3", "a SQLite database", "write the table as CSV and give that"),
        (b"\x89HDF", "HDF5", "write the table as CSV and give that"),
    ];
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(DiscoverError::Empty);
    }
    for (start, kind, fix) in KNOWN {
        if bytes.starts_with(start) {
            return Err(DiscoverError::Binary { kind, fix });
        }
    }
    if bytes.starts_with(b"\xd0\xcf\x11\xe0") {
        return Err(DiscoverError::Binary { kind: "an old spreadsheet", fix: csv });
    }
    Ok(())
}

/// What a text is that is no table.
///
/// # Errors
/// The error for JSON, for markup, and for text with control characters.
pub(crate) fn check_text(text: &str) -> Result<(), DiscoverError> {
    let start = text.trim_start();
    let other = |kind, fix| Err(DiscoverError::Other { kind, fix });
    if start.starts_with("{\"") || start.starts_with("[{") || start.starts_with("{\n") {
        return other("JSON", "write one row per reading as CSV");
    }
    if start.starts_with("<?xml") || start.starts_with("<!DOCTYPE") || start.starts_with("<html") {
        return other("XML or HTML", "write the table in it as CSV");
    }
    let control = |c: &char| {
        c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}' | '\u{1a}' | '\u{feff}')
    };
    if start.chars().take(4096).filter(control).count() > 8 {
        return Err(DiscoverError::Binary { kind: "binary data", fix: "write it as CSV" });
    }
    Ok(())
}
