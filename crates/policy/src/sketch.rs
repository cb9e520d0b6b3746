//! Which cells of a count-min sketch an item falls into.
//!
//! Producer and planner must agree on it: the producer adds one to the item's cell in
//! each row, and a query for the item's frequency releases these cells. The hash is
//! public. It is bound to the schema, the attribute and the aggregation, so that two
//! sketches do not share collisions.

use crate::ids::{SchemaId, labelled_hash};
use sha2::{Digest, Sha256};

/// The row hashes of one sketch.
///
/// With `seed = labelled_hash("alpheus/sketch/v1", [schema id, attribute,
/// aggregation])` (both numbers as two big-endian bytes), the block
/// `SHA-256(seed ‖ 32 zero bytes ‖ k ‖ item)`, `k` one byte, holds the hashes of
/// the rows `4k..4k+4` as big-endian 64-bit numbers `x`. The column of a row is
/// `⌊x · width / 2^64⌋`. The zeros fill SHA-256's first block, so it is computed once
/// for all items.
#[derive(Clone, Debug)]
pub struct SketchHash {
    seeded: Sha256,
}

impl SketchHash {
    /// The hashes of the sketch at position `aggregation` in the list of the attribute at
    /// position `attribute`.
    #[must_use]
    pub fn new(schema: &SchemaId, attribute: u16, aggregation: u16) -> SketchHash {
        let parts: [&[u8]; 3] = [&schema.0, &attribute.to_be_bytes(), &aggregation.to_be_bytes()];
        let seed = labelled_hash("alpheus/sketch/v1", &parts);
        SketchHash { seeded: Sha256::new().chain_update(seed).chain_update([0; 32]) }
    }

    /// Calls `visit(row, column)` with the item's column in each of the rows
    /// `0..depth` of `width` cells.
    ///
    /// Text is hashed as its bytes, a number as [`number_item`] returns it.
    pub fn columns(&self, item: &[u8], depth: u8, width: u16, mut visit: impl FnMut(u8, u16)) {
        for k in 0..depth.div_ceil(4) {
            let block = self.seeded.clone().chain_update([k]).chain_update(item).finalize();
            let (hashes, _) = block.as_chunks::<8>();
            for (row, hash) in (4 * k..depth).zip(hashes) {
                visit(row, reduce(u64::from_be_bytes(*hash), width));
            }
        }
    }
}

/// The item bytes of a number, or of a truth value as 0 or 1: the scaled value as eight
/// big-endian bytes.
#[must_use]
pub fn number_item(scaled: i64) -> [u8; 8] {
    scaled.to_be_bytes()
}

/// ⌊hash · width / 2^64⌋.
fn reduce(hash: u64, width: u16) -> u16 {
    u16::try_from((u128::from(hash) * u128::from(width)) >> 64).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(hash: &SketchHash, item: &[u8], depth: u8, width: u16) -> Vec<u16> {
        let mut all = Vec::new();
        hash.columns(item, depth, width, |row, column| {
            assert_eq!(usize::from(row), all.len());
            all.push(column);
        });
        all
    }

    /// Computed with Python's hashlib from the description above.
    #[test]
    fn columns_are_as_documented() {
        let hash = SketchHash::new(&SchemaId([7; 32]), 3, 1);
        assert_eq!(columns(&hash, b"/index.html", 6, 100), VECTOR);
    }

    #[test]
    fn rows_attributes_and_aggregations_have_independent_hashes() {
        let of = |attribute, aggregation| {
            columns(&SketchHash::new(&SchemaId([0; 32]), attribute, aggregation), b"x", 8, 60_000)
        };
        let base = of(0, 0);
        assert!(base.windows(2).all(|pair| pair[0] != pair[1]));
        assert_ne!(base, of(1, 0));
        assert_ne!(base, of(0, 1));
    }

    #[test]
    fn columns_stay_below_the_width() {
        let hash = SketchHash::new(&SchemaId([1; 32]), 0, 0);
        for width in [1, 2, 7, u16::MAX] {
            for item in 0..200 {
                assert!(columns(&hash, &number_item(item), 5, width).iter().all(|c| *c < width));
            }
        }
    }

    const VECTOR: [u16; 6] = [57, 62, 4, 14, 31, 97];
}
