//! `alpheus verify`: checks what the controllers of a query's windows have signed, against the rows
//! that its service has published, and against what the consumer has asked for.

use alpheus_encrypted_stream::receipt::WindowReceipt;
use alpheus_node::clock;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::note;
use alpheus_policy::ids::PlanId;
use alpheus_stream_runtime::receipts::ReadReceipt;
use alpheus_streams::deployment;
use alpheus_streams::links;
use alpheus_streams::query::open_consumer;
use alpheus_streams::query::opener::{Rows, noted};
use alpheus_streams::query::paths::path_of;
use alpheus_streams::query::receipts::{all_receipts, announcement, has_result, stated};
use alpheus_streams::query::verification::{Evidence, Trust, Verifier};
use alpheus_streams::wire::QueryView;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus verify --server https://localhost:7400 --identity pki/analyst --query Stats
  alpheus verify --server https://localhost:7400 --identity pki/analyst --query Stats \\
      --save stats.receipts.json
  alpheus verify --identity pki/analyst stats.receipts.json

Rows of a query with `integrity = 'verified'` are signed by the controllers of their windows. A row
that holds is what these controllers have signed; any of them could have changed it. With 'bounded'
they have also proven that each owner is in bounds, and the proofs are checked. The identity folder
says whom to trust: it has the authority's and the service's keys. If it also has a note of your
statement (`verified.known`), each row must belong to that statement. Otherwise the meaning of the
rows is printed for you to compare. The exit code is not 0 if a row does not hold, if a window has a
receipt but no row, or if no row has a result. Windows with neither are named.";

/// Arguments of `alpheus verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file that --save has written
    #[arg(value_name = "FILE", required_unless_present = "server", conflicts_with = "server")]
    pub file: Option<PathBuf>,
    /// The running service at this URL
    #[arg(long, value_name = "URL", requires = "query")]
    pub server: Option<String>,
    /// The consumer's identity folder
    #[arg(long, value_name = "FOLDER")]
    pub identity: Option<PathBuf>,
    /// The consumer's own query
    #[arg(long, value_name = "NAME", requires = "server")]
    pub query: Option<String>,
    /// Also write plans, receipts and rows to this file, to be verified elsewhere
    #[arg(long, value_name = "FILE", requires = "server")]
    pub save: Option<PathBuf>,
}

/// Rows differ from what the controllers have signed, or there are none.
#[derive(Debug, thiserror::Error)]
pub enum UnverifiedRowsError {
    /// Some differ.
    #[error("{refused} of {all} rows do not hold")]
    Refused {
        /// How many do.
        refused: usize,
        /// How many were checked.
        all: usize,
    },
    /// Windows are missing.
    #[error("the service shows no row of {0} windows")]
    Withheld(u64),
    /// Nothing was checked.
    #[error("no row of {query} has a result, so nothing was checked")]
    NoResult {
        /// The query.
        query: String,
    },
}

/// Runs the command.
///
/// # Errors
/// [`Category::Check`] if a row does not hold, [`Category::Input`] if a file cannot be read.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let identity = open_consumer(args.identity.as_ref(), globals)?;
    let evidence = match (&args.file, &args.server, &args.query) {
        (Some(file), ..) => read(file)?,
        (None, Some(server), Some(query)) => {
            let client = links::service(server, &identity)?;
            let asked = clock::now().0 / 1000;
            client.block_on(gather(&client, query, asked))?
        }
        _ => return Err("give a file, or --server and --query").blame(Category::Usage),
    };
    if let Some(path) = &args.save {
        save(path, &evidence)?;
    }
    if !evidence.unreadable.is_empty() {
        let many = evidence.unreadable.len();
        note!("this program cannot read the receipts of {many} windows: use a newer one");
    }
    report(&evidence, &identity)
}

fn read(file: &Path) -> Result<Evidence, Failure> {
    let text = std::fs::read_to_string(file).blame_io(file)?;
    Evidence::from_json(&text).blame_input(file)
}

/// Receipts show who took part, and rows are the consumer's: others cannot read the file.
fn save(path: &Path, evidence: &Evidence) -> Result<(), Failure> {
    let text = evidence.to_json().blame(Category::Io)?;
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    let mut file = file.blame_io(path)?;
    // One that was there before may have been for everybody.
    file.set_permissions(Permissions::from_mode(0o600)).blame_io(path)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).blame_io(path)
}

