//! The audit's digest: a universal hash of all rows' hashes v_x = H(x, s_x, t_x) ⊕ t_x·cs,
//! under a key that is drawn after the writes are fixed.
//!
//! It is NH of UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway, Crypto 1999, §4) with
//! words of 64 bits, twice, the second time with the key moved on by two words: of two
//! different tables of hashes the digests are equal with a chance of 2^−128 at most
//! (theorem 2 there). It takes half as many products as a polynomial in GF(2^128), and
//! those of integers are what processors do best, in constant time.

use super::BLOCK;
use aes::Aes128Enc;
use aes::cipher::array::Array;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use serde::{Deserialize, Serialize};

/// κ: what the digest's key is drawn from. Drawn by both servers after the batch has
/// closed; public once the digests are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kappa(pub [u8; 16]);

/// One key's digest. Both servers' are equal for a key that writes one row at
/// most; unequal for any other but with a chance of about 2^−128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDigest(pub [u8; 32]);

/// v_x: four blocks.
pub(super) type RowHash = [[u8; BLOCK]; 4];

/// Key words of a row.
const ROW: usize = 8;

/// The key's words for some rows: block i of a stream holds words 2i and 2i + 1 and is
/// AES-128_κ(i), all little-endian. Row x takes words 8x to 8x + 7, and 8x + 2 to 8x + 9.
pub(super) struct KeyWords(Vec<[u64; ROW]>);

impl KeyWords {
    /// For `rows` rows from the row `first` on.
    pub(super) fn new(kappa: &Kappa, first: usize, rows: usize) -> Self {
        let cipher = Aes128Enc::new(&kappa.0.into());
        // The last row's second sum takes words of the next one's.
        let row = |row: usize| {
            let mut blocks = std::array::from_fn::<_, { ROW / 2 }, _>(|i| {
                Array(((row * ROW / 2 + i) as u128).to_le_bytes())
            });
            cipher.encrypt_blocks(&mut blocks);
            std::array::from_fn(|i| words(&blocks[i / 2].0)[i % 2])
        };
        Self((first..=first + rows).map(row).collect())
    }
}

/// Both words of a block.
#[inline(always)]
fn words(block: &[u8; BLOCK]) -> [u64; 2] {
    let (halves, _) = block.as_chunks();
    [u64::from_le_bytes(halves[0]), u64::from_le_bytes(halves[1])]
}

/// A digest under way.
#[derive(Clone, Copy, Default)]
pub(super) struct Running([u128; 2]);

impl Running {
    /// Takes rows, of which the first is row `at` of those that `key` was made for.
    #[inline]
    pub(super) fn update(&mut self, key: &KeyWords, at: usize, rows: &[RowHash]) {
        let [mut first, mut second] = self.0;
        let key = key.0.get(at..).unwrap_or_default();
        for (row, keys) in rows.iter().zip(key.windows(2)) {
            let [a, b, c, d] = row.each_ref().map(words);
            let &[k0, k1, k2, k3, k4, k5, k6, k7] = &keys[0];
            let &[k8, k9, ..] = &keys[1];
            let low = product(a, k0, k1).wrapping_add(product(b, k2, k3));
            let high = product(c, k4, k5).wrapping_add(product(d, k6, k7));
            first = first.wrapping_add(low).wrapping_add(high);
            let low = product(a, k2, k3).wrapping_add(product(b, k4, k5));
            let high = product(c, k6, k7).wrapping_add(product(d, k8, k9));
            second = second.wrapping_add(low).wrapping_add(high);
        }
        self.0 = [first, second];
    }

    pub(super) fn finish(self) -> KeyDigest {
        let mut digest = [0; 32];
        let (halves, _) = digest.as_chunks_mut();
        halves.iter_mut().zip(self.0).for_each(|(half, sum)| *half = sum.to_le_bytes());
        KeyDigest(digest)
    }
}

/// (a + k mod 2^64)·(b + l mod 2^64).
#[inline(always)]
fn product([a, b]: [u64; 2], k: u64, l: u64) -> u128 {
    u128::from(a.wrapping_add(k)) * u128::from(b.wrapping_add(l))
}
