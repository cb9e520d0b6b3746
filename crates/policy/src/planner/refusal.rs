//! Why a query is refused, and the nearest one that would not be.

use crate::budget::Epsilon;
use crate::plan::Fraction;
use crate::query::{At, Create, DidYouMean, Words, point_at};
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// A query that is not planned: everything that is wrong with it, and the
/// nearest query that would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong, never empty; what mending the first brought to light
    /// comes after it.
    pub violations: Vec<Violation>,
    /// A query that this planner accepts, if it found one.
    pub nearest: Option<Box<Create>>,
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, violation) in self.violations.iter().enumerate() {
            let end = if position == 0 { "" } else { "\n" };
            write!(f, "{end}{violation}")?;
        }
        self.write_nearest(f)
    }
}

impl Refusal {
    /// The message with the lines and words of the query it is about.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        let violations = self.violations.iter().map(|violation| match violation.at.line {
            0 => violation.to_string(),
            _ => point_at(text, violation.at, violation),
        });
        let all: Vec<String> = violations.collect();
        format!("{}{}", all.join("\n"), Nearest(self))
    }

    /// Whether the query names or asks what the schema does not have, so that no
    /// policy was asked.
    #[must_use]
    pub fn is_mistaken(&self) -> bool {
        self.violations.iter().all(|violation| {
            !matches!(
                violation.rule,
                Rule::Excluded { .. }
                    | Rule::NoMasks { .. }
                    | Rule::NoEpsilon
                    | Rule::NotOfTotals { .. }
                    | Rule::NotWithNoise { .. }
                    | Rule::Noise { .. }
                    | Rule::NoReader { .. }
            )
        })
    }

    fn write_nearest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nearest {
            Some(nearest) => write!(f, "\nThe nearest query that would be allowed:\n{nearest};"),
            None if self.is_mistaken() => Ok(()),
            None => f.write_str("\nNo query near it was found that would be allowed."),
        }
    }
}

struct Nearest<'a>(&'a Refusal);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_nearest(f)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{rule}")]
pub struct Violation {
    /// The word that is to blame; line 0 where no word is.
    pub at: At,
    /// The rule it breaks.
    pub rule: Rule,
}

