//! What Tab completes: words of the language, and names that the service has.

use alpheus_policy::query::Function;
use alpheus_policy::show::Table;
use rustyline::completion::{Completer as Completes, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper, Result};

/// Words of the language, besides its functions.
const WORDS: &[&str] = &[
    "AND",
    "AS",
    "BETWEEN",
    "CREATE STREAM",
    "CUMULATING",
    "DAYS",
    "DESCRIBE",
    "DROP STREAM",
    "EXPLAIN",
    "EXPLAIN PRIVACY",
    "FROM",
    "GRACE PERIOD",
    "GROUP BY",
    "HOURS",
    "IN",
    "MINUTES",
    "NOT",
    "OR",
    "RELEASE TO",
    "SECONDS",
    "SELECT",
    "SHOW QUERIES",
    "SHOW SCHEMAS",
    "SHOW STREAMS",
    "SIZE",
    "STEP",
    "TUMBLING",
    "WEEKS",
    "WHERE",
    "WINDOW",
    "WITH",
];

/// Names of schemas, attributes and queries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// Adds the names of a table of SHOW.
    pub(super) fn add(&mut self, table: &Table) {
        let named = |column: &String| matches!(column.as_str(), "name" | "attributes");
        for row in &table.rows {
            for (column, cell) in table.columns.iter().zip(row) {
                if named(column) {
                    self.0.extend(cell.split(", ").map(str::to_owned));
                }
            }
        }
        self.0.sort();
        self.0.dedup();
    }
}

/// Completes the last word of a line.
pub(super) struct Completer {
    names: Names,
}

impl Completer {
    pub(super) const fn new(names: Names) -> Self {
        Self { names }
    }

    /// Where the word at the position begins, and what it may become.
    fn found(&self, line: &str, position: usize) -> (usize, Vec<String>) {
        let before = line.get(..position).unwrap_or(line);
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let start = before.rfind(|letter| !is_part(letter)).map_or(0, |at| {
            at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        let word = before.get(start..).unwrap_or_default().to_lowercase();
        if word.is_empty() {
            return (start, Vec::new());
        }
        let begins = |known: &str| known.to_lowercase().starts_with(&word);
        let words = WORDS
            .iter()
            .copied()
            .chain(Function::names())
            .filter(|known| begins(known))
            .map(str::to_owned);
        let names = self.names.0.iter().filter(|known| begins(known)).cloned();
        (start, words.chain(names).collect())
    }
}

impl Helper for Completer {}

impl Highlighter for Completer {}

impl Validator for Completer {}

impl Hinter for Completer {
    type Hint = String;
}

impl Completes for Completer {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let (start, found) = self.found(line, position);
        let pair = |text: String| Pair { display: text.clone(), replacement: text };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_names_are_completed() {
        let mut names = Names::default();
        names.add(&Table {
            title: "schemas".to_owned(),
            columns: ["name", "version", "attributes"].map(str::to_owned).to_vec(),
            rows: vec![["Household", "1", "power, water"].map(str::to_owned).to_vec()],
        });
        let completer = Completer::new(names);
        let found = |line: &str| completer.found(line, line.len());
        assert_eq!(found("SELECT SUM(po"), (11, vec!["power".to_owned()]));
        assert_eq!(found("hou"), (0, vec!["HOURS".to_owned(), "Household".to_owned()]));
        assert_eq!(found("SHOW "), (5, vec![]));
    }
}
