//! Errors that say where a document is wrong, why, and how to fix it.

use crate::decimal::DecimalError;
use alpheus_time::Span;
use std::fmt;

/// A position in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Line and column, both from 1; only YAML has them.
    pub line: Option<(usize, usize)>,
    /// Keys and item numbers (from 0) from the root, as `streamAttributes[0].min`.
    pub path: String,
}

impl Position {
    /// The position of the value of `key` in the map at this position.
    pub(crate) fn key(&self, key: &str) -> Position {
        let path =
            if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Position { line: self.line, path }
    }

    /// The position of item `index` in the list at this position.
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

/// A schema or policy file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct DocumentError {
    /// Where.
    pub at: Position,
    /// Why.
    pub problem: ContentError,
}

/// What is wrong at one position of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The text is not YAML, JSON or Avro. The message is the parsing library's.
    #[error("cannot be parsed: {0}")]
    Syntax(String),
    /// The document has no content.
    #[error("the document is empty; start from one of the examples")]
    Empty,
    /// More than one YAML document.
    #[error("a second document starts here; use one file per document")]
    SecondDocument,
    /// Anchors, aliases or tags.
    #[error("anchors, aliases and tags are not supported; write the value out")]
    Alias,
    /// Nested too deeply.
    #[error("nested more than {} levels deep; flatten the document", super::MAX_DEPTH)]
    TooDeep,
    /// Longer than any real schema.
    #[error("the document is longer than {max} bytes, the limit")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// A key that is not a plain word.
    #[error("a key must be a plain word, not empty, a list or a map")]
    BadKey,
    /// A repeated key.
    #[error("the key `{key}` appears twice; keep one of the two")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// An unknown key.
    #[error("unknown key `{key}`; the keys allowed here are {}", .known.join(", "))]
    UnknownKey {
        /// The key.
        key: String,
        /// The keys that are allowed here.
        known: &'static [&'static str],
    },
    /// A required key is missing.
    #[error("`{key}` is missing; add `{key}: …`")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A key that contradicts another key or the type.
    #[error("`{key}` cannot be used with {with}")]
    Conflict {
        /// The key.
        key: &'static str,
        /// What it contradicts, and how to resolve that.
        with: &'static str,
    },
    /// A different kind of value was expected.
    #[error("expected {expected}")]
    Expected {
        /// What is expected.
        expected: &'static str,
    },
    /// A word that is not in a fixed list.
    #[error("`{word}` is not one of {}", .allowed.join(", "))]
    UnknownWord {
        /// The word.
        word: String,
        /// The words that are allowed.
        allowed: &'static [&'static str],
    },
    /// Not a number.
    #[error(transparent)]
    Number(#[from] DecimalError),
    /// A number outside its range.
    #[error("must be {range}")]
    OutOfRange {
        /// The range, such as `between 1 and 32`.
        range: String,
    },
    /// A JSON number with a fraction.
    #[error(
        "a number with a fraction or exponent must be quoted, as in \"0.5\", so that it is read exactly"
    )]
    InexactNumber,
    /// Not a duration.
    #[error("not a duration; write 10s, 5min, 1hr, 1d, 500ms or PT1H")]
    BadDuration,
    /// Not a fraction between 0 and 1.
    #[error("not a fraction between 0 and 1; write 1/3 or 0.2")]
    BadFraction,
    /// Not the fingerprint of a controller.
    #[error("not a controller's fingerprint; write its 64 hexadecimal digits")]
    BadFingerprint,
    /// A name that queries could not use.
    #[error(
        "not a valid name; use 1 to 64 letters, digits, `_` or `-`, and start with a letter or `_`"
    )]
    BadName,
    /// Two names that queries could not distinguish.
    #[error(
        "the name `{name}` is used twice (case is ignored, and `-` equals `_`); rename one of the two"
    )]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// An unknown stream attribute.
    #[error("the schema has no stream attribute `{name}`; check the name or declare it")]
    UnknownAttribute {
        /// The name.
        name: String,
    },
    /// An unknown policy option.
    #[error(
        "the schema offers no policy option `{name}`; choose one from its `streamPolicyOptions`"
    )]
    UnknownOption {
        /// The name.
        name: String,
    },
    /// An unknown metadata attribute.
    #[error("the schema has no metadata attribute `{name}`; check the name or declare it")]
    UnknownMetadata {
        /// The name.
        name: String,
    },
    /// An option that is not offered for the attribute.
    #[error(
        "option `{option}` is not offered for `{attribute}`; choose another option, or add the attribute to the option's `attributes`"
    )]
    NotOffered {
        /// The option.
        option: String,
        /// The attribute.
        attribute: String,
    },
    /// A choice beyond what the option offers.
    #[error("the option does not offer this value; choose one of {offered}")]
    NoSuchChoice {
        /// What it offers.
        offered: String,
    },
    /// A list without items.
    #[error("the list is empty; add at least one item")]
    EmptyList,
    /// Too many items.
    #[error("too many items; at most {max} are allowed")]
    TooMany {
        /// The limit.
        max: usize,
    },
    /// Several populations for one window.
    #[error(
        "a window has one population, and only one set of it is ever opened, so it cannot be split; remove `splitPopulations`"
    )]
    SplitPopulations,
    /// Bounds the wrong way round.
    #[error("`min` is greater than `max`; swap them")]
    MinAboveMax,
    /// Edges out of order.
    #[error("edges must be in strictly ascending order")]
    EdgesNotAscending,
    /// An aggregation that the type of the attribute does not support.
    #[error("`{aggregation}` is not available for an attribute of type {kind}")]
    WrongType {
        /// The attribute's type.
        kind: &'static str,
        /// The aggregation.
        aggregation: &'static str,
    },
    /// Values so large that a window's sum may not fit in two words.
    #[error(
        "the sum of this attribute over a window may not fit in two 64-bit words; narrow `min` and `max`, or lower `scale` or `capacity`"
    )]
    SumTooLarge,
    /// A window that is not a multiple of the tick.
    #[error("{window} is not a multiple of the schema's tick of {tick}; use {}{nearest}", Below(*window, *tick))]
    NotMultipleOfTick {
        /// The window.
        window: Span,
        /// The schema's tick.
        tick: Span,
        /// The next multiple of the tick.
        nearest: Span,
    },
    /// Buckets that are not unions of the grid's.
    #[error(
        "these buckets do not match the grid of `{aggregation}`; use a multiple of its width or a subset of its edges"
    )]
    OffGrid {
        /// The aggregation with the grid.
        aggregation: String,
    },
    /// Generalisation of an attribute without buckets.
    #[error(
        "`{attribute}` has no histogram and no statistics by its buckets, so generalising it would release nothing; add a histogram"
    )]
    NothingToGeneralise {
        /// The attribute.
        attribute: String,
    },
    /// More words than the key stream has blocks for.
    #[error("an event would take {words} words, but at most {max} fit; use fewer bins")]
    TooManyWords {
        /// Words needed.
        words: usize,
        /// The limit.
        max: usize,
    },
    /// Shares that add up to more than 1.
    #[error("the shares of the mix add up to more than 1; lower them")]
    SharesAboveOne,
    /// A period of validity that is empty.
    #[error("`validTo` must be later than `validFrom`")]
    EmptyValidity,
    /// Not a date.
    #[error("not a date; write it as 2026-04-20")]
    BadDate,
    /// A policies file for another schema.
    #[error("this file is for schema `{found}`, not `{expected}`")]
    OtherSchema {
        /// The schema that the file names.
        found: String,
        /// The schema it was read against.
        expected: String,
    },
}

/// The multiple of a tick below a window, as an alternative.
struct Below(Span, Span);

impl fmt::Display for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Below(Span(window), Span(tick)) = *self;
        match window - window.checked_rem(tick).unwrap_or(0) {
            0 => Ok(()),
            below => write!(f, "{} or ", Span(below)),
        }
    }
}
