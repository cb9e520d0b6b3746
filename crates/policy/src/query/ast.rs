//! Statements as written, with names not yet resolved.

use super::error::Location;
use super::function::Function;
use crate::budget::Mechanism;
use crate::decimal::Decimal;
use crate::fraction::Fraction;
use crate::selection::Comparison;
use alpheus_time::Span;
use serde::{Deserialize, Serialize};

/// A statement of the query language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `CREATE STREAM …`.
    Create(Create),
    /// `EXPLAIN [PRIVACY] CREATE STREAM …`.
    Explain {
        /// Explain only what is revealed to whom, not how the query runs.
        privacy: bool,
        /// The query to explain.
        create: Create,
    },
    /// `SHOW …`.
    Show(Show),
    /// `DESCRIBE name`, for a schema or a running query.
    Describe(Word),
    /// `DROP STREAM name`: ends a running query.
    Drop(Word),
}

/// The list that `SHOW` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// `STREAMS`: annotated streams, by schema.
    Streams,
    /// `SCHEMAS`.
    Schemas,
    /// `QUERIES`: running queries.
    Queries,
}

/// A name and its location. Only the text is compared.
#[derive(Clone, Debug, Default)]
pub struct Word {
    /// The text, without quotes.
    pub text: String,
    /// Its location.
    pub at: Location,
}

impl PartialEq for Word {
    fn eq(&self, other: &Word) -> bool {
        self.text == other.text
    }
}

impl Eq for Word {}

impl Word {
    /// A word without a location, for queries that were not parsed.
    #[must_use]
    pub fn new(text: &str) -> Word {
        Word { text: text.to_owned(), at: Location::default() }
    }
}

/// `CREATE STREAM`: a query that runs until it is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// Name of the result stream.
    pub name: Word,
    /// Output columns, at least one.
    pub items: Vec<Item>,
    /// Size of tumbling windows, or step of cumulating windows.
    pub window: Span,
    /// `WINDOW CUMULATING`: results are running totals up to this size, a multiple of the
    /// step.
    pub cumulating: Option<Span>,
    /// How long after its end a window waits for late events.
    pub grace: Option<Span>,
    /// The schema of the streams.
    pub from: Word,
    /// Minimum and maximum number of owners with data in a window.
    pub population: Option<(u32, u32)>,
    /// The condition on metadata that selects streams.
    pub filter: Option<Condition>,
    /// One result for each combination of values of this metadata.
    pub group_by: Vec<Word>,
    /// Locations of the window size and the population bounds.
    pub places: ClauseLocations,
    /// `WITH` settings.
    pub settings: Settings,
    /// The only consumer that receives the result.
    pub release_to: Option<Word>,
}

impl Create {
    /// The word that sets the length of windows: SIZE, or STEP of running totals.
    pub(crate) fn window_word(&self) -> &'static str {
        if self.cumulating.is_some() { "STEP" } else { "SIZE" }
    }
}

/// Locations of clauses that the planner may reject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClauseLocations {
    /// The window's size or step.
    pub window: SourceLocation,
    /// The population bounds, or the schema's name if there are none.
    pub population: SourceLocation,
}

/// Settings after `WITH`. The planner chooses what is omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Differential privacy's ε.
    pub epsilon: Option<Decimal>,
    /// Differential privacy's δ.
    pub delta: Option<Decimal>,
    /// How noise is drawn.
    pub mechanism: Option<Mechanism>,
    /// How exact results have to be, and what is expected of the data.
    pub accuracy: Accuracy,
    /// Maximum number of events of one stream in a window.
    pub events: Option<u64>,
    /// Share of controllers that may collude with the service.
    pub alpha: Option<Fraction>,
    /// Share of controllers that may drop out of a window.
    pub dropout: Option<Fraction>,
    /// How controllers share masks.
    pub masks: Option<MaskChoice>,
    /// Whether who takes part is fixed with the query.
    pub membership: Option<MembershipChoice>,
    /// Who decides what a row says.
    pub integrity: Option<IntegrityChoice>,
    /// Exponent of the bound on the probability that an epoch's graphs are disconnected:
    /// 10^-this.
    pub mask_delta_exponent: Option<u8>,
}

