//! The same at a running service: statements are asked of it, results are read
//! as they come.

use super::sealed::{Opener, Rows, Statement};
use super::{Answer, Args, Query, print};
use crate::commands::{Format, Globals};
use crate::failure::{Failure, printed};
use crate::network::client::Client;
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::runtime::results::cell;
use crate::service::{Settings, path_flag};
use alpheus_policy::explain::Explanation;
use alpheus_policy::show::Table;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// How long the service may keep us waiting for a row.
const WAIT: u64 = 20;

/// What comes of a statement, as the server says it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answered {
    /// A query runs from now on.
    Running(Box<Explanation>),
    /// It would run.
    Explanation(Box<Explanation>),
    /// What was to be shown.
    Tables(Vec<Table>),
    /// A query that ran does no more.
    Dropped(String),
}

/// Asks what `--query` says; then prints the rows of `--results`.
pub(super) fn run(args: &Args, server: &str, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(vec![("identity", path_flag(args.identity.as_ref()))])?;
    let folder = Settings::needed(&settings.identity, "identity")?;
    let identity = IdentityFolder::open(&folder, Role::Consumer)?;
    let (client, opener) = (Client::new(&identity, server)?, Opener::new(&identity)?);
    if let Some(query) = &args.query {
        let query = Query::of(query)?;
        let statement = Statement { sql: &query.text, certificate: opener.certificate() };
        let answered: Answered = client.post("/v1/statements", &statement)?;
        let answer = match answered {
            Answered::Running(explanation) | Answered::Explanation(explanation) => {
                Answer::Explanation(explanation)
            }
            Answered::Tables(tables) => Answer::Tables(tables),
            Answered::Dropped(name) => {
                eprintln!("dropped {name}");
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

/// Prints rows; with `follow` goes on until nobody reads them.
fn results(
    client: &Client,
    opener: &Opener,
    name: &str,
    follow: bool,
    format: Format,
) -> Result<(), Failure> {
    let (mut after, mut out, mut header) = (0, io::stdout().lock(), false);
    loop {
        let wait = if follow { WAIT } else { 0 };
        let Rows { rows, next } = opener.rows(client, name, after, wait)?;
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

/// A JSON object a line, or cells.
fn write_row(
    row: &Map<String, Value>,
    format: Format,
    header: &mut bool,
    out: &mut impl Write,
) -> io::Result<()> {
    if format == Format::Json {
        return writeln!(out, "{}", Value::Object(row.clone()));
    }
    let mut csv = csv::WriterBuilder::new();
    csv.delimiter(if format == Format::Csv { b',' } else { b'\t' });
    let mut csv = csv.from_writer(out);
    if !std::mem::replace(header, true) {
        csv.write_record(row.keys())?;
    }
    csv.write_record(row.values().map(|value| cell(value.clone())))?;
    csv.flush()
}
