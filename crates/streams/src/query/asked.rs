//! Which queries a consumer has asked to be verified, as it noted itself.
//!
//! A row says whether it is verified, and the service makes the row. So the consumer does not take
//! its word: what its own statements asked for stands in its identity folder (`verified.known`), one
//! JSON object a line. The last line about a query holds. It has the whole statement, so that the plan
//! of a row can be compared with it.

use alpheus_node::failure::{Blame, Failure};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_policy::query::{IntegrityChoice, Statement, is_plain_name, parse};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Name of the file.
const FILE: &str = "verified.known";

/// What was asked for.
pub(super) struct AskedVerified {
    path: PathBuf,
    /// How long the file was when a statement about a query was sent that asks for plain rows.
    sent: Mutex<HashMap<String, usize>>,
}

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    query: String,
    verified: bool,
    /// The statement, of a query that must be verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
}

impl AskedVerified {
    pub(super) fn of(identity: &IdentityFolder) -> Self {
        Self { path: identity.path(FILE), sent: Mutex::default() }
    }

    /// Before a statement is sent: notes the query that it asks to be verified, if it does.
    ///
    /// # Errors
    /// The file cannot be written. The statement must not be sent then.
    pub(super) fn before(&self, sql: &str) -> Result<(), Failure> {
        let Some((query, verified)) = asked_by(sql) else { return Ok(()) };
        if !verified {
            let length = std::fs::read_to_string(&self.path).map_or(0, |text| text.len());
            self.sent.lock().unwrap_or_else(PoisonError::into_inner).insert(query, length);
            return Ok(());
        }
        self.note(query, Some(sql), 0).blame_io(&self.path).map_err(|failure| {
            failure.with_help("it notes which queries must be verified: make it writable")
        })
    }

    /// After the service has begun a statement's query: one that does not ask for verified rows
    /// may have the name of an earlier one that did. If another process has meanwhile asked for a
    /// verified query of that name, its note stays, since either may have begun last. Returns the
    /// name of the query that the statement begins, if it begins one.
    pub(super) fn after(&self, sql: &str) -> Option<String> {
        let (query, verified) = asked_by(sql)?;
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner).remove(&query);
        // Without the note, rows are refused that could be shown.
        let _ = self.note(query.clone(), verified.then_some(sql), sent.unwrap_or(0));
        Some(query)
    }

    /// Adds a line, unless the last one says the same, or a plain one is too late: a verified query
    /// was noted behind what the file had when it was `sent`. Only a verified one has its statement.
    fn note(&self, query: String, sql: Option<&str>, sent: usize) -> std::io::Result<()> {
        let verified = sql.is_some();
        let options =
            || OpenOptions::new().append(true).read(true).create(verified).open(&self.path);
        let mut file = match options() {
            Err(error) if error.kind() == ErrorKind::NotFound && !verified => return Ok(()),
            file => file?,
        };
        // Another process may be here as well.
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let is_late = !verified && text.get(sent..).is_none_or(|later| says(later, &query));
        // A file that is damaged lets nothing through today. Once it is repaired, the note must be there.
        let last = last(&text, &query);
        let same = match &last {
            Some(line) => line.verified == verified && line.sql.as_deref() == sql,
            None => !verified,
        };
        if is_late || same {
            return Ok(());
        }
        let sql = sql.map(str::to_owned);
        let mut line = serde_json::to_string(&Line { query, verified, sql })?;
        line.push('\n');
        file.write_all(line.as_bytes())?;
        file.sync_all()
    }

    /// The statement that asked for a query whose rows must be verified, if the folder has it.
    pub(super) fn statement(&self, query: &str) -> Option<String> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        last(&text, query)?.sql
    }

    /// Whether the rows of this query must be verified. So are those of every query if the file
    /// cannot be read. A name that may look like another's must be verified once any query was.
    pub(super) fn has(&self, query: &str) -> bool {
        match std::fs::read_to_string(&self.path) {
            Ok(text) if !is_plain_name(query) => !text.is_empty(),
            Ok(text) => says(&text, query),
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }
}

/// The query that a statement begins, and whether it asks for verified rows.
fn asked_by(sql: &str) -> Option<(String, bool)> {
    let Ok(Statement::Create(create)) = parse(sql) else { return None };
    let verified = create.settings.integrity.is_some_and(IntegrityChoice::is_verified);
    Some((create.name.text, verified))
}

/// The last line that is certainly about a query. Names that differ only in case look alike.
fn last(text: &str, query: &str) -> Option<Line> {
    let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.rfind(|line| line.query.eq_ignore_ascii_case(query))
}

