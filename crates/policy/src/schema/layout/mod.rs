//! Where each statistic is in an event's vector of 64-bit words.
//!
//! The layout is a function of the schema alone. Producer, controller and consumer agree
//! on it by agreeing on the schema's hash.

use crate::schema::Schema;
use serde::{Deserialize, Serialize};

mod bounds;
mod build;
mod cell_locations;

pub(crate) use bounds::max_in_event;
pub use build::LayoutError;
pub use cell_locations::CellLocation;

/// Maximum number of words of a vector. The cipher counts blocks of two words in 12 bits.
pub const MAX_WORDS: usize = 8192;

/// The words of an event of a schema. The last is the check word, which is zero in every
/// event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The fields, in order of their words.
    pub fields: Vec<Field>,
    /// Words in a vector, the check word included.
    pub words: u16,
}

impl Layout {
    /// The layout of a schema's events: the statistics of its attributes, each once and in
    /// schema order, then the event count if any attribute shares it, then the check word.
    ///
    /// # Errors
    /// If the worst-case sum of a statistic over a window does not fit in two words, or the
    /// vector is too long for the cipher.
    pub fn of(schema: &Schema) -> Result<Layout, LayoutError> {
        build::layout(schema)
    }

    /// Position of the always-zero check word.
    #[must_use]
    pub fn check_word(&self) -> u16 {
        self.words - 1
    }
}

/// Consecutive cells of one statistic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The statistic that its cells sum.
    pub statistic: FieldStatistic,
    /// Its first word.
    pub first: u16,
    /// Its number of cells.
    pub cells: u16,
    /// How its cells are packed into words.
    pub packing: Packing,
}

/// The statistic of a field. Numbers are positions in
/// [`Schema::attributes`](crate::schema::Schema::attributes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FieldStatistic {
    /// The number of events, shared by all mandatory attributes.
    EventCount,
    /// The number of values of an attribute.
    Count(u16),
    /// The value.
    Sum(u16),
    /// Its square.
    SumOfSquares(u16),
    /// One-hot bins. The second number is the position in the attribute's aggregations.
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
        /// Position in the aggregations of `of`, which have the edges.
        aggregation: u16,
        /// 0: count, 1: sum, 2: sum of squares.
        order: u8,
    },
    /// Two cells: values at or above the threshold, and values below it.
    Threshold {
        /// The attribute.
        of: u16,
        /// Position in its aggregations.
        aggregation: u16,
        /// 0: count, 1: sum.
        order: u8,
    },
    /// A random word where the value is true.
    Any(u16),
    /// A random word where the value is false.
    All(u16),
    /// A count-min sketch, row by row. The second number is the position in the attribute's
    /// aggregations.
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

/// How the cells of a field are packed into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Packing {
    /// One word per cell, in two's complement.
    Whole,
    /// `per_word` signed digits of `bits` bits per word, the first cell lowest. The sum of
    /// each digit over a window is known to fit, so no digit ever carries.
    Digits {
        /// Width of a digit, sign included.
        bits: u8,
        /// Digits in a word.
        per_word: u8,
    },
    /// Two words per cell: the low 32 bits of the value, then the rest, signed.
    Limbs,
}
