//! The audit's digest: a universal hash of all rows' hashes v_x = H(x, s_x, t_x) ⊕ t_x·cs, under a
//! key that is drawn after the writes are fixed.
//!
//! It is NH of UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway, Crypto 1999, §4) with words of 64
//! bits, applied twice, the second time with the key shifted by two words. Two different tables of
//! hashes have equal digests with a probability of at most 2^−128 (theorem 2 there). This takes
//! half as many products as a polynomial in GF(2^128), and processors multiply integers fastest and
//! in constant time.

use super::BLOCK;
use aes::cipher::array::Array;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use multiversion::multiversion;
use serde::{Deserialize, Serialize};

/// κ: the seed of the digest's key. Both servers draw it after the batch has closed. It is public
/// once the digests are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kappa(pub [u8; 16]);

/// One key's digest. The digests of both servers are equal for a key that writes at most one row.
/// For any other key they differ, except with a probability of about 2^−128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDigest(pub [u8; 32]);

/// v_x: four blocks.
pub(super) type RowHash = [[u8; BLOCK]; 4];

/// Blocks in a row's hash, and pairs of key words that it needs.
const ROW: usize = 4;

/// The key words for some rows. Block i of a stream holds words 2i and 2i + 1 and is AES-128_κ(i),
/// all little-endian. Row x uses words 8x to 8x + 7 and 8x + 2 to 8x + 9.
pub(super) struct KeyWords(Vec<[u64; 2]>);

impl KeyWords {
    /// Computes the words for `rows` rows, starting with row `first`.
    pub(super) fn new(kappa: &Kappa, first: usize, rows: usize) -> Self {
        // The last row's second sum uses words of the next row.
        let pairs = first * ROW..(first + rows) * ROW + 1;
        let mut blocks: Vec<Block> = pairs.map(|i| Array((i as u128).to_le_bytes())).collect();
        Aes128Enc::new(&kappa.0.into()).encrypt_blocks(&mut blocks);
        Self(blocks.iter().map(|block| words(&block.0)).collect())
    }
}

/// Splits a block into its two words.
#[inline(always)]
fn words(block: &[u8; BLOCK]) -> [u64; 2] {
    let (halves, _) = block.as_chunks();
    [u64::from_le_bytes(halves[0]), u64::from_le_bytes(halves[1])]
}

/// A digest in progress.
#[derive(Clone, Copy, Default)]
pub(super) struct DigestState([u128; 2]);

impl DigestState {
    /// Adds rows. The first is row `at` of those that `key` was made for.
    pub(super) fn update(&mut self, key: &KeyWords, at: usize, rows: &[RowHash]) {
        // Compute one sum after the other: both at once need more registers than there are.
        for (ahead, sum) in self.0.iter_mut().enumerate() {
            let (keys, _) = key.0.get(at * ROW + ahead..).unwrap_or_default().as_chunks();
            *sum = sum.wrapping_add(products(rows, keys));
        }
    }

    pub(super) fn finish(self) -> KeyDigest {
        let mut digest = [0; 32];
        let (halves, _) = digest.as_chunks_mut();
        halves.iter_mut().zip(self.0).for_each(|(half, sum)| *half = sum.to_le_bytes());
        KeyDigest(digest)
    }
}

/// The sum of the products of rows.
#[multiversion(targets("x86_64+bmi2"))]
fn products(rows: &[RowHash], keys: &[[[u64; 2]; ROW]]) -> u128 {
    let mut sum = 0_u128;
    for ([a, b, c, d], [k, l, m, n]) in rows.iter().zip(keys) {
        let (low, high) = (product(a, k), product(b, l));
        sum = sum.wrapping_add(low).wrapping_add(high);
        let (low, high) = (product(c, m), product(d, n));
        sum = sum.wrapping_add(low).wrapping_add(high);
    }
    sum
}

/// (a + k mod 2^64)·(b + l mod 2^64).
#[inline(always)]
fn product(block: &[u8; BLOCK], [k, l]: &[u64; 2]) -> u128 {
    let [a, b] = words(block);
    u128::from(a.wrapping_add(*k)) * u128::from(b.wrapping_add(*l))
}
