//! Finds fields and cells among the words.

use super::{Field, FieldStatistic, Layout, Packing};
use crate::schema::{Aggregation, Edges, Schema};

/// The location of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellLocation {
    /// Its word. For a cell in limbs, the word of the low half; the high half is the next.
    pub word: u16,
    /// Its digit in that word, where 0 is the lowest. 0 unless packed.
    pub digit: u8,
}

impl Layout {
    /// The field of a statistic, if the schema encodes it.
    #[must_use]
    pub fn field(&self, statistic: FieldStatistic) -> Option<&Field> {
        self.fields.iter().find(|field| field.statistic == statistic)
    }

    /// The field of a word, or `None` for the check word and beyond.
    #[must_use]
    pub fn field_at(&self, word: u16) -> Option<&Field> {
        let next = self.fields.partition_point(|field| field.first <= word);
        let field = self.fields.get(next.checked_sub(1)?)?;
        (word - field.first < field.words()).then_some(field)
    }
}

impl Field {
    /// The number of words it takes.
    #[must_use]
    pub fn words(&self) -> u16 {
        match self.packing {
            Packing::Whole => self.cells,
            Packing::Digits { per_word, .. } => self.cells.div_ceil(u16::from(per_word.max(1))),
            Packing::Limbs => self.cells.saturating_mul(2),
        }
    }

    /// The location of the cell at `position`, if there is such a cell.
    #[must_use]
    pub fn place(&self, position: u16) -> Option<CellLocation> {
        if position >= self.cells {
            return None;
        }
        let (word, digit) = match self.packing {
            Packing::Whole => (position, 0),
            Packing::Digits { per_word, .. } => {
                let per_word = u16::from(per_word.max(1));
                (position / per_word, u8::try_from(position % per_word).ok()?)
            }
            Packing::Limbs => (position * 2, 0),
        };
        Some(CellLocation { word: self.first + word, digit })
    }

    /// The cells that a word of this field holds.
    #[must_use]
    pub fn cells_of(&self, word: u16) -> std::ops::Range<u16> {
        let offset = word.saturating_sub(self.first);
        let (start, length) = match self.packing {
            Packing::Whole => (offset, 1),
            Packing::Digits { per_word, .. } => {
                (offset.saturating_mul(u16::from(per_word)), u16::from(per_word))
            }
            Packing::Limbs => (offset / 2, 1),
        };
        start.min(self.cells)..start.saturating_add(length).min(self.cells)
    }
}

impl FieldStatistic {
    /// The attributes that it derives from. Releasing it locks and charges each of them. The
    /// event count derives from none: it counts as public.
    pub fn attributes(self) -> impl Iterator<Item = u16> {
        let (one, other) = match self {
            FieldStatistic::EventCount => (None, None),
            FieldStatistic::Count(a)
            | FieldStatistic::Sum(a)
            | FieldStatistic::SumOfSquares(a)
            | FieldStatistic::Histogram(a, _)
            | FieldStatistic::Threshold { of: a, .. }
            | FieldStatistic::Any(a)
            | FieldStatistic::All(a)
            | FieldStatistic::Sketch(a, _) => (Some(a), None),
            FieldStatistic::Pair { y, x, .. } => (Some(y), Some(x)),
            FieldStatistic::By { of, by, .. } => (Some(of), Some(by)),
        };
        one.into_iter().chain(other)
    }

    /// The attribute whose buckets its cells are, and their grid.
    #[must_use]
    pub fn grid(self, schema: &Schema) -> Option<(u16, &Edges)> {
        let (of, aggregation) = match self {
            FieldStatistic::Histogram(a, k) => (a, k),
            FieldStatistic::By { of, aggregation, .. } => (of, aggregation),
            _ => return None,
        };
        let attribute = schema.attributes.get(usize::from(of))?;
        match attribute.aggregations.get(usize::from(aggregation))? {
            Aggregation::Histogram(edges) => Some((of, edges)),
            Aggregation::By { attribute, edges, .. } => Some((*attribute, edges)),
            _ => None,
        }
    }
}
