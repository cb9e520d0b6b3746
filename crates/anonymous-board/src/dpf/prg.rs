//! The three public permutations of an epoch: AES-128 under publicly known keys, in the mode of
//! Matyas, Meyer and Oseas: π(z) = AES(z) ⊕ z.
//!
//! A block is a seed of 127 bits with a control bit t in the lowest bit of its first byte. The
//! inputs to the permutations are:
//!
//! - children of a seed s: π_tree(s ‖ 0) on the left, π_tree(s ‖ 1) on the right,
//! - G(s): block j is π_payload(s ⊕ 2j), so the lowest bit stays clear,
//! - H(x, s, t): block i is π_hash((s ‖ t) ⊕ g_i·(x + 1)) with g_i = X^(32i) in GF(2^128): x + 1 in
//!   the block's i-th word of 32 bits, little-endian.
//!
//! If the row number were XORed in at one position only, H(x, s) would equal H(x′, s ⊕ x ⊕ x′), and
//! one key could write two neighbouring rows.

use super::vaes::Rounds;
use aes::cipher::array::Array;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

/// The permutations' expanded keys. Public.
#[derive(Clone)]
pub struct Prgs {
    pub(super) tree: Permutation,
    pub(super) payload: Permutation,
    pub(super) hash: Permutation,
}

/// One of them.
#[derive(Clone)]
pub(super) struct Permutation {
    pub(super) cipher: Aes128Enc,
    /// The same, for processors that encrypt four blocks at a time.
    pub(super) wide: Option<Rounds>,
}

impl Prgs {
    /// Expands the three keys of an epoch: tree, payload, hash. They must differ.
    #[must_use]
    pub fn new(tree: &[u8; 16], payload: &[u8; 16], hash: &[u8; 16]) -> Self {
        let expand = |key: &[u8; 16]| Permutation {
            cipher: Aes128Enc::new(key.into()),
            wide: Rounds::new(key),
        };
        Self { tree: expand(tree), payload: expand(payload), hash: expand(hash) }
    }

    /// The same keys restricted to one block at a time, for comparison.
    #[must_use]
    pub fn narrow(self) -> Self {
        let narrow = |permutation| Permutation { wide: None, ..permutation };
        Self { tree: narrow(self.tree), payload: narrow(self.payload), hash: narrow(self.hash) }
    }

    /// AES of blocks and nothing else, as many at a time as a pass uses: the baseline for measuring
    /// a pass.
    pub fn aes_only(&self, blocks: &mut [[u8; 16]]) {
        let wide = self.payload.wide.as_ref();
        let done = wide.map_or(0, |wide| wide.bare(blocks));
        self.payload.cipher.encrypt_blocks(Array::cast_slice_from_core_mut(&mut blocks[done..]));
    }

    /// Both children of a node, control bits included, uncorrected.
    pub(super) fn children(&self, node: &[u8; 16]) -> [[u8; 16]; 2] {
        let mut left = *node;
        left[0] &= !1;
        let mut right = left;
        right[0] |= 1;
        [mmo(&self.tree.cipher, left), mmo(&self.tree.cipher, right)]
    }

    /// Block `j` of G(s) for a leaf.
    pub(super) fn stretch(&self, leaf: &[u8; 16], j: u32) -> [u8; 16] {
        let mut input = *leaf;
        input[0] &= !1;
        xor_word(&mut input, 0, j << 1);
        mmo(&self.payload.cipher, input)
    }

    /// H(x, s, t) for a leaf.
    pub(super) fn leaf_hash(&self, row: u32, leaf: &[u8; 16]) -> [u8; 64] {
        let mut hash = [0; 64];
        for (i, out) in hash.chunks_exact_mut(16).enumerate() {
            let mut input = *leaf;
            xor_word(&mut input, i, row + 1);
            out.copy_from_slice(&mmo(&self.hash.cipher, input));
        }
        hash
    }
}

fn xor_word(block: &mut [u8; 16], place: usize, word: u32) {
    block.iter_mut().skip(4 * place).zip(word.to_le_bytes()).for_each(|(b, w)| *b ^= w);
}

pub(crate) fn mmo(cipher: &Aes128Enc, input: [u8; 16]) -> [u8; 16] {
    let mut block = Block::from(input);
    cipher.encrypt_block(&mut block);
    std::array::from_fn(|i| block[i] ^ input[i])
}
