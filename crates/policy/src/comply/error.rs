//! Why a plan does not comply with a policy.

use crate::bounded_terms::NotBoundableError;
use crate::budget::{Cost, Epsilon};
use crate::fraction::Fraction;
use crate::plan::NotVerifiableError;
use crate::privacy::NoiseError;
use crate::schema::OptionKind;
use alpheus_time::Span;

/// The plan is refused. Attributes are positions in the schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComplianceError {
    /// The plan is for another schema than the stream's.
    #[error("the plan is for another schema, or another version of it")]
    OtherSchema,
    /// The window is empty or not a multiple of the tick.
    #[error("the window of {requested} is not a multiple of the schema's tick of {tick}")]
    WindowOffTick {
        /// The plan's.
        requested: Span,
        /// The schema's.
        tick: Span,
    },
    /// Population bounds that no window can meet.
    #[error("no population is at least {min} and at most {max}; the minimum must be 1 or more")]
    EmptyPopulation {
        /// The plan's minimum.
        min: u32,
        /// The plan's maximum.
        max: u32,
    },
    /// A population beyond what the schema's digits can hold.
    #[error("a population of up to {requested} exceeds the schema's capacity of {max}")]
    BeyondCapacity {
        /// The plan's.
        requested: u32,
        /// The schema's.
        max: u64,
    },
    /// More streams, regardless of their owners, than the schema's digits can hold.
    #[error("the plan adds up {streams} streams, but the schema's capacity is {max}")]
    TooManyStreams {
        /// The number of streams in the plan.
        streams: usize,
        /// The schema's.
        max: u64,
    },
    /// A share that is not a fraction between 0 and 1.
    #[error("the plan's alpha and dropout must be fractions between 0 and 1")]
    BadFraction,
    /// The plan names no attribute, so no policy applies to it.
    #[error("the plan names no attribute")]
    NoAttribute,
    /// The attributes are out of order, repeated, unknown to the schema, or incomplete: the
    /// release derives from another one.
    #[error("the plan must name every attribute that its rows derive from, in ascending order")]
    AttributesMisstated,
    /// The last row is not the check word alone, or another row contains it.
    #[error("the last row must be the check word alone, and no other row may contain it")]
    CheckWord,
    /// More rows than an event has words.
    #[error("the plan has more rows than an event has words")]
    TooManyRows,
    /// A row that is empty, out of order or beyond the vector, or that adds words which have
    /// no sum: words of different fields, packed digits, or both limbs.
    #[error("row {row} of the release is malformed, or adds words that have no meaning as a sum")]
    MalformedRow {
        /// The row.
        row: usize,
    },
    /// The members of its windows cannot decide what rows say.
    #[error("the plan's windows cannot be verified: {0}")]
    NotVerifiable(#[from] NotVerifiableError),
    /// Its members cannot prove that owners are within their bounds.
    #[error("the plan's windows cannot be bounded: {0}")]
    NotBoundable(#[from] NotBoundableError),
    /// The plan's noise does not protect its release.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// The owner shares nothing of the attribute.
    #[error("the owner keeps attribute {attribute} private")]
    Private {
        /// The attribute.
        attribute: u16,
    },
    /// None of the chosen options of the attribute allows the plan. The error has the
    /// requirements of the option that comes closest.
    #[error("the policy `{option}` ({}) of attribute {attribute} does not allow this: {}", .kind.name(), list(.denials))]
    Policy {
        /// The attribute.
        attribute: u16,
        /// The option that comes closest to allowing it.
        option: String,
        /// Its kind.
        kind: OptionKind,
        /// All its requirements that the plan does not meet. Never empty.
        denials: Vec<RequirementError>,
    },
}

impl ComplianceError {
    /// The rule's name in metrics, logs and `status` columns.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            ComplianceError::OtherSchema => "schema",
            ComplianceError::WindowOffTick { .. } => "tick",
            ComplianceError::EmptyPopulation { .. } => "population",
            ComplianceError::BeyondCapacity { .. } | ComplianceError::TooManyStreams { .. } => {
                "capacity"
            }
            ComplianceError::NotVerifiable(_) | ComplianceError::NotBoundable(_) => "integrity",
            ComplianceError::BadFraction => "fraction",
            ComplianceError::NoAttribute | ComplianceError::AttributesMisstated => "attributes",
            ComplianceError::CheckWord
            | ComplianceError::TooManyRows
            | ComplianceError::MalformedRow { .. } => "release",
            ComplianceError::Noise(_) => "noise",
            ComplianceError::Private { .. } => "private",
            ComplianceError::Policy { denials, .. } => {
                denials.first().map_or("policy", RequirementError::rule)
            }
        }
    }
}

