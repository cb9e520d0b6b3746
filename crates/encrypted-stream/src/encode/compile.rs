//! From a schema and its layout to the steps of an encoding.

use super::op::{Bins, Cell, Moment, Op, Sketch};
use alpheus_policy::layout::{Field, FieldStatistic, Layout, Packing, PairMoment};
use alpheus_policy::schema::{Aggregation, AttributeKind, Edges, Schema};
use alpheus_policy::sketch::SketchHash;

/// Why a layout cannot be the schema's. Layouts are computed from schemas, so
/// this points at a defect or at two versions mixed up, never at a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutMismatch {
    /// The field speaks of an attribute or aggregation that the schema lacks.
    #[error("field {field} encodes what the schema does not declare")]
    Undeclared {
        /// The field's position in the layout.
        field: usize,
    },
    /// The field has another number of cells than its statistic.
    #[error("field {field} has {found} cells and needs {expected}")]
    Cells {
        /// The field's position in the layout.
        field: usize,
        /// Cells that its statistic has.
        expected: usize,
        /// Cells that it is given.
        found: usize,
    },
    /// The field reaches into the check word or beyond the vector.
    #[error("field {field} does not lie before the check word")]
    BeyondVector {
        /// The field's position in the layout.
        field: usize,
    },
    /// One value at its declared bounds does not fit a cell.
    #[error("a single value does not fit a cell of field {field}")]
    Overflow {
        /// The field's position in the layout.
        field: usize,
    },
    /// Digits wider than a word, or of no width.
    #[error("the digits of field {field} do not fit a word")]
    Digits {
        /// The field's position in the layout.
        field: usize,
    },
}

