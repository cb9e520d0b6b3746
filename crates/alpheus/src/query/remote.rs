//! The same at a running service: statements are asked of it, results are read
//! as they come.

use super::{Answer, Args, Query, print};
use crate::commands::{Format, Globals};
use crate::failure::{Blame, Category, Failure};
use crate::network::client::Client;
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::runtime::results::cell;
use crate::service::Settings;
use alpheus_policy::explain::Explanation;
use alpheus_policy::show::Table;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::time::Duration;

/// How long the service may keep us waiting for a row.
const WAIT: u64 = 20;

#[derive(Serialize)]
struct Statement<'a> {
    sql: &'a str,
}

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

#[derive(Deserialize)]
struct Rows {
    rows: Vec<Map<String, Value>>,
    next: u64,
}

/// Asks what `--query` says; then prints the rows of `--results`.
pub(super) fn run(args: &Args, server: &str, globals: &Globals) -> Result<(), Failure> {
    let identity = args.identity.as_ref().map(|path| path.display().to_string());
    let settings = globals.settings(vec![("identity", identity)])?;
    let folder = Settings::needed(&settings.identity, "identity")?;
    let client = Client::new(&IdentityFolder::open(&folder, Role::Consumer)?, server)?;
    if let Some(query) = &args.query {
        let query = Query::of(query)?;
        let answered: Answered = client.post("/v1/statements", &Statement { sql: &query.text })?;
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
        print(&answer, globals.format.unwrap_or_default(), &mut io::stdout().lock())
            .blame(Category::Io)?;
    }
    match &args.results {
        Some(name) => results(&client, name, args.follow, globals.format.unwrap_or_default()),
        None => Ok(()),
    }
}

/// Prints rows; with `follow` goes on until nobody reads them.
fn results(client: &Client, name: &str, follow: bool, format: Format) -> Result<(), Failure> {
    let (mut after, mut out, mut header) = (0, io::stdout().lock(), false);
    loop {
        let wait = if follow { WAIT } else { 0 };
        let path = format!("/v1/queries/{name}/results?after={after}&wait={wait}");
        let Rows { rows, next } = client.get(&path, Duration::from_secs(wait))?;
        for row in &rows {
            let written = write_row(row, format, &mut header, &mut out).and_then(|()| out.flush());
            match written {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                other => other.blame(Category::Io)?,
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
