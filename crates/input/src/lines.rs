//! Keeps a broken line of a CSV file from swallowing the lines after it.
//!
//! In CSV, a quote that is never closed turns the rest of the file into one cell. A
//! recording has one row per line. So such a line is replaced by a marker, and the good
//! rows after it are read.

use std::io::{BufRead, BufReader, Read, Result};

/// The marker for a line with broken quotes: a single cell, unlike any row of a recording.
pub(crate) const BROKEN: &str = "\u{fffd}broken quotes\u{fffd}";

/// The lines of a file, each ended by a line feed and nothing else.
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    given: usize,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), given: 0 }
    }

    /// Takes the next line; false at the end.
    fn next(&mut self) -> Result<bool> {
        (self.given, self.line) = (0, std::mem::take(&mut self.line));
        self.line.clear();
        if self.input.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        let end = self.line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
        self.line.truncate(end.map_or(0, |end| end + 1));
        if !is_whole(&self.line) {
            self.line.clear();
            self.line.extend(BROKEN.as_bytes());
        }
        self.line.push(b'\n');
        Ok(true)
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        if self.given == self.line.len() && !self.next()? {
            return Ok(0);
        }
        let rest = self.line.get(self.given..).unwrap_or_default();
        let taken = rest.len().min(into.len());
        into[..taken].copy_from_slice(&rest[..taken]);
        self.given += taken;
        Ok(taken)
    }
}

/// Whether each quoted cell of the line ends on it, right before a comma or the
/// line's end.
fn is_whole(mut line: &[u8]) -> bool {
    if !line.contains(&b'"') {
        return true;
    }
    loop {
        if let Some(quoted) = line.strip_prefix(b"\"") {
            let Some(after) = after_quote(quoted) else { return false };
            line = after;
            if !matches!(line.first(), None | Some(b',')) {
                return false;
            }
        }
        match line.iter().position(|byte| *byte == b',') {
            Some(comma) => line = line.get(comma + 1..).unwrap_or_default(),
            None => return true,
        }
    }
}

/// What follows the quote that closes a cell; two in a row stand for one.
fn after_quote(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let quote = rest.iter().position(|byte| *byte == b'"')?;
        rest = rest.get(quote + 1..)?;
        match rest.strip_prefix(b"\"") {
            Some(after) => rest = after,
            None => return Some(rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let mut out = String::new();
        Lines::new(text.as_bytes()).read_to_string(&mut out).unwrap();
        out
    }

    #[test]
    fn good_lines_pass_as_they_are() {
        let text = "a,b\n\n1,\"x, \"\"y\"\"\"\n\"\",5\" long\n";
        assert_eq!(read(text), text);
        assert_eq!(read("a,b\r\n1,2"), "a,b\n1,2\n");
        assert_eq!(read(""), "");
    }

    #[test]
    fn a_broken_line_is_replaced_alone() {
        for broken in ["1,\"2", "\"1,2", "1,\"2\"3", "1,\"2\"\"", "\""] {
            assert_eq!(read(&format!("{broken}\n3,4\n")), format!("{BROKEN}\n3,4\n"), "{broken}");
        }
    }
}
