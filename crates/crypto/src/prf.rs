//! AES-128 as a pseudo-random function: key vectors and mask pads.

use crate::secret::Secret;
use aes::cipher::array::Array;
use aes::cipher::consts::U16;
use aes::cipher::typenum::Unsigned;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, KeyInit,
};
use aes::{Aes128Enc, Block};
use std::mem::ManuallyDrop;

/// AES-128 under a key, with expanded round keys. Not `Clone`, not `Debug`, wiped on drop.
///
/// The `aes` crate detects AES-NI or Armv8's instructions at run time. On other CPUs
/// it uses constant-time software. In this version its VAES backends need
/// `--cfg aes_backend="avx256"` or `"avx512"`. We build without them: they were slower
/// for key vectors (1.1 to 1.5 µs against 0.6 µs for 684 words on a Zen 4) and cost
/// 40 ns more per call.
pub struct Prf(pub(crate) Aes128Enc);

/// A SHA-256 digest truncated to 30 bytes, to which a mask pad is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PadDigest {
    head: [u8; 16],
    /// The other 14 bytes, then two zero bytes in place of the block number.
    rest: [u8; 16],
}

impl PadDigest {
    /// Truncates a digest.
    #[must_use]
    pub fn new(digest: &crate::hash::Digest) -> Self {
        let mut head = [0; 30];
        head.copy_from_slice(&digest.0[..30]);
        Self::from_bytes(&head)
    }

    /// From a digest that is already truncated.
    #[must_use]
    pub fn from_bytes(digest: &[u8; 30]) -> Self {
        let (mut head, mut rest) = ([0; 16], [0; 16]);
        head.copy_from_slice(&digest[..16]);
        rest[..14].copy_from_slice(&digest[16..]);
        Self { head, rest }
    }
}

/// A pad to add with [`Prf::add_pads`].
#[derive(Clone, Copy)]
pub struct Pad<'a> {
    /// The key.
    pub key: &'a Prf,
    /// The digest to which it is bound.
    pub digest: &'a PadDigest,
    /// Whether to subtract it instead.
    pub negative: bool,
}

/// How many keys' first blocks [`Prf::add_pads`] computes at once.
const TOGETHER: usize = 8;

