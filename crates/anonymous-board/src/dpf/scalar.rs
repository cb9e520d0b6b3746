//! One row at a time, exactly as in the equations: a reference for testing the vectorised code.

use super::digest::Kappa;
use super::generate::correct;
use super::prg::Prgs;
use super::{BLOCK, Key, Shape, Side};
use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

/// The leaf of one row.
fn leaf(prgs: &Prgs, shape: &Shape, side: Side, key: &Key, row: u32) -> [u8; BLOCK] {
    let mut node = *key.root.expose();
    node[0] = (node[0] & !1) | u8::from(side == Side::Second);
    for (level, word) in key.words.levels.iter().enumerate() {
        let goes_right = (row >> (shape.depth() - 1 - level) & 1) as usize;
        let child = prgs.children(&node)[goes_right];
        node = correct(&child, word, node[0] & 1, goes_right);
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

/// The audit's digest, with the key words derived separately for each row.
#[must_use]
pub fn digest(prgs: &Prgs, shape: &Shape, side: Side, key: &Key, kappa: &Kappa) -> [u8; 32] {
    let cipher = Aes128Enc::new(&kappa.0.into());
    let word = |i: u128| {
        let mut block = (i / 2).to_le_bytes().into();
        cipher.encrypt_block(&mut block);
        u128::from_le_bytes(block.0) >> (i % 2 * 64) & u128::from(u64::MAX)
    };
    let mut sums = [0u128; 2];
    for row in 0..shape.rows.get() {
        let leaf = leaf(prgs, shape, side, key, row);
        let mask = 0u8.wrapping_sub(leaf[0] & 1);
        let mut hash = prgs.leaf_hash(row, &leaf);
        hash.iter_mut().zip(&key.words.check).for_each(|(h, c)| *h ^= mask & c);
        for (i, block) in (0u128..).zip(hash.chunks_exact(BLOCK)) {
            let block = block.try_into().map_or(0, u128::from_le_bytes);
            for (sum, ahead) in sums.iter_mut().zip([0, 2]) {
                let place = 8 * u128::from(row) + 2 * i + ahead;
                let low = block.wrapping_add(word(place)) & u128::from(u64::MAX);
                let high = ((block >> 64) + word(place + 1)) & u128::from(u64::MAX);
                *sum = sum.wrapping_add(low * high);
            }
        }
    }
    let mut digest = [0; 32];
    digest.chunks_exact_mut(BLOCK).zip(sums).for_each(|(d, s)| d.copy_from_slice(&s.to_le_bytes()));
    digest
}