/// A requirement of an option that a plan does not meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequirementError {
    /// The option requires noise, and the plan adds none.
    #[error("it requires noise (differential privacy), but the plan adds none")]
    NeedsNoise,
    /// Noise that hides less than the option's unit of protection.
    #[error("the plan's noise hides less than the policy's unit of protection")]
    Unit,
    /// One window costs more than the option allows.
    #[error("a window may cost at most ε = {max}{}, but the plan costs {requested}", if *.pure { " without δ" } else { "" })]
    Epsilon {
        /// What the plan costs the attribute.
        requested: Cost,
        /// What the option allows of one window.
        max: Epsilon,
        /// Whether the option has no δ, so only pure noise complies.
        pure: bool,
    },
    /// Too fine in time.
    #[error("windows must be multiples of {allowed}, but the plan's are {requested}")]
    Window {
        /// The plan's.
        requested: Span,
        /// Windows must be multiples of this.
        allowed: Span,
    },
    /// Too few people.
    #[error("the population must be at least {min}, but the plan's minimum is {requested}")]
    Population {
        /// The plan's minimum.
        requested: u32,
        /// The option's.
        min: u32,
    },
    /// Too little collusion tolerated.
    #[error("alpha must be at least {}, but the plan's is {}", fraction(*.min), fraction(*.requested))]
    Alpha {
        /// The plan's.
        requested: Fraction,
        /// The option's.
        min: Fraction,
    },
    /// Too few colluders of the whole deployment tolerated.
    #[error("colluders must be at least {min}, but the plan's is {requested}")]
    Colluders {
        /// The plan's.
        requested: u32,
        /// The option's.
        min: u32,
    },
    /// Too many dropouts accepted.
    #[error("dropout must be at most {}, but the plan's is {}", fraction(*.max), fraction(*.requested))]
    Dropout {
        /// The plan's.
        requested: Fraction,
        /// The option's.
        max: Fraction,
    },
    /// Not for this consumer, or not sealed to its key.
    #[error("results are released only to {}, sealed to its key", .allowed.join(", "))]
    Consumer {
        /// The consumers that may receive results.
        allowed: Vec<String>,
    },
    /// The members of windows would decide what rows say, for which controllers see more.
    #[error("it allows neither `integrity = 'verified'` nor `integrity = 'bounded'`")]
    Integrity,
    /// Too fine in the values of an attribute.
    #[error(
        "attribute {attribute} may be seen only in the policy's wider buckets, but row {row} is finer"
    )]
    Finer {
        /// The attribute whose buckets are too fine.
        attribute: u16,
        /// A row that is not a union of the option's buckets.
        row: usize,
    },
    /// A sum, square, moment or sketch of an attribute that may be seen only in buckets.
    #[error("attribute {attribute} may be seen only in buckets, but row {row} sums its values")]
    NotBucketed {
        /// The attribute.
        attribute: u16,
        /// The row.
        row: usize,
    },
}

impl RequirementError {
    /// The rule's name.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            RequirementError::NeedsNoise => "needs-noise",
            RequirementError::Unit => "privacy-unit",
            RequirementError::Epsilon { .. } => "epsilon",
            RequirementError::Window { .. } => "window",
            RequirementError::Population { .. } => "population",
            RequirementError::Alpha { .. } => "alpha",
            RequirementError::Colluders { .. } => "colluders",
            RequirementError::Dropout { .. } => "dropout",
            RequirementError::Consumer { .. } => "consumer",
            RequirementError::Integrity => "integrity",
            RequirementError::Finer { .. } | RequirementError::NotBucketed { .. } => "generalise",
        }
    }
}

fn list(denials: &[RequirementError]) -> String {
    let all: Vec<String> = denials.iter().map(RequirementError::to_string).collect();
    all.join("; ")
}

fn fraction(fraction: Fraction) -> String {
    format!("{}/{}", fraction.numerator, fraction.denominator)
}
