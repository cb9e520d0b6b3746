//! `alpheus table query`: statistics of a table, each checked.

use super::append::{Appended, send_waiting};
use super::ask::{AnswerRow, Asker};
use super::remote::{Reach, Remote};
use super::sql::{self, TableQuery};
use super::state::TableState;
use crate::commands::{Format, Globals};
use crate::failure::{Blame, Category, Failure, printed};
use crate::query::print_tables;
use crate::replay::inputs::read_text;
use crate::service::Settings;
use alpheus_policy::show::Table;
use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus table query 'SELECT MEAN(cars), VAR(cars), COV(cars, trucks), REGRESSION(trucks ~ cars)' --identity pki/ada --state ada --server https://localhost:7601
  alpheus table query \"SELECT SUM(cars) WHERE day BETWEEN '2013-05-01' AND '2013-05-31' GROUP BY DAY(timestamp)\" --format csv
  alpheus table query 'EXPLAIN SELECT VAR(cars)' --identity pki/ada --state ada --server https://localhost:7601
  alpheus table query --file stats.sql --identity pki/ada --state ada --server https://localhost:7601

It exits with 1 if an answer of the server is wrong; nothing of that answer is shown.";

/// Arguments of `alpheus table query`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The query
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    sql: Option<String>,
    /// Or a file of queries, each ended by a semicolon
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    reach: Reach,
}

/// Runs the command.
///
/// # Errors
/// If a query is not understood or refused, the server does not answer, or its answer
/// is rejected.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = args.reach.settings(globals)?;
    let mut state = TableState::open(&Settings::needed(&settings.state, "state")?)?;
    let queries = read(args.sql.as_deref(), args.file.as_deref(), &state)?;
    let mut remote = Remote::new(&settings, state.owner.manifest().data_set)?;
    if queries.iter().any(|query| !query.explain) {
        send_waiting(&mut state, &remote, &mut Appended::default())?;
    }
    let mut answers = Vec::new();
    for query in &queries {
        answers.push(Asker::new(&state, &mut remote).answer(query)?);
    }
    let format = globals.format.unwrap_or_default();
    printed(print(&answers, format, &mut io::stdout().lock())).map(drop)
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

/// Every query's rows: tables, an array of all rows, or CSV with a line of names each
/// time that they change.
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