impl Prf {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &Secret<16>) -> Self {
        Self::from_bytes(key.expose())
    }

    /// Expands a key from a larger table. The caller keeps the table and wipes it.
    #[must_use]
    #[inline]
    pub fn from_bytes(key: &[u8; 16]) -> Self {
        Self(Aes128Enc::new(key.into()))
    }

    /// Encrypts one block, big-endian in and out.
    #[must_use]
    pub fn block(&self, input: u128) -> u128 {
        let mut block = Block::from(input.to_be_bytes());
        self.0.encrypt_block(&mut block);
        u128::from_be_bytes(block.0)
    }

    /// Adds the mask pad bound to `digest`, modulo 2^64. Block j is
    /// `AES(AES(D[0..16]) ⊕ (D[16..30] ‖ j:16))`. This is a CBC-MAC on inputs of one
    /// length, and therefore a PRF of `(D, j)`.
    #[inline]
    pub fn add_pad(&self, digest: &PadDigest, out: &mut [u64]) {
        self.pad(self.chained(digest), out, |word, pad| *word = word.wrapping_add(pad));
    }

    /// Subtracts the mask pad bound to `digest`, modulo 2^64.
    #[inline]
    pub fn subtract_pad(&self, digest: &PadDigest, out: &mut [u64]) {
        self.pad(self.chained(digest), out, |word, pad| *word = word.wrapping_sub(pad));
    }

    /// Adds or subtracts the pads `pad(0)` to `pad(count − 1)`. A pad's blocks depend on
    /// the first AES call of its key. Here, the first calls of several keys run in
    /// parallel. `pad` is called twice per pad.
    #[inline]
    pub fn add_pads<'a>(count: usize, pad: impl Fn(usize) -> Pad<'a>, out: &mut [u64]) {
        let mut chained = [0; TOGETHER];
        for first in (0..count).step_by(TOGETHER) {
            let together = first..count.min(first + TOGETHER);
            for (chained, i) in chained.iter_mut().zip(together.clone()) {
                let Pad { key, digest, .. } = pad(i);
                *chained = key.chained(digest);
            }
            for (chained, i) in chained.iter().zip(together) {
                let Pad { key, negative, .. } = pad(i);
                if negative {
                    key.pad(*chained, out, |word, pad| *word = word.wrapping_sub(pad));
                } else {
                    key.pad(*chained, out, |word, pad| *word = word.wrapping_add(pad));
                }
            }
        }
    }

    /// Expands one key after the other in the same memory. At the end a public key
    /// overwrites the last one: wiping each key would cost more than its expansion.
    #[inline]
    pub fn with_each_key<'a>(keys: impl Iterator<Item = &'a [u8; 16]>, mut each: impl FnMut(&Prf)) {
        for key in keys.map(Some).chain([None]) {
            let prf = ManuallyDrop::new(Prf::from_bytes(key.unwrap_or(&[0; 16])));
            if key.is_some() {
                each(&prf);
            } else {
                std::hint::black_box(&prf);
            }
        }
    }

    /// `AES(D[0..16]) ⊕ (D[16..30] ‖ 0:16)`, in the byte order of memory.
    #[inline]
    fn chained(&self, digest: &PadDigest) -> u128 {
        let mut chained = 0;
        self.0.encrypt_with_backend(Head { digest, chained: &mut chained });
        chained
    }

    #[inline]
    fn pad(&self, chained: u128, out: &mut [u64], apply: impl Fn(&mut u64, u64)) {
        // A block number has 16 bits. A token has at most 2^13 words.
        assert!(out.len() <= 1 << 17, "a pad has at most 2^17 words");
        // The block number is the last two bytes of the block. It is passed by value and
        // in 16 bits: a reference or 128 bits would take four times as long.
        #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
        let input = move |j: u32| {
            (chained ^ u128::from_ne_bytes(last_two((j as u16).to_be_bytes()))).to_ne_bytes()
        };
        self.run(input, out, apply);
    }

    /// Applies the words of AES(input(0)), AES(input(1)), … to `out`.
    #[inline]
    fn run(&self, input: impl Fn(u32) -> [u8; 16], out: &mut [u64], apply: impl Fn(&mut u64, u64)) {
        if out.len() < BATCHED {
            self.0.encrypt_with_backend(Short { input, out, apply });
        } else {
            self.0.encrypt_with_backend(Words { input, out, apply });
        }
    }
}

/// The first AES call of a pad.
struct Head<'a> {
    digest: &'a PadDigest,
    chained: &'a mut u128,
}

impl BlockSizeUser for Head<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Head<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let mut block = Block::from(self.digest.head);
        backend.encrypt_block_inplace(&mut block);
        *self.chained = u128::from_ne_bytes(block.0) ^ u128::from_ne_bytes(self.digest.rest);
    }
}

/// From this many words on, blocks are encrypted in batches.
const BATCHED: usize = 32;

/// [`Words`] for a few blocks, one at a time. Preparing batches would cost as much as the
/// blocks themselves.
struct Short<'a, I, A> {
    input: I,
    out: &'a mut [u64],
    apply: A,
}

impl<I, A> BlockSizeUser for Short<'_, I, A> {
    type BlockSize = U16;
}

impl<I: Fn(u32) -> [u8; 16], A: Fn(&mut u64, u64)> BlockCipherEncClosure for Short<'_, I, A> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let Short { input, out, apply } = self;
        let (mut next, (pairs, odd)) = (0, out.as_chunks_mut::<2>());
        for pair in pairs {
            let mut block = Block::from(input(next));
            next += 1;
            backend.encrypt_block_inplace(&mut block);
            pair.iter_mut().zip(words_of(&block)).for_each(|(word, pad)| apply(word, pad));
        }
        if let [word] = odd {
            let mut block = Block::from(input(next));
            backend.encrypt_block_inplace(&mut block);
            apply(word, words_of(&block)[0]);
        }
    }
}

/// Encrypts `input(0)`, `input(1)`, … and applies each output word. It runs inside the
/// backend, once for all blocks: selecting the backend for every block would cost more
/// than the block.
struct Words<'a, I, A> {
    input: I,
    out: &'a mut [u64],
    apply: A,
}

