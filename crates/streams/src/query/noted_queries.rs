//! Which queries a consumer has asked to be verified or sealed, as it noted itself.
//!
//! A row says whether it is verified or sealed, and the service makes the row. So the consumer does not
//! take its word: its own statements are in its identity folder (`verified.known`), one
//! JSON object a line. The last line about a query holds. It has the whole statement, so that the plan
//! of a row can be compared with it, and once the service has answered, the plans that it said it
//! began: it has no others later.

use super::receipts::RefusedRowError;
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Plan;
use alpheus_policy::query::{Create, IntegrityChoice, Statement, is_plain_name, parse};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Name of the file.
const FILE: &str = "verified.known";

/// What was asked for.
pub(super) struct VerifiedQueries {
    path: PathBuf,
    /// What the file had when the last statement about a query was sent.
    sent: Mutex<HashMap<String, FileMark>>,
}

/// What the file had when a statement was sent.
#[derive(Default)]
struct FileMark {
    length: usize,
    /// The line that was added, and the one about the query before it.
    added: Option<(String, Option<Line>)>,
}

/// A line.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    query: String,
    verified: bool,
    /// The statement, of a query that must be verified or sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
    /// The plans, or with epochs the terms, that the service began for this statement, also when it was
    /// asked before. None while its answer is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plans: Option<Vec<PlanId>>,
}

/// What a consumer has noted of a query of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotedQuery {
    /// The statement.
    pub sql: String,
    /// The plans that the service said it began, or the terms of lists. None if it has not answered.
    pub plans: Option<Vec<PlanId>>,
}

impl NotedQuery {
    /// Checks that a plan, or with epochs its terms, is one that the service named when it began the query.
    ///
    /// # Errors
    /// [`RefusedRowError::OtherBegun`].
    pub fn check_begun(&self, plan: &Plan) -> Result<(), RefusedRowError> {
        let is_one = self.plans.as_ref().is_none_or(|begun| begun.contains(&plan.family()));
        if is_one { Ok(()) } else { Err(RefusedRowError::OtherBegun) }
    }
}

impl Line {
    /// What a statement asks for, if it begins a query. Only a statement whose rows must be verified or
    /// sealed is kept.
    fn of(sql: &str) -> Option<Line> {
        let create = begun_by(sql)?;
        let verified = create.settings.integrity.is_some_and(IntegrityChoice::is_verified);
        let kept = verified || create.release_to.is_some();
        let sql = kept.then(|| sql.to_owned());
        Some(Line { query: create.name.text, verified, sql, plans: None })
    }

    /// What this line of a file says, of a query that must be verified or sealed.
    fn noted(self, text: &str) -> Option<NotedQuery> {
        let sql = self.sql?;
        let plans = self.plans.or_else(|| begun_before(text, &self.query, Some(&sql)));
        Some(NotedQuery { sql, plans })
    }

    fn text(&self) -> std::io::Result<String> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        Ok(line)
    }
}

impl VerifiedQueries {
    pub(super) fn of(identity: &IdentityFolder) -> Self {
        Self { path: identity.path(FILE), sent: Mutex::default() }
    }

