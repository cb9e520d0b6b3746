//! Statements as they were written: names not yet looked up.

use super::decimal::Decimal;
use super::error::At;
use super::function::Function;
use crate::budget::Mechanism;
use crate::plan::Fraction;
use crate::time::Span;

/// A statement of the query language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `CREATE STREAM …`.
    Create(Create),
    /// `EXPLAIN [PRIVACY] CREATE STREAM …`.
    Explain {
        /// Only what is revealed to whom, not how it runs.
        privacy: bool,
        /// What is to be explained.
        create: Create,
    },
    /// `SHOW …`.
    Show(Show),
    /// `DESCRIBE name`: a schema or a running query.
    Describe(Word),
    /// `DROP STREAM name`: ends a running query.
    Drop(Word),
}

/// What `SHOW` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// `STREAMS`: annotated streams, by schema.
    Streams,
    /// `SCHEMAS`.
    Schemas,
    /// `QUERIES`: running queries.
    Queries,
}

/// A name and where it stands. Equality is of the text.
#[derive(Clone, Debug, Default)]
pub struct Word {
    /// The text, without quotes.
    pub text: String,
    /// Where.
    pub at: At,
}

impl PartialEq for Word {
    fn eq(&self, other: &Word) -> bool {
        self.text == other.text
    }
}

impl Eq for Word {}

impl Word {
    /// A word that stands nowhere, for queries that are made, not read.
    #[must_use]
    pub fn new(text: &str) -> Word {
        Word { text: text.to_owned(), at: At::default() }
    }
}

/// `CREATE STREAM`: a query that runs until it is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// Name of the stream of results.
    pub name: Word,
    /// Output columns, at least one.
    pub items: Vec<Item>,
    /// Size of the tumbling windows; of cumulating ones the step.
    pub window: Span,
    /// `WINDOW CUMULATING`: results are running totals up to this size, a multiple of
    /// the step.
    pub cumulating: Option<Span>,
    /// How long after its end a window waits for late events.
    pub grace: Option<Span>,
    /// The schema whose streams are asked.
    pub from: Word,
    /// Fewest and most owners with data in a window.
    pub population: Option<(u32, u32)>,
    /// Which streams, by metadata.
    pub filter: Option<Condition>,
    /// One result for each combination of these metadata.
    pub group_by: Vec<Word>,
    /// Where the size of the window and the population's bounds stand.
    pub places: ClausePlaces,
    /// `WITH` settings.
    pub settings: Settings,
    /// To whom alone the result is released.
    pub release_to: Option<Word>,
}

/// Where clauses that a planner may object to stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClausePlaces {
    /// The window's size, or step.
    pub window: Place,
    /// The population's bounds, or the schema's name without them.
    pub population: Place,
}

/// Settings after `WITH`. What is left out, the planner decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Differential privacy's ε.
    pub epsilon: Option<Decimal>,
    /// Differential privacy's δ.
    pub delta: Option<Decimal>,
    /// How noise is drawn.
    pub mechanism: Option<Mechanism>,
    /// Most events of one stream that may be in a window.
    pub events: Option<u64>,
    /// Share of controllers that may collude with the service.
    pub alpha: Option<Fraction>,
    /// Share of controllers that may drop out of a window.
    pub dropout: Option<Fraction>,
    /// How controllers share masks.
    pub masks: Option<MaskChoice>,
    /// Bound on the chance that an epoch's graphs fall apart, as 10^-this.
    pub mask_delta_exponent: Option<u8>,
}

/// A strategy by name; its parameters follow from the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskChoice {
    /// Every pair, every window.
    Clique,
    /// A random graph each window.
    Dream,
    /// Random graphs drawn once an epoch.
    Epoch,
    /// A few picks of each controller, for as long as the roster lives.
    Neighbours,
}

/// One output column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name, by default `<function>_<attribute>`.
    pub alias: String,
    /// The function as written, upper case.
    pub name: &'static str,
    /// What is asked.
    pub call: Call,
    /// Where the function's name stands.
    pub at: Place,
}

/// A place that plays no part in equality.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place(pub At);

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Eq for Place {}

/// A function with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `COUNT(*)`: events.
    Events,
    /// A function of one attribute alone.
    Of(Function, Word),
    /// `HISTOGRAM`.
    Histogram(Word, BinRequest),
    /// `PERCENTILE`: the fraction.
    Percentile(Word, u32, u32),
    /// `TOPK`: how many.
    TopK(Word, u16),
    /// `REGR_SLOPE` and its like: y, x.
    Pair(Function, Word, Word),
    /// `SUM_BY` and its like: the attribute, whose buckets, and their width.
    By(Function, Word, Word, Option<Decimal>),
    /// `FREQUENCY`: of which item.
    Frequency(Word, String),
}

/// Which bins of a histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BinRequest {
    /// Those of the schema.
    Native,
    /// `bins` of one width from `lo`.
    Uniform {
        /// Lower edge of the first.
        lo: Decimal,
        /// Width of each; above 0.
        width: Decimal,
        /// How many; at least 1.
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
        /// How.
        comparison: Comparison,
        /// With what.
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
    /// All of them.
    And(Vec<Condition>),
    /// At least one of them.
    Or(Vec<Condition>),
    /// Not this.
    Not(Box<Condition>),
}

/// A comparison: of numbers where both sides are, else of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`.
    Equal,
    /// `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}
