//! Why a query is refused, and the nearest query that would be allowed.

use crate::budget::Epsilon;
use crate::plan::Fraction;
use crate::query::{Create, DidYouMean, Location, QuerySpan, point_at};
use alpheus_time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// The query is refused. The error has everything that is wrong with it, and the nearest
/// query that would be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanningError {
    /// What is wrong, never empty. Violations found only after fixing earlier ones come
    /// last.
    pub violations: Vec<ViolationError>,
    /// The nearest query that this planner accepts, if it found one.
    pub nearest: Option<Box<Create>>,
}

impl std::error::Error for PlanningError {}

impl fmt::Display for PlanningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, violation) in self.violations.iter().enumerate() {
            let end = if position == 0 { "" } else { "\n" };
            write!(f, "{end}{violation}")?;
        }
        self.write_nearest(f)
    }
}

impl PlanningError {
    /// The message with the lines of the query that it refers to.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        let violations = self.violations.iter().map(|violation| match violation.at.line {
            0 => violation.to_string(),
            _ => point_at(text, violation.at, violation),
        });
        let all: Vec<String> = violations.collect();
        format!("{}{}", all.join("\n"), Nearest(self))
    }

    /// Whether the query only has mistakes, such as unknown names, so that no policy was
    /// consulted.
    #[must_use]
    pub fn is_mistaken(&self) -> bool {
        self.violations.iter().all(|violation| {
            !matches!(
                violation.rule,
                RuleError::Excluded { .. }
                    | RuleError::NoMasks { .. }
                    | RuleError::NoEpsilon
                    | RuleError::NotOfTotals { .. }
                    | RuleError::NotByEpochs { .. }
                    | RuleError::NotWithNoise { .. }
                    | RuleError::Noise { .. }
                    | RuleError::NoReader { .. }
            )
        })
    }

    fn write_nearest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nearest {
            Some(nearest) => write!(f, "\nThe nearest query that would be allowed:\n{nearest};"),
            None if self.is_mistaken() => Ok(()),
            None => f.write_str("\nNo similar query was found that would be allowed."),
        }
    }
}

struct Nearest<'a>(&'a PlanningError);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_nearest(f)
    }
}

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{rule}")]
pub struct ViolationError {
    /// The location of the offending word, or line 0 if there is none.
    pub at: Location,
    /// The rule that is broken.
    pub rule: RuleError,
}

