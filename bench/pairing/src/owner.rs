//! The owner of one data set: seals it block by block, once.
//!
//! A tag's mask belongs to the data set and the block's number. Two ciphertexts under one
//! mask would reveal z, and so a forgery. Hence an owner names its data set with 128 random
//! bits when it begins. The data set lives as long as its owner and cannot be reopened.

use crate::keys::{DataSetSecret, Keys, Pair};
use crate::messages::{Block, Shape, ShapeError, StoredColumn};
use alpheus_crypto::prf::Prf;
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::{Column, DataSet};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Items that cannot be sealed. Nothing was sealed and no label was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The number of columns is wrong.
    #[error("{actual} columns of items, the data set has {expected}: give one for each column")]
    Columns {
        /// The data set's columns.
        expected: usize,
        /// The columns of items.
        actual: usize,
    },
    /// A column has more items than a block has slots.
    #[error("column {column} has {count} items, a block takes {max}: split them into more blocks")]
    Slots {
        /// The column.
        column: usize,
        /// Its items.
        count: usize,
        /// The slots of a block.
        max: usize,
    },
    /// An item is out of bounds.
    #[error(
        "column {column}, item {item}: it is larger than {bound}, the bound of the shape; correct it, or begin another data set with a wider one"
    )]
    Bound {
        /// The column.
        column: usize,
        /// The item's index.
        item: usize,
        /// The largest magnitude allowed.
        bound: i64,
    },
    /// No block numbers are left.
    #[error("the data set is full: begin another")]
    Full,
}

/// The owner of one data set.
pub struct Owner {
    keys: Keys,
    shape: Shape,
    data_set: DataSet,
    secret: DataSetSecret,
    /// a and b, and for each column the key of its u and v.
    mask: Pair,
    inputs: Vec<Prf>,
    next: u64,
}

impl Owner {
    /// Begins a data set. `rng` must never repeat its output: two data sets of one name have
    /// the same masks, and different items under them reveal z.
    ///
    /// # Errors
    /// [`ShapeError`].
    pub fn begin(
        key: &TableKey,
        shape: Shape,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, ShapeError> {
        shape.check()?;
        let keys = Keys::new(key, shape.set);
        let mut data_set = DataSet([0; 16]);
        rng.fill_bytes(&mut data_set.0);
        let inputs = (0..shape.columns).map(|column| keys.inputs(Column(column))).collect();
        let (mask, secret) = (keys.data_set(&shape, &data_set), keys.secret(&shape, &data_set));
        Ok(Self { keys, shape, data_set, secret, mask, inputs, next: 0 })
    }

    /// The data set's name, which the verifier uses.
    #[must_use]
    pub fn data_set(&self) -> DataSet {
        self.data_set
    }

    /// The number of sealed blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.next
    }

    /// Encrypts and tags the next block, from the items of each column. Missing items are
    /// zero.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal(
        &mut self,
        columns: &[Vec<i64>],
        rng: &mut impl CryptoRng,
    ) -> Result<Block, SealError> {
        self.check(columns)?;
        let (index, n) = (self.next, self.keys.ring.degree());
        self.next = index.checked_add(1).ok_or(SealError::Full)?;
        let name = self.shape.data_set_label(&self.data_set);
        let sealed = (0_u16..).zip(columns).zip(&self.inputs).map(|((column, items), inputs)| {
            let label = [&name[..], &column.to_be_bytes(), &index.to_be_bytes()].concat();
            // Allocated once: a growing vector would leave unwiped copies behind.
            let mut slots = Zeroizing::new(Vec::with_capacity(n));
            slots.extend_from_slice(items);
            slots.resize(n, 0);
            let mut fresh = [0; 32];
            rng.fill_bytes(&mut fresh);
            let (seed, ciphertext) = self.keys.encrypt(&self.secret, &label, &slots, &fresh);
            let tag = self.keys.tag(&self.mask, &Keys::input(inputs, index), &ciphertext);
            let [c0, _] = ciphertext;
            StoredColumn { seed, c0, tag }
        });
        let columns = sealed.collect();
        Ok(Block { shape: self.shape, data_set: self.data_set, index, columns })
    }

    fn check(&self, columns: &[Vec<i64>]) -> Result<(), SealError> {
        let (expected, actual) = (usize::from(self.shape.columns), columns.len());
        if expected != actual {
            return Err(SealError::Columns { expected, actual });
        }
        let (max, bound) = (self.keys.ring.degree(), self.shape.bound);
        for (column, items) in columns.iter().enumerate() {
            if items.len() > max {
                return Err(SealError::Slots { column, count: items.len(), max });
            }
            let too_large = |x: &i64| x.unsigned_abs() > bound.unsigned_abs();
            if let Some(item) = items.iter().position(too_large) {
                return Err(SealError::Bound { column, item, bound });
            }
        }
        Ok(())
    }
}
