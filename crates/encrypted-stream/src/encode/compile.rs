//! Compiles a schema and its layout to the steps of an encoding.

use super::op::{Bins, Cell, Moment, Op, Sketch};
use alpheus_policy::layout::{Field, FieldStatistic, Layout, Packing, PairMoment};
use alpheus_policy::schema::{Aggregation, AttributeKind, Edges, Schema};
use alpheus_policy::sketch::SketchHash;

/// Why a layout cannot be the schema's. Layouts are computed from schemas, so
/// this indicates a bug or mixed versions, never a user's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutMismatchError {
    /// The field refers to an attribute or aggregation that the schema lacks.
    #[error("field {field} encodes an attribute or aggregation that the schema does not declare")]
    Undeclared {
        /// The field's position in the layout.
        field: usize,
    },
    /// The field has a different number of cells than its statistic.
    #[error("field {field} has {found} cells and needs {expected}")]
    Cells {
        /// The field's position in the layout.
        field: usize,
        /// Cells that the statistic needs.
        expected: usize,
        /// Cells in the layout.
        found: usize,
    },
    /// The field overlaps the check word or exceeds the vector.
    #[error("field {field} does not end before the check word")]
    BeyondVector {
        /// The field's position in the layout.
        field: usize,
    },
    /// One value at its declared bounds does not fit in a cell.
    #[error("a single value does not fit in a cell of field {field}")]
    Overflow {
        /// The field's position in the layout.
        field: usize,
    },
    /// The digits exceed a word, or have no width.
    #[error("the digits of field {field} do not fit in a word")]
    Digits {
        /// The field's position in the layout.
        field: usize,
    },
}

/// The steps that fill the layout's words from an event.
pub(super) fn ops(schema: &Schema, layout: &Layout) -> Result<Vec<Op>, LayoutMismatchError> {
    let compile = |(number, field)| Compiler { schema, layout, field, number }.op();
    layout.fields.iter().enumerate().map(compile).collect()
}

/// Compiles one field.
struct Compiler<'a> {
    schema: &'a Schema,
    layout: &'a Layout,
    field: &'a Field,
    number: usize,
}

