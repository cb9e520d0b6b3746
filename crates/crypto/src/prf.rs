//! AES-128 as a pseudo-random function: key vectors and mask pads.

use crate::secret::Secret;
use aes::cipher::array::Array;
use aes::cipher::consts::U16;
use aes::cipher::typenum::Unsigned;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, KeyInit,
};
use aes::{Aes128Enc, Block};

/// A keyed AES-128, its round keys expanded. Not `Clone`, not `Debug`, wiped
/// on drop.
///
/// The `aes` crate picks AES-NI, VAES-256 or VAES-512 when the program runs,
/// and a constant-time software form where the CPU has none.
pub struct Prf(Aes128Enc);

/// What a mask pad is bound to: a SHA-256 digest cut to 30 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PadDigest(pub [u8; 30]);

impl PadDigest {
    /// Cuts a digest.
    #[must_use]
    pub fn new(digest: &crate::hash::Digest) -> Self {
        let mut cut = [0; 30];
        cut.copy_from_slice(&digest.0[..30]);
        Self(cut)
    }

    /// First 16 bytes, and the other 14 shifted up by the block number's two.
    fn halves(&self) -> (u128, u128) {
        let (mut first, mut second) = ([0; 16], [0; 16]);
        first.copy_from_slice(&self.0[..16]);
        second[..14].copy_from_slice(&self.0[16..]);
        (u128::from_be_bytes(first), u128::from_be_bytes(second))
    }
}

impl Prf {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &Secret<16>) -> Self {
        Self::from_bytes(key.expose())
    }

    /// Expands a key that the caller keeps, and wipes, in some larger table.
    #[must_use]
    #[inline]
    pub fn from_bytes(key: &[u8; 16]) -> Self {
        Self(Aes128Enc::new(key.into()))
    }

    /// One block, big-endian in and out.
    #[must_use]
    pub fn block(&self, input: u128) -> u128 {
        let mut block = Block::from(input.to_be_bytes());
        self.0.encrypt_block(&mut block);
        u128::from_be_bytes(block.0)
    }

    /// Counter mode: writes AES(first), AES(first + 1), … to `out`. A block is
    /// two words, each little-endian; of an odd last one the first word is used.
    #[inline]
    pub fn keystream(&self, first: u128, out: &mut [u64]) {
        let input = |_, j| first.wrapping_add(j);
        self.0.encrypt_with_backend(Words {
            head: None,
            input,
            out,
            apply: |word: &mut u64, pad| *word = pad,
        });
    }

    /// Adds the mask pad bound to `digest`, modulo 2^64: block j is
    /// `AES(AES(D[0..16]) ⊕ (D[16..30] ‖ j:16))`, a CBC-MAC on inputs of one
    /// length and so a PRF of `(D, j)`.
    #[inline]
    pub fn add_pad(&self, digest: &PadDigest, out: &mut [u64]) {
        self.pad(digest, out, |word, pad| *word = word.wrapping_add(pad));
    }

    /// Subtracts the mask pad bound to `digest`, modulo 2^64.
    #[inline]
    pub fn subtract_pad(&self, digest: &PadDigest, out: &mut [u64]) {
        self.pad(digest, out, |word, pad| *word = word.wrapping_sub(pad));
    }

    #[inline]
    fn pad(&self, digest: &PadDigest, out: &mut [u64], apply: impl Fn(&mut u64, u64)) {
        assert!(out.len() <= 2 << 16, "a pad has at most 2^17 words");
        let (first, second) = digest.halves();
        let input = |chained, j| chained ^ second ^ j;
        self.0.encrypt_with_backend(Words { head: Some(first), input, out, apply });
    }
}

/// Encrypts `input(AES(head), 0)`, `input(AES(head), 1)`, … and applies each
/// output word. It runs inside the backend, once for all blocks: a window's
/// masks are many keys with a block or two each, where choosing the backend
/// anew for every block would cost more than the block.
struct Words<'a, I, A> {
    head: Option<u128>,
    input: I,
    out: &'a mut [u64],
    apply: A,
}

impl<I, A> BlockSizeUser for Words<'_, I, A> {
    type BlockSize = U16;
}

impl<I: Fn(u128, u128) -> u128, A: Fn(&mut u64, u64)> BlockCipherEncClosure for Words<'_, I, A> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let Words { head, input, out, apply } = self;
        let chained = head.map_or(0, |head| {
            let mut block = Block::from(head.to_be_bytes());
            backend.encrypt_block_inplace(&mut block);
            u128::from_be_bytes(block.0)
        });
        let mut next = 0;
        let mut batches = out.chunks_exact_mut(2 * B::ParBlocksSize::USIZE);
        for words in &mut batches {
            let mut blocks =
                Array::from_fn(|j| Block::from(input(chained, next + j as u128).to_be_bytes()));
            next += B::ParBlocksSize::U64 as u128;
            backend.encrypt_par_blocks_inplace(&mut blocks);
            let (pairs, _) = words.as_chunks_mut::<2>();
            for (pair, block) in pairs.iter_mut().zip(&blocks) {
                pair.iter_mut().zip(words_of(block)).for_each(|(word, pad)| apply(word, pad));
            }
        }
        let (pairs, odd) = batches.into_remainder().as_chunks_mut::<2>();
        for pair in pairs {
            let mut block = Block::from(input(chained, next).to_be_bytes());
            next += 1;
            backend.encrypt_block_inplace(&mut block);
            pair.iter_mut().zip(words_of(&block)).for_each(|(word, pad)| apply(word, pad));
        }
        if let [word] = odd {
            let mut block = Block::from(input(chained, next).to_be_bytes());
            backend.encrypt_block_inplace(&mut block);
            apply(word, words_of(&block)[0]);
        }
    }
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
    fn it_is_the_aes_of_the_standard() {
        // FIPS 197, appendix C.1.
        assert_eq!(
            prf().block(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
            0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a
        );
    }

    fn words(blocks: impl Iterator<Item = u128>) -> impl Iterator<Item = u64> {
        blocks.flat_map(|block| words_of(&Block::from(block.to_be_bytes())))
    }

    /// Every split into full batches, single blocks and half a block.
    #[test]
    fn batches_agree_with_single_blocks() {
        let (prf, first) = (prf(), u128::MAX - 3);
        let digest = PadDigest(std::array::from_fn(|i| 200 - i.to_le_bytes()[0]));
        let (high, low) = digest.halves();
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
}