/// A rule that a query breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Rule {
    /// `FROM` something that is no schema.
    #[error("there is no schema `{word}`{}; SHOW SCHEMAS lists them", DidYouMean(suggestion))]
    UnknownSchema {
        /// As written.
        word: String,
        /// The nearest that exists.
        suggestion: Option<String>,
    },
    /// A name that the schema lacks.
    #[error("{schema} has no attribute `{word}`{}; it has {known}", DidYouMean(suggestion))]
    UnknownAttribute {
        /// As written.
        word: String,
        /// The schema.
        schema: String,
        /// The nearest that exists.
        suggestion: Option<String>,
        /// All that exist.
        known: String,
    },
    /// An aggregate over metadata.
    #[error("`{word}` is public metadata of a stream, not data: use it in WHERE or GROUP BY")]
    IsMetadata {
        /// The metadata attribute.
        word: String,
    },
    /// A condition or group on what is no metadata.
    #[error("{schema} has no metadata `{word}`{}; it has {known}", DidYouMean(suggestion))]
    UnknownMetadata {
        /// As written.
        word: String,
        /// The schema.
        schema: String,
        /// The nearest that exists.
        suggestion: Option<String>,
        /// All that exist.
        known: String,
    },
    /// A value that a metadata attribute never takes.
    #[error("`{metadata}` is never `{word}`{}; it is one of {known}", DidYouMean(suggestion))]
    UnknownSymbol {
        /// The metadata attribute.
        metadata: String,
        /// As written.
        word: String,
        /// The nearest that exists.
        suggestion: Option<String>,
        /// All that exist.
        known: String,
    },
    /// A statistic that is not encoded.
    #[error("the schema does not encode what {function} of `{attribute}` needs; it offers {}", if .offered.is_empty() { "nothing of it" } else { .offered })]
    NotOffered {
        /// The function.
        function: &'static str,
        /// The attribute.
        attribute: String,
        /// What could be asked instead.
        offered: String,
    },
    /// `COUNT(*)` where attributes have counts of their own.
    #[error("{schema} keeps no common count of events: write COUNT of one attribute")]
    NoEventCount {
        /// The schema.
        schema: String,
    },
    /// No attribute, so that no policy speaks about the query.
    #[error(
        "COUNT(*) alone names no attribute whose policy could allow it: ask something of an attribute as well"
    )]
    NoAttribute,
    /// A bin that splits a cell.
    #[error(
        "{edge} is no edge of the bins that the schema encodes for `{attribute}`, and bins cannot be split"
    )]
    NotOnGrid {
        /// The edge, or the width.
        edge: String,
        /// The attribute.
        attribute: String,
    },
    /// An edge with more places than values have.
    #[error("{edge} is finer than `{attribute}`, which has {places} decimal places")]
    TooFine {
        /// The edge.
        edge: String,
        /// The attribute.
        attribute: String,
        /// Its decimal places.
        places: u8,
    },
    /// Edges beyond 64 bits.
    #[error("the bins of `{attribute}` reach beyond 64 bits: ask for fewer or narrower ones")]
    TooLarge {
        /// The attribute.
        attribute: String,
    },
    /// An item that the attribute never takes.
    #[error(
        "`{attribute}` takes numbers or truth values: write FREQUENCY({attribute}, '5') or 'true'"
    )]
    NotAnItem {
        /// The attribute.
        attribute: String,
    },
    /// A window that no tick divides.
    #[error("a window of {} is no multiple of the tick of {}, on which streams put their borders", Words(*asked), Words(*tick))]
    OffTick {
        /// Asked for.
        asked: Span,
        /// The schema's.
        tick: Span,
    },
    /// `RELEASE TO` somebody who has not shown a certificate, or who does not ask.
    #[error(
        "results that only `{consumer}` can read are asked for by `{consumer}` itself, which shows its certificate: ask with the identity folder that `alpheus ca issue --role consumer --name {consumer}` makes"
    )]
    NoReader {
        /// As written.
        consumer: String,
    },
    /// Noise is spoken of, but not how much.
    #[error(
        "how much noise is asked for? Say epsilon = … as well, or leave delta, mechanism, events and CUMULATING out"
    )]
    NoEpsilon,
    /// A mechanism for what has one of its own, or totals that the service cannot add up.
    #[error(
        "running totals have noise of their own, and the service adds them up: leave {clause} out, or use WINDOW TUMBLING"
    )]
    NotOfTotals {
        /// What does not go with them.
        clause: &'static str,
    },
    /// What is read off exact sums only.
    #[error("noise leaves no meaning in {function}: ask for counts or a histogram")]
    NotWithNoise {
        /// The function.
        function: &'static str,
    },
    /// Noise that does not protect the release.
    #[error("the release cannot be protected by noise: {fault}")]
    Noise {
        /// Why.
        fault: String,
    },
    /// A population beyond what the schema's digits were sized for.
    #[error("a population of at least {asked} is beyond the schema's capacity of {most} streams")]
    BeyondCapacity {
        /// Asked for.
        asked: u32,
        /// The schema's.
        most: u64,
    },
    /// A name that another running query has.
    #[error("a query called `{name}` is running: choose another name, or DROP STREAM {name} first")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// Nobody fits the conditions.
    #[error("no stream of {schema} fits the conditions on metadata")]
    NoStreams {
        /// The schema.
        schema: String,
    },
    /// Streams that may not take part; in the end none could.
    #[error("{streams} of {of} streams cannot take part: {exclusion}")]
    Excluded {
        /// How many.
        streams: u32,
        /// Of how many that fit the conditions.
        of: u32,
        /// Why.
        exclusion: Exclusion,
    },
    /// Nobody can choose masks for these controllers.
    #[error("no masks are safe among {controllers} controllers of which {tolerated} may collude")]
    NoMasks {
        /// N.
        controllers: u32,
        /// t.
        tolerated: u32,
    },
}