    /// Before a statement is sent: notes the query that it asks to be verified or sealed, if it does.
    ///
    /// # Errors
    /// The file cannot be written. The statement must not be sent then.
    pub(super) fn before(&self, sql: &str) -> Result<(), Failure> {
        let Some(line) = Line::of(sql) else { return Ok(()) };
        let length = std::fs::read_to_string(&self.path).map_or(0, |text| text.len());
        let (query, mut sent) = (line.query.clone(), FileMark { length, added: None });
        if line.sql.is_some() {
            sent.added = self.note(line, 0).blame_io(&self.path).map_err(|failure| {
                failure.with_help(
                    "it notes which queries must be verified or sealed: make it writable",
                )
            })?;
        }
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).insert(query, sent);
        Ok(())
    }

    /// After the service has begun a statement's query: one that does not ask for verified rows
    /// may have the name of an earlier one that did. If another process has meanwhile asked for a
    /// verified query of that name, its note stays, since either may have begun last. Returns the
    /// name of the query that the statement begins, if it begins one. Notes which `plans` the service
    /// says it has begun.
    ///
    /// # Errors
    /// The file cannot be written, and so does not say whose rows may be read.
    pub(super) fn after(
        &self,
        sql: &str,
        plans: Option<Vec<PlanId>>,
    ) -> Result<Option<String>, Failure> {
        let Some(mut line) = Line::of(sql) else { return Ok(None) };
        let must_name = line.sql.is_some();
        line.plans = plans.filter(|_| must_name);
        let (query, sent) = (line.query.clone(), self.taken(&line.query));
        match self.note(line, sent.length) {
            Err(error) if must_name => {
                let help =
                    "it notes the plans whose rows may be read: make it writable, and ask again";
                Err(error).blame_io(&self.path).map_err(|failure| failure.with_help(help))
            }
            // Without the note of a plain one, rows are refused that could be shown.
            _ => Ok(Some(query)),
        }
    }

    /// Whether the answer to a statement must name plans: those whose rows may be read.
    pub(super) fn must_name(sql: &str) -> bool {
        Line::of(sql).is_some_and(|line| line.sql.is_some())
    }

    /// After the service has refused a statement: what held before holds again.
    pub(super) fn refused(&self, sql: &str) {
        let Some(line) = Line::of(sql) else { return };
        if let Some((added, before)) = self.taken(&line.query).added {
            // With the note, rows are refused that could be shown.
            let _ = self.take_back(&added, before, &line.query);
        }
    }

    fn taken(&self, query: &str) -> FileMark {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.remove(query).unwrap_or_default()
    }

    /// Adds a line, unless the last one says the same, or it is too late: a verified query was noted
    /// behind what the file had when one was `sent` that is not verified. Returns what was added, and
    /// the last line about the query before it.
    fn note(&self, mut line: Line, sent: usize) -> std::io::Result<Option<(String, Option<Line>)>> {
        let creates = line.sql.is_some();
        let options =
            || OpenOptions::new().append(true).read(true).create(creates).open(&self.path);
        let mut file = match options() {
            Err(error) if error.kind() == ErrorKind::NotFound && !creates => return Ok(None),
            file => file?,
        };
        // Another process may be here as well.
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let is_late =
            !line.verified && text.get(sent..).is_none_or(|later| says(later, &line.query));
        // A file that is damaged lets nothing through today. Once it is repaired, the note must be there.
        let last = last(&text, &line.query);
        // Of a statement that is asked again, rows of all plans are read that were named for it. An answer
        // that does not come names none.
        let known = begun_before(&text, &line.query, line.sql.as_deref());
        if line.plans.is_some() || known.is_some() {
            let plans = line.plans.get_or_insert_default();
            plans.extend(known.unwrap_or_default());
            plans.sort_unstable();
            plans.dedup();
        }
        let same = match &last {
            Some(last) => *last == Line { query: last.query.clone(), ..line.clone() },
            None => line.sql.is_none(),
        };
        if is_late || same {
            return Ok(None);
        }
        let added = line.text()?;
        file.write_all(added.as_bytes())?;
        file.sync_all()?;
        Ok(Some((added, last)))
    }

    /// Takes back a line that was added. If others have come since, the one before it is added again,
    /// unless they are about the same query.
    fn take_back(&self, added: &str, before: Option<Line>, query: &str) -> std::io::Result<()> {
        let mut file = OpenOptions::new().append(true).read(true).open(&self.path)?;
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        if let Some(rest) = text.strip_suffix(added) {
            file.set_len(rest.len() as u64)?;
        } else if last(&text, query) == serde_json::from_str(added).ok() {
            let none = || Line { query: query.to_owned(), verified: false, sql: None, plans: None };
            file.write_all(before.unwrap_or_else(none).text()?.as_bytes())?;
        }
        file.sync_all()
    }

    /// The statement that asked for a query whose rows must be verified or sealed, if the folder has
    /// it.
    pub(super) fn statement(&self, query: &str) -> Option<String> {
        self.noted(query).ok()?.map(|noted| noted.sql)
    }

    /// The same with the plans that the service began for it.
    ///
    /// # Errors
    /// [`RefusedRowError::Statement`] if the file cannot be read.
    pub(super) fn noted(&self, query: &str) -> Result<Option<NotedQuery>, RefusedRowError> {
        let text = match std::fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|_| RefusedRowError::Statement)?,
        };
        match last(&text, query) {
            None if says(&text, query) => Err(RefusedRowError::Statement),
            line => Ok(line.and_then(|line| line.noted(&text))),
        }
    }

    /// The same as it was parsed, if the rows of the query must be sealed.
    pub(super) fn sealed(&self, query: &str) -> Option<Create> {
        begun_by(&self.statement(query)?).filter(|create| create.release_to.is_some())
    }

    /// Whether the rows of this query must be verified. So are those of every query if the file
    /// cannot be read. A name that may look like another's must be verified once any query was.
    pub(super) fn has(&self, query: &str) -> bool {
        match std::fs::read_to_string(&self.path) {
            Ok(text) if !is_plain_name(query) => {
                let mut last = HashMap::new();
                for line in text.lines() {
                    let Ok(line) = serde_json::from_str::<Line>(line) else { return true };
                    last.insert(line.query, line.verified);
                }
                last.into_values().any(|verified| verified)
            }
            Ok(text) => says(&text, query),
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }
}