impl Compiler<'_> {
    fn op(&self) -> Result<Op, LayoutMismatchError> {
        match self.field.statistic {
            FieldStatistic::EventCount => Ok(Op::Event { cell: self.cell(1, 1)? }),
            FieldStatistic::Count(of) => {
                self.attribute(of)?;
                Ok(Op::Presence { of: of.into(), cell: self.cell(1, 1)? })
            }
            FieldStatistic::Sum(of) => self.moment(of, of, Moment::X),
            FieldStatistic::SumOfSquares(of) => self.moment(of, of, Moment::Xx),
            FieldStatistic::Pair { y, x, moment } => self.moment(x, y, moment.into()),
            FieldStatistic::Histogram(of, aggregation) => self.histogram(of, aggregation),
            FieldStatistic::By { of, by, aggregation, order } => {
                self.by(of, by, aggregation, order)
            }
            FieldStatistic::Threshold { of, aggregation, order } => {
                self.threshold(of, aggregation, order)
            }
            FieldStatistic::Any(of) => self.random(of, true),
            FieldStatistic::All(of) => self.random(of, false),
            FieldStatistic::Sketch(of, aggregation) => self.sketch(of, aggregation),
        }
    }

    fn moment(&self, x: u16, y: u16, moment: Moment) -> Result<Op, LayoutMismatchError> {
        let cell = self.cell(self.largest(x, y, moment)?, 1)?;
        Ok(Op::Moment { x: x.into(), y: y.into(), moment, cell })
    }

    fn histogram(&self, of: u16, aggregation: u16) -> Result<Op, LayoutMismatchError> {
        let Aggregation::Histogram(edges) = self.aggregation(of, aggregation)? else {
            return Err(self.undeclared());
        };
        self.binned(of, Moment::One, of, edges)
    }

    fn by(&self, of: u16, by: u16, aggregation: u16, order: u8) -> Result<Op, LayoutMismatchError> {
        match self.aggregation(of, aggregation)? {
            Aggregation::By { attribute, edges, .. } if *attribute == by => {
                self.binned(of, self.order(order)?, by, edges)
            }
            _ => Err(self.undeclared()),
        }
    }

    fn binned(
        &self,
        of: u16,
        moment: Moment,
        by: u16,
        edges: &Edges,
    ) -> Result<Op, LayoutMismatchError> {
        self.range(by)?;
        let cells = self.cells(self.largest(of, of, moment)?, edges.bins().into())?;
        let bins = bins(edges).ok_or_else(|| self.undeclared())?;
        Ok(Op::Binned { of: of.into(), moment, by: by.into(), bins, cells })
    }

    fn threshold(&self, of: u16, aggregation: u16, order: u8) -> Result<Op, LayoutMismatchError> {
        let Aggregation::Threshold { at } = self.aggregation(of, aggregation)? else {
            return Err(self.undeclared());
        };
        let moment = self.order(order)?;
        let cells = self.cells(self.largest(of, of, moment)?, 2)?;
        let &[above, below] = cells.as_ref() else { return Err(self.undeclared()) };
        Ok(Op::Split { of: of.into(), moment, at: *at, cells: [above, below] })
    }

    fn random(&self, of: u16, when: bool) -> Result<Op, LayoutMismatchError> {
        if *self.attribute(of)? != AttributeKind::Boolean {
            return Err(self.undeclared());
        }
        if self.field.packing != Packing::Whole {
            return Err(LayoutMismatchError::Overflow { field: self.number });
        }
        Ok(Op::Random { of: of.into(), when, cell: self.cell(1, 1)? })
    }

    fn sketch(&self, of: u16, aggregation: u16) -> Result<Op, LayoutMismatchError> {
        let Aggregation::Sketch { depth, width } = *self.aggregation(of, aggregation)? else {
            return Err(self.undeclared());
        };
        let cells = self.cells(1, usize::from(depth) * usize::from(width))?;
        let hash = SketchHash::new(&self.schema.id(), of, aggregation);
        let sketch = Box::new(Sketch { hash, depth, width, cells });
        Ok(Op::Sketch { of: of.into(), sketch })
    }

    fn order(&self, order: u8) -> Result<Moment, LayoutMismatchError> {
        match order {
            0 => Ok(Moment::One),
            1 => Ok(Moment::X),
            2 => Ok(Moment::Xx),
            _ => Err(self.undeclared()),
        }
    }

    fn undeclared(&self) -> LayoutMismatchError {
        LayoutMismatchError::Undeclared { field: self.number }
    }

    fn attribute(&self, position: u16) -> Result<&AttributeKind, LayoutMismatchError> {
        let attribute = self.schema.attributes.get(usize::from(position));
        attribute.map(|attribute| &attribute.kind).ok_or_else(|| self.undeclared())
    }

    fn aggregation(&self, of: u16, position: u16) -> Result<&Aggregation, LayoutMismatchError> {
        let attribute = self.schema.attributes.get(usize::from(of));
        attribute
            .and_then(|attribute| attribute.aggregations.get(usize::from(position)))
            .ok_or_else(|| self.undeclared())
    }

    /// The smallest and largest number that an attribute accepts.
    fn range(&self, position: u16) -> Result<(i128, i128), LayoutMismatchError> {
        match self.attribute(position)? {
            AttributeKind::Number { min, max, .. } => Ok((i128::from(*min), i128::from(*max))),
            AttributeKind::Boolean => Ok((0, 1)),
            AttributeKind::Text { .. } => Err(self.undeclared()),
        }
    }

    /// The addend of largest magnitude. A cell must be able to hold it.
    fn largest(&self, x: u16, y: u16, moment: Moment) -> Result<i128, LayoutMismatchError> {
        let widest = |(min, max): (i128, i128)| if -min > max { min } else { max };
        let (x, y) = (widest(self.range(x)?), widest(self.range(y)?));
        Ok(match moment {
            Moment::One => 1,
            Moment::X => x,
            Moment::Y => y,
            Moment::Xx => x * x,
            // It can have either sign.
            Moment::Xy => -(x * y).abs(),
            Moment::Yy => y * y,
        })
    }

    /// The field's only cell.
    fn cell(&self, largest: i128, count: usize) -> Result<Cell, LayoutMismatchError> {
        let cells = self.cells(largest, count)?;
        cells.first().copied().ok_or_else(|| self.undeclared())
    }

    /// All cells of the field. There must be `count`, each able to hold `largest`.
    fn cells(&self, largest: i128, count: usize) -> Result<Box<[Cell]>, LayoutMismatchError> {
        let field = self.number;
        let found = usize::from(self.field.cells);
        if found != count {
            return Err(LayoutMismatchError::Cells { field, expected: count, found });
        }
        let bits = self.bits()?;
        if largest >= 1 << (bits - 1) || largest < -(1 << (bits - 1)) {
            return Err(LayoutMismatchError::Overflow { field });
        }
        (0..self.field.cells).map(|i| self.location(i)).collect()
    }

    /// Width in bits of a cell's signed number.
    fn bits(&self) -> Result<u32, LayoutMismatchError> {
        match self.field.packing {
            Packing::Whole => Ok(64),
            Packing::Limbs => Ok(96),
            Packing::Digits { bits, per_word }
                if bits >= 1 && per_word >= 1 && u16::from(bits) * u16::from(per_word) <= 64 =>
            {
                Ok(bits.into())
            }
            Packing::Digits { .. } => Err(LayoutMismatchError::Digits { field: self.number }),
        }
    }

    /// The location of cell `i`.
    fn location(&self, i: u16) -> Result<Cell, LayoutMismatchError> {
        let (offset, shift, limbs) = match self.field.packing {
            Packing::Whole => (u32::from(i), 0, false),
            Packing::Limbs => (2 * u32::from(i), 0, true),
            Packing::Digits { bits, per_word } => {
                let per_word = u16::from(per_word);
                let shift = (i % per_word) * u16::from(bits);
                (u32::from(i / per_word), u8::try_from(shift).unwrap_or(u8::MAX), false)
            }
        };
        let beyond = LayoutMismatchError::BeyondVector { field: self.number };
        let word = u16::try_from(u32::from(self.field.first) + offset).map_err(|_| beyond)?;
        let last = u32::from(word) + u32::from(limbs);
        if last + 1 >= u32::from(self.layout.words) {
            return Err(beyond);
        }
        Ok(Cell { word, shift, limbs })
    }
}

/// Compiled bins; `None` if the edges are invalid.
fn bins(edges: &Edges) -> Option<Bins> {
    match edges {
        Edges::Uniform { lo, width, bins } => {
            let width = u64::try_from(*width).ok().filter(|width| *width > 0)?;
            Some(Bins::Uniform { lo: *lo, width, last: u64::from(bins.checked_sub(1)?) })
        }
        Edges::Explicit(edges) if edges.is_sorted_by(|a, b| a < b) && !edges.is_empty() => {
            Some(Bins::Explicit(edges.clone().into()))
        }
        Edges::Explicit(_) => None,
    }
}

impl From<PairMoment> for Moment {
    fn from(moment: PairMoment) -> Moment {
        match moment {
            PairMoment::Count => Moment::One,
            PairMoment::X => Moment::X,
            PairMoment::Y => Moment::Y,
            PairMoment::Xx => Moment::Xx,
            PairMoment::Xy => Moment::Xy,
            PairMoment::Yy => Moment::Yy,
        }
    }
}
