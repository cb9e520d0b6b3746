//! The three inner loops of a pass: children of nodes, hashes of leaves, rows of a table. Each runs
//! inside one call to AES, in groups of as many blocks as the processor encrypts together, so that
//! inputs and outputs are computed in registers beside the rounds.
//!
//! Time and memory access depend only on the numbers of nodes.

use super::digest::RowHash;
use super::prg::Permutation;
use super::{BLOCK, Word};
use aes::Block;
use aes::cipher::array::{Array, ArraySize};
use aes::cipher::consts::U16;
use aes::cipher::typenum::Unsigned;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
};
use wide::u32x4;
use zeroize::Zeroizing;

/// A seed and its control bit, as a pass stores it.
pub(crate) type Node = [u8; BLOCK];
/// Nodes that are wiped when dropped.
pub(super) type Nodes = Zeroizing<Vec<Node>>;

// Compilers split words and integers of a block's length into halves. A register of four words
// stays whole.

#[inline(always)]
pub(crate) fn load(block: &Node) -> u32x4 {
    bytemuck::cast(*block)
}

#[inline(always)]
pub(crate) fn bytes(register: u32x4) -> Node {
    bytemuck::cast(register)
}

/// All ones if the control bit is set.
#[inline(always)]
fn mask(node: &Node) -> u32x4 {
    u32x4::ZERO - u32x4::splat(u32::from(node[0] & 1))
}

/// The node without its control bit.
#[inline(always)]
fn seed(node: &Node) -> u32x4 {
    const CLEAR: Node = {
        let mut clear = [0xff; BLOCK];
        clear[0] = 0xfe;
        clear
    };
    load(node) & load(&CLEAR)
}

/// Puts a 32-bit number into the first of a block's four words.
#[inline(always)]
pub(crate) fn number(number: u32) -> u32x4 {
    u32x4::new([number.to_le(), 0, 0, 0])
}

/// Masks that each select one of a block's four words.
const WORDS: [u32x4; 4] = [
    u32x4::new([u32::MAX, 0, 0, 0]),
    u32x4::new([0, u32::MAX, 0, 0]),
    u32x4::new([0, 0, u32::MAX, 0]),
    u32x4::new([0, 0, 0, u32::MAX]),
];

/// π of a group of blocks, AES(z) ⊕ z, where `input` maps an index in the group to z.
#[inline(always)]
pub(crate) fn permute<B: BlockCipherEncBackend<BlockSize = U16>>(
    backend: &B,
    input: impl Fn(usize) -> u32x4,
) -> Array<u32x4, B::ParBlocksSize> {
    let mut blocks: Array<Block, B::ParBlocksSize> = Array::from_fn(|k| bytes(input(k)).into());
    backend.encrypt_par_blocks_inplace(&mut blocks);
    Array::from_fn(|k| load(&blocks[k].0) ^ input(k))
}

/// Pads an incomplete group of nodes with zeros.
fn padded<N: ArraySize>(rest: &[Node], each: usize) -> Array<Node, N> {
    Array::from_fn(|k| rest.get(k / each).copied().unwrap_or_default())
}

impl Permutation {
    /// Computes all children of nodes, with one level's correction word added.
    pub(super) fn expand(&self, parents: &[Node], children: &mut [Node], word: &Word) {
        let wide = self.wide.as_ref();
        let done = wide.map_or(0, |wide| wide.expand(parents, children, word));
        let (parents, children) = (&parents[done..], &mut children[2 * done..]);
        self.cipher.encrypt_with_backend(Expand { parents, children, word });
    }

    /// Computes H of every leaf, with t·cs added. The first leaf's row is `first`.
    pub(super) fn hash(
        &self,
        leaves: &[Node],
        first: u32,
        check: &[u8; 64],
        hashes: &mut [RowHash],
    ) {
        let wide = self.wide.as_ref();
        let done = wide.map_or(0, |wide| wide.hash(leaves, first, check, hashes));
        let first = first.wrapping_add(u32::try_from(done).unwrap_or(u32::MAX));
        let (leaves, hashes) = (&leaves[done..], &mut hashes[done..]);
        self.cipher.encrypt_with_backend(Hash { leaves, first, check, hashes });
    }

    /// Adds G(s) ⊕ t·C of every leaf to its row. C is as long as a row.
    pub(super) fn fill(&self, leaves: &[Node], payload: &[Node], rows: &mut [Node]) {
        let wide = self.wide.as_ref();
        let done = wide.map_or(0, |wide| wide.fill(leaves, payload, rows));
        let (leaves, rows) = (&leaves[done..], &mut rows[done * payload.len()..]);
        self.cipher.encrypt_with_backend(Fill { leaves, payload, rows });
    }
}

struct Expand<'a> {
    parents: &'a [Node],
    children: &'a mut [Node],
    word: &'a Word,
}

impl BlockSizeUser for Expand<'_> {
    type BlockSize = U16;
}