/// What the last line about a query says. One that cannot be read may be about any query.
fn says(text: &str, query: &str) -> bool {
    let about = |line: &str| match serde_json::from_str::<Line>(line) {
        Ok(line) => line.query.eq_ignore_ascii_case(query).then_some(line.verified),
        Err(_) => Some(true),
    };
    text.lines().filter_map(about).next_back().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const PLAIN: &str =
        "CREATE STREAM Sums AS SELECT SUM(x) WINDOW TUMBLING (SIZE 10 SECONDS) FROM T";

    fn at(folder: &Path) -> AskedVerified {
        AskedVerified { path: folder.join(FILE), sent: Mutex::default() }
    }

    fn verified() -> String {
        format!("{PLAIN} WITH (integrity = 'verified')")
    }

    #[test]
    fn the_last_statement_about_a_query_holds_whatever_the_service_says() {
        let folder = tempfile::tempdir().unwrap();
        let open = || at(folder.path());
        let asked = open();
        assert!(!asked.has("Sums"));
        for other in [PLAIN, "SHOW QUERIES", "no statement", &format!("EXPLAIN {}", verified())] {
            asked.before(other).unwrap();
            asked.after(other);
        }
        assert!(!asked.path.exists(), "nothing was asked for");
        asked.before(&verified()).unwrap();
        assert!(asked.has("Sums") && open().has("Sums") && !asked.has("Other"));
        // The statement itself is there to be compared with the plan.
        assert_eq!(open().statement("sums"), Some(verified()));
        assert_eq!(open().statement("Other"), None);
        // Asked again plainly, it holds until the service has begun that.
        asked.before(PLAIN).unwrap();
        assert!(asked.has("Sums"));
        asked.after(PLAIN);
        assert!(!asked.has("Sums") && asked.statement("Sums").is_none());
        asked.before(&verified()).unwrap();
        assert!(open().has("Sums"));
        let other = verified().replace("SUM(x)", "COUNT(x)");
        asked.before(&other).unwrap();
        assert_eq!(open().statement("Sums"), Some(other));
    }

    /// A plain statement of one process is answered late: another has asked for a verified query of
    /// the name since it was sent, and that one may run.
    #[test]
    fn a_late_answer_to_a_plain_statement_does_not_undo_a_verified_one() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, other) = (at(folder.path()), at(folder.path()));
        for _ in 0..2 {
            plain.before(PLAIN).unwrap();
            other.before(&verified()).unwrap();
            other.after(&verified());
            plain.after(PLAIN);
            assert!(other.has("Sums") && plain.has("Sums"));
            // The next plain statement was sent with that note known.
            plain.before(PLAIN).unwrap();
            plain.after(PLAIN);
            assert!(!other.has("Sums"));
        }
        // The verified statement was noted first, and begun last.
        other.before(&verified()).unwrap();
        plain.before(PLAIN).unwrap();
        plain.after(PLAIN);
        assert!(!other.has("Sums"));
        other.after(&verified());
        assert!(other.has("Sums"));
    }

    #[test]
    fn names_that_look_alike_must_be_verified_too() {
        let folder = tempfile::tempdir().unwrap();
        let asked = at(folder.path());
        // Before any was: a name of another script is only a name.
        assert!(!asked.has("Sum\u{455}"));
        asked.before(&verified()).unwrap();
        for name in ["sums", "SUMS", "Sum\u{455}", "\u{ff33}ums", "Sums\u{200b}", "Sums ", ""] {
            assert!(asked.has(name), "{name:?}");
        }
        assert!(!asked.has("Sum") && !asked.has("Sums2"));
        // No verified query has such a name.
        let alike = verified().replace("Sums", "Sum\u{455}");
        assert!(parse(&alike).is_err() && parse(&PLAIN.replace("Sums", "Sum\u{455}")).is_ok());
    }

    #[test]
    fn a_file_that_cannot_be_read_or_written_lets_nothing_through() {
        let folder = tempfile::tempdir().unwrap();
        let asked = at(folder.path());
        std::fs::write(&asked.path, "{}\n").unwrap();
        assert!(asked.has("Sums"));
        let blocked = at(&folder.path().join("none"));
        assert!(blocked.before(&verified()).is_err());
        let folder = AskedVerified { path: folder.path().to_owned(), sent: Mutex::default() };
        assert!(folder.has("Sums") && folder.before(PLAIN).is_ok());
    }
}
