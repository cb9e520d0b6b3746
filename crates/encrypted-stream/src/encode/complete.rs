//! A fast encoding for events that have every attribute. Devices send mostly such
//! events, some of them twice a second.
//!
//! Where nothing is absent, a moment is a product of two numbers, one of which may
//! be 1, and needs no presence check. So the steps form a few plain lists.

use super::op::{Bins, Cell, Moment, Op};
use super::{AttributeRule, Value};
use alpheus_policy::schema::AttributeKind;
use rand_core::CryptoRng;

/// Slots for numbers: one for each attribute; the last holds 1.
const SLOTS: usize = 16;
const ONE: u8 = 15;

/// An encoder of events that have every attribute.
#[derive(Clone, Debug)]
pub(super) struct CompleteEncoder {
    products: Box<[Product]>,
    binned: Box<[BinnedProduct]>,
    /// All other steps, unchanged.
    others: Box<[Op]>,
}

/// Adds the product of two numbers.
#[derive(Clone, Copy, Debug)]
struct Product {
    a: u8,
    b: u8,
    cell: Cell,
}

/// Adds the product of two numbers to the cell of a third number's bin.
#[derive(Clone, Debug)]
struct BinnedProduct {
    a: u8,
    b: u8,
    by: u8,
    bins: Bins,
    cells: Box<[Cell]>,
}

impl CompleteEncoder {
    /// Sorts the steps of an encoding; `None` if there are too many attributes.
    pub(super) fn of(attributes: usize, ops: &[Op]) -> Option<CompleteEncoder> {
        if attributes >= SLOTS {
            return None;
        }
        let (mut products, mut binned, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for op in ops {
            match op {
                Op::Event { cell } | Op::Presence { cell, .. } => {
                    products.push(Product { a: ONE, b: ONE, cell: *cell });
                }
                Op::Moment { x, y, moment, cell } => {
                    let (a, b) = factors(*moment, slot(*x)?, slot(*y)?);
                    products.push(Product { a, b, cell: *cell });
                }
                Op::Binned { of, moment, by, bins, cells } => {
                    let (a, b) = factors(*moment, slot(*of)?, slot(*of)?);
                    let (by, bins, cells) = (slot(*by)?, bins.clone(), cells.clone());
                    binned.push(BinnedProduct { a, b, by, bins, cells });
                }
                other => others.push(other.clone()),
            }
        }
        let (products, binned) = (products.into(), binned.into());
        Some(CompleteEncoder { products, binned, others: others.into() })
    }

    /// Encodes the event if it has every attribute and all values are as declared.
    /// Otherwise does nothing and returns false.
    #[inline]
    pub(super) fn encode(
        &self,
        attributes: &[AttributeRule],
        values: &[Value<'_>],
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(u16, u64),
    ) -> bool {
        // Slots without an attribute hold 1; the last one always does.
        let mut numbers = [1; SLOTS];
        if !read(attributes, values, &mut numbers) {
            return false;
        }
        let number = |slot: u8| numbers[usize::from(slot) % SLOTS];
        for Product { a, b, cell } in &self.products {
            cell.add(number(*a), number(*b), sink);
        }
        for BinnedProduct { a, b, by, bins, cells } in &self.binned {
            if let Some(cell) = cells.get(bins.find(number(*by))) {
                cell.add(number(*a), number(*b), sink);
            }
        }
        self.others.iter().for_each(|op| op.run(values, rng, sink));
        true
    }
}

/// Reads the numbers of an event. A text counts as 1 and is in no product. Returns
/// false if a value is absent or not as declared.
#[inline]
fn read(attributes: &[AttributeRule], values: &[Value<'_>], numbers: &mut [i64; SLOTS]) -> bool {
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

fn slot(attribute: usize) -> Option<u8> {
    u8::try_from(attribute).ok().filter(|slot| *slot < ONE)
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