/// A rule that a query breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// An unknown schema in `FROM`.
    #[error(
        "there is no schema `{word}`{}; SHOW SCHEMAS lists all schemas",
        DidYouMean(suggestion)
    )]
    UnknownSchema {
        /// The name as written.
        word: String,
        /// The most similar name that exists.
        suggestion: Option<String>,
    },
    /// An unknown attribute.
    #[error("{schema} has no attribute `{word}`{}; it has {known}", DidYouMean(suggestion))]
    UnknownAttribute {
        /// The name as written.
        word: String,
        /// The schema.
        schema: String,
        /// The most similar name that exists.
        suggestion: Option<String>,
        /// All names that exist.
        known: String,
    },
    /// An aggregate over metadata.
    #[error("`{word}` is public metadata of a stream, not data; use it in WHERE or GROUP BY")]
    IsMetadata {
        /// The metadata attribute.
        word: String,
    },
    /// Unknown metadata in a condition or group.
    #[error(
        "{schema} has no metadata `{word}`{}; it has {}",
        DidYouMean(suggestion),
        or_none(known)
    )]
    UnknownMetadata {
        /// The name as written.
        word: String,
        /// The schema.
        schema: String,
        /// The most similar name that exists.
        suggestion: Option<String>,
        /// All names that exist.
        known: String,
    },
    /// A value that a metadata attribute does not have.
    #[error("`{metadata}` has no value `{word}`{}; its values are {known}", DidYouMean(suggestion))]
    UnknownSymbol {
        /// The metadata attribute.
        metadata: String,
        /// The name as written.
        word: String,
        /// The most similar name that exists.
        suggestion: Option<String>,
        /// All names that exist.
        known: String,
    },
    /// A statistic that the schema does not encode.
    #[error(
        "the schema does not support {function} of `{attribute}`; it supports {}",
        or_none(offered)
    )]
    NotOffered {
        /// The function.
        function: &'static str,
        /// The attribute.
        attribute: String,
        /// The functions that it supports.
        offered: String,
    },
    /// `COUNT(*)` with a schema whose attributes have their own counts.
    #[error("{schema} has no common count of events; use COUNT of an attribute instead")]
    NoEventCount {
        /// The schema.
        schema: String,
    },
    /// The query names no attribute, so no policy applies to it.
    #[error(
        "COUNT(*) alone names no attribute, so no policy can allow it; select a statistic of an attribute as well"
    )]
    NoAttribute,
    /// A bin that splits a cell.
    #[error(
        "{edge} is not an edge of the bins that the schema encodes for `{attribute}`, and bins cannot be split"
    )]
    NotOnGrid {
        /// The edge, or the width.
        edge: String,
        /// The attribute.
        attribute: String,
    },
    /// An edge with more decimal places than the attribute.
    #[error("{edge} has more decimal places than `{attribute}`, which has {places}")]
    TooFine {
        /// The edge.
        edge: String,
        /// The attribute.
        attribute: String,
        /// Its decimal places.
        places: u8,
    },
    /// Edges beyond 64 bits.
    #[error("the bins of `{attribute}` do not fit in 64 bits; use fewer or narrower bins")]
    TooLarge {
        /// The attribute.
        attribute: String,
    },
    /// An item that the attribute cannot have.
    #[error(
        "the values of `{attribute}` are numbers or truth values; write FREQUENCY({attribute}, '5') or FREQUENCY({attribute}, 'true')"
    )]
    NotAnItem {
        /// The attribute.
        attribute: String,
    },
    /// A window that is not a multiple of the tick.
    #[error("the window of {} is not a multiple of {}, the tick at which streams send boundary events", QuerySpan(*requested), QuerySpan(*tick))]
    OffTick {
        /// The window of the query.
        requested: Span,
        /// The schema's.
        tick: Span,
    },
    /// `RELEASE TO` a consumer that did not present a certificate, or that does not run the
    /// query itself.
    #[error(
        "only `{consumer}` itself can request results that are sealed to it; send the query with the identity folder made by `alpheus ca issue --role consumer --name {consumer}`"
    )]
    NoReader {
        /// The name as written.
        consumer: String,
    },
    /// The query has settings for noise, but not epsilon.
    #[error(
        "the query does not say how much noise to add; set epsilon as well, or remove delta, mechanism, events and CUMULATING"
    )]
    NoEpsilon,
    /// A clause that running totals do not support: they have their own mechanism, and the
    /// service must be able to add them up.
    #[error(
        "running totals do not support {clause}, because they have their own noise and the service adds them up; remove it or use WINDOW TUMBLING"
    )]
    NotOfTotals {
        /// The clause.
        clause: &'static str,
    },
    /// A clause that cannot be used where each window has members of its own.
    #[error(
        "membership by epochs does not support {clause}; remove it, or use `membership = 'fixed'`"
    )]
    NotByEpochs {
        /// The clause.
        clause: &'static str,
    },
    /// A function that needs exact sums.
    #[error("{function} has no meaning with noise; use a count or a histogram instead")]
    NotWithNoise {
        /// The function.
        function: &'static str,
    },
    /// Noise that does not protect the release.
    #[error("noise cannot protect this release: {fault}")]
    Noise {
        /// The reason.
        fault: String,
    },
    /// A population beyond what the schema's digits can hold.
    #[error("a population of at least {requested} exceeds the schema's capacity of {max} streams")]
    BeyondCapacity {
        /// The minimum population of the query.
        requested: u32,
        /// The schema's.
        max: u64,
    },
    /// Another running query has this name.
    #[error(
        "a query named `{name}` is already running; choose another name, or run DROP STREAM {name} first"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No stream matches the conditions.
    #[error("no stream of {schema} matches the conditions on metadata")]
    NoStreams {
        /// The schema.
        schema: String,
    },
    /// Streams that cannot take part, if in the end none can.
    #[error("{streams} of {of} streams cannot take part: {exclusion}")]
    Excluded {
        /// The number of streams that this reason excludes.
        streams: u32,
        /// The number of streams that match the conditions.
        of: u32,
        /// The reason.
        exclusion: ExclusionError,
    },
    /// No masking strategy is safe for these controllers.
    #[error(
        "no masks are safe among {controllers} controllers of which {tolerated} may collude; use more controllers or a smaller alpha"
    )]
    NoMasks {
        /// N.
        controllers: u32,
        /// t.
        tolerated: u32,
    },
}

