//! Splits text into rows of cells: delimiters, quotes, padding, comments.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What stands between cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Delimiter {
    /// `,`
    #[default]
    #[serde(rename = ",")]
    Comma,
    /// `;`
    #[serde(rename = ";")]
    Semicolon,
    /// A tab.
    #[serde(rename = "tab")]
    Tab,
    /// `|`
    #[serde(rename = "|")]
    Pipe,
    /// Any number of spaces and tabs.
    #[serde(rename = "spaces")]
    Spaces,
}

impl Delimiter {
    /// All of them, the usual ones first.
    pub const ALL: [Delimiter; 5] = [
        Delimiter::Comma,
        Delimiter::Semicolon,
        Delimiter::Tab,
        Delimiter::Pipe,
        Delimiter::Spaces,
    ];

    /// Its name, as source files write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Delimiter::Comma => ",",
            Delimiter::Semicolon => ";",
            Delimiter::Tab => "tab",
            Delimiter::Pipe => "|",
            Delimiter::Spaces => "spaces",
        }
    }

    pub(crate) fn is(self, byte: u8) -> bool {
        match self {
            Delimiter::Comma => byte == b',',
            Delimiter::Semicolon => byte == b';',
            Delimiter::Tab => byte == b'\t',
            Delimiter::Pipe => byte == b'|',
            Delimiter::Spaces => matches!(byte, b' ' | b'\t'),
        }
    }

    fn is_padding(self, byte: u8) -> bool {
        byte == b' ' || (byte == b'\t' && self != Delimiter::Tab)
    }
}

/// The cells of a row, without padding and quotes.
pub type Row<'a> = Vec<Cow<'a, str>>;

/// A row whose quotes do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenQuotes;

/// Reads rows one by one.
#[derive(Clone)]
pub struct Rows<'a> {
    rest: &'a str,
    delimiter: Delimiter,
    comment: Option<char>,
    multiline: bool,
    without: Vec<u64>,
    line: u64,
    next_line: u64,
}

impl<'a> Rows<'a> {
    /// The rows of a text whose first line has the number `line`.
    #[must_use]
    pub fn new(text: &'a str, delimiter: Delimiter, line: u64) -> Self {
        let (comment, multiline, without, next_line) = (None, false, Vec::new(), line);
        Rows { rest: text, delimiter, comment, multiline, without, line, next_line }
    }

    /// Passes over the lines with these numbers.
    #[must_use]
    pub fn without_lines(mut self, lines: &[u64]) -> Self {
        self.without = lines.to_vec();
        self
    }

    /// Passes over lines that begin with this.
    #[must_use]
    pub fn without_comments(mut self, comment: Option<char>) -> Self {
        self.comment = comment;
        self
    }

    /// Lets quoted cells span several lines.
    #[must_use]
    pub fn over_lines(mut self, multiline: bool) -> Self {
        self.multiline = multiline;
        self
    }

    /// What is left to read.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// The line on which the last row began, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next row into `row`; false at the end. Empty lines and comments are passed
    /// over.
    ///
    /// # Errors
    /// [`BrokenQuotes`] if the row's quotes do not fit; the next row can still be read.
    pub fn read(&mut self, row: &mut Row<'a>) -> Result<bool, BrokenQuotes> {
        loop {
            row.clear();
            if self.rest.is_empty() {
                return Ok(false);
            }
            let (start, line) = (self.rest, self.take_line());
            let is_comment = self.comment.is_some_and(|mark| line.starts_with(mark));
            if line.trim().is_empty() || is_comment || self.without.contains(&self.line) {
                continue;
            }
            return match split(line, self.delimiter, row) {
                Ok(()) => Ok(true),
                Err(BrokenQuotes) if self.multiline => self.longer(start, line, row),
                Err(error) => Err(error),
            };
        }
    }

    /// Tries to end a quoted cell on one of the lines below.
    fn longer(
        &mut self,
        start: &'a str,
        first: &str,
        row: &mut Row<'a>,
    ) -> Result<bool, BrokenQuotes> {
        const MAX_LINES: usize = 100;
        let (rest, line, began) = (self.rest, self.next_line, self.line);
        let mut length = first.len();
        let base = start.as_ptr() as usize;
        for _ in 0..MAX_LINES {
            if self.rest.is_empty() {
                break;
            }
            let next = self.take_line();
            length = length.max(next.as_ptr() as usize - base + next.len());
            row.clear();
            if let Some(text) = start.get(..length)
                && split(text, self.delimiter, row).is_ok()
            {
                self.line = began;
                return Ok(true);
            }
        }
        (self.rest, self.next_line, self.line) = (rest, line, began);
        row.clear();
        Err(BrokenQuotes)
    }

