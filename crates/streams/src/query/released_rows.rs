//! `alpheus query --released`: all rows that were released to the consumer, checked, as one JSON object a
//! line. Programs read it that hold no key, such as the results database.

use super::Args;
use super::open_consumer;
use super::opener::{Opener, Rows, is_checked};
use super::remote_query::StatementResult;
use crate::links;
use crate::wire::QueryView;
use alpheus_node::failure::{Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::error::RequestError;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::{self, StdoutLock, Write};
use std::ops::ControlFlow;
use std::time::Duration;

/// How long a request waits for a row, in seconds. Meanwhile no other query is looked at.
const WAIT: u64 = 1;

/// A line.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    /// The schemas of encrypted streams that can be asked.
    Schemas(&'a [String]),
    /// A query of the consumer, before its first row and when it changes.
    Query(&'a QueryView),
    /// A row.
    Row { query: &'a str, checked: bool, row: &'a Map<String, Value> },
    /// All rows so far were printed.
    Read(bool),
}

/// What was printed so far.
struct Feed {
    client: BlockingClient,
    opener: Opener,
    /// The consumer's name.
    name: String,
    schemas: Vec<String>,
    /// By name: the query, and where its rows continue.
    queries: HashMap<String, (QueryView, u64)>,
}

/// Prints rows; with `follow`, until nobody reads them.
pub(super) fn run(args: &Args, server: &str, globals: &Globals) -> Result<(), Failure> {
    let identity = open_consumer(args.identity.as_ref(), globals)?;
    let (client, mut opener) = (links::service(server, &identity)?, Opener::new(&identity)?);
    if args.verified {
        opener.require_verified();
    }
    let name = identity.name().name.clone();
    let mut feed = Feed { client, opener, name, schemas: Vec::new(), queries: HashMap::new() };
    let mut out = io::stdout().lock();
    loop {
        if feed.round(args.follow, &mut out)?.is_break() || !args.follow {
            return Ok(());
        }
    }
}

impl Feed {
    /// Prints what is new.
    fn round(
        &mut self,
        follow: bool,
        out: &mut StdoutLock<'_>,
    ) -> Result<ControlFlow<()>, Failure> {
        if self.schemas(out)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let known: Vec<QueryView> = self.client.get_json("/v1/queries", Duration::ZERO)?;
        let own: Vec<QueryView> =
            known.into_iter().filter(|query| query.consumer == self.name).collect();
        if follow && own.is_empty() {
            let pause = async {
                tokio::time::sleep(Duration::from_secs(WAIT)).await;
                Ok(())
            };
            self.client.block_on(pause)?;
        }
        let last = own.len().saturating_sub(1);
        for (at, query) in own.into_iter().enumerate() {
            let wait = if follow && at == last { WAIT } else { 0 };
            if self.query(query, wait, out)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        print(&Line::Read(true), out)
    }

    fn schemas(&mut self, out: &mut StdoutLock<'_>) -> Result<ControlFlow<()>, Failure> {
        let sql = "SHOW SCHEMAS";
        let answer = self.client.post_json("/v1/statements", &self.opener.statement(sql)?);
        let said: StatementResult = self.opener.answered(sql, answer)?;
        let StatementResult::Tables(tables) = said else { return Ok(ControlFlow::Continue(())) };
        let names = tables.into_iter().flat_map(|table| table.rows);
        let names: Vec<String> = names.filter_map(|row| row.into_iter().next()).collect();
        if names == self.schemas {
            return Ok(ControlFlow::Continue(()));
        }
        self.schemas = names;
        print(&Line::Schemas(&self.schemas), out)
    }

    /// Prints a query if it is new or has changed, and its new rows.
    fn query(
        &mut self,
        query: QueryView,
        wait: u64,
        out: &mut StdoutLock<'_>,
    ) -> Result<ControlFlow<()>, Failure> {
        self.opener.declare(&query);
        let before = self.queries.remove(&query.name);
        let is_known = before.as_ref().is_some_and(|(known, _)| *known == query);
        if !is_known && print(&Line::Query(&query), out)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        // Another statement of this name has rows of its own, from the first one on.
        let mut after = before.filter(|(known, _)| known.sql == query.sql).map_or(0, |own| own.1);
        let mut wait = wait;
        loop {
            let read = self.opener.rows(self.client.http(), &query.name, after, wait);
            let page = match self.client.block_on(read) {
                Ok(page) => page,
                // It was dropped just now.
                Err(RequestError::Refused(problem)) if problem.status == 404 => break,
                Err(error) => return Err(error.into()),
            };
            if page.rows.is_empty() {
                break;
            }
            if rows(&query.name, &page, out)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            (after, wait) = (page.next, 0);
        }
        self.queries.insert(query.name.clone(), (query, after));
        Ok(ControlFlow::Continue(()))
    }
}

fn rows(query: &str, page: &Rows, out: &mut StdoutLock<'_>) -> Result<ControlFlow<()>, Failure> {
    for row in &page.rows {
        let line = Line::Row { query, checked: is_checked(row), row };
        if print(&line, out)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn print(line: &Line<'_>, out: &mut StdoutLock<'_>) -> Result<ControlFlow<()>, Failure> {
    let mut write = || -> io::Result<()> {
        serde_json::to_writer(&mut *out, line)?;
        writeln!(out)?;
        out.flush()
    };
    printed(write())
}