/// Everything that the service has of a query.
async fn gather(client: &BlockingClient, query: &str, read: u64) -> Result<Evidence, RequestError> {
    let http = client.http();
    let schema = http.get_json("/v1/schema", Duration::ZERO).await?;
    let known: Vec<QueryView> = http.get_json("/v1/queries", Duration::ZERO).await?;
    let (mut rows, next) = rows_after(http, query, 0).await?;
    let (receipts, mut plans) = all_receipts(http, query).await?;
    let (later, _) = rows_after(http, query, next).await?;
    rows.extend(with_receipts(later, &receipts));
    let (receipts, unreadable) = readable(receipts);
    if receipts.iter().all(|receipt| receipt.listing().is_none()) {
        plans_of(&rows, http, query, &mut plans).await?;
    }
    Ok(Evidence {
        format: Evidence::FORMAT,
        query: query.to_owned(),
        schema: Some(schema),
        read: Some(read),
        running: known.iter().any(|known| known.name == query),
        plans: plans.into_values().collect(),
        receipts,
        unreadable,
        rows,
    })
}

/// The rows of a query after a place, and where the last one is.
async fn rows_after(
    client: &HttpClient,
    query: &str,
    mut after: u64,
) -> Result<(Vec<Map<String, Value>>, u64), RequestError> {
    let mut rows = Vec::new();
    loop {
        let path = path_of(query, &format!("results?after={after}&wait=0"));
        let page: Rows = client.get_json(&path, Duration::ZERO).await?;
        let done = page.rows.is_empty() && page.next <= after;
        rows.extend(page.rows);
        after = page.next;
        if done {
            return Ok((rows, after));
        }
    }
}

/// Rows of windows that have ended since rows were read first, without those of which no receipt was
/// read. A service writes both at once: without these rows, a receipt that was read in between would
/// look as if its row was withheld.
fn with_receipts(
    rows: Vec<Map<String, Value>>,
    receipts: &[ReadReceipt],
) -> impl Iterator<Item = Map<String, Value>> {
    let read = |(plan, window, _): &ReadReceipt| (*plan, window.start.0 / 1000);
    let read: HashSet<(PlanId, u64)> = receipts.iter().map(read).collect();
    rows.into_iter()
        .filter(move |row| !has_result(row) || stated(row).is_some_and(|of| read.contains(&of)))
}

/// The receipts, and the windows of those that cannot be read: of a later version, or damaged.
fn readable(all: Vec<ReadReceipt>) -> (Vec<WindowReceipt>, Vec<(PlanId, u64)>) {
    let (mut receipts, mut unreadable) = (Vec::new(), Vec::new());
    for (plan, window, receipt) in all {
        match receipt {
            Ok(receipt) => receipts.push(receipt),
            Err(_) => unreadable.push((plan, window.start.0 / 1000)),
        }
    }
    (receipts, unreadable)
}

/// Adds plans of rows without receipts. By epochs those are kept nowhere.
async fn plans_of(
    rows: &[Map<String, Value>],
    client: &HttpClient,
    query: &str,
    plans: &mut HashMap<PlanId, String>,
) -> Result<(), RequestError> {
    for (plan, _) in rows.iter().filter_map(stated) {
        if !plans.contains_key(&plan)
            && let Some(announced) = announcement(client, query, plan).await?
        {
            plans.insert(plan, announced);
        }
    }
    Ok(())
}