/// The steps that fill the layout's words from an event.
pub(super) fn ops(schema: &Schema, layout: &Layout) -> Result<Vec<Op>, LayoutMismatch> {
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
    fn op(&self) -> Result<Op, LayoutMismatch> {
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

    fn moment(&self, x: u16, y: u16, moment: Moment) -> Result<Op, LayoutMismatch> {
        let cell = self.cell(self.largest(x, y, moment)?, 1)?;
        Ok(Op::Moment { x: x.into(), y: y.into(), moment, cell })
    }

    fn histogram(&self, of: u16, aggregation: u16) -> Result<Op, LayoutMismatch> {
        let Aggregation::Histogram(edges) = self.aggregation(of, aggregation)? else {
            return Err(self.undeclared());
        };
        self.binned(of, Moment::One, of, edges)
    }

    fn by(&self, of: u16, by: u16, aggregation: u16, order: u8) -> Result<Op, LayoutMismatch> {
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
    ) -> Result<Op, LayoutMismatch> {
        self.range(by)?;
        let cells = self.cells(self.largest(of, of, moment)?, edges.bins().into())?;
        let bins = bins(edges).ok_or_else(|| self.undeclared())?;
        Ok(Op::Binned { of: of.into(), moment, by: by.into(), bins, cells })
    }

    fn threshold(&self, of: u16, aggregation: u16, order: u8) -> Result<Op, LayoutMismatch> {
        let Aggregation::Threshold { at } = self.aggregation(of, aggregation)? else {
            return Err(self.undeclared());
        };
        let moment = self.order(order)?;
        let cells = self.cells(self.largest(of, of, moment)?, 2)?;
        let &[above, below] = cells.as_ref() else { return Err(self.undeclared()) };
        Ok(Op::Split { of: of.into(), moment, at: *at, cells: [above, below] })
    }

    fn random(&self, of: u16, when: bool) -> Result<Op, LayoutMismatch> {
        if *self.attribute(of)? != AttributeKind::Boolean {
            return Err(self.undeclared());
        }
        if self.field.packing != Packing::Whole {
            return Err(LayoutMismatch::Overflow { field: self.number });
        }
        Ok(Op::Random { of: of.into(), when, cell: self.cell(1, 1)? })
    }

    fn sketch(&self, of: u16, aggregation: u16) -> Result<Op, LayoutMismatch> {
        let Aggregation::Sketch { depth, width } = *self.aggregation(of, aggregation)? else {
            return Err(self.undeclared());
        };
        let cells = self.cells(1, usize::from(depth) * usize::from(width))?;
        let hash = SketchHash::new(&self.schema.id(), of, aggregation);
        let sketch = Box::new(Sketch { hash, depth, width, cells });
        Ok(Op::Sketch { of: of.into(), sketch })
    }

    fn order(&self, order: u8) -> Result<Moment, LayoutMismatch> {
        match order {
            0 => Ok(Moment::One),
            1 => Ok(Moment::X),
            2 => Ok(Moment::Xx),
            _ => Err(self.undeclared()),
        }
    }

    fn undeclared(&self) -> LayoutMismatch {
        LayoutMismatch::Undeclared { field: self.number }
    }

    fn attribute(&self, position: u16) -> Result<&AttributeKind, LayoutMismatch> {
        let attribute = self.schema.attributes.get(usize::from(position));
        attribute.map(|attribute| &attribute.kind).ok_or_else(|| self.undeclared())
    }

    fn aggregation(&self, of: u16, position: u16) -> Result<&Aggregation, LayoutMismatch> {
        let attribute = self.schema.attributes.get(usize::from(of));
        attribute
            .and_then(|attribute| attribute.aggregations.get(usize::from(position)))
            .ok_or_else(|| self.undeclared())
    }

    /// Least and greatest number that an attribute takes.
    fn range(&self, position: u16) -> Result<(i128, i128), LayoutMismatch> {
        match self.attribute(position)? {
            AttributeKind::Number { min, max, .. } => Ok((i128::from(*min), i128::from(*max))),
            AttributeKind::Boolean => Ok((0, 1)),
            AttributeKind::Text { .. } => Err(self.undeclared()),
        }
    }

    /// The addend that is largest in magnitude, as a cell must hold it.
    fn largest(&self, x: u16, y: u16, moment: Moment) -> Result<i128, LayoutMismatch> {
        let widest = |(min, max): (i128, i128)| if -min > max { min } else { max };
        let (x, y) = (widest(self.range(x)?), widest(self.range(y)?));
        Ok(match moment {
            Moment::One => 1,
            Moment::X => x,
            Moment::Y => y,
            Moment::Xx => x * x,
            // Of either sign.
            Moment::Xy => -(x * y).abs(),
            Moment::Yy => y * y,
        })
    }

    /// The only cell of the field.
    fn cell(&self, largest: i128, count: usize) -> Result<Cell, LayoutMismatch> {
        let cells = self.cells(largest, count)?;
        cells.first().copied().ok_or_else(|| self.undeclared())
    }

    /// All cells of the field, which must be `count` and hold `largest`.
    fn cells(&self, largest: i128, count: usize) -> Result<Box<[Cell]>, LayoutMismatch> {
        let field = self.number;
        let found = usize::from(self.field.cells);
        if found != count {
            return Err(LayoutMismatch::Cells { field, expected: count, found });
        }
        let bits = self.bits()?;
        if largest >= 1 << (bits - 1) || largest < -(1 << (bits - 1)) {
            return Err(LayoutMismatch::Overflow { field });
        }
        (0..self.field.cells).map(|i| self.place(i)).collect()
    }

    /// Width of the largest signed number that a cell holds.
    fn bits(&self) -> Result<u32, LayoutMismatch> {
        match self.field.packing {
            Packing::Whole => Ok(64),
            Packing::Limbs => Ok(96),
            Packing::Digits { bits, per_word }
                if bits >= 1 && per_word >= 1 && u16::from(bits) * u16::from(per_word) <= 64 =>
            {
                Ok(bits.into())
            }
            Packing::Digits { .. } => Err(LayoutMismatch::Digits { field: self.number }),
        }
    }

    /// Where cell `i` stands.
    fn place(&self, i: u16) -> Result<Cell, LayoutMismatch> {
        let (offset, shift, limbs) = match self.field.packing {
            Packing::Whole => (u32::from(i), 0, false),
            Packing::Limbs => (2 * u32::from(i), 0, true),
            Packing::Digits { bits, per_word } => {
                let per_word = u16::from(per_word);
                let shift = (i % per_word) * u16::from(bits);
                (u32::from(i / per_word), u8::try_from(shift).unwrap_or(u8::MAX), false)
            }
        };
        let beyond = LayoutMismatch::BeyondVector { field: self.number };
        let word = u16::try_from(u32::from(self.field.first) + offset).map_err(|_| beyond)?;
        let last = u32::from(word) + u32::from(limbs);
        if last + 1 >= u32::from(self.layout.words) {
            return Err(beyond);
        }
        Ok(Cell { word, shift, limbs })
    }
}

/// None if the edges are no bins.
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
