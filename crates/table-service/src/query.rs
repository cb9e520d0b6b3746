//! `alpheus table query`: verified statistics of a table.

use super::answer::{AnswerRow, QueryRunner};
use super::remote::{Reach, Remote};
use super::save::settle;
use super::sql::{self, TableQuery};
use super::state::TableState;
use alpheus_input::tables::print_tables;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::read_text;
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::settings::Format;
use alpheus_node::settings::Settings;
use alpheus_policy::show::Table;
use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus table query \\
      'SELECT MEAN(cars), VAR(cars), COV(cars, trucks), REGRESSION(trucks ~ cars)' \\
      --identity pki/ada --state ada --server https://localhost:7601
  alpheus table query \\
      \"SELECT SUM(cars) WHERE day BETWEEN '2013-05-01' AND '2013-05-31' GROUP BY DAY(timestamp)\" \\
      --format csv
  alpheus table query 'EXPLAIN SELECT VAR(cars)' --identity pki/ada --state ada \\
      --server https://localhost:7601
  alpheus table query --file stats.sql --identity pki/ada --state ada \\
      --server https://localhost:7601

It exits with 1 if an answer of the server is wrong, and prints nothing of that answer.";

/// Arguments of `alpheus table query`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The query
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    sql: Option<String>,
    /// A file of queries instead, each ended by a semicolon
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    reach: Reach,
}

/// Runs the command.
///
/// # Errors
/// If a query is invalid or refused, the server does not answer, or its answer is rejected.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = args.reach.settings(globals)?;
    let mut state = TableState::open(&Settings::needed(&settings.state, "state")?)?;
    let queries = read(args.sql.as_deref(), args.file.as_deref(), &state)?;
    let remote = Remote::new(&settings, state.owner.manifest().data_set)?;
    if queries.iter().any(|query| !query.explain) {
        settle(&mut state, &remote)?;
    }
    let (mut answers, mut runner) = (Vec::new(), QueryRunner::new(&state, &remote));
    for query in &queries {
        answers.push(runner.answer(query)?);
    }
    let format = globals.format.unwrap_or_default();
    let open = printed(print(&answers, format, &mut io::stdout().lock()))?.is_continue();
    if open && runner.spent().bytes > 0 {
        note!("{}", runner.spent());
    }
    Ok(())
}

fn read(
    text: Option<&str>,
    file: Option<&Path>,
    state: &TableState,
) -> Result<Vec<TableQuery>, Failure> {
    match (text, file) {
        (_, Some(path)) => sql::parse(&read_text(path)?, &state.schema).blame_input(path),
        (text, None) => sql::parse(text.unwrap_or_default(), &state.schema).blame(Category::Input),
    }
}

/// Prints all rows: as tables, as one array, or as CSV with a header whenever the columns
/// change.
fn print(answers: &[Vec<AnswerRow>], format: Format, out: &mut impl Write) -> io::Result<()> {
    match format {
        Format::Json => {
            let rows: Vec<&AnswerRow> = answers.iter().flatten().collect();
            serde_json::to_writer_pretty(&mut *out, &rows).map_err(io::Error::other)?;
            writeln!(out)
        }
        Format::Table | Format::Csv => {
            let table = |rows: &Vec<AnswerRow>| Table {
                title: String::new(),
                columns: rows.first().map(|row| row.keys().cloned().collect()).unwrap_or_default(),
                rows: rows.iter().map(|row| row.values().map(text).collect()).collect(),
            };
            let tables: Vec<Table> = answers.iter().map(table).collect();
            print_tables(&tables, format, out)
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
