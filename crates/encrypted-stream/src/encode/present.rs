//! The encoding of an event that has every attribute: the usual one, and the one
//! that a device makes twice a second.
//!
//! Where nothing is absent, a moment is a product of two numbers, of which one
//! may be 1, and needs no question. So the steps of an encoding fall into a few
//! plain lists.

use super::op::{Bins, Cell, Moment, Op};
use super::{Declared, Value};
use alpheus_policy::schema::AttributeKind;
use rand_core::CryptoRng;

/// Places for numbers: one for each attribute, and the last for 1.
const PLACES: usize = 16;
const ONE: u8 = 15;

/// An encoding of events that lack nothing.
#[derive(Clone, Debug)]
pub(super) struct Present {
    products: Box<[Product]>,
    binned: Box<[Binned]>,
    /// Steps of other kinds, as they are.
    others: Box<[Op]>,
}

/// Adds the product of two numbers.
#[derive(Clone, Copy, Debug)]
struct Product {
    a: u8,
    b: u8,
    cell: Cell,
}

/// Adds the product of two numbers in the cell of the bin of a third.
#[derive(Clone, Debug)]
struct Binned {
    a: u8,
    b: u8,
    by: u8,
    bins: Bins,
    cells: Box<[Cell]>,
}

impl Present {
    /// Of the steps of an encoding; none if there are too many attributes.
    pub(super) fn of(attributes: usize, ops: &[Op]) -> Option<Present> {
        if attributes >= PLACES {
            return None;
        }
        let (mut products, mut binned, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for op in ops {
            match op {
                Op::Event { cell } | Op::Presence { cell, .. } => {
                    products.push(Product { a: ONE, b: ONE, cell: *cell });
                }
                Op::Moment { x, y, moment, cell } => {
                    let (a, b) = factors(*moment, place(*x)?, place(*y)?);
                    products.push(Product { a, b, cell: *cell });
                }
                Op::Binned { of, moment, by, bins, cells } => {
                    let (a, b) = factors(*moment, place(*of)?, place(*of)?);
                    let (by, bins, cells) = (place(*by)?, bins.clone(), cells.clone());
                    binned.push(Binned { a, b, by, bins, cells });
                }
                other => others.push(other.clone()),
            }
        }
        let (products, binned) = (products.into(), binned.into());
        Some(Present { products, binned, others: others.into() })
    }

    /// Encodes the event if it has every attribute and all are as declared.
    /// False, with nothing done, if not.
    #[inline]
    pub(super) fn encode(
        &self,
        attributes: &[Declared],
        values: &[Value<'_>],
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(u16, u64),
    ) -> bool {
        // Places that no attribute has hold 1, the last of them always.
        let mut numbers = [1; PLACES];
        if !read(attributes, values, &mut numbers) {
            return false;
        }
        let number = |place: u8| numbers[usize::from(place) % PLACES];
        for Product { a, b, cell } in &self.products {
            cell.add(number(*a), number(*b), sink);
        }
        for Binned { a, b, by, bins, cells } in &self.binned {
            if let Some(cell) = cells.get(bins.find(number(*by))) {
                cell.add(number(*a), number(*b), sink);
            }
        }
        self.others.iter().for_each(|op| op.run(values, rng, sink));
        true
    }
}

/// Reads the numbers of an event; a text's is 1, and no product's factor. False
/// if the event lacks something or is not as declared.
#[inline]
fn read(attributes: &[Declared], values: &[Value<'_>], numbers: &mut [i64; PLACES]) -> bool {
    if attributes.len() != values.len() {
        return false;
    }
    for ((number, declared), value) in numbers.iter_mut().zip(attributes).zip(values) {
        match (value, &declared.kind) {
            (Value::Number(x), AttributeKind::Number { min, max, .. }) if min <= x && x <= max => {
                *number = *x;
            }
            (Value::Boolean(x), AttributeKind::Boolean) => *number = i64::from(*x),
            (Value::Text(_), AttributeKind::Text { .. }) if declared.admits(*value) => {}
            _ => return false,
        }
    }
    true
}

fn place(attribute: usize) -> Option<u8> {
    u8::try_from(attribute).ok().filter(|place| *place < ONE)
}

/// The two factors of a moment.
fn factors(moment: Moment, x: u8, y: u8) -> (u8, u8) {
    match moment {
        Moment::One => (ONE, ONE),
        Moment::X => (x, ONE),
        Moment::Y => (y, ONE),
        Moment::Xx => (x, x),
        Moment::Xy => (x, y),
        Moment::Yy => (y, y),
    }
}
