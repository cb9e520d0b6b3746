//! `alpheus sql`: a prompt for statements against a running service.
//!
//! - [`input`]: statements and commands from a terminal or standard input,
//! - [`complete`]: what can be completed,
//! - [`live_rows`]: rows as an aligned table that grows.

mod complete;
mod input;
mod live_rows;

use crate::errors;
use alpheus_input::tables::{print_json, print_tables};
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::service::shutdown::Signals;
use alpheus_node::settings::{Format, Settings, path_flag};
use alpheus_policy::query::Word;
use alpheus_policy::show::Table;
use alpheus_streams::links;
use alpheus_streams::query::StatementResult;
use alpheus_streams::query::opener::{Opener, Rows};
use complete::Names;
use input::{Input, Request};
use live_rows::LiveRows;
use std::io::{self, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus sql --server https://localhost:7400 --identity pki/analyst
  alpheus sql --server https://localhost:7400 --identity pki/analyst --format csv \\
      < statements.sql
  echo 'SHOW SCHEMAS;' | alpheus sql --server https://localhost:7400 --identity pki/analyst

A statement ends with `;` and may have several lines. These commands take one line:
  \\d              list schemas, streams and running queries
  \\d NAME         describe a schema or a running query
  \\r NAME         show the rows that a query of yours has returned so far
  \\f NAME [N]     show rows as they arrive: N of them, or until Ctrl-C
  \\?              show this list
  \\q              quit

Tab completes words and names. Input that is not from a terminal ends at the first failure.";

const COMMANDS: &str = "\
Statements end with `;`: SELECT, CREATE STREAM, EXPLAIN, SHOW, DESCRIBE, DROP STREAM.
  \\d              list schemas, streams and running queries
  \\d NAME         describe a schema or a running query
  \\r NAME         show the rows that a query of yours has returned so far
  \\f NAME [N]     show rows as they arrive: N of them, or until Ctrl-C
  \\?              show this list
  \\q              quit";

/// How long a request waits at the service for a row, in seconds.
const WAIT: u64 = 20;

/// Arguments of `alpheus sql`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The service's URL
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The consumer's identity folder
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// Refuse rows of any query that the service does not report as verified or bounded
    #[arg(long)]
    verified: bool,
    /// Keep no history of statements. By default, it is in a file that only you can read
    #[arg(long)]
    no_history: bool,
}

/// A connection to the service, as a consumer.
struct Session {
    client: BlockingClient,
    opener: Opener,
    format: Format,
}

/// Runs the command.
///
/// # Errors
/// The service cannot be reached; or, if the input is not from a terminal, the first failure.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(vec![
        ("identity", path_flag(args.identity.as_ref())),
        ("server", args.server.clone()),
    ])?;
    let server = Settings::needed(&settings.server, "server")?;
    let identity =
        open_identity(&Settings::needed(&settings.identity, "identity")?, Role::Consumer)?;
    let (client, mut opener) = (links::service(&server, &identity)?, Opener::new(&identity)?);
    if args.verified {
        opener.require_verified();
    }
    let session = Session { client, opener, format: globals.format.unwrap_or_default() };
    let names = session.names()?;
    let mut input = Input::open(names, !args.no_history)?;
    if input.is_terminal() {
        println!("{} at {server}. \\? lists commands.", identity.name().name);
    }
    while let Some(request) = input.next()? {
        match session.act(&request) {
            Ok(()) => {}
            Err(failure) if failure.is_broken_pipe() => return Ok(()),
            // Nothing more can be typed.
            Err(failure) if matches!(request, Request::Unfinished) => return Err(failure),
            Err(failure) if input.is_terminal() => {
                errors::report(&failure);
            }
            Err(failure) => return Err(failure),
        }
        if input.is_terminal() && matches!(request, Request::Statement(_)) {
            // Names are a convenience: without them the prompt still works.
            input.complete_from(session.names().unwrap_or_default());
        }
    }
    Ok(())
}

