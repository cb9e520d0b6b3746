//! `alpheus import`: a schema and policies from a data contract of another standard.

use alpheus_input::tables::print_json;
use alpheus_node::failure::{Blame, Failure, printed};
use alpheus_node::files::{Readers, make_private_folder, read_text, write_new};
use alpheus_node::globals::Globals;
use alpheus_node::settings::Format;
use alpheus_standards::{Import, Report};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus import orders.odcs.yaml --output orders
  alpheus import datacontract.yaml --table line_items --output line-items
  alpheus import models/properties.yml --output staff
  alpheus import user.avsc --output user

It reads the Open Data Contract Standard 3.x, the Data Contract Specification, dbt properties, Avro
and JSON schemas, and subjects of a Confluent schema registry. It writes schema.yaml, policies.yaml
and import.json, and, for each further table, schema-TABLE.yaml and policies-TABLE.yaml. import.json
lists each part of the contract as carried or not carried, and why.";

/// Arguments of `alpheus import`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The contract, in YAML or JSON
    #[arg(value_name = "FILE")]
    pub contract: PathBuf,
    /// The folder to write to; it must not exist, or be empty
    #[arg(long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// The table that becomes schema.yaml; by default the first
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Has no effect: an earlier build asked it of contracts that define no attributes.
    #[arg(long, hide = true)]
    pub yes: bool,
}

/// Runs the command.
///
/// # Errors
/// If the contract cannot be read, or a file cannot be written.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let format = globals.format.unwrap_or_default();
    if format == Format::Csv {
        // Before anything is written.
        let what = "an import is not a table; use --format json or table";
        let _ = printed(Err(io::Error::new(io::ErrorKind::Unsupported, what)))?;
    }
    let text = read_text(&args.contract)?;
    let import = alpheus_standards::import(&text, args.table.as_deref());
    let import = import.blame_input(&args.contract)?;
    write(&import, &args.output)?;
    let mut out = io::stdout().lock();
    let said = match format {
        Format::Json => print_json(&import.report, &mut out),
        _ => out.write_all(summary(&import.report, &args.output).as_bytes()),
    };
    let _ = printed(said.and_then(|()| out.flush()))?;
    Ok(())
}

fn write(import: &Import, folder: &Path) -> Result<(), Failure> {
    let is_empty = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if !is_empty {
        make_private_folder(folder)?;
    }
    let new = |name: String, bytes: &[u8]| write_new(&folder.join(name), bytes, Readers::Everybody);
    for table in &import.tables {
        let suffix = &table.suffix;
        new(format!("schema{suffix}.yaml"), table.schema.as_bytes())?;
        new(format!("policies{suffix}.yaml"), table.policies.as_bytes())?;
        if let Some(query) = &table.quality {
            new(format!("quality{suffix}.sql"), query.as_bytes())?;
        }
    }
    let mut report = Vec::new();
    print_json(&import.report, &mut report).blame_io(folder)?;
    new("import.json".to_owned(), &report)
}

/// What was read and written, and what is open, in a few lines.
fn summary(report: &Report, folder: &Path) -> String {
    let mut text = String::new();
    let (carried, left) = (report.carried.len(), report.not_carried.len());
    let folder = folder.display();
    // Writing to a text does not fail.
    let _ = writeln!(text, "{}: {carried} parts carried, {left} not", report.standard);
    for table in &report.tables {
        let (schema, attributes) = (&table.schema, table.attributes);
        let _ = writeln!(text, "  {}: {attributes} attributes, in {folder}/{schema}", table.table);
    }
    for question in &report.unsure {
        let _ = writeln!(text, "  open: {question}");
    }
    let _ = writeln!(text, "{folder}/import.json says what became of each part, and why.");
    text
}