impl Expand<'_> {
    /// Computes a group of children. Each parent occurs twice.
    #[inline(always)]
    fn group<B: BlockCipherEncBackend<BlockSize = U16>>(
        backend: &B,
        words: &[u32x4; 2],
        parents: &Array<Node, B::ParBlocksSize>,
    ) -> Array<Node, B::ParBlocksSize> {
        let right = [u32x4::ZERO, number(1)];
        let made = permute(backend, |k| seed(&parents[k]) | right[k % 2]);
        Array::from_fn(|k| bytes(made[k] ^ (mask(&parents[k]) & words[k % 2])))
    }
}

impl BlockCipherEncClosure for Expand<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        const { assert!(B::ParBlocksSize::USIZE % 2 == 0, "children come in pairs") };
        let left = &self.word.seed;
        let words = [load(left), seed(left) | number(u32::from(self.word.right))];
        let (groups, rest) = Array::<Node, B::ParBlocksSize>::slice_as_chunks_mut(self.children);
        let (of_groups, of_rest) = self.parents.split_at(self.parents.len() - rest.len() / 2);
        let of_groups = of_groups.chunks_exact(B::ParBlocksSize::USIZE / 2);
        for (group, parents) in groups.iter_mut().zip(of_groups) {
            *group = Self::group(backend, &words, &Array::from_fn(|k| parents[k / 2]));
        }
        if !rest.is_empty() {
            let made = Self::group(backend, &words, &padded(of_rest, 2));
            rest.copy_from_slice(&made[..rest.len()]);
        }
    }
}

struct Hash<'a> {
    leaves: &'a [Node],
    first: u32,
    check: &'a [u8; 64],
    hashes: &'a mut [RowHash],
}

impl BlockSizeUser for Hash<'_> {
    type BlockSize = U16;
}

impl Hash<'_> {
    /// A group, of which the first `count` are leaves, `at` after the first one.
    #[inline(always)]
    fn group<B: BlockCipherEncBackend<BlockSize = U16>>(
        &mut self,
        backend: &B,
        leaves: &Array<Node, B::ParBlocksSize>,
        at: usize,
        count: usize,
    ) {
        // x + 1 of each row, in all four words. A table has at most 2^31 rows.
        let mut row = self.first.wrapping_add(u32::try_from(at).unwrap_or(u32::MAX));
        let numbers: Array<u32x4, B::ParBlocksSize> = Array::from_fn(|_| {
            row = row.wrapping_add(1);
            u32x4::splat(row.to_le())
        });
        let masks: Array<u32x4, B::ParBlocksSize> = Array::from_fn(|k| mask(&leaves[k]));
        let (check, _) = self.check.as_chunks::<BLOCK>();
        let hashes = &mut self.hashes[at..at + count];
        for (i, (check, word)) in check.iter().zip(WORDS).enumerate() {
            let check = load(check);
            let made = permute(backend, |k| load(&leaves[k]) ^ (numbers[k] & word));
            for (k, hash) in hashes.iter_mut().enumerate() {
                hash[i] = bytes(made[k] ^ (masks[k] & check));
            }
        }
    }
}

impl BlockCipherEncClosure for Hash<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(mut self, backend: &B) {
        let par = B::ParBlocksSize::USIZE;
        let (groups, rest) = Array::<Node, B::ParBlocksSize>::slice_as_chunks(self.leaves);
        for (number, leaves) in groups.iter().enumerate() {
            self.group(backend, leaves, number * par, par);
        }
        if !rest.is_empty() {
            self.group(backend, &padded(rest, 1), groups.len() * par, rest.len());
        }
    }
}

struct Fill<'a> {
    leaves: &'a [Node],
    payload: &'a [Node],
    rows: &'a mut [Node],
}

impl BlockSizeUser for Fill<'_> {
    type BlockSize = U16;
}

impl Fill<'_> {
    /// A group, of which the first `count` are leaves, `at` after the first one.
    #[inline(always)]
    fn group<B: BlockCipherEncBackend<BlockSize = U16>>(
        &mut self,
        backend: &B,
        leaves: &Array<Node, B::ParBlocksSize>,
        at: usize,
        count: usize,
    ) {
        let width = self.payload.len();
        let rows = &mut self.rows[at * width..(at + count) * width];
        let masks: Array<u32x4, B::ParBlocksSize> = Array::from_fn(|k| mask(&leaves[k]));
        let seeds: Array<u32x4, B::ParBlocksSize> = Array::from_fn(|k| seed(&leaves[k]));
        for (j, word) in self.payload.iter().enumerate() {
            // A row has at most 4096 blocks.
            let place = number(u32::try_from(2 * j).unwrap_or(u32::MAX));
            let word = load(word);
            let made = permute(backend, |k| seeds[k] ^ place);
            for k in 0..count {
                let block = &mut rows[k * width + j];
                *block = bytes(load(block) ^ made[k] ^ (masks[k] & word));
            }
        }
    }
}

impl BlockCipherEncClosure for Fill<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(mut self, backend: &B) {
        let par = B::ParBlocksSize::USIZE;
        let (groups, rest) = Array::<Node, B::ParBlocksSize>::slice_as_chunks(self.leaves);
        for (number, leaves) in groups.iter().enumerate() {
            self.group(backend, leaves, number * par, par);
        }
        if !rest.is_empty() {
            self.group(backend, &padded(rest, 1), groups.len() * par, rest.len());
        }
    }
}
