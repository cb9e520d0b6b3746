//! One block at a time, exactly as in the equations: a reference for testing the vectorised code.

use super::{Grid, Key, Permutation};
use crate::dpf::BLOCK;
use crate::dpf::prg::mmo;

/// Adds G(seed) to blocks.
pub(super) fn stretch(permutation: &Permutation, seed: &[u8; BLOCK], to: &mut [u8]) {
    for (j, block) in (0_u32..).zip(to.chunks_exact_mut(BLOCK)) {
        let mut input = *seed;
        input.iter_mut().zip(j.to_le_bytes()).for_each(|(byte, j)| *byte ^= j);
        let pad = mmo(&permutation.0, input);
        block.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
    }
}

/// One server's share of what a key writes, in whole groups. It may extend beyond the table.
#[must_use]
pub fn expand(permutation: &Permutation, grid: &Grid, word: &[u8], key: &Key) -> Vec<u8> {
    let mut share = Vec::new();
    for group in key.groups(grid) {
        let mut rows = vec![0; grid.word_bytes()];
        for seed in group.seeds {
            stretch(permutation, seed, &mut rows);
        }
        rows.iter_mut().zip(word).for_each(|(byte, word)| *byte ^= word & group.adds_word);
        share.append(&mut rows);
    }
    share
}
