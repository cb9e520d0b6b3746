//! The owner of one data set: seals it block by block, once.
//!
//! A tag's mask belongs to the data set and the block's number; two ciphertexts under one
//! would give z away, and with it a forgery. So a data set is named by 128 random bits when
//! an owner begins, lives as long as that owner, and cannot be opened again.

use super::keys::{DataSetSecret, Keys, Pair};
use super::messages::{BadShape, Block, Shape, Stored};
use crate::keys::TableKey;
use crate::label::{Column, DataSet};
use alpheus_crypto::prf::Prf;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Items that cannot be sealed: nothing was, and no label was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Another number of columns.
    #[error("{found} columns are given, the data set has {expected}")]
    Columns {
        /// The data set's.
        expected: usize,
        /// What is given.
        found: usize,
    },
    /// More items than a block has slots.
    #[error("column {column} has {found} items, a block takes {most}: make more blocks of them")]
    Slots {
        /// The column.
        column: usize,
        /// Its items.
        found: usize,
        /// Slots of a block.
        most: usize,
    },
    /// An item out of bounds.
    #[error(
        "column {column}, item {item}: it is larger than {bound}, the bound of the shape; correct it, or begin anew with a wider one"
    )]
    Bound {
        /// The column.
        column: usize,
        /// The item's place.
        item: usize,
        /// What it may be.
        bound: i64,
    },
    /// No numbers are left.
    #[error("the data set is full")]
    Full,
}

/// The owner of a data set that has just begun.
pub struct Owner {
    keys: Keys,
    shape: Shape,
    data_set: DataSet,
    secret: DataSetSecret,
    /// a and b, and for each column where its u and v come from.
    mask: Pair,
    inputs: Vec<Prf>,
    next: u64,
}

impl Owner {
    /// Begins a data set. `rng` must never repeat what it gave before: two data sets of one
    /// name have the same masks, and different items under them give z away.
    ///
    /// # Errors
    /// [`BadShape`].
    pub fn begin(key: &TableKey, shape: Shape, rng: &mut impl CryptoRng) -> Result<Self, BadShape> {
        shape.check()?;
        let keys = Keys::new(key, shape.set);
        let mut data_set = DataSet([0; 16]);
        rng.fill_bytes(&mut data_set.0);
        let inputs = (0..shape.columns).map(|column| keys.inputs(Column(column))).collect();
        let (mask, secret) = (keys.data_set(&shape, &data_set), keys.secret(&shape, &data_set));
        Ok(Self { keys, shape, data_set, secret, mask, inputs, next: 0 })
    }

    /// Its name, by which the verifier asks.
    #[must_use]
    pub fn data_set(&self) -> DataSet {
        self.data_set
    }

    /// Blocks that were sealed.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.next
    }

    /// Encrypts and tags the next block: items for each column, missing ones are zero.
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
        let name = self.shape.named(&self.data_set);
        let sealed = (0_u16..).zip(columns).zip(&self.inputs).map(|((column, items), inputs)| {
            let label = [&name[..], &column.to_be_bytes(), &index.to_be_bytes()].concat();
            // With room for all: what grows leaves a copy behind that nobody wipes.
            let mut slots = Zeroizing::new(Vec::with_capacity(n));
            slots.extend_from_slice(items);
            slots.resize(n, 0);
            let mut fresh = [0; 32];
            rng.fill_bytes(&mut fresh);
            let (seed, ciphertext) = self.keys.encrypt(&self.secret, &label, &slots, &fresh);
            let tag = self.keys.tag(&self.mask, &Keys::input(inputs, index), &ciphertext);
            let [c0, _] = ciphertext;
            Stored { seed, c0, tag }
        });
        let columns = sealed.collect();
        Ok(Block { shape: self.shape, data_set: self.data_set, index, columns })
    }

    fn check(&self, columns: &[Vec<i64>]) -> Result<(), SealError> {
        let (expected, found) = (usize::from(self.shape.columns), columns.len());
        if expected != found {
            return Err(SealError::Columns { expected, found });
        }
        let (most, bound) = (self.keys.ring.degree(), self.shape.bound);
        for (column, items) in columns.iter().enumerate() {
            if items.len() > most {
                return Err(SealError::Slots { column, found: items.len(), most });
            }
            let far = |x: &i64| x.unsigned_abs() > bound.unsigned_abs();
            if let Some(item) = items.iter().position(far) {
                return Err(SealError::Bound { column, item, bound });
            }
        }
        Ok(())
    }
}
