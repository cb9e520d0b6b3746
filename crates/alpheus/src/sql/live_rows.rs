//! Rows as an aligned table that grows: the header again whenever a column becomes wider.

use alpheus_node::local_time::local_time;
use alpheus_node::settings::Format;
use alpheus_stream_runtime::results::cell;
use alpheus_streams::query::cells_below;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Columns in Unix milliseconds, which people read as local times.
const TIMES: [&str; 2] = ["window_start", "window_end"];

/// Prints rows, page by page.
pub(super) struct LiveRows {
    format: Format,
    columns: Vec<String>,
    widths: Vec<usize>,
}

impl LiveRows {
    pub(super) const fn new(format: Format) -> Self {
        Self { format, columns: Vec::new(), widths: Vec::new() }
    }

    /// Prints some rows.
    pub(super) fn print(
        &mut self,
        rows: &[Map<String, Value>],
        out: &mut impl Write,
    ) -> io::Result<()> {
        match self.format {
            Format::Json => {
                for row in rows {
                    serde_json::to_writer(&mut *out, row)?;
                    writeln!(out)?;
                }
            }
            Format::Csv => self.csv(rows, out)?,
            Format::Table => self.aligned(rows, out)?,
        }
        out.flush()
    }

    fn csv(&mut self, rows: &[Map<String, Value>], out: &mut impl Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        for row in rows {
            if self.columns.is_empty() {
                self.columns = row.keys().cloned().collect();
                csv.write_record(&self.columns)?;
            }
            csv.write_record(cells_below(&self.columns, row))?;
        }
        csv.flush()
    }

    fn aligned(&mut self, rows: &[Map<String, Value>], out: &mut impl Write) -> io::Result<()> {
        let mut alike = rows.chunk_by(|one, next| one.keys().eq(next.keys()));
        alike.try_for_each(|rows| self.aligned_alike(rows, out))
    }

    /// Rows whose names are the same, in the same order.
    fn aligned_alike(
        &mut self,
        rows: &[Map<String, Value>],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let cells: Vec<Vec<String>> = rows.iter().map(shown).collect();
        let Some(first) = rows.first() else { return Ok(()) };
        let columns: Vec<String> = first.keys().cloned().collect();
        let mut widths: Vec<usize> = columns.iter().map(|name| name.chars().count()).collect();
        if columns == self.columns {
            widths.clone_from(&self.widths);
        }
        for row in &cells {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        if columns != self.columns || widths != self.widths {
            (self.columns, self.widths) = (columns, widths);
            writeln!(out, "{}", self.line(&self.columns))?;
            let rules: Vec<String> = self.widths.iter().map(|width| "-".repeat(*width)).collect();
            writeln!(out, "{}", self.line(&rules))?;
        }
        cells.iter().try_for_each(|row| writeln!(out, "{}", self.line(row)))
    }

    /// Cells to the right, as numbers are.
    fn line(&self, cells: &[String]) -> String {
        let cell = |(cell, width): (&String, &usize)| format!("{cell:>width$}");
        cells.iter().zip(&self.widths).map(cell).collect::<Vec<_>>().join("  ")
    }
}

fn shown(row: &Map<String, Value>) -> Vec<String> {
    let text = |(name, value): (&String, &Value)| match value.as_u64() {
        Some(time) if TIMES.contains(&name.as_str()) => local_time(time),
        _ => cell(value.clone()),
    };
    row.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(count: u64, status: &str) -> Map<String, Value> {
        let row = serde_json::json!({ "count": count, "status": status });
        row.as_object().unwrap().clone()
    }

    #[test]
    fn columns_stay_aligned_as_rows_arrive() {
        let (mut rows, mut out) = (LiveRows::new(Format::Table), Vec::new());
        rows.print(&[row(5, "ok"), row(12, "ok")], &mut out).unwrap();
        rows.print(&[row(7, "ok")], &mut out).unwrap();
        let said = String::from_utf8(out.clone()).unwrap();
        assert_eq!(
            said,
            "count  status\n-----  ------\n    5      ok\n   12      ok\n    7      ok\n"
        );
        rows.print(&[row(1_000_000, "ok")], &mut out).unwrap();
        let said = String::from_utf8(out).unwrap();
        assert!(said.ends_with("  count  status\n-------  ------\n1000000      ok\n"), "{said}");
    }

    /// The service chooses the order of a row's names. A number stands below its own.
    #[test]
    fn cells_stand_below_their_names_in_whatever_order_they_come() {
        let other = serde_json::json!({ "status": "ok", "count": 7, "windows": 999 });
        let some = [row(5, "ok"), other.as_object().unwrap().clone()];
        let print = |format| {
            let mut out = Vec::new();
            LiveRows::new(format).print(&some, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(print(Format::Csv), "count,status\n5,ok\n7,ok\n");
        let table = print(Format::Table);
        assert!(
            table.ends_with(
                "status  count  windows\n------  -----  -------\n    ok      7      999\n"
            ),
            "{table}"
        );
    }

    #[test]
    fn programs_get_csv_with_one_header() {
        let (mut rows, mut out) = (LiveRows::new(Format::Csv), Vec::new());
        rows.print(&[row(5, "ok")], &mut out).unwrap();
        rows.print(&[row(6, "ok")], &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "count,status\n5,ok\n6,ok\n");
    }
}