    /// The next line without its end.
    fn take_line(&mut self) -> &'a str {
        self.line = self.next_line;
        self.next_line += 1;
        let (line, rest) = match self.rest.find('\n') {
            Some(at) => (&self.rest[..at], &self.rest[at + 1..]),
            None => (self.rest, ""),
        };
        self.rest = rest;
        line.strip_suffix('\r').unwrap_or(line)
    }
}

/// Splits one row.
///
/// # Errors
/// [`BrokenQuotes`] if a quoted cell does not end, or continues after its end.
pub fn split<'a>(
    line: &'a str,
    delimiter: Delimiter,
    row: &mut Row<'a>,
) -> Result<(), BrokenQuotes> {
    let line = if delimiter == Delimiter::Spaces { line.trim() } else { line };
    let bytes = line.as_bytes();
    let mut at = 0;
    loop {
        while bytes.get(at).is_some_and(|byte| delimiter.is_padding(*byte)) {
            at += 1;
        }
        let end = if bytes.get(at) == Some(&b'"') {
            let (cell, end) = quoted(line, at)?;
            row.push(cell);
            let padding = bytes[end..].iter().take_while(|byte| delimiter.is_padding(**byte));
            let end = if delimiter == Delimiter::Spaces { end } else { end + padding.count() };
            if bytes.get(end).is_some_and(|byte| !delimiter.is(*byte)) {
                return Err(BrokenQuotes);
            }
            end
        } else {
            let length = bytes[at..].iter().position(|byte| delimiter.is(*byte));
            let end = length.map_or(bytes.len(), |length| at + length);
            row.push(Cow::Borrowed(trimmed(&line[at..end])));
            end
        };
        if end >= bytes.len() {
            return Ok(());
        }
        at = end + 1;
    }
}

/// Without white space around it, which most cells do not have.
fn trimmed(cell: &str) -> &str {
    let plain = |byte: &u8| byte.is_ascii_graphic();
    let bytes = cell.as_bytes();
    if bytes.first().is_some_and(plain) && bytes.last().is_some_and(plain) {
        cell
    } else {
        cell.trim()
    }
}

/// The quoted cell that begins at `at`, and where it ends. Two quotes stand for one.
fn quoted(line: &str, at: usize) -> Result<(Cow<'_, str>, usize), BrokenQuotes> {
    let bytes = line.as_bytes();
    let (start, mut end, mut twice) = (at + 1, at + 1, false);
    loop {
        let quote = bytes[end..].iter().position(|byte| *byte == b'"').ok_or(BrokenQuotes)?;
        end += quote;
        if bytes.get(end + 1) != Some(&b'"') {
            break;
        }
        twice = true;
        end += 2;
    }
    let cell = trimmed(&line[start..end]);
    let cell = if twice { Cow::Owned(cell.replace("\"\"", "\"")) } else { Cow::Borrowed(cell) };
    Ok((cell, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str, delimiter: Delimiter, multiline: bool) -> Vec<Option<Vec<String>>> {
        let mut rows =
            Rows::new(text, delimiter, 1).over_lines(multiline).without_comments(Some('#'));
        let (mut row, mut found) = (Vec::new(), Vec::new());
        loop {
            match rows.read(&mut row) {
                Ok(false) => return found,
                Ok(true) => found.push(Some(row.iter().map(|cell| cell.to_string()).collect())),
                Err(BrokenQuotes) => found.push(None),
            }
        }
    }

    fn cells(cells: &[&str]) -> Option<Vec<String>> {
        Some(cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn rows_are_split_at_each_delimiter() {
        let comma = all("a, b ,\"c, \"\"d\"\"\"\r\n\n# x\n1,,\n", Delimiter::Comma, false);
        assert_eq!(comma, [cells(&["a", "b", "c, \"d\""]), cells(&["1", "", ""])]);
        assert_eq!(all("a;b,c", Delimiter::Semicolon, false), [cells(&["a", "b,c"])]);
        assert_eq!(all("a\t\tb", Delimiter::Tab, false), [cells(&["a", "", "b"])]);
        assert_eq!(all("  a   b\tc  ", Delimiter::Spaces, false), [cells(&["a", "b", "c"])]);
    }

    #[test]
    fn a_quoted_cell_goes_over_lines_where_allowed() {
        let text = "1,\"two\nlines\",3\n4,5,6\n";
        assert_eq!(
            all(text, Delimiter::Comma, true),
            [cells(&["1", "two\nlines", "3"]), cells(&["4", "5", "6"])]
        );
        assert_eq!(
            all(text, Delimiter::Comma, false).iter().filter(|row| row.is_none()).count(),
            1
        );
        let open = all("1,\"two\n4,5\n", Delimiter::Comma, true);
        assert_eq!(open, [None, cells(&["4", "5"])]);
    }

    proptest! {
        #[test]
        fn any_text_is_split(text: String, multiline: bool) {
            for delimiter in Delimiter::ALL {
                all(&text, delimiter, multiline);
            }
        }
    }
}
