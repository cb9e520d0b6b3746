//! Errors in queries, with the location and the fix.

use super::display::QuerySpan;
use super::windows::MAX_STEPS;
use alpheus_time::Span;
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
    #[error("expected {expected}, found {found}{}", Behind(form))]
    Expected {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
        /// How to write the clause, with an example that can be pasted, or what may be meant.
        /// Empty if neither is known.
        form: String,
    },
    /// No length of time.
    #[error(
        "a length of time is a whole number of time units, above 0 and below ten years; write `{}`",
        QuerySpan(*nearest)
    )]
    NoLength {
        /// The nearest length.
        nearest: Span,
    },
    /// A unit of the calendar.
    #[error(
        "{units} differ in length, so they cannot be used here; the units are MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS and WEEKS; write {}",
        OneOf(nearest)
    )]
    OfCalendar {
        /// The unit.
        units: &'static str,
        /// The nearest lengths.
        nearest: Vec<String>,
    },
    /// Running totals up to a size that is no whole number of steps, or too many.
    #[error(
        "SIZE must be a multiple of STEP, and at most {MAX_STEPS} steps; write {}",
        OneOf(nearest)
    )]
    NotWhole {
        /// The nearest lengths, as words of a query.
        nearest: Vec<String>,
    },
    /// Windows that overlap.
    #[error(
        "an overlapping window is not supported, since each event is released once; write {}",
        OneOf(nearest)
    )]
    Overlapping {
        /// Windows that are nearest to it, as clauses.
        nearest: Vec<String>,
    },
    /// Text after the end of a statement.
    #[error("a second statement starts here; send one statement at a time")]
    OneStatement,
    /// The name of a verified query could be mistaken for another.
    #[error(
        "the name of a verified query must begin with a letter from A to Z or `_`, and may continue with such letters, digits, `_` and `-`: no two names may look the same"
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
    #[error("there is no function `{word}`{}{known}", HintOr(suggestion, "the functions are "))]
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
    #[error("there is no setting `{word}`{}{known}", HintOr(suggestion, "the settings are "))]
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
    /// A group with a reserved name.
    #[error(
        "every result already has a column `{group}`, so results cannot be grouped by it; rename the metadata attribute in the schema"
    )]
    ReservedGroup {
        /// The name.
        group: String,
    },
}

/// A remedy after what is wrong, if there is one.
struct Behind<'a>(&'a str);

impl fmt::Display for Behind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "; {}", self.0) }
    }
}

/// Words of a query, one of which can be pasted.
pub(crate) struct OneOf<'a>(pub(crate) &'a [String]);

impl fmt::Display for OneOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, words) in self.0.iter().enumerate() {
            write!(f, "{}`{words}`", if position == 0 { "" } else { " or " })?;
        }
        Ok(())
    }
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

/// The same, followed by another sentence.
pub(crate) struct HintOr<'a>(pub(crate) &'a Option<String>, pub(crate) &'static str);

impl fmt::Display for HintOr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HintOr(suggestion, further) = self;
        if suggestion.is_none() {
            return write!(f, "; {further}");
        }
        let mut letters = further.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let first = first.map(String::from).unwrap_or_default();
        write!(f, "{} {first}{}", DidYouMean(suggestion), letters.as_str())
    }
}

/// Letters of a word with which one known word begins, so that it is meant.
const BEGINNING: usize = 3;

/// The known word most similar to `word`, if any is similar, or the only one that begins with it.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let plain = |text: &str| {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    let (wanted, known) = (plain(word), known.into_iter().collect::<Vec<_>>());
    let distance = |candidate: &str| strsim::osa_distance(&wanted, &plain(candidate));
    let best = known.iter().copied().min_by_key(|candidate| distance(candidate))?;
    if distance(best) <= (wanted.chars().count() / 2).clamp(1, 3) {
        return Some(best.to_owned());
    }
    let mut longer = known.into_iter().filter(|candidate| plain(candidate).starts_with(&wanted));
    let only = longer.next().filter(|_| wanted.chars().count() >= BEGINNING)?;
    longer.next().is_none().then(|| only.to_owned())
}