/// Why a stream takes no part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Error)]
#[non_exhaustive]
pub enum Exclusion {
    /// Annotated for another version of the schema.
    #[error("they are of another version of the schema")]
    OtherVersion,
    /// No value to be grouped by.
    #[error("they have no `{metadata}` to group by")]
    NoValue {
        /// The metadata attribute.
        metadata: String,
    },
    /// The owner keeps it.
    #[error("their owners keep `{attribute}` private")]
    Private {
        /// The attribute.
        attribute: String,
    },
    /// Only with noise.
    #[error(
        "`{attribute}` is offered as `{option}` (dp-aggregate) only: ask with noise, WITH (epsilon = …)"
    )]
    NeedsNoise {
        /// The attribute.
        attribute: String,
        /// The option chosen.
        option: String,
    },
    /// More ε than a window may cost.
    #[error(
        "the policy `{option}` lets a window cost `{attribute}` ε = {most} at most, and the query asks for {asked}"
    )]
    Epsilon {
        /// The attribute.
        attribute: String,
        /// The option chosen.
        option: String,
        /// What the query would cost the attribute.
        asked: String,
        /// What the option allows.
        most: Epsilon,
    },
    /// A δ is asked for and none is given.
    #[error(
        "the policy `{option}` allows `{attribute}` no δ: ask for mechanism = 'laplace', in tumbling windows"
    )]
    NoDelta {
        /// The attribute.
        attribute: String,
        /// The option chosen.
        option: String,
    },
    /// Too fine in time.
    #[error("the policy `{option}` releases `{attribute}` in windows of multiples of {}", Words(*allowed))]
    Window {
        /// The attribute.
        attribute: String,
        /// The option chosen.
        option: String,
        /// Windows must be multiples of this.
        allowed: Span,
    },
    /// Not for this consumer.
    #[error("the policy `{option}` releases `{attribute}` to {} only, under its key: say RELEASE TO", .allowed.join(", "))]
    Consumer {
        /// The attribute.
        attribute: String,
        /// The option chosen.
        option: String,
        /// To whom.
        allowed: Vec<String>,
    },
    /// Too fine in values.
    #[error("the policy `{option}` shows `{bucketed}` in buckets of {buckets} only")]
    Finer {
        /// The option chosen.
        option: String,
        /// The attribute that is generalised.
        bucketed: String,
        /// To what.
        buckets: String,
    },
    /// Already in a running plan.
    #[error(
        "`{attribute}` of theirs is in the running query `{query}`, and one attribute is released once"
    )]
    Locked {
        /// The attribute.
        attribute: String,
        /// The query.
        query: String,
    },
    /// Owners whose streams are at two controllers.
    #[error(
        "another stream of the same owner is at another controller, and owners are counted once"
    )]
    SplitOwner,
    /// Too few for the policy or the query.
    #[error("{needed} owners with data are needed, and {present} count as {counted} with {tolerated} of {controllers} controllers colluding (alpha {}); with one owner each, {enough} controllers would be enough", Share(*alpha))]
    TooFew {
        /// The least population.
        needed: u32,
        /// Owners there.
        present: u32,
        /// As an honest controller counts them.
        counted: u32,
        /// t.
        tolerated: u32,
        /// N.
        controllers: u32,
        /// α.
        alpha: Fraction,
        /// The least number of controllers, with one owner each, that counts as enough.
        enough: u32,
    },
    /// A policy whose minimum the query's maximum rules out.
    #[error("their policies ask for at least {least} owners, and the query takes at most {most}")]
    MaximumTooLow {
        /// The policies' minimum.
        least: u32,
        /// The query's maximum.
        most: u32,
    },
    /// More than the query takes.
    #[error("the query takes at most {most} owners")]
    BeyondMaximum {
        /// The query's maximum.
        most: u32,
    },
    /// More streams than the schema's digits were sized for.
    #[error("the schema's capacity is {most} streams in a window")]
    BeyondCapacity {
        /// The schema's.
        most: u64,
    },
    /// A rule that only the plan as a whole breaks.
    #[error("their controllers would refuse the plan ({rule})")]
    Refused {
        /// The rule's name.
        rule: String,
    },
}

/// A fraction as queries write it.
pub(crate) struct Share(pub(crate) Fraction);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Fraction { numerator: 0, .. } => f.write_str("0"),
            Fraction { numerator, denominator } => write!(f, "{numerator}/{denominator}"),
        }
    }
}