/// Says of each row whether it holds, and which are missing.
fn report(evidence: &Evidence, identity: &IdentityFolder) -> Result<(), Failure> {
    let (mut refused, mut held, mut closed) = (0, 0, ClosedWindows::default());
    let deployment = deployment::of(identity)?;
    let noted = noted(identity, &evidence.query).blame(Category::Check)?;
    let trust = Trust { deployment: &deployment, noted, revoked: identity.revoked() };
    let mut verifier = Verifier::new(evidence, trust);
    for trouble in verifier.unusable() {
        note!("{trouble}");
    }
    let mut out = std::io::stdout().lock();
    // Who gives a file away may have named it as another query.
    let _ = printed(writeln!(out, "rows of {}", evidence.query.escape_debug()))?;
    for row in &evidence.rows {
        let text = |name: &str| row.get(name).map_or_else(String::new, ToString::to_string);
        let window = format!("{} – {}", text("window_start"), text("window_end"));
        let said = match verifier.verify(row) {
            Ok(Some(holds)) => {
                held += 1;
                let meaning = verifier.new_meaning(row).map(|words| format!("{words}\n"));
                format!("{}{window}: {holds}", meaning.unwrap_or_default())
            }
            Ok(None) => format!("{window}: no result: {}", closed.note(row)),
            Err(why) => {
                refused += 1;
                format!("{window}: does not hold: {why}")
            }
        };
        if printed(writeln!(out, "{said}"))?.is_break() {
            break;
        }
    }
    let _ = printed(write!(out, "{closed}"))?;
    let (mut missing, withheld) = (0, verifier.withheld());
    for gap in &withheld {
        missing += gap.withheld();
        if printed(writeln!(out, "{gap}"))?.is_break() {
            break;
        }
    }
    outcome(refused, missing, (held, &evidence.query))
}

/// Windows without a result, by what the service says of them. No controller signs a reason: each sees its
/// own owners alone.
#[derive(Default)]
struct ClosedWindows(BTreeMap<String, u64>);

impl ClosedWindows {
    /// Counts a row, and returns why it has no result.
    fn note(&mut self, row: &Map<String, Value>) -> String {
        let status = row.get("status").and_then(Value::as_str).unwrap_or_default();
        let why = status.escape_debug().to_string();
        *self.0.entry(why.clone()).or_default() += 1;
        why
    }
}

impl fmt::Display for ClosedWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = match self.0.values().sum() {
            0_u64 => return Ok(()),
            1 => "1 window has".to_owned(),
            many => format!("{many} windows have"),
        };
        writeln!(f, "{all} no result. No controller signs why, so that is the service's word:")?;
        self.0.iter().try_for_each(|(why, many)| writeln!(f, "  {many}: {why}"))
    }
}

/// Whether all rows were there, and held.
fn outcome(refused: usize, missing: u64, (held, query): (usize, &str)) -> Result<(), Failure> {
    let failure = |error| {
        Err(Failure::new(Category::Check, error).with_id(ErrorId::CheckFailed).with_help(
            "the service has published something other than what the controllers signed, or nothing",
        ))
    };
    match (refused, missing, held) {
        (0, 0, 0) => failure(UnverifiedRowsError::NoResult { query: query.to_owned() }),
        (0, 0, _) => Ok(()),
        (0, missing, _) => failure(UnverifiedRowsError::Withheld(missing)),
        (refused, _, held) => {
            failure(UnverifiedRowsError::Refused { refused, all: refused + held })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_without_a_result_are_counted_by_the_services_reasons() {
        let mut closed = ClosedWindows::default();
        assert_eq!(closed.to_string(), "");
        let row = |status: &str| Map::from_iter([("status".to_owned(), status.into())]);
        assert_eq!(closed.note(&row("too few owners")), "too few owners");
        let said = closed.to_string();
        assert!(said.starts_with("1 window has no result. "), "{said}");
        // Nothing that the service writes moves on a terminal.
        assert_eq!(closed.note(&row("too few\ncontrollers")), "too few\\ncontrollers");
        closed.note(&row("too few owners"));
        let said = closed.to_string();
        assert!(said.starts_with("3 windows have no result. No controller signs why"), "{said}");
        assert!(said.ends_with(":\n  2: too few owners\n  1: too few\\ncontrollers\n"), "{said}");
    }

    #[test]
    fn withheld_windows_are_named_though_no_row_has_a_result() {
        let said = |refused, missing, held| {
            outcome(refused, missing, (held, "Readings")).map_err(|failure| failure.to_string())
        };
        let withheld = said(0, 2, 0).unwrap_err();
        assert!(withheld.contains("the service shows no row of 2 windows"), "{withheld}");
        let nothing = said(0, 0, 0).unwrap_err();
        assert!(nothing.contains("nothing was checked"), "{nothing}");
        assert!(said(1, 2, 3).unwrap_err().contains("1 of 4 rows do not hold"));
        assert_eq!(said(0, 0, 3), Ok(()));
    }
}