/// Who decides what a row says, as a query asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntegrityChoice {
    /// The service and the controllers together.
    #[default]
    Plain,
    /// The controllers of a window.
    Verified,
    /// The same, with proofs that no owner moves a row by more than its bounds.
    Bounded,
}

impl IntegrityChoice {
    /// All of them.
    pub const ALL: [IntegrityChoice; 3] = [Self::Plain, Self::Verified, Self::Bounded];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Verified => "verified",
            Self::Bounded => "bounded",
        }
    }

    /// Whether the members of a window decide what its row says.
    #[must_use]
    pub const fn is_verified(self) -> bool {
        !matches!(self, Self::Plain)
    }
}

/// How exact results with noise have to be: the planner chooses what is omitted so that the 95 %
/// margin of every column is small enough. The rest says what to expect of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accuracy {
    /// `error = 2 %`: the margin as a share of the result, above 0 and below 1.
    pub error: Option<Decimal>,
    /// `WITHIN 5 OF 95 %`: the margin in the unit of the column, above 0.
    pub within: Option<Decimal>,
    /// `typical = 300`: the mean that is expected of the attribute.
    pub typical: Option<Decimal>,
    /// `values = 24`: how many values a stream is expected to have in a window, at least 1.
    pub values: Option<u64>,
    /// Location of `error` or `WITHIN`.
    pub at: SourceLocation,
}

impl Accuracy {
    /// Whether it requires anything.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.error.is_some() || self.within.is_some()
    }
}

/// When it is fixed who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MembershipChoice {
    /// With the query.
    Fixed,
    /// For each window, when it is over.
    Epochs,
}

/// The name of a strategy. Its parameters follow from the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MaskChoice {
    /// Every pair, in every window.
    Clique,
    /// A random graph for each window.
    Dream,
    /// Random graphs drawn once an epoch.
    Epoch,
    /// A few picks of each controller, for the lifetime of the roster.
    Neighbours,
}

/// One output column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name, by default `<function>_<attribute>`.
    pub alias: String,
    /// The function as written, upper case.
    pub name: &'static str,
    /// The function and its arguments.
    pub call: Call,
    /// Location of the function's name.
    pub at: SourceLocation,
}

/// A location that is ignored in comparisons.
#[derive(Clone, Copy, Debug, Default)]
pub struct SourceLocation(pub Location);

impl PartialEq for SourceLocation {
    fn eq(&self, _: &SourceLocation) -> bool {
        true
    }
}

impl Eq for SourceLocation {}

/// A function with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `COUNT(*)`: events.
    Events,
    /// A function of one attribute alone.
    Of(Function, Word),
    /// `HISTOGRAM`.
    Histogram(Word, BinRequest),
    /// `PERCENTILE`, with the fraction.
    Percentile(Word, u32, u32),
    /// `TOPK`, with the number of bins.
    TopK(Word, u16),
    /// `REGR_SLOPE` and similar functions of y and x.
    Pair(Function, Word, Word),
    /// `SUM_BY` and similar functions: the attribute, the bucket attribute, and the width.
    By(Function, Word, Word, Option<Decimal>),
    /// `FREQUENCY`, with the item.
    Frequency(Word, String),
}

/// The bins of a histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BinRequest {
    /// The bins of the schema.
    Native,
    /// `bins` bins of equal width from `lo`.
    Uniform {
        /// Lower edge of the first bin.
        lo: Decimal,
        /// Width of each bin, above 0.
        width: Decimal,
        /// Number of bins, at least 1.
        bins: u16,
    },
    /// Strictly ascending lower edges, at least one.
    Edges(Vec<Decimal>),
}

/// A condition on metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A comparison with one value.
    Compare {
        /// The metadata attribute.
        attribute: Word,
        /// The comparison.
        comparison: Comparison,
        /// The value to compare with.
        value: Word,
    },
    /// Whether a value is one of several.
    In {
        /// The metadata attribute.
        attribute: Word,
        /// The values.
        values: Vec<Word>,
        /// `NOT IN`.
        negated: bool,
    },
    /// All conditions.
    And(Vec<Condition>),
    /// At least one condition.
    Or(Vec<Condition>),
    /// The opposite of a condition.
    Not(Box<Condition>),
}
