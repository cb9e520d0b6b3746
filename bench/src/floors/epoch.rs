//! The AES calls of one epoch's graphs, and their sorting into rounds.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

/// One AES key schedule and call for each pair, and its segments sorted by round.
pub(crate) fn rounds(keys: &[[u8; 16]], bits: usize, ends: &mut Vec<u32>, lists: &mut Vec<u16>) {
    let drawn: Vec<u128> = keys.iter().map(draw).collect();
    ends.clear();
    lists.resize(keys.len() * (128 / bits), 0);
    for (segment, lists) in lists.chunks_mut(keys.len()).enumerate() {
        let round = |drawn: u128| (drawn >> (segment * bits)) as usize & ((1 << bits) - 1);
        let first = ends.len();
        ends.resize(first + (1 << bits) + 1, 0);
        let ends = &mut ends[first..];
        drawn.iter().for_each(|drawn| ends[round(*drawn) + 1] += 1);
        (0..1 << bits).for_each(|i| ends[i + 1] += ends[i]);
        for (slot, drawn) in (0_u16..).zip(&drawn) {
            let at = &mut ends[round(*drawn)];
            lists[*at as usize] = slot;
            *at += 1;
        }
    }
}

/// Key schedule and one block. The floor does not wipe its keys.
pub(crate) fn draw(key: &[u8; 16]) -> u128 {
    let (key, mut block) = (Aes128Enc::new(key.into()), Block::from([1; 16]));
    key.encrypt_block(&mut block);
    std::mem::forget(key);
    u128::from_be_bytes(block.0)
}
