//! Expands a key over its groups. The blocks of all seeds of a group are computed and added up in
//! registers, as many at a time as the processor encrypts together.
//!
//! Time and memory access depend only on the grid.

use super::{Grid, Key, Permutation};
use crate::dpf::BLOCK;
use crate::dpf::kernel::{Node, bytes, load, number, permute};
use aes::cipher::array::Array;
use aes::cipher::consts::U16;
use aes::cipher::typenum::Unsigned;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
};
use wide::u32x4;
use zeroize::Zeroizing;

/// Calls `take` with each group's index and rows: one server's share of what a key writes there.
/// The last group's rows may extend beyond the table.
pub fn each_group(
    permutation: &Permutation,
    grid: &Grid,
    word: &[u8],
    key: &Key,
    mut take: impl FnMut(usize, &[Node]),
) {
    let (word, _) = word.as_chunks::<BLOCK>();
    let mut rows = Zeroizing::new(vec![[0; BLOCK]; grid.word_bytes() / BLOCK]);
    for (number, group) in key.groups(grid).enumerate() {
        let adds = u32x4::splat(u32::from_ne_bytes([group.adds_word; 4]));
        permutation.0.encrypt_with_backend(Expand {
            seeds: group.seeds,
            adds,
            word,
            rows: &mut rows,
        });
        take(number, &rows);
    }
}

/// Computes Σ G(seed), plus the word if it is added.
struct Expand<'a> {
    seeds: &'a [Node],
    /// All ones or zero.
    adds: u32x4,
    word: &'a [Node],
    rows: &'a mut [Node],
}

impl BlockSizeUser for Expand<'_> {
    type BlockSize = U16;
}

impl Expand<'_> {
    /// Computes as many blocks as fit together, starting with block `first`.
    #[inline(always)]
    fn blocks<B: BlockCipherEncBackend<BlockSize = U16>>(
        &self,
        backend: &B,
        first: usize,
    ) -> Array<u32x4, B::ParBlocksSize> {
        // The index fits 32 bits: rows have at most 4096 blocks, and [`Grid::new`] bounds their
        // number.
        let place = |k: usize| number(u32::try_from(first + k).unwrap_or(u32::MAX));
        let mut sum: Array<u32x4, B::ParBlocksSize> = Array::from_fn(|_| u32x4::ZERO);
        for seed in self.seeds {
            let seed = load(seed);
            let made = permute(backend, |k| seed ^ place(k));
            sum.iter_mut().zip(made).for_each(|(sum, made)| *sum ^= made);
        }
        sum
    }
}

impl BlockCipherEncClosure for Expand<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let par = B::ParBlocksSize::USIZE;
        for first in (0..self.rows.len()).step_by(par) {
            let sum = self.blocks(backend, first);
            let rows = self.rows.iter_mut().zip(self.word).skip(first);
            for ((row, word), sum) in rows.zip(sum) {
                *row = bytes(sum ^ (load(word) & self.adds));
            }
        }
    }
}
