//! AES-128 as a pseudo-random function: key vectors and mask pads.

use crate::secret::Secret;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

/// Blocks encrypted at a time: what the widest backend of `aes` takes at once.
const BATCH: usize = 64;

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
        Self(Aes128Enc::new(key.expose().into()))
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
    pub fn keystream(&self, first: u128, out: &mut [u64]) {
        self.blocks(|j| first.wrapping_add(j), out, |word, pad| *word = pad);
    }

    /// Adds the mask pad bound to `digest`, modulo 2^64: block j is
    /// `AES(AES(D[0..16]) ⊕ (D[16..30] ‖ j:16))`, a CBC-MAC on inputs of one
    /// length and so a PRF of `(D, j)`.
    pub fn add_pad(&self, digest: &PadDigest, out: &mut [u64]) {
        self.pad(digest, out, |word, pad| *word = word.wrapping_add(pad));
    }

    /// Subtracts the mask pad bound to `digest`, modulo 2^64.
    pub fn subtract_pad(&self, digest: &PadDigest, out: &mut [u64]) {
        self.pad(digest, out, |word, pad| *word = word.wrapping_sub(pad));
    }

    fn pad(&self, digest: &PadDigest, out: &mut [u64], apply: impl Fn(&mut u64, u64)) {
        assert!(out.len() <= 2 << 16, "a pad has at most 2^17 words");
        let (first, second) = digest.halves();
        let chained = self.block(first) ^ second;
        self.blocks(|j| chained ^ j, out, apply);
    }

    /// Encrypts `input(0)`, `input(1)`, … in batches and applies each output word.
    #[inline]
    fn blocks(&self, input: impl Fn(u128) -> u128, out: &mut [u64], apply: impl Fn(&mut u64, u64)) {
        let mut batch = [Block::default(); BATCH];
        let mut next = 0;
        for words in out.chunks_mut(2 * BATCH) {
            let blocks = &mut batch[..words.len().div_ceil(2)];
            for block in blocks.iter_mut() {
                block.0 = input(next).to_be_bytes();
                next += 1;
            }
            self.0.encrypt_blocks(blocks);
            for (pair, block) in words.chunks_mut(2).zip(blocks.iter()) {
                let value = u128::from_le_bytes(block.0);
                for (word, shift) in pair.iter_mut().zip([0, 64]) {
                    #[expect(clippy::cast_possible_truncation, reason = "one half at a time")]
                    apply(word, (value >> shift) as u64);
                }
            }
        }
    }
}
