//! Why a query is refused, and the nearest query that would be allowed.

use super::accuracy::Remedy;
use super::exclusion::ExclusionError;
use crate::bounded_terms::NotBoundableError;
use crate::plan::NotVerifiableError;
use crate::query::{Create, DidYouMean, HintOr, Location, OneOf, QuerySpan, point_at};
use alpheus_time::Span;
use std::fmt;
use thiserror::Error;

/// What stands before the nearest query in the text of a refusal. The query ends the text, so it can be pasted.
const NEAREST: &str = "The nearest query that would be allowed:\n";

const NOTHING: &str = "\nNo similar query was found that would be allowed.";

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
        for (position, (_, sentence)) in self.sentences().into_iter().enumerate() {
            let end = if position == 0 { "" } else { "\n" };
            write!(f, "{end}{sentence}")?;
        }
        match self.query() {
            Some(query) => write!(f, "\n{NEAREST}{query}"),
            None if self.found_nothing() => f.write_str(NOTHING),
            None => Ok(()),
        }
    }
}

impl PlanningError {
    /// The message with the lines of the query that it refers to.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        match self.query() {
            Some(query) => format!("{}\n{NEAREST}{query}", self.explained(text)),
            None => self.explained(text),
        }
    }

    /// The nearest query that would be allowed, as SQL that can be pasted.
    #[must_use]
    pub fn query(&self) -> Option<String> {
        self.nearest.as_ref().map(|nearest| format!("{nearest};"))
    }

    /// The message with the lines of the query that it refers to, without the nearest query.
    #[must_use]
    pub fn explained(&self, text: &str) -> String {
        let sentences = self.sentences().into_iter().map(|(at, sentence)| match at.line {
            0 => sentence,
            _ => point_at(text, at, &sentence),
        });
        let all: Vec<String> = sentences.collect();
        let none = if self.found_nothing() { NOTHING } else { "" };
        format!("{}{none}", all.join("\n"))
    }

    /// Whether policies were consulted, and no query was found that they allow.
    fn found_nothing(&self) -> bool {
        self.nearest.is_none() && !self.is_mistaken()
    }

    /// What is wrong, in sentences with their places. A function that several attributes do not support
    /// is one sentence.
    #[must_use]
    pub fn sentences(&self) -> Vec<(Location, String)> {
        let mut known: Vec<String> = Vec::new();
        let mut sentences = Vec::new();
        for violation in &self.violations {
            let alike = violation.rule.supported();
            match &alike {
                Some(alike) if known.contains(alike) => continue,
                Some(alike) => known.push(alike.clone()),
                None => {}
            }
            let sentence = alike.and_then(|alike| self.not_offered(&alike));
            sentences.push((violation.at, sentence.unwrap_or_else(|| violation.to_string())));
        }
        sentences
    }

    /// That attributes do not support functions, if there are several with the same support.
    fn not_offered(&self, alike: &str) -> Option<String> {
        let (mut functions, mut attributes): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
        for ViolationError { rule, .. } in &self.violations {
            if let RuleError::NotOffered { function, attribute, .. } = rule
                && rule.supported().as_deref() == Some(alike)
            {
                let attribute = format!("`{attribute}`");
                functions.extend((!functions.contains(function)).then_some(function));
                attributes.extend((!attributes.contains(&attribute)).then_some(attribute));
            }
        }
        if functions.len() + attributes.len() < 3 {
            return None;
        }
        let functions =
            listed(&functions.iter().map(ToString::to_string).collect::<Vec<_>>(), "or");
        let attributes = listed(&attributes, "and");
        Some(format!(
            "the schema does not support {functions} of {attributes}; of each it supports {}",
            or_none(alike)
        ))
    }

    /// Whether the query only has mistakes, such as unknown names, so that no policy was
    /// consulted.
    #[must_use]
    pub fn is_mistaken(&self) -> bool {
        self.violations.iter().all(ViolationError::is_mistake)
    }

    /// The mistakes alone, if there are any: what no policy could allow.
    #[must_use]
    pub fn mistakes(mut self) -> Option<PlanningError> {
        self.violations.retain(ViolationError::is_mistake);
        (!self.violations.is_empty()).then_some(self)
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

impl ViolationError {
    fn is_mistake(&self) -> bool {
        !matches!(
            self.rule,
            RuleError::Excluded { .. }
                | RuleError::NoMasks { .. }
                | RuleError::NoEpsilon
                | RuleError::NotOfTotals { .. }
                | RuleError::NotByEpochs { .. }
                | RuleError::NotVerifiable { .. }
                | RuleError::NotBoundable { .. }
                | RuleError::NotWithNoise { .. }
                | RuleError::Noise { .. }
                | RuleError::NoReader { .. }
                | RuleError::OutOfReach { .. }
        )
    }
}

/// A rule that a query breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// An unknown schema in `FROM`.
    #[error("there is no schema `{word}`{}", HintOr(suggestion, "SHOW SCHEMAS lists all schemas"))]
    UnknownSchema {
        /// The name as written.
        word: String,
        /// The most similar name that exists.
        suggestion: Option<String>,
    },
    /// An unknown attribute.
    #[error("{schema} has no attribute `{word}`; it has {known}{}", DidYouMean(suggestion))]
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
    /// Data in a condition or group.
    #[error(
        "`{word}` is data, which stays encrypted; WHERE and GROUP BY take only public metadata: {}",
        or_none(known)
    )]
    IsData {
        /// The attribute.
        word: String,
        /// All metadata that exists.
        known: String,
    },
    /// Unknown metadata in a condition or group.
    #[error(
        "{schema} has no metadata `{word}`; {}{}",
        metadata_or_none(known),
        DidYouMean(suggestion)
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
    #[error("`{metadata}` has no value `{word}`{}{known}", HintOr(suggestion, "its values are "))]
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
        "the schema does not support {function} of `{attribute}`; it supports {}{}",
        or_none(offered),
        missing.map_or_else(String::new, |name| format!("; {function} needs `{name}` among its `aggregations`"))
    )]
    NotOffered {
        /// The function.
        function: &'static str,
        /// The attribute.
        attribute: String,
        /// The functions that it supports.
        offered: String,
        /// The aggregation that the function needs, if the attribute can have it.
        missing: Option<&'static str>,
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
    #[error("the window of {} is not a multiple of {}, the tick of the schema{}", QuerySpan(*requested), QuerySpan(*tick), Neighbours(*requested, *tick, word))]
    OffTick {
        /// The window of the query.
        requested: Span,
        /// The schema's.
        tick: Span,
        /// The word that sets windows in the query: SIZE, or STEP of running totals.
        word: &'static str,
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
        "the query does not say how much noise to add; set epsilon as well, as in `WITH (epsilon = 0.5, delta = 1e-9)`, or remove delta, mechanism, events and CUMULATING"
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
    /// Results that the members of a window cannot decide.
    #[error("`integrity = '{word}'` is not possible here: {reason}; remove it, or change that")]
    NotVerifiable {
        /// What the query asks for.
        word: &'static str,
        /// What stands against it.
        reason: NotVerifiableError,
    },
    /// Results of which nobody can prove that each owner is within its bounds.
    #[error("`integrity = 'bounded'` is not possible here: {reason}")]
    NotBoundable {
        /// What stands against it.
        reason: NotBoundableError,
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
    /// Results with the noise that policies require are less exact than the query asks for.
    #[error(
        "`{column}` cannot be as exact as the query asks.\n  asked: {asked} in 95 of 100 windows\n  best: {best}, in windows of {owners} owners or more with {values} each\n  policies allow: {noise} of a stream in a window{remedy}"
    )]
    OutOfReach {
        /// The column that is farthest from what is asked.
        column: String,
        /// The margin that the query asks for.
        asked: String,
        /// The smallest margin that is possible.
        best: String,
        /// The least noise that policies allow.
        noise: String,
        /// The smallest population of a window.
        owners: u32,
        /// How many values each is expected to have.
        values: String,
        /// What would make it possible.
        remedy: Box<Remedy>,
    },
    /// A column whose error is not known before there is a result.
    #[error(
        "the error of `{column}` depends on the data, so a query cannot ask for it{}",
        if *.relative { " as a share; use WITHIN 5 OF 95 %, or leave the column out" } else { "; leave the column out" }
    )]
    ErrorUnknown {
        /// The column.
        column: String,
        /// Whether the query asks for it as a share of the result.
        relative: bool,
    },
    /// One typical value for attributes of different units.
    #[error(
        "`typical` is the mean of one attribute, but the query sums several; use one query for each"
    )]
    TypicalOfSeveral,
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
    #[error("{streams} of {of} streams cannot take part: {exclusion}{}", Sizes(exclusion, *window, word))]
    Excluded {
        /// The number of streams that this reason excludes.
        streams: u32,
        /// The number of streams that match the conditions.
        of: u32,
        /// The reason.
        exclusion: ExclusionError,
        /// The window of the query.
        window: Span,
        /// The word that sets windows in the query: SIZE, or STEP of running totals.
        word: &'static str,
    },
    /// No masking strategy is safe for these controllers.
    #[error(
        "no masks are safe among {controllers} controllers if {tolerated} of them may collude; use more controllers or a smaller alpha"
    )]
    NoMasks {
        /// N.
        controllers: u32,
        /// t.
        tolerated: u32,
    },
}