impl<I, A> BlockSizeUser for Words<'_, I, A> {
    type BlockSize = U16;
}

impl<I: Fn(u32) -> [u8; 16], A: Fn(&mut u64, u64)> BlockCipherEncClosure for Words<'_, I, A> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let Words { input, out, apply } = self;
        let mut next = 0;
        let mut batches = out.chunks_exact_mut(2 * B::ParBlocksSize::USIZE);
        for words in &mut batches {
            let mut blocks = Array::from_fn(|_| {
                next += 1;
                Block::from(input(next - 1))
            });
            backend.encrypt_par_blocks_inplace(&mut blocks);
            let (pairs, _) = words.as_chunks_mut::<2>();
            for (pair, block) in pairs.iter_mut().zip(&blocks) {
                pair.iter_mut().zip(words_of(block)).for_each(|(word, pad)| apply(word, pad));
            }
        }
        let rest = batches.into_remainder();
        Short { input: |j| input(next + j), out: rest, apply }.call(backend);
    }
}

/// A block that is zero except for its last two bytes.
#[inline(always)]
fn last_two([high, low]: [u8; 2]) -> [u8; 16] {
    let mut block = [0; 16];
    block[14] = high;
    block[15] = low;
    block
}

/// A block's two words, each little-endian.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "one half at a time")]
fn words_of(block: &Block) -> [u64; 2] {
    let both = u128::from_le_bytes(block.0);
    [both as u64, (both >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prf() -> Prf {
        Prf::from_bytes(&std::array::from_fn(|i| i.to_le_bytes()[0]))
    }

    #[test]
    fn a_block_is_the_aes_of_fips_197() {
        // FIPS 197, appendix C.1.
        assert_eq!(
            prf().block(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
            0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a
        );
    }

    fn words(blocks: impl Iterator<Item = u128>) -> impl Iterator<Item = u64> {
        blocks.flat_map(|block| words_of(&Block::from(block.to_be_bytes())))
    }

    /// Covers all combinations of full batches, single blocks and half a block.
    #[test]
    fn batches_agree_with_single_blocks() {
        let (prf, first) = (prf(), u128::MAX - 3);
        let digest = PadDigest::from_bytes(&std::array::from_fn(|i| 200 - i.to_le_bytes()[0]));
        let (high, low) = (u128::from_be_bytes(digest.head), u128::from_be_bytes(digest.rest));
        for length in (0..20).chain([127, 128, 129, 255, 256, 257, 683, 956, 957]) {
            let mut stream = vec![7; length];
            prf.keystream(first, &mut stream);
            let single = words((0..1000).map(|j| prf.block(first.wrapping_add(j))));
            assert!(stream.iter().copied().eq(single.take(length)), "keystream of {length}");

            let mut pad = vec![5; length];
            prf.add_pad(&digest, &mut pad);
            let single = words((0..1000).map(|j| prf.block(prf.block(high) ^ low ^ j)));
            assert!(
                pad.iter().map(|word| word.wrapping_sub(5)).eq(single.take(length)),
                "pad of {length}"
            );
            prf.subtract_pad(&digest, &mut pad);
            assert!(pad.iter().all(|word| *word == 5));
        }
    }

    #[test]
    fn pads_of_many_keys_add_up_and_cancel() {
        let keys: Vec<[u8; 16]> = (0..40_u128).map(u128::to_be_bytes).collect();
        let prfs: Vec<Prf> = keys.iter().map(Prf::from_bytes).collect();
        let digests = [[1; 30], [2; 30]].map(|bytes| PadDigest::from_bytes(&bytes));
        let (mut together, mut single, mut i) = ([9; 5], [9; 5], 0);
        let pad = |i: usize| Pad {
            key: &prfs[i],
            digest: &digests[i % 2],
            negative: i.is_multiple_of(3),
        };
        Prf::add_pads(prfs.len(), pad, &mut together);
        Prf::with_each_key(keys.iter(), |key| {
            match i % 3 {
                0 => key.subtract_pad(&digests[i % 2], &mut single),
                _ => key.add_pad(&digests[i % 2], &mut single),
            }
            i += 1;
        });
        assert_eq!(together, single);
        assert_ne!(together, [9; 5]);
    }
}
