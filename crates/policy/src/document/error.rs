//! Errors that say where, what is wrong, and how to mend it.

use crate::decimal::DecimalError;
use std::fmt;

/// Where something stands in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Line and column, both from 1; only YAML has them.
    pub line: Option<(usize, usize)>,
    /// Keys and item numbers (from 0) from the root, as `streamAttributes[0].min`.
    pub path: String,
}

impl Position {
    /// Where the value of `key` stands in the map that stands here.
    pub(crate) fn key(&self, key: &str) -> Position {
        let path =
            if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Position { line: self.line, path }
    }

    /// Where item `index` stands in the list that stands here.
    pub(crate) fn item(&self, index: usize) -> Position {
        Position { line: self.line, path: format!("{}[{index}]", self.path) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.path.as_str()) {
            (Some((line, column)), "") => write!(f, "line {line}, column {column}"),
            (Some((line, column)), path) => write!(f, "line {line}, column {column} ({path})"),
            (None, "") => write!(f, "$"),
            (None, path) => write!(f, "$.{path}"),
        }
    }
}

/// Why a schema or policy file cannot be used, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct DocumentError {
    /// Where.
    pub at: Position,
    /// Why.
    pub problem: Problem,
}

/// What is wrong at one place of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text is no YAML, JSON or Avro; the words are the parsing library's.
    #[error("cannot be read: {0}")]
    Syntax(String),
    /// Nothing stands in the document.
    #[error("the document is empty; see the examples for one to start from")]
    Empty,
    /// More than one YAML document.
    #[error("a second document begins here; put each in a file of its own")]
    SecondDocument,
    /// Anchors, aliases or tags.
    #[error("anchors, aliases and tags are not read; write the value out")]
    Alias,
    /// Nested too deeply.
    #[error("nested too deeply")]
    TooDeep,
    /// Longer than any real schema.
    #[error("longer than {most} bytes")]
    TooLong {
        /// The limit.
        most: usize,
    },
    /// A key that is not a word.
    #[error("a key must be a word")]
    BadKey,
    /// A key twice.
    #[error("`{key}` stands here a second time; keep one of them")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A key that means nothing here.
    #[error("`{key}` means nothing here; known are {}", .known.join(", "))]
    UnknownKey {
        /// The key.
        key: String,
        /// Those that mean something.
        known: &'static [&'static str],
    },
    /// A key that must stand.
    #[error("`{key}` is missing; add `{key}: …`")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A key that makes no sense beside another, or with this type.
    #[error("`{key}` does not go with {with}; leave one of them out")]
    Conflict {
        /// The key.
        key: &'static str,
        /// What it contradicts.
        with: &'static str,
    },
    /// Another shape was expected.
    #[error("{expected} must stand here")]
    Expected {
        /// What.
        expected: &'static str,
    },
    /// A word out of a fixed list was expected.
    #[error("`{word}` is none of {}", .allowed.join(", "))]
    UnknownWord {
        /// What stands there.
        word: String,
        /// What may.
        allowed: &'static [&'static str],
    },
    /// No number.
    #[error(transparent)]
    Number(#[from] DecimalError),
    /// A number beyond its range.
    #[error("must lie between {least} and {most}")]
    OutOfRange {
        /// Least value allowed, as text.
        least: String,
        /// Greatest value allowed, as text.
        most: String,
    },
    /// A JSON number with a fraction.
    #[error(
        "a number with a fraction or exponent must stand in quotes, \"0.5\", to be read exactly"
    )]
    InexactNumber,
    /// No length of time.
    #[error("not a length of time; write 10s, 5min, 1hr, 1d, 500ms or PT1H")]
    BadDuration,
    /// No fraction between 0 and 1.
    #[error("not a fraction between 0 and 1; write 1/3 or 0.2")]
    BadFraction,
    /// No fingerprint of a controller.
    #[error("not a controller's fingerprint: 64 hexadecimal digits")]
    BadFingerprint,
    /// A name that queries could not say.
    #[error("a name has 1 to 64 letters, digits, `_` or `-` and starts with a letter or `_`")]
    BadName,
    /// Two names that queries could not tell apart.
    #[error("`{name}` is named twice (case and `-` or `_` make no difference); rename one")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// No such attribute.
    #[error("there is no stream attribute `{name}` in this schema")]
    UnknownAttribute {
        /// The name.
        name: String,
    },
    /// No such option.
    #[error("the schema offers no policy option `{name}`")]
    UnknownOption {
        /// The name.
        name: String,
    },
    /// No such metadata attribute.
    #[error("there is no metadata attribute `{name}` in this schema")]
    UnknownMetadata {
        /// The name.
        name: String,
    },
    /// An option that is not offered for the attribute.
    #[error(
        "option `{option}` is not offered for `{attribute}`; choose another, or add it to the option's `attributes`"
    )]
    NotOffered {
        /// The option.
        option: String,
        /// The attribute.
        attribute: String,
    },
    /// A choice beyond what the option offers.
    #[error("the option does not offer this; choose one of {offered}")]
    NoSuchChoice {
        /// What it offers.
        offered: String,
    },
    /// A list without items.
    #[error("the list must not be empty")]
    EmptyList,
    /// Too many items.
    #[error("at most {most} of these")]
    TooMany {
        /// The limit.
        most: usize,
    },
    /// Bounds the wrong way round.
    #[error("`min` is greater than `max`; swap them")]
    MinAboveMax,
    /// Edges out of order.
    #[error("edges must ascend strictly")]
    EdgesNotAscending,
    /// A statistic that the type of the attribute does not have.
    #[error("an attribute of type {kind} has no `{aggregation}`")]
    WrongType {
        /// The attribute's type.
        kind: &'static str,
        /// The aggregation.
        aggregation: &'static str,
    },
    /// Values so large that a sum has no bound in two words.
    #[error(
        "a window's sum over this attribute may not fit two words; narrow `min` and `max`, or lower `scale` or `capacity`"
    )]
    SumTooLarge,
    /// A window that no tick divides.
    #[error("must be a multiple of the schema's tick")]
    NotMultipleOfTick,
    /// Buckets that are no union of the grid's.
    #[error(
        "these buckets do not lie on the grid of `{aggregation}`; use multiples of its width or a subset of its edges"
    )]
    OffGrid {
        /// Whose grid.
        aggregation: String,
    },
    /// Generalising what has no buckets.
    #[error(
        "`{attribute}` has no histogram and no statistics by its buckets, so that nothing of it could be released"
    )]
    NothingToGeneralise {
        /// The attribute.
        attribute: String,
    },
    /// More words than a key stream has blocks.
    #[error("an event would take {words} words, at most {most} fit; use fewer bins")]
    TooManyWords {
        /// Words needed.
        words: usize,
        /// The limit.
        most: usize,
    },
    /// A share that adds up to more than 1.
    #[error("the shares of a mix must not add up to more than 1")]
    SharesAboveOne,
    /// An empty range of time.
    #[error("must be later than the time it starts from")]
    EmptyValidity,
    /// No date.
    #[error("not a day; write 2026-04-20")]
    BadDate,
    /// A name that was expected to be another.
    #[error("this file is for schema `{found}`, not for `{expected}`")]
    OtherSchema {
        /// Whose it says it is.
        found: String,
        /// Whose it should be.
        expected: String,
    },
}