/// The lengths of windows next to one that is not allowed, in multiples of a span, behind the word
/// of the query that sets them.
struct Neighbours(Span, Span, &'static str);

impl fmt::Display for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Neighbours(asked, step, word) = *self;
        let around = asked.multiples_around(step);
        let around = around.map(|length| format!("{word} {}", QuerySpan(length)));
        write!(f, "; write {}", OneOf(&around.collect::<Vec<_>>()))
    }
}

/// The same behind a reason why streams are excluded, if that is their windows.
struct Sizes<'a>(&'a ExclusionError, Span, &'static str);

impl fmt::Display for Sizes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ExclusionError::Window { allowed, .. } => Neighbours(self.1, *allowed, self.2).fmt(f),
            _ => Ok(()),
        }
    }
}

impl RuleError {
    /// If a function is not supported: what is, without the attribute's name.
    fn supported(&self) -> Option<String> {
        let RuleError::NotOffered { attribute, offered, .. } = self else { return None };
        Some(offered.replace(&format!("({attribute}"), "(…"))
    }
}

/// A list in words.
fn listed(all: &[String], word: &str) -> String {
    match all {
        [rest @ .., last] if !rest.is_empty() => format!("{} {word} {last}", rest.join(", ")),
        _ => all.join(""),
    }
}

/// A list of names, or `nothing`.
fn or_none(names: &str) -> &str {
    if names.is_empty() { "nothing" } else { names }
}

fn metadata_or_none(names: &str) -> String {
    const NONE: &str = "it has none; to ask by a column, name it under `metadataAttributes` in the schema and under `metadata` in the source file, which makes its values public";
    if names.is_empty() { NONE.to_owned() } else { format!("it has {names}") }
}
