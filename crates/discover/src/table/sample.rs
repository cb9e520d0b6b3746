//! The first rows of a text, as one delimiter splits them.

use super::SAMPLE;
use crate::cells::{Delimiter, Row, Rows};
use std::collections::HashMap;

/// The first rows of a text.
pub(super) struct Sample<'a> {
    pub delimiter: Delimiter,
    pub rows: Vec<Row<'a>>,
    pub lines: Vec<u64>,
    /// The width of most rows.
    pub width: usize,
    pub score: f64,
    pub multiline: bool,
    /// Whether cells have quotes, so that other delimiters may stand within.
    pub quotes: bool,
}

impl<'a> Sample<'a> {
    pub(super) fn read(text: &'a str, delimiter: Delimiter) -> Self {
        let mut reader = Rows::new(text, delimiter, 1).over_lines(true);
        let (mut rows, mut lines, mut row) = (Vec::new(), Vec::new(), Vec::new());
        while rows.len() < SAMPLE {
            match reader.read(&mut row) {
                Ok(false) => break,
                Ok(true) => rows.push(std::mem::take(&mut row)),
                Err(_) => rows.push(Vec::new()),
            }
            lines.push(reader.line());
        }
        let multiline = rows.iter().flatten().any(|cell| cell.contains('\n'));
        let quotes = text.lines().take(SAMPLE).any(|line| line.contains('"'));
        let mut sample = Sample { delimiter, rows, lines, width: 0, score: 0.0, multiline, quotes };
        sample.measure();
        sample
    }

    /// The position of the first row that is as wide as most.
    fn start(&self) -> usize {
        self.rows.iter().position(|row| row.len() == self.width).unwrap_or(0)
    }

    /// The rows from there on, but for the first, which may be a header.
    pub(super) fn body(&self) -> &[Row<'a>] {
        let start = self.start();
        let first = if self.rows.len() > start + 1 { start + 1 } else { start };
        self.rows.get(first..).unwrap_or_default()
    }

    /// The second half of them: rows of data for certain, if there are any.
    pub(super) fn core(&self) -> &[Row<'a>] {
        let body = self.body();
        body.get(body.len() / 2..).unwrap_or_default()
    }

    /// How well the delimiter fits: the part of rows with the usual width, times the part of
    /// cells without another delimiter in them.
    fn measure(&mut self) {
        let mut widths: HashMap<usize, usize> = HashMap::new();
        for row in self.rows.iter().filter(|row| row.len() > 1) {
            *widths.entry(row.len()).or_default() += 1;
        }
        let most = widths.iter().max_by_key(|(width, count)| (**count, **width));
        let Some((width, count)) = most.map(|(width, count)| (*width, *count)) else { return };
        self.width = width;
        let body = self.body();
        let count = count.saturating_sub(1).min(body.len());
        let others: &[char] = match self.delimiter {
            Delimiter::Spaces => &[';', '\t', '|'],
            Delimiter::Comma => &[';', '\t', '|'],
            Delimiter::Semicolon => &['\t', '|'],
            Delimiter::Tab | Delimiter::Pipe => &[';'],
        };
        let cells = body.iter().flatten();
        let clean = cells.clone().filter(|cell| !cell.contains(others)).count();
        let part = |some: usize, all: usize| some as f64 / all.max(1) as f64;
        let fits = part(count, body.len());
        let weight = if self.delimiter == Delimiter::Spaces { 0.75 } else { 1.0 };
        // Of two that fit alike, the one with more cells.
        let bonus = 1.0 + (width.min(20) as f64) / 1000.0;
        self.score = fits
            * part(clean, cells.count()).powi(if self.quotes { 1 } else { 4 })
            * weight
            * bonus;
        self.width = width;
    }
}
