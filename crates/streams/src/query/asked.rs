//! Which queries a consumer has asked to be verified, as it noted itself.
//!
//! A row says whether it is verified, and the service makes the row. So the consumer does not take
//! its word: what its own statements asked for stands in its identity folder (`verified.known`), one
//! JSON object a line. The last line about a query holds.

use alpheus_node::failure::{Blame, Failure};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_policy::query::{IntegrityChoice, Statement, parse};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Name of the file.
const FILE: &str = "verified.known";

/// What was asked for.
pub(super) struct AskedVerified {
    path: PathBuf,
}

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    query: String,
    verified: bool,
}

impl AskedVerified {
    pub(super) fn of(identity: &IdentityFolder) -> Self {
        Self { path: identity.path(FILE) }
    }

    /// Before a statement is sent: notes the query that it asks to be verified, if it does.
    ///
    /// # Errors
    /// The file cannot be written. The statement must not be sent then.
    pub(super) fn before(&self, sql: &str) -> Result<(), Failure> {
        self.note(sql, true).blame_io(&self.path).map_err(|failure| {
            failure.with_help("it notes which queries must be verified: make it writable")
        })
    }

    /// After the service has begun a statement's query: one that does not ask for verified rows
    /// may have the name of an earlier one that did.
    pub(super) fn after(&self, sql: &str) {
        // Without the note, rows are refused that could be shown.
        let _ = self.note(sql, false);
    }

    fn note(&self, sql: &str, verified: bool) -> std::io::Result<()> {
        let Ok(Statement::Create(create)) = parse(sql) else { return Ok(()) };
        let asks = create.settings.integrity.is_some_and(IntegrityChoice::is_verified);
        if asks != verified {
            return Ok(());
        }
        // A file that is damaged lets nothing through today. Once it is repaired, the note must be there.
        match std::fs::read_to_string(&self.path) {
            Ok(text) if last(&text, &create.name.text) == Some(verified) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound && !verified => return Ok(()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let line = Line { query: create.name.text, verified };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    /// Whether the rows of this query must be verified. So are those of every query if the file
    /// cannot be read.
    pub(super) fn has(&self, query: &str) -> bool {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => says(&text, query),
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }
}

/// What the last line that is certainly about a query says.
fn last(text: &str, query: &str) -> Option<bool> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.filter(|line| line.query == query).map(|line| line.verified).next_back()
}

/// What the last line about a query says. One that cannot be read may be about any query.
fn says(text: &str, query: &str) -> bool {
    let about = |line: &str| match serde_json::from_str::<Line>(line) {
        Ok(line) => (line.query == query).then_some(line.verified),
        Err(_) => Some(true),
    };
    text.lines().filter_map(about).next_back().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str =
        "CREATE STREAM Sums AS SELECT SUM(x) WINDOW TUMBLING (SIZE 10 SECONDS) FROM T";

    fn verified() -> String {
        format!("{PLAIN} WITH (integrity = 'verified')")
    }

    #[test]
    fn the_last_statement_about_a_query_holds_whatever_the_service_says() {
        let folder = tempfile::tempdir().unwrap();
        let open = || AskedVerified { path: folder.path().join(FILE) };
        let asked = open();
        assert!(!asked.has("Sums"));
        for other in [PLAIN, "SHOW QUERIES", "no statement", &format!("EXPLAIN {}", verified())] {
            asked.before(other).unwrap();
            asked.after(other);
        }
        assert!(!asked.path.exists(), "nothing was asked for");
        asked.before(&verified()).unwrap();
        assert!(asked.has("Sums") && open().has("Sums") && !asked.has("Other"));
        // Asked again plainly, it holds until the service has begun that.
        asked.before(PLAIN).unwrap();
        assert!(asked.has("Sums"));
        asked.after(PLAIN);
        assert!(!asked.has("Sums"));
        asked.before(&verified()).unwrap();
        assert!(open().has("Sums"));
    }

    #[test]
    fn a_file_that_cannot_be_read_or_written_lets_nothing_through() {
        let folder = tempfile::tempdir().unwrap();
        let asked = AskedVerified { path: folder.path().join(FILE) };
        std::fs::write(&asked.path, "{}\n").unwrap();
        assert!(asked.has("Sums"));
        let blocked = AskedVerified { path: folder.path().join("none").join(FILE) };
        assert!(blocked.before(&verified()).is_err());
        let folder = AskedVerified { path: folder.path().to_owned() };
        assert!(folder.has("Sums") && folder.before(PLAIN).is_ok());
    }
}
