//! The steps of a compiled encoding.

use super::Value;
use alpheus_policy::sketch::{SketchHash, number_item};
use rand_core::CryptoRng;

/// The location of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// The (first) word.
    pub(super) word: u16,
    /// The digit's lowest bit within the word.
    pub(super) shift: u8,
    /// Whether the cell has two words: the low 32 bits, then the signed rest.
    pub(super) limbs: bool,
}

/// A product of at most two values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// 1
    One,
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

/// Compiled bins.
#[derive(Clone, Debug)]
pub(super) enum Bins {
    /// Bins of equal width from `lo`; `last` is the last bin's index.
    Uniform { lo: i64, width: u64, last: u64 },
    /// Strictly ascending lower edges.
    Explicit(Box<[i64]>),
}

/// One step: adds an event's contribution to one field. `x`, `y`, `of` and `by`
/// are positions of attributes.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Adds one for each event.
    Event { cell: Cell },
    /// Adds one for each event that has the attribute, whatever its type.
    Presence { of: usize, cell: Cell },
    /// Adds a moment of two values, if the event has both.
    Moment { x: usize, y: usize, moment: Moment, cell: Cell },
    /// Adds a moment of `of` to the cell of `by`'s bin, if the event has both.
    Binned { of: usize, moment: Moment, by: usize, bins: Bins, cells: Box<[Cell]> },
    /// Adds a moment of `of` to the first cell if it is at least `at`, else to the second.
    Split { of: usize, moment: Moment, at: i64, cells: [Cell; 2] },
    /// Adds a random word if the value is `when`.
    Random { of: usize, when: bool, cell: Cell },
    /// Adds one to the item's cell in each row.
    Sketch { of: usize, sketch: Box<Sketch> },
}

/// A count-min sketch: `depth` rows of `width` cells.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    pub(super) hash: SketchHash,
    pub(super) depth: u8,
    pub(super) width: u16,
    pub(super) cells: Box<[Cell]>,
}

impl Op {
    /// Adds the event's contribution to the words.
    #[inline]
    pub(super) fn run(
        &self,
        values: &[Value<'_>],
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(u16, u64),
    ) {
        match self {
            Op::Event { cell } => cell.add(1, 1, sink),
            Op::Presence { of, cell } => {
                if !matches!(values.get(*of), None | Some(Value::Absent)) {
                    cell.add(1, 1, sink);
                }
            }
            Op::Moment { x, y, moment, cell } => {
                if let (Some(x), Some(y)) = (number(values, *x), number(values, *y)) {
                    moment.add(x, y, *cell, sink);
                }
            }
            Op::Binned { of, moment, by, bins, cells } => {
                if let (Some(x), Some(by)) = (number(values, *of), number(values, *by)) {
                    let cell = cells.get(bins.find(by));
                    cell.into_iter().for_each(|cell| moment.add(x, x, *cell, sink));
                }
            }
            Op::Split { of, moment, at, cells: [above, below] } => {
                if let Some(x) = number(values, *of) {
                    moment.add(x, x, if x >= *at { *above } else { *below }, sink);
                }
            }
            Op::Random { of, when, cell } => {
                if values.get(*of) == Some(&Value::Boolean(*when)) {
                    // Zero would mean that the value did not occur.
                    sink(cell.word, rng.next_u64().max(1));
                }
            }
            Op::Sketch { of, sketch } => match values.get(*of) {
                None | Some(Value::Absent) => {}
                Some(Value::Text(bytes)) => sketch.add(bytes, sink),
                Some(Value::Number(x)) => sketch.add(&number_item(*x), sink),
                Some(Value::Boolean(x)) => sketch.add(&number_item(i64::from(*x)), sink),
            },
        }
    }
}

/// The number at `position`; a truth value is 0 or 1.
#[inline]
fn number(values: &[Value<'_>], position: usize) -> Option<i64> {
    match values.get(position)? {
        Value::Number(x) => Some(*x),
        Value::Boolean(x) => Some(i64::from(*x)),
        Value::Absent | Value::Text(_) => None,
    }
}

impl Moment {
    /// Adds the moment of `x` and `y` to `cell`.
    #[inline]
    fn add(self, x: i64, y: i64, cell: Cell, sink: &mut impl FnMut(u16, u64)) {
        let (a, b) = match self {
            Moment::One => (1, 1),
            Moment::X => (x, 1),
            Moment::Y => (y, 1),
            Moment::Xx => (x, x),
            Moment::Xy => (x, y),
            Moment::Yy => (y, y),
        };
        cell.add(a, b, sink);
    }
}

impl Cell {
    /// Adds a·b. The compiler checked the bounds of both, so the product fits. Only
    /// a negative digit wraps, and it must.
    #[inline]
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "two's complement")]
    pub(super) fn add(self, a: i64, b: i64, sink: &mut impl FnMut(u16, u64)) {
        if self.limbs {
            let product = i128::from(a) * i128::from(b);
            sink(self.word, u64::from(product as u32));
            sink(self.word + 1, (product >> 32) as u64);
        } else {
            sink(self.word, (a.wrapping_mul(b) as u64) << self.shift);
        }
    }
}

impl Bins {
    /// The bin that `value` falls into, as `Edges::bin` defines it.
    #[inline]
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "checked before")]
    pub(super) fn find(&self, value: i64) -> usize {
        match self {
            Bins::Uniform { lo, width, last } => {
                if value < *lo {
                    return 0;
                }
                // The difference of two ordered i64 fits in an unsigned 64-bit integer.
                let distance = value.wrapping_sub(*lo) as u64;
                let bin = match (u32::try_from(distance), u32::try_from(*width)) {
                    // The 32-bit division is several times faster.
                    (Ok(distance), Ok(width)) => u64::from(distance / width),
                    _ => distance / width,
                };
                bin.min(*last) as usize
            }
            Bins::Explicit(edges) => edges.partition_point(|edge| *edge <= value).saturating_sub(1),
        }
    }
}

impl Sketch {
    #[inline]
    fn add(&self, item: &[u8], sink: &mut impl FnMut(u16, u64)) {
        self.hash.columns(item, self.depth, self.width, |row, column| {
            let cell = usize::from(row) * usize::from(self.width) + usize::from(column);
            self.cells.get(cell).into_iter().for_each(|cell| cell.add(1, 1, sink));
        });
    }
}
