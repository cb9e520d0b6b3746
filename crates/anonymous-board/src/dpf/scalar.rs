//! One row at a time, as the equations stand: what the vectorised code is tested
//! against.

use super::digest::Kappa;
use super::generate::corrected;
use super::prg::Prgs;
use super::{BLOCK, Key, Shape, Side};

/// The leaf of one row.
fn leaf(prgs: &Prgs, shape: &Shape, side: Side, key: &Key, row: u32) -> [u8; BLOCK] {
    let mut node = *key.root.expose();
    node[0] = (node[0] & !1) | u8::from(side == Side::Second);
    for (level, word) in key.words.levels.iter().enumerate() {
        let goes_right = (row >> (shape.depth() - 1 - level) & 1) as usize;
        let child = prgs.children(&node)[goes_right];
        node = corrected(&child, word, node[0] & 1, goes_right);
    }
    node
}

/// Adds one side's share of a write to a table.
pub fn add(prgs: &Prgs, shape: &Shape, side: Side, key: &Key, table: &mut [u8]) {
    for (row, content) in (0..shape.rows.get()).zip(table.chunks_exact_mut(shape.width())) {
        let leaf = leaf(prgs, shape, side, key, row);
        let mask = 0u8.wrapping_sub(leaf[0] & 1);
        let words = key.words.payload.chunks_exact(BLOCK);
        for (j, (block, word)) in (0u32..).zip(content.chunks_exact_mut(BLOCK).zip(words)) {
            let pad = prgs.stretch(&leaf, j);
            for ((byte, pad), word) in block.iter_mut().zip(pad).zip(word) {
                *byte ^= pad ^ (mask & word);
            }
        }
    }
}

/// The audit's digest, multiplying bit by bit.
#[must_use]
pub fn digest(prgs: &Prgs, shape: &Shape, side: Side, key: &Key, kappa: &Kappa) -> [u8; 64] {
    let mut sums = [0u128; 4];
    for row in 0..shape.rows.get() {
        let leaf = leaf(prgs, shape, side, key, row);
        let mask = 0u8.wrapping_sub(leaf[0] & 1);
        let mut hash = prgs.leaf_hash(row, &leaf);
        hash.iter_mut().zip(&key.words.check).for_each(|(h, c)| *h ^= mask & c);
        for (sum, block) in sums.iter_mut().zip(hash.chunks_exact(BLOCK)) {
            let block = block.try_into().map_or(0, u128::from_le_bytes);
            *sum = dot(*sum ^ block, u128::from_le_bytes(kappa.0));
        }
    }
    let mut digest = [0; 64];
    digest.chunks_exact_mut(BLOCK).zip(sums).for_each(|(d, s)| d.copy_from_slice(&s.to_le_bytes()));
    digest
}

/// a·b·X^−128 modulo X^128 + X^127 + X^126 + X^121 + 1: POLYVAL's product
/// (RFC 8452 §3).
fn dot(a: u128, b: u128) -> u128 {
    // X^-1 of the field: (X^128 + X^127 + X^126 + X^121 + 1 + 1) / X and so on.
    const INVERSE: u128 = 1 << 127 | 1 << 126 | 1 << 125 | 1 << 120;
    (0..128).fold(0, |product, i| {
        let sum = product ^ if a >> i & 1 == 1 { b } else { 0 };
        sum >> 1 ^ if sum & 1 == 1 { INVERSE } else { 0 }
    })
}
