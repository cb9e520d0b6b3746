//! Statements sent to a running service, and result rows read as they arrive.

use super::begun_query::{BegunGroup, BegunQuery};
use super::open_consumer;
use super::opener::{Opener, Rows};
use super::{Answer, Args, print};
use crate::links;
use crate::statement::Query;
use alpheus_node::failure::{Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::note;
use alpheus_node::settings::Format;
use alpheus_policy::explain::{Explanation, GroupExplanation};
use alpheus_policy::show::Table;
use alpheus_stream_runtime::results::cell;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// How long a request waits at the service for a row, in seconds.
const WAIT: u64 = 20;

/// The outcome of a statement, as the server reports it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementResult {
    /// The query is running.
    Running(Box<Explanation>),
    /// The query would be allowed to run, perhaps once others have ended.
    Explanation(Box<Explanation>),
    /// The tables to show.
    Tables(Vec<Table>),
    /// A query was stopped.
    Dropped(String),
}

impl StatementResult {
    /// The query that is running now, if the statement began one.
    #[must_use]
    pub fn running(&self) -> Option<BegunQuery> {
        match self {
            Self::Running(explanation) => {
                let groups = explanation.groups.iter();
                let group = |own: &GroupExplanation| BegunGroup {
                    plan: own.plan,
                    group: own.group.clone(),
                };
                let (name, groups) = (explanation.name.clone(), groups.map(group).collect());
                Some(BegunQuery { name, groups })
            }
            Self::Explanation(_) | Self::Tables(_) | Self::Dropped(_) => None,
        }
    }
}

/// Sends the statement of `--query`; then prints the rows of `--results`.
pub(super) fn run(args: &Args, server: &str, globals: &Globals) -> Result<(), Failure> {
    let identity = open_consumer(args.identity.as_ref(), globals)?;
    let (client, mut opener) = (links::service(server, &identity)?, Opener::new(&identity)?);
    if args.verified {
        opener.require_verified();
    }
    if let Some(query) = &args.query {
        let query = Query::of(query)?;
        let answer = client.post_json("/v1/statements", &opener.statement(&query.text)?);
        let answered: StatementResult = opener.answered(&query.text, answer)?;
        opener.accepted(&query.text, answered.running().as_ref())?;
        let answer = match answered {
            StatementResult::Running(explanation) | StatementResult::Explanation(explanation) => {
                Answer::Explanation(explanation)
            }
            StatementResult::Tables(tables) => Answer::Tables(tables),
            StatementResult::Dropped(name) => {
                note!("dropped {name}");
                Answer::Tables(Vec::new())
            }
        };
        let format = globals.format.unwrap_or_default();
        if printed(print(&answer, format, &mut io::stdout().lock()))?.is_break() {
            return Ok(());
        }
    }
    match &args.results {
        Some(name) => {
            let format = globals.format.unwrap_or_default();
            results(&client, &opener, name, args.follow, format)
        }
        None => Ok(()),
    }
}

/// Prints rows; with `follow`, until nobody reads them.
fn results(
    client: &BlockingClient,
    opener: &Opener,
    name: &str,
    follow: bool,
    format: Format,
) -> Result<(), Failure> {
    let (mut after, mut out, mut header) = (0, io::stdout().lock(), Vec::new());
    loop {
        let wait = if follow { WAIT } else { 0 };
        let Rows { rows, next } = client.block_on(opener.rows(client.http(), name, after, wait))?;
        for row in &rows {
            let written = write_row(row, format, &mut header, &mut out).and_then(|()| out.flush());
            if printed(written)?.is_break() {
                return Ok(());
            }
        }
        if !follow && rows.is_empty() {
            return Ok(());
        }
        after = next;
    }
}

/// Writes a row as a line of JSON, or as cells below the names of the first row.
fn write_row(
    row: &Map<String, Value>,
    format: Format,
    header: &mut Vec<String>,
    out: &mut impl Write,
) -> io::Result<()> {
    if format == Format::Json {
        return writeln!(out, "{}", Value::Object(row.clone()));
    }
    let mut csv = csv::WriterBuilder::new();
    csv.delimiter(if format == Format::Csv { b',' } else { b'\t' });
    let mut csv = csv.from_writer(out);
    if header.is_empty() {
        *header = row.keys().cloned().collect();
        csv.write_record(&*header)?;
    }
    csv.write_record(cells_below(header, row))?;
    csv.flush()
}

/// A row's cells in the order of a header. The service chooses the order of a row's names.
pub fn cells_below<'a>(
    header: &'a [String],
    row: &'a Map<String, Value>,
) -> impl Iterator<Item = String> + 'a {
    header.iter().map(|name| row.get(name).map_or_else(String::new, |value| cell(value.clone())))
}
