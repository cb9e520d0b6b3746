//! What is wrong with a query, at which word, and how to mend it.

use std::fmt;
use thiserror::Error;

/// A place in a query's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Characters that the word is long; at least 1.
    pub length: u32,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A query that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{at}: {problem}")]
pub struct QueryError {
    /// The offending word.
    pub at: At,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

impl QueryError {
    pub(crate) fn new(at: At, problem: Problem) -> QueryError {
        QueryError { at, problem }
    }

    /// The message, the line and a caret under the word.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        point_at(text, self.at, &self.problem)
    }
}

/// A message with the line that it is about and carets under the word.
pub(crate) fn point_at(text: &str, at: At, message: &dyn fmt::Display) -> String {
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
pub enum Problem {
    /// Text beyond a bound.
    #[error("the query is longer than {limit} words: split it into several")]
    TooLong {
        /// Most words.
        limit: usize,
    },
    /// Parentheses or NOT nested too deeply.
    #[error("the condition is nested too deeply: write it with fewer parentheses")]
    TooDeep,
    /// Text that is no word, such as a string without an end.
    #[error("cannot read this ({reason}): close the quotes that are open here")]
    Unreadable {
        /// What the tokenizer says.
        reason: String,
    },
    /// Something else should stand here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What should.
        expected: &'static str,
        /// What does.
        found: String,
    },
    /// Text after the end of a statement.
    #[error("expected one statement, found another: give one at a time")]
    OneStatement,
    /// A value on its own.
    #[error(
        "`{word}` on its own would release single values: write SUM({word}), AVG({word}), HISTOGRAM({word}) or another aggregate"
    )]
    BareAttribute {
        /// The attribute.
        word: String,
    },
    /// A function that does not exist.
    #[error("there is no function `{word}`{}; the functions are {known}", DidYouMean(suggestion))]
    UnknownFunction {
        /// As written.
        word: String,
        /// The nearest that exists.
        suggestion: Option<String>,
        /// All that exist.
        known: String,
    },
    /// Arguments that a function does not take.
    #[error("{function} is written {form}")]
    Arguments {
        /// The function.
        function: &'static str,
        /// How to write it.
        form: &'static str,
    },
    /// A number out of its range.
    #[error("{what} must be {range}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// What it may be.
        range: &'static str,
    },
    /// A clause given twice.
    #[error("a second {clause}: a query has one")]
    Twice {
        /// The clause.
        clause: &'static str,
    },
    /// A clause that must be there.
    #[error("the query has no {clause}: add {example}")]
    Missing {
        /// The clause.
        clause: &'static str,
        /// What one looks like.
        example: &'static str,
    },
    /// SQL that streams cannot answer.
    #[error("{what} is not possible here: {remedy}")]
    Unsupported {
        /// What was asked.
        what: &'static str,
        /// What to write instead.
        remedy: &'static str,
    },
    /// A setting that does not exist.
    #[error("there is no setting `{word}`{}; the settings are {known}", DidYouMean(suggestion))]
    UnknownSetting {
        /// As written.
        word: String,
        /// The nearest that exists.
        suggestion: Option<String>,
        /// All that exist.
        known: String,
    },
    /// A list of columns that does not match the items.
    #[error("{columns} columns are named for {items} items: name each, or leave the list out")]
    Columns {
        /// Names given.
        columns: usize,
        /// Items selected.
        items: usize,
    },
    /// Two columns of one name.
    #[error("a second column `{alias}`: name this one with AS")]
    SameAlias {
        /// The name.
        alias: String,
    },
    /// A column named as one that every result has.
    #[error("every result has a column `{alias}`: name this one otherwise with AS")]
    ReservedAlias {
        /// The name.
        alias: String,
    },
}

/// `: did you mean …?` where there is a suggestion.
pub(crate) struct DidYouMean<'a>(pub(crate) &'a Option<String>);

impl fmt::Display for DidYouMean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(word) => write!(f, ": did you mean `{word}`?"),
            None => Ok(()),
        }
    }
}

/// The known word nearest to `word`, if any is near.
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
