//! Where each statistic stands in an event's vector of 64-bit words.
//!
//! The layout is a function of the schema alone, so that producer, controller
//! and consumer agree on it by agreeing on the schema's hash.

use crate::schema::Schema;
use serde::{Deserialize, Serialize};

mod bounds;
mod build;
mod places;

pub(crate) use bounds::greatest_in_event;
pub use build::LayoutError;
pub use places::CellPlace;

/// Words of the longest vector: the cipher counts its blocks of two in 12 bits.
pub const MOST_WORDS: usize = 8192;

/// The words of one event of a schema. The last word is the check word, which
/// is zero in every event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The fields, in order of their words.
    pub fields: Vec<Field>,
    /// Words in a vector, the check word included.
    pub words: u16,
}

impl Layout {
    /// The layout of a schema's events: the statistics that its attributes
    /// offer, each once, in schema order, then the event count if anything
    /// shares it, then the check word.
    ///
    /// # Errors
    /// Where a statistic's worst-case window sum fits no two words, or the
    /// vector is longer than the cipher's.
    pub fn of(schema: &Schema) -> Result<Layout, LayoutError> {
        build::layout(schema)
    }

    /// Position of the always-zero check word.
    #[must_use]
    pub fn check_word(&self) -> u16 {
        self.words - 1
    }
}

/// A run of cells that hold one kind of statistic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// What its cells sum.
    pub statistic: FieldStatistic,
    /// Its first word.
    pub first: u16,
    /// How many cells it has.
    pub cells: u16,
    /// How its cells lie in words.
    pub packing: Packing,
}

/// What the cells of a field sum. Numbers are positions in
/// [`Schema::attributes`](crate::schema::Schema::attributes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FieldStatistic {
    /// Events; shared by all mandatory attributes.
    EventCount,
    /// Values of an attribute that were present.
    Count(u16),
    /// The value.
    Sum(u16),
    /// Its square.
    SumOfSquares(u16),
    /// One-hot bins. The second number is the position among the attribute's aggregations.
    Histogram(u16, u16),
    /// A moment of `y` and `x` over events that have both.
    Pair {
        /// The explained attribute.
        y: u16,
        /// The explaining attribute.
        x: u16,
        /// Which moment.
        moment: PairMoment,
    },
    /// Moments of `of` for each bucket of `by`.
    By {
        /// The attribute that is summed.
        of: u16,
        /// The attribute whose buckets these are.
        by: u16,
        /// Position among the aggregations of `of`, where the edges stand.
        aggregation: u16,
        /// 0: count, 1: sum, 2: sum of squares.
        order: u8,
    },
    /// Two cells, at or above the threshold and below: order 0 counts, 1 sums.
    Threshold {
        /// The attribute.
        of: u16,
        /// Position among its aggregations.
        aggregation: u16,
        /// 0: count, 1: sum.
        order: u8,
    },
    /// A random word where the value is true.
    Any(u16),
    /// A random word where the value is false.
    All(u16),
    /// A count-min sketch, row by row; position among the attribute's aggregations.
    Sketch(u16, u16),
}

/// A moment of two attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PairMoment {
    /// 1
    Count,
    /// x
    X,
    /// y
    Y,
    /// x²
    Xx,
    /// xy
    Xy,
    /// y²
    Yy,
}

/// How the cells of a field lie in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Packing {
    /// One word a cell, two's complement.
    Whole,
    /// `per_word` signed digits of `bits` bits a word, the first cell lowest.
    /// The window's sum of each digit is known to fit, so none ever carries.
    Digits {
        /// Width of a digit, sign included.
        bits: u8,
        /// Digits in a word.
        per_word: u8,
    },
    /// Two words a cell: the value's low 32 bits, then the rest, signed.
    Limbs,
}
