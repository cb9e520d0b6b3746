//! Why a plan is not taken part in.

use crate::budget::{Cost, Epsilon};
use crate::plan::Fraction;
use crate::privacy::NoiseFault;
use crate::schema::OptionKind;
use crate::time::Span;

/// Why a plan is refused. Attributes are positions in the schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The plan is for another schema than the stream's.
    #[error("the plan is for another schema, or another version of it")]
    OtherSchema,
    /// The window is empty or no tick divides it.
    #[error("a window of {asked} is no multiple of the schema's tick {tick}")]
    WindowOffTick {
        /// Asked for.
        asked: Span,
        /// The schema's.
        tick: Span,
    },
    /// Population bounds that no window can meet.
    #[error("a population of at least {min} and at most {max} is empty")]
    EmptyPopulation {
        /// Least.
        min: u32,
        /// Most.
        max: u32,
    },
    /// More streams than the schema's digits were sized for.
    #[error("a population of up to {asked} is beyond the schema's capacity of {most}")]
    BeyondCapacity {
        /// Asked for.
        asked: u32,
        /// The schema's.
        most: u64,
    },
    /// More streams, of however many owners, than the schema's digits were sized for.
    #[error("the plan adds up {streams} streams, and the schema's capacity is {most}")]
    TooManyStreams {
        /// In the plan.
        streams: usize,
        /// The schema's.
        most: u64,
    },
    /// A share that is no fraction between 0 and 1.
    #[error("the plan's alpha or dropout is no fraction between 0 and 1")]
    BadFraction,
    /// No attribute is named, so that no policy speaks about the plan.
    #[error("the plan names no attribute")]
    NoAttribute,
    /// The release derives from an attribute that the plan does not name, or
    /// names one twice, out of order, or that the schema lacks.
    #[error("the attributes that the plan names are not those that its rows derive from")]
    AttributesMisstated,
    /// The last row is not the check word alone, or another holds it.
    #[error("the check word must stand alone in the last row")]
    CheckWord,
    /// More rows than an event has words.
    #[error("the plan has more rows than an event has words")]
    TooManyRows,
    /// A row that is empty, out of order, beyond the vector, or adds words that
    /// have no sum: of different fields, of packed digits, of both limbs.
    #[error("row {row} of the release adds up words that have no common meaning")]
    MalformedRow {
        /// The row.
        row: usize,
    },
    /// The plan's noise does not protect its release.
    #[error(transparent)]
    Noise(#[from] NoiseFault),
    /// The owner keeps the attribute to themselves.
    #[error("attribute {attribute} is private")]
    Private {
        /// The attribute.
        attribute: u16,
    },
    /// No chosen option of the attribute allows the plan; this is what the
    /// nearest one asks for.
    #[error("attribute {attribute} is offered as `{option}` ({}): {}", .kind.name(), list(.denials))]
    Policy {
        /// The attribute.
        attribute: u16,
        /// The option that is nearest to allowing it.
        option: String,
        /// Its kind.
        kind: OptionKind,
        /// Everything that it asks for and the plan does not give; never empty.
        denials: Vec<Denial>,
    },
}

impl Refusal {
    /// The rule's name, as counts, logs and `status` columns write it.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Refusal::OtherSchema => "schema",
            Refusal::WindowOffTick { .. } => "tick",
            Refusal::EmptyPopulation { .. } => "population",
            Refusal::BeyondCapacity { .. } | Refusal::TooManyStreams { .. } => "capacity",
            Refusal::BadFraction => "fraction",
            Refusal::NoAttribute | Refusal::AttributesMisstated => "attributes",
            Refusal::CheckWord | Refusal::TooManyRows | Refusal::MalformedRow { .. } => "release",
            Refusal::Noise(_) => "noise",
            Refusal::Private { .. } => "private",
            Refusal::Policy { denials, .. } => denials.first().map_or("policy", Denial::rule),
        }
    }
}

/// One thing that an option asks for and a plan does not give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denial {
    /// Only released with noise, which this plan does not add.
    #[error("it is released under differential privacy only, and the plan adds no noise")]
    NeedsNoise,
    /// Noise that hides less than the option's unit of protection.
    #[error("the noise must hide all of a person's window, and the plan's hides one event")]
    Unit,
    /// One window costs more than the option allows.
    #[error("a window may cost it {most}{}, and the plan costs it {asked}", if *.pure { " (pure)" } else { "" })]
    Epsilon {
        /// What the plan costs the attribute.
        asked: Cost,
        /// What the option allows of one window.
        most: Epsilon,
        /// Whether the option has no δ, so that only pure noise complies.
        pure: bool,
    },
    /// Too fine in time.
    #[error("windows must be multiples of {allowed}, {asked} is asked")]
    Window {
        /// Asked for.
        asked: Span,
        /// Windows must be multiples of this.
        allowed: Span,
    },
    /// Too few people.
    #[error("a population of at least {least} is needed, {asked} is asked")]
    Population {
        /// The plan's minimum.
        asked: u32,
        /// The option's.
        least: u32,
    },
    /// Too little collusion tolerated.
    #[error("alpha must be at least {}, {} is asked", fraction(*.least), fraction(*.asked))]
    Alpha {
        /// The plan's.
        asked: Fraction,
        /// The option's.
        least: Fraction,
    },
    /// Too many dropouts accepted.
    #[error("dropout must be at most {}, {} is asked", fraction(*.most), fraction(*.asked))]
    Dropout {
        /// The plan's.
        asked: Fraction,
        /// The option's.
        most: Fraction,
    },
    /// Not for this consumer, or not for its key alone.
    #[error("it is released to {} only, under its key", .allowed.join(", "))]
    Consumer {
        /// For whom it is.
        allowed: Vec<String>,
    },
    /// Too fine in the values of an attribute.
    #[error("attribute {attribute} is seen in the option's wider buckets only, row {row} is finer")]
    Finer {
        /// The attribute whose buckets are too fine.
        attribute: u16,
        /// A row that is no union of the option's buckets.
        row: usize,
    },
    /// A sum, square, moment or sketch of an attribute that is seen in buckets.
    #[error("attribute {attribute} is seen in buckets only, row {row} is a sum over it")]
    NotBucketed {
        /// The attribute.
        attribute: u16,
        /// The row.
        row: usize,
    },
}

impl Denial {
    /// The rule's name.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Denial::NeedsNoise => "needs-noise",
            Denial::Unit => "privacy-unit",
            Denial::Epsilon { .. } => "epsilon",
            Denial::Window { .. } => "window",
            Denial::Population { .. } => "population",
            Denial::Alpha { .. } => "alpha",
            Denial::Dropout { .. } => "dropout",
            Denial::Consumer { .. } => "consumer",
            Denial::Finer { .. } | Denial::NotBucketed { .. } => "generalise",
        }
    }
}

fn list(denials: &[Denial]) -> String {
    let all: Vec<String> = denials.iter().map(Denial::to_string).collect();
    all.join("; ")
}

fn fraction(fraction: Fraction) -> String {
    format!("{}/{}", fraction.numerator, fraction.denominator)
}
