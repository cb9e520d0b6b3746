//! Labels that tags are bound to. No label is used twice: σ − σ' = L(c − c') would be a
//! forgery.

use crate::ring::Ring;
use serde::{Deserialize, Serialize};

/// 128 random bits that name a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DataSet(pub [u8; 16]);

/// 128 random bits, drawn at each start of the owner. Labels of two starts differ, whatever
/// backup each started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Segment(pub [u8; 16]);

/// A column of ciphertexts, by its index among the stored ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Column(pub u16);

/// What is summed: a column, or the product of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Ciphertexts of one column.
    Column(Column),
    /// Products of two columns' ciphertexts, the first no greater than the second.
    Product(Column, Column),
}

impl Kind {
    /// Kind and columns, in fixed width.
    pub(crate) fn to_bytes(self) -> [u8; 5] {
        let (kind, first, second) = match self {
            Self::Column(a) => (0, a.0, 0),
            Self::Product(a, b) => (1, a.0, b.0),
        };
        let ([a, b], [c, d]) = (first.to_be_bytes(), second.to_be_bytes());
        [kind, a, b, c, d]
    }

    /// The number of components of its ciphertexts.
    #[must_use]
    pub fn components(self) -> usize {
        match self {
            Self::Column(_) => 2,
            Self::Product(..) => 3,
        }
    }
}

/// The address of a block: segment, epoch and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Address {
    /// The start of the owner that sealed it.
    pub segment: Segment,
    /// Zero, and one more for each rewrite or merge in that start.
    pub epoch: u32,
    /// The block's number in the table.
    pub index: u64,
}

/// The right to seal one block once: all its columns and products, each under its own
/// label. Only [`crate::owner::Owner`] makes one. It never leaves this crate, is not
/// `Clone`, and sealing consumes it.
pub(crate) struct Label(pub(crate) Address);

/// K, the order of a table's masks, fixed for its life. Order 1 verifies sums over plain
/// ranges in constant time; order k + 1 also those with polynomial weights of degree k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Order(u8);

/// The order is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the order of masks is {0}, but it must be 1 to 8: use one more than the degree of the weights"
)]
pub struct OrderError(pub u8);

impl Order {
    /// The order for plain ranges.
    pub const ONE: Self = Self(1);

    /// Checks an order.
    ///
    /// # Errors
    /// [`OrderError`].
    pub fn new(order: u8) -> Result<Self, OrderError> {
        if (1..=8).contains(&order) { Ok(Self(order)) } else { Err(OrderError(order)) }
    }

    /// K.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Order {
    type Error = OrderError;

    fn try_from(order: u8) -> Result<Self, OrderError> {
        Self::new(order)
    }
}

impl From<Order> for u8 {
    fn from(order: Order) -> u8 {
        order.0
    }
}

/// What the masks of one kind of tag are derived from, apart from the key: data set,
/// segment, epoch, kind, order and parameter set. All but the last have a fixed width.
pub(crate) fn mask_parts(
    ring: &Ring,
    data_set: DataSet,
    address: (Segment, u32),
    kind: Kind,
    order: Order,
) -> Vec<u8> {
    let (segment, epoch) = address;
    let mut parts = [data_set.0, segment.0].concat();
    parts.extend(epoch.to_be_bytes());
    parts.extend(kind.to_bytes());
    parts.push(order.0);
    parts.extend(ring.spec.name.as_bytes());
    parts
}