impl Session {
    fn act(&self, request: &Request) -> Result<(), Failure> {
        match request {
            Request::Help => said(writeln!(io::stdout(), "{COMMANDS}")),
            Request::List => {
                let what = ["SHOW SCHEMAS", "SHOW STREAMS", "SHOW QUERIES"];
                what.iter().try_for_each(|sql| self.statement(sql))
            }
            Request::Describe(name) => self.statement(&format!("DESCRIBE {name}")),
            Request::Statement(sql) => self.statement(sql),
            Request::Rows { name, live: None } => self.rows_so_far(name),
            Request::Rows { name, live: Some(most) } => self.follow(name, *most),
            Request::Unfinished => Err(Failure::new(
                Category::Usage,
                "the last statement has no `;`, so it was not sent",
            )
            .with_help("end statements with `;`; \\q or Ctrl-D after that quits")),
            Request::Unknown(line) => Err(Failure::new(
                Category::Usage,
                format!("there is no command `{}`", line.replace(char::is_control, " ")),
            )
            .with_help(match nearest_command(line) {
                Some(known) => format!(
                    "did you mean `{known}`? \\? lists the commands; statements end with `;`"
                ),
                None => "\\? lists the commands; statements end with `;`".to_owned(),
            })),
        }
    }

    fn send(&self, sql: &str) -> Result<StatementResult, Failure> {
        let answer = self.client.post_json("/v1/statements", &self.opener.statement(sql)?);
        let said: StatementResult = self.opener.answered(sql, answer)?;
        self.opener.accepted(sql, said.running().as_ref())?;
        Ok(said)
    }

    fn statement(&self, sql: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let written = match (self.send(sql)?, self.format) {
            (StatementResult::Tables(tables), format) => print_tables(&tables, format, &mut out),
            (StatementResult::Explanation(plan), Format::Json) => print_json(&plan, &mut out),
            (StatementResult::Explanation(plan), _) => write!(out, "{plan}"),
            (StatementResult::Running(plan), Format::Json) => print_json(&plan, &mut out),
            (StatementResult::Running(plan), _) => {
                let name = Word::new(&plan.name);
                writeln!(out, "{plan}\n{name} is running: \\f {name} shows its rows")
            }
            (StatementResult::Dropped(name), _) => writeln!(out, "dropped {name}"),
        };
        said(written)
    }

    fn rows_so_far(&self, name: &str) -> Result<(), Failure> {
        let (mut after, mut all) = (0, LiveRows::new(self.format));
        loop {
            let page =
                self.client.block_on(self.opener.rows(self.client.http(), name, after, 0))?;
            if page.rows.is_empty() {
                return Ok(());
            }
            said(all.print(&page.rows, &mut io::stdout().lock()))?;
            after = page.next;
        }
    }

    fn follow(&self, name: &str, most: Option<usize>) -> Result<(), Failure> {
        let (mut after, mut shown, mut all) = (0, 0, LiveRows::new(self.format));
        while most.is_none_or(|most| shown < most) {
            let Some(mut page) = self.next_page(name, after)? else { return Ok(()) };
            page.rows.truncate(most.map_or(usize::MAX, |most| most - shown));
            said(all.print(&page.rows, &mut io::stdout().lock()))?;
            (after, shown) = (page.next, shown + page.rows.len());
        }
        Ok(())
    }

    /// The next rows; none after Ctrl-C.
    fn next_page(&self, name: &str, after: u64) -> Result<Option<Rows>, Failure> {
        let rows = self.opener.rows(self.client.http(), name, after, WAIT);
        let page = self.client.block_on(async {
            // Without signals, Ctrl-C ends the process.
            let Ok(mut signals) = Signals::listen() else { return rows.await.map(Some) };
            tokio::select! {
                page = rows => page.map(Some),
                () = signals.next() => Ok(None),
            }
        });
        Ok(page?)
    }

    /// What there is to complete.
    fn names(&self) -> Result<Names, Failure> {
        let mut names = Names::default();
        for sql in ["SHOW SCHEMAS", "SHOW QUERIES"] {
            if let StatementResult::Tables(tables) = self.send(sql)? {
                tables.iter().for_each(|table: &Table| names.add(table));
            }
        }
        Ok(names)
    }
}

/// The command that a mistyped one may be: the same letter in another case, or without its name.
fn nearest_command(line: &str) -> Option<&'static str> {
    let first = line.trim_start_matches('\\').chars().next()?.to_ascii_lowercase();
    let known = ["\\d NAME", "\\r NAME", "\\f NAME [N]", "\\q", "\\?"];
    known.into_iter().find(|command| command.chars().nth(1) == Some(first))
}

fn said(written: io::Result<()>) -> Result<(), Failure> {
    match printed(written)?.is_break() {
        // The reader has read enough.
        true => Err(io::Error::from(io::ErrorKind::BrokenPipe)).blame(Category::Io),
        false => Ok(()),
    }
    .map_err(|failure: Failure| failure.with_id(ErrorId::IoFailed))
}