/// Why a stream does not take part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Error)]
#[non_exhaustive]
pub enum ExclusionError {
    /// The stream has another version of the schema.
    #[error("they have another version of the schema")]
    OtherVersion,
    /// The stream has no value to group by.
    #[error("they have no value of `{metadata}` to group by")]
    NoValue {
        /// The metadata attribute.
        metadata: String,
    },
    /// The owner keeps the attribute private.
    #[error("their owners keep `{attribute}` private")]
    Private {
        /// The attribute.
        attribute: String,
    },
    /// The policy requires noise.
    #[error(
        "their policy `{option}` (dp-aggregate) releases `{attribute}` only with noise; add WITH (epsilon = …)"
    )]
    NeedsNoise {
        /// The attribute.
        attribute: String,
        /// The chosen option.
        option: String,
    },
    /// A window would cost more ε than the policy allows.
    #[error(
        "their policy `{option}` allows at most ε = {most} per window for `{attribute}`, but the query needs {asked}"
    )]
    Epsilon {
        /// The attribute.
        attribute: String,
        /// The chosen option.
        option: String,
        /// What the query would cost the attribute.
        asked: String,
        /// The maximum that the option allows.
        most: Epsilon,
    },
    /// The query needs a δ, and the policy allows none.
    #[error(
        "their policy `{option}` allows no delta for `{attribute}`; use mechanism = 'laplace' in tumbling windows"
    )]
    NoDelta {
        /// The attribute.
        attribute: String,
        /// The chosen option.
        option: String,
    },
    /// Too fine in time.
    #[error("their policy `{option}` releases `{attribute}` only in windows that are multiples of {}", QuerySpan(*allowed))]
    Window {
        /// The attribute.
        attribute: String,
        /// The chosen option.
        option: String,
        /// Windows must be multiples of this.
        allowed: Span,
    },
    /// Not for this consumer.
    #[error("their policy `{option}` releases `{attribute}` only to {}, sealed to its key; add RELEASE TO", .allowed.join(", "))]
    Consumer {
        /// The attribute.
        attribute: String,
        /// The chosen option.
        option: String,
        /// The consumers that may receive results.
        allowed: Vec<String>,
    },
    /// Too fine in values.
    #[error("their policy `{option}` releases `{bucketed}` only in buckets of {buckets}")]
    Finer {
        /// The chosen option.
        option: String,
        /// The attribute that is generalised.
        bucketed: String,
        /// A description of the buckets.
        buckets: String,
    },
    /// Already in a running plan.
    #[error(
        "their `{attribute}` is already released by the running query `{query}`, and only one query may release it"
    )]
    Locked {
        /// The attribute.
        attribute: String,
        /// The query.
        query: String,
    },
    /// The owner's streams are at two controllers.
    #[error(
        "their owner has another stream at another controller, and each owner counts only once"
    )]
    SplitOwner,
    /// The population is too small for the policy or the query.
    #[error("at least {needed} owners with data are required, but {present} owners count as {counted} if {tolerated} of {controllers} controllers collude (alpha {}, colluders {colluders}); {enough} controllers with one owner each would be enough", Share(*alpha))]
    TooFew {
        /// The minimum population.
        needed: u32,
        /// The number of owners.
        present: u32,
        /// Their number as an honest controller counts them.
        counted: u32,
        /// t.
        tolerated: u32,
        /// N.
        controllers: u32,
        /// α.
        alpha: Fraction,
        /// c.
        colluders: u32,
        /// The smallest number of controllers, with one owner each, that is enough.
        enough: u32,
    },
    /// The policy's minimum is so close to all that there are that everybody's windows would
    /// be lost.
    #[error(
        "their policies require at least {least} owners, with which {losses} of 1000 windows of everybody would be lost if 1 % of controllers failed"
    )]
    Brittle {
        /// The policies' minimum.
        least: u32,
        /// Windows lost.
        losses: u32,
    },
    /// The policy's minimum is above the query's maximum.
    #[error("their policies require at least {least} owners, but the query allows at most {most}")]
    MaximumTooLow {
        /// The policies' minimum.
        least: u32,
        /// The query's maximum.
        most: u32,
    },
    /// The query has its maximum of owners.
    #[error("the query already has its maximum of {most} owners")]
    BeyondMaximum {
        /// The query's maximum.
        most: u32,
    },
    /// More streams than the schema's digits can hold.
    #[error("the schema's capacity of {most} streams per window is used up")]
    BeyondCapacity {
        /// The schema's.
        most: u64,
    },
    /// A rule that only the plan as a whole breaks.
    #[error("their controllers would refuse the plan (rule `{rule}`)")]
    Refused {
        /// The rule's name.
        rule: String,
    },
}

/// A list of names, or `nothing`.
fn or_none(names: &str) -> &str {
    if names.is_empty() { "nothing" } else { names }
}

/// A fraction in query syntax.
pub(crate) struct Share(pub(crate) Fraction);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Fraction { numerator: 0, .. } => f.write_str("0"),
            Fraction { numerator, denominator } => write!(f, "{numerator}/{denominator}"),
        }
    }
}
