//! Tables as text, JSON or CSV.

use alpheus_node::settings::Format;
use alpheus_policy::show::Table;
use serde::Serialize;
use std::io::{self, Write};

/// Prints a value as JSON over several lines.
///
/// # Errors
/// The writer's error.
pub fn print_json(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Prints tables in any format.
///
/// # Errors
/// The writer's error.
pub fn print_tables(tables: &[Table], format: Format, out: &mut impl Write) -> io::Result<()> {
    match format {
        Format::Json => print_json(&tables, out),
        Format::Table => tables.iter().try_for_each(|table| writeln!(out, "{table}")),
        Format::Csv => {
            for (index, table) in tables.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                let mut csv = csv::Writer::from_writer(&mut *out);
                csv.write_record(&table.columns)?;
                table.rows.iter().try_for_each(|row| csv.write_record(row))?;
                csv.flush()?;
            }
            Ok(())
        }
    }
}
