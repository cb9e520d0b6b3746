//! Errors in queries, with the location and the fix.

use std::fmt;
use thiserror::Error;

/// A location in a query's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Length of the word in characters, at least 1.
    pub length: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// The query cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{at}: {problem}")]
pub struct QueryError {
    /// Location of the offending word.
    pub at: Location,
    /// What is wrong with it.
    #[source]
    pub problem: SyntaxError,
}

impl QueryError {
    pub(crate) fn new(at: Location, problem: SyntaxError) -> QueryError {
        QueryError { at, problem }
    }

    /// The message, with the line and carets under the word.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        point_at(text, self.at, &self.problem)
    }
}

/// A message with the line that it refers to and carets under the word.
pub(crate) fn point_at(text: &str, at: Location, message: &dyn fmt::Display) -> String {
    let index = usize::try_from(at.line).unwrap_or(usize::MAX).saturating_sub(1);
    let line = text.lines().nth(index).unwrap_or("").replace('\t', " ");
    let before = " ".repeat(
        usize::try_from(at.column).unwrap_or(1).saturating_sub(1).min(line.chars().count()),
    );
    let carets = "^".repeat(usize::try_from(at.length).unwrap_or(1).clamp(1, 80));
    let number = at.line.to_string();
    let margin = " ".repeat(number.len());
    format!("{message}\n{margin} |\n{number} | {line}\n{margin} | {before}{carets}")
}

/// What is wrong with a query.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SyntaxError {
    /// The query is too long.
    #[error("the query has more than {limit} words; split it into several queries")]
    TooLong {
        /// Maximum number of words.
        limit: usize,
    },
    /// Parentheses or NOT nested too deeply.
    #[error("the condition is nested too deeply; use fewer parentheses")]
    TooDeep,
    /// Text that is not a token, such as a string without an end.
    #[error("cannot read this ({reason}); close the quotes that open here")]
    Unreadable {
        /// The tokenizer's message.
        reason: String,
    },
    /// Something else was expected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// Text after the end of a statement.
    #[error("a second statement starts here; send one statement at a time")]
    OneStatement,
    /// The name of a verified query could be mistaken for another.
    #[error(
        "the name of a verified query is a letter from A to Z or `_`, then such letters, digits, `_` and `-`: so no other name looks the same"
    )]
    VerifiedName,
    /// A value on its own.
    #[error(
        "`{word}` on its own would release single values; write SUM({word}), AVG({word}), HISTOGRAM({word}) or another aggregate"
    )]
    BareAttribute {
        /// The attribute.
        word: String,
    },
    /// An unknown function.
    #[error("there is no function `{word}`{}; the functions are {known}", DidYouMean(suggestion))]
    UnknownFunction {
        /// The name as written.
        word: String,
        /// The most similar name that exists.
        suggestion: Option<String>,
        /// All names that exist.
        known: String,
    },
    /// Arguments that a function does not accept.
    #[error("{function} is written {form}")]
    Arguments {
        /// The function.
        function: &'static str,
        /// How to write it.
        form: &'static str,
    },
    /// A value out of its range.
    #[error("{what} must be {range}")]
    OutOfRange {
        /// The name of the value.
        what: &'static str,
        /// The range.
        range: &'static str,
    },
    /// A repeated clause or setting.
    #[error("a second {clause}; a query has only one")]
    Duplicate {
        /// The clause.
        clause: &'static str,
    },
    /// A required clause is missing.
    #[error("the query has no {clause}; add {example}")]
    Missing {
        /// The clause.
        clause: &'static str,
        /// An example.
        example: &'static str,
    },
    /// SQL that encrypted streams do not support.
    #[error("{what} is not supported; {remedy}")]
    Unsupported {
        /// The unsupported clause.
        what: &'static str,
        /// What to write instead.
        remedy: &'static str,
    },
    /// An unknown setting.
    #[error("there is no setting `{word}`{}; the settings are {known}", DidYouMean(suggestion))]
    UnknownSetting {
        /// The name as written.
        word: String,
        /// The most similar name that exists.
        suggestion: Option<String>,
        /// All names that exist.
        known: String,
    },
    /// A list of columns that does not match the items.
    #[error(
        "the list names {columns} columns, but the query selects {items} items; name each item or remove the list"
    )]
    Columns {
        /// Number of names.
        columns: usize,
        /// Number of items.
        items: usize,
    },
    /// Two columns with one name.
    #[error("a second column is named `{alias}`; rename this one with AS")]
    SameAlias {
        /// The name.
        alias: String,
    },
    /// A column with a reserved name.
    #[error("every result already has a column `{alias}`; rename this one with AS")]
    ReservedAlias {
        /// The name.
        alias: String,
    },
}

/// `: did you mean …?` if there is a suggestion.
pub(crate) struct DidYouMean<'a>(pub(crate) &'a Option<String>);

impl fmt::Display for DidYouMean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(word) => write!(f, ": did you mean `{word}`?"),
            None => Ok(()),
        }
    }
}

/// The known word most similar to `word`, if any is similar.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let plain = |text: &str| {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    let wanted = plain(word);
    let distance = |candidate: &&str| strsim::osa_distance(&wanted, &plain(candidate));
    let best = known.into_iter().min_by_key(distance)?;
    (distance(&best) <= (wanted.chars().count() / 2).clamp(1, 3)).then(|| best.to_owned())
}