/// Whether a statement begins a query whose rows are verified.
pub(super) fn asks_verified(sql: &str) -> bool {
    Line::of(sql).is_some_and(|line| line.verified)
}

/// The query that a statement begins.
fn begun_by(sql: &str) -> Option<Create> {
    match parse(sql) {
        Ok(Statement::Create(create)) => Some(create),
        _ => None,
    }
}

/// The last line that is certainly about a query. Names that differ only in case look alike.
fn last(text: &str, query: &str) -> Option<Line> {
    let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.rfind(|line| line.query.eq_ignore_ascii_case(query))
}

/// The plans that were ever begun for this statement about a query. None if no answer to it has come.
fn begun_before(text: &str, query: &str, sql: Option<&str>) -> Option<Vec<PlanId>> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let same =
        lines.filter(|line| line.query.eq_ignore_ascii_case(query) && line.sql.as_deref() == sql);
    same.filter_map(|line| line.plans).reduce(|all, plans| [all, plans].concat())
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

    fn at(folder: &Path) -> VerifiedQueries {
        VerifiedQueries { path: folder.join(FILE), sent: Mutex::default() }
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
            asked.after(other, None).unwrap();
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
        asked.after(PLAIN, None).unwrap();
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
            other.after(&verified(), None).unwrap();
            plain.after(PLAIN, None).unwrap();
            assert!(other.has("Sums") && plain.has("Sums"));
            // The next plain statement was sent with that note known.
            plain.before(PLAIN).unwrap();
            plain.after(PLAIN, None).unwrap();
            assert!(!other.has("Sums"));
        }
        // The verified statement was noted first, and begun last.
        other.before(&verified()).unwrap();
        plain.before(PLAIN).unwrap();
        plain.after(PLAIN, None).unwrap();
        assert!(!other.has("Sums"));
        other.after(&verified(), None).unwrap();
        assert!(other.has("Sums"));
    }

    /// A query that the service refuses does not run. So what held before holds again.
    #[test]
    fn a_statement_that_is_refused_leaves_no_note() {
        let folder = tempfile::tempdir().unwrap();
        let (asked, other) = (at(folder.path()), at(folder.path()));
        asked.before(&verified()).unwrap();
        asked.refused(&verified());
        assert!(
            !asked.has("Sums") && !asked.has("Sum\u{455}") && asked.statement("Sums").is_none()
        );
        // An earlier statement holds again, also if another process has added lines since.
        asked.before(&verified()).unwrap();
        asked.after(&verified(), None).unwrap();
        let changed = verified().replace("SUM(x)", "COUNT(x)");
        asked.before(&changed).unwrap();
        other.before(&verified().replace("Sums", "Others")).unwrap();
        asked.refused(&changed);
        assert!(asked.has("Sums") && asked.statement("Sums") == Some(verified()));
        assert!(asked.has("Others"));
        // The same again is refused since it runs: it still does.
        asked.before(&verified()).unwrap();
        asked.refused(&verified());
        assert!(asked.has("Sums") && asked.statement("Sums") == Some(verified()));
        // A plain one of that name is refused.
        asked.before(PLAIN).unwrap();
        asked.refused(PLAIN);
        assert!(asked.has("Sums"));
    }

    /// Plans that a service names later are not those that it began.
    #[test]
    fn the_plans_that_an_answer_names_are_the_querys() {
        let folder = tempfile::tempdir().unwrap();
        let asked = at(folder.path());
        let (one, two) = (PlanId([1; 32]), PlanId([2; 32]));
        let begun = || asked.noted("Sums").unwrap().unwrap().plans;
        asked.before(&verified()).unwrap();
        assert_eq!(begun(), None, "no answer came");
        asked.after(&verified(), Some(vec![one])).unwrap();
        assert_eq!(begun(), Some(vec![one]));
        // Asked again, it has the plans that it had, whatever the service says or does not say to that.
        asked.before(&verified()).unwrap();
        assert_eq!(begun(), Some(vec![one]));
        asked.refused(&verified());
        // Dropped and asked again, its rows go on with those of another plan.
        asked.before(&verified()).unwrap();
        asked.after(&verified(), Some(vec![two])).unwrap();
        assert_eq!(begun(), Some(vec![one, two]));
        assert_eq!(asked.noted("sums"), asked.noted("Sums"));
        // Rows of another statement do not follow those.
        let other = verified().replace("SUM(x)", "COUNT(x)");
        asked.before(&other).unwrap();
        assert_eq!(begun(), None);
        asked.after(&other, Some(vec![two])).unwrap();
        assert_eq!(begun(), Some(vec![two]));
        // That one again has its own, whatever was asked between.
        asked.before(PLAIN).unwrap();
        asked.after(PLAIN, None).unwrap();
        asked.before(&verified()).unwrap();
        assert_eq!(begun(), Some(vec![one, two]));
        // After an answer that names none, no plan is the query's.
        let third = verified().replace("SUM(x)", "AVG(x)");
        asked.before(&third).unwrap();
        asked.after(&third, Some(Vec::new())).unwrap();
        asked.before(&third).unwrap();
        assert_eq!(begun(), Some(Vec::new()));
        // Only a query whose rows are checked needs plans that are named.
        let must_name = VerifiedQueries::must_name;
        assert!(must_name(&third) && !must_name(PLAIN) && !must_name("SHOW QUERIES"));
        // A plain one has none.
        asked.before(PLAIN).unwrap();
        asked.after(PLAIN, Some(vec![one])).unwrap();
        assert_eq!(asked.noted("Sums"), Ok(None));
    }

    #[test]
    fn a_sealed_query_is_noted_without_being_verified() {
        let folder = tempfile::tempdir().unwrap();
        let asked = at(folder.path());
        let sealed = format!("{PLAIN} RELEASE TO analyst");
        asked.before(&sealed).unwrap();
        assert!(asked.sealed("Sums").is_some() && !asked.has("Sums") && !asked.has("Sum\u{455}"));
        asked.after(&sealed, None).unwrap();
        assert_eq!(asked.statement("sums"), Some(sealed.clone()));
        asked.before(PLAIN).unwrap();
        asked.after(PLAIN, None).unwrap();
        assert!(asked.sealed("Sums").is_none() && asked.statement("Sums").is_none());
        // A verified one of that name holds until the sealed one has begun.
        asked.before(&verified()).unwrap();
        asked.before(&sealed).unwrap();
        assert!(asked.has("Sums") && asked.sealed("Sums").is_none());
        asked.after(&sealed, None).unwrap();
        assert!(!asked.has("Sums") && asked.sealed("Sums").is_some());
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
        let folder = VerifiedQueries { path: folder.path().to_owned(), sent: Mutex::default() };
        assert!(folder.has("Sums") && folder.before(PLAIN).is_ok());
    }
}
