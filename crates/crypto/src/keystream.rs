//! Counter mode for key vectors: many blocks under one key.
//!
//! All of it runs inside one call of the AES backend. There, the compiler can use
//! the wide registers that the backend detected for counters and words, too.

use crate::prf::Prf;
use aes::Block;
use aes::cipher::array::Array;
use aes::cipher::consts::U16;
use aes::cipher::typenum::Unsigned;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
};

impl Prf {
    /// Counter mode: writes AES(first), AES(first + 1), … to `out`. A block is two
    /// little-endian words. If `out` has an odd length, it gets only the first word of
    /// the last block.
    #[inline]
    pub fn keystream(&self, first: u128, out: &mut [u64]) {
        self.0.encrypt_with_backend(Counter { first, sink: Fill { out } });
    }

    /// Replaces a key vector by that of another time and writes new − old as
    /// little-endian words: the encryption of zero. The shorter slice sets the
    /// number of words.
    #[inline]
    pub fn replace(&self, first: u128, keys: &mut [u64], difference: &mut [[u8; 8]]) {
        self.0.encrypt_with_backend(Counter { first, sink: Replace { keys, difference } });
    }
}

/// Consumes the words of a keystream in order.
trait Sink {
    /// How many words it still accepts.
    fn room(&self) -> usize;
    /// Consumes the next words.
    fn take(&mut self, words: &[u64]);
}

struct Fill<'a> {
    out: &'a mut [u64],
}

impl Sink for Fill<'_> {
    #[inline(always)]
    fn room(&self) -> usize {
        self.out.len()
    }

    #[inline(always)]
    fn take(&mut self, words: &[u64]) {
        let (now, later) = std::mem::take(&mut self.out).split_at_mut(words.len());
        now.copy_from_slice(words);
        self.out = later;
    }
}

struct Replace<'a> {
    keys: &'a mut [u64],
    difference: &'a mut [[u8; 8]],
}

impl Sink for Replace<'_> {
    #[inline(always)]
    fn room(&self) -> usize {
        self.keys.len().min(self.difference.len())
    }

    #[inline(always)]
    fn take(&mut self, words: &[u64]) {
        let (keys, later) = std::mem::take(&mut self.keys).split_at_mut(words.len());
        self.keys = later;
        let (difference, later) = std::mem::take(&mut self.difference).split_at_mut(words.len());
        self.difference = later;
        for ((key, difference), new) in keys.iter_mut().zip(difference).zip(words) {
            *difference = new.wrapping_sub(*key).to_le_bytes();
            *key = *new;
        }
    }
}

struct Counter<S> {
    first: u128,
    sink: S,
}

impl<S> BlockSizeUser for Counter<S> {
    type BlockSize = U16;
}

impl<S: Sink> BlockCipherEncClosure for Counter<S> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let Counter { mut first, mut sink } = self;
        while sink.room() >= 2 * B::ParBlocksSize::USIZE {
            sink.take(batch(backend, first).as_flattened());
            first = first.wrapping_add(B::ParBlocksSize::U64.into());
        }
        while sink.room() > 0 {
            let mut block = counter(first, 0);
            first = first.wrapping_add(1);
            backend.encrypt_block_inplace(&mut block);
            let words = words_of(&block);
            sink.take(words.get(..sink.room()).unwrap_or(&words));
        }
    }
}

/// The words of AES(first), AES(first + 1), … for as many blocks as the backend encrypts at once.
#[inline(always)]
fn batch<B: BlockCipherEncBackend<BlockSize = U16>>(
    backend: &B,
    first: u128,
) -> Array<[u64; 2], B::ParBlocksSize> {
    let mut blocks = Array::from_fn(|j| counter(first, j as u64));
    backend.encrypt_par_blocks_inplace(&mut blocks);
    Array::from_fn(|j| words_of(&blocks[j]))
}

/// `first + j` without a 128-bit carry chain, so that many counters can be computed at once.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "one half at a time")]
fn counter(first: u128, j: u64) -> Block {
    let low = (first as u64).wrapping_add(j);
    let high = ((first >> 64) as u64).wrapping_add(u64::from(low < j));
    // One number, since a block written in two halves stalls when it is read back.
    Block::from((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
}

/// A block's two words, each little-endian.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "one half at a time")]
fn words_of(block: &Block) -> [u64; 2] {
    let both = u128::from_le_bytes(block.0);
    [both as u64, (both >> 64) as u64]
}
