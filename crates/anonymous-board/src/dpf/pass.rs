//! Many keys over one table: trees level by level, AES block by batch, the table
//! block by block, so that what is worked on stays in the cache while all keys of
//! a group pass over it.
//!
//! Time and memory access depend on nothing but the numbers of keys and rows.

use super::digest::{Kappa, KeyDigest, Running};
use super::prg::Prgs;
use super::{BLOCK, Shape, Side, Word, Words};
use aes::cipher::BlockCipherEncrypt;
use aes::cipher::array::Array;
use aes::{Aes128Enc, Block};
use alpheus_crypto::secret::Secret;
use zeroize::Zeroizing;

/// Bytes of table that all keys of a group pass over before the next: a quarter of
/// the second-level cache that servers have today.
const TABLE_BLOCK: usize = 256 * 1024;
/// Keys in a group: their frontiers and digests share the cache with the table.
const GROUP: usize = 128;
/// Bytes of all frontiers of a group: of large tables fewer keys pass together.
const FRONTIERS: usize = 64 << 20;
/// Blocks that are made together: inputs and outputs fit the first-level cache.
const STAGE: usize = 256;

/// One write, as one side's server holds it, already [checked](Words::check).
#[derive(Clone, Copy)]
pub struct Share<'a> {
    /// That server's root.
    pub root: &'a Secret<BLOCK>,
    /// The common words.
    pub words: &'a Words,
}

/// What one side's server does with keys over a table.
pub struct Pass<'a> {
    prgs: &'a Prgs,
    shape: Shape,
    side: Side,
    /// log₂ of the rows of a table block.
    block: usize,
}

/// A key's or the table's length does not fit the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key or the table does not fit the table's shape; check keys before a pass")]
pub struct Misfit;

impl<'a> Pass<'a> {
    /// Prepares to work for one side.
    #[must_use]
    pub fn new(prgs: &'a Prgs, shape: Shape, side: Side) -> Self {
        let rows = (TABLE_BLOCK / shape.width()).max(64);
        let block = (rows.ilog2() as usize).min(shape.depth());
        Self { prgs, shape, side, block }
    }

    /// Adds this side's shares of all writes to its table.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn add(&self, writes: &[Share<'_>], table: &mut [u8]) -> Result<(), Misfit> {
        self.run(writes, Some(table), None).map(drop)
    }

    /// The digests of all writes, in their order.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn digests(&self, writes: &[Share<'_>], kappa: &Kappa) -> Result<Vec<KeyDigest>, Misfit> {
        self.run(writes, None, Some(kappa))
    }

    /// Both at once, for little more than the price of the dearer one's AES.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn add_and_digest(
        &self,
        writes: &[Share<'_>],
        table: &mut [u8],
        kappa: &Kappa,
    ) -> Result<Vec<KeyDigest>, Misfit> {
        self.run(writes, Some(table), Some(kappa))
    }

    fn run(
        &self,
        writes: &[Share<'_>],
        mut table: Option<&mut [u8]>,
        kappa: Option<&Kappa>,
    ) -> Result<Vec<KeyDigest>, Misfit> {
        let fits = writes.iter().all(|write| write.words.check(&self.shape).is_ok());
        if !fits || table.as_ref().is_some_and(|table| table.len() != self.shape.bytes()) {
            return Err(Misfit);
        }
        let mut digests = Vec::with_capacity(writes.len());
        for group in writes.chunks(self.together()) {
            let done = self.group(group, table.as_deref_mut(), kappa);
            digests.extend(done.into_iter().map(Running::finish));
        }
        Ok(digests)
    }

    /// How many keys pass over the table together.
    fn together(&self) -> usize {
        let frontier = BLOCK << (self.shape.depth() - self.block);
        GROUP.min(FRONTIERS / frontier).max(1)
    }

    fn group(
        &self,
        writes: &[Share<'_>],
        mut table: Option<&mut [u8]>,
        kappa: Option<&Kappa>,
    ) -> Vec<Running> {
        let top = self.shape.depth() - self.block;
        let mut scratch = Scratch::new(1 << self.block.max(top), self.shape.width() / BLOCK);
        let frontiers: Vec<_> = writes
            .iter()
            .map(|write| {
                let root = self.root(write);
                let levels = write.words.levels.get(..top).unwrap_or_default();
                scratch.expand(self.prgs, root, levels);
                Zeroizing::new(scratch.nodes[..1 << top].to_vec())
            })
            .collect();
        let mut digests: Vec<Running> =
            kappa.map_or_else(Vec::new, |kappa| vec![Running::new(kappa); writes.len()]);
        let blocks = self.shape.rows().div_ceil(1 << self.block);
        for number in 0..blocks {
            let first = number << self.block;
            let rows = (self.shape.rows() - first).min(1 << self.block);
            let width = self.shape.width();
            let mut part =
                table.as_deref_mut().map(|table| &mut table[first * width..(first + rows) * width]);
            for (k, (write, frontier)) in writes.iter().zip(&frontiers).enumerate() {
                let levels = write.words.levels.get(top..).unwrap_or_default();
                scratch.expand(self.prgs, frontier[number], levels);
                if let Some(digest) = digests.get_mut(k) {
                    scratch.digest(self.prgs, first, rows, &write.words.check, digest);
                }
                if let Some(part) = part.as_deref_mut() {
                    scratch.add(self.prgs, rows, &write.words.payload, part);
                }
            }
        }
        digests
    }

    fn root(&self, write: &Share<'_>) -> [u8; BLOCK] {
        let mut root = *write.root.expose();
        root[0] = (root[0] & !1) | u8::from(self.side == Side::Second);
        root
    }
}

/// Where nodes and hashes are worked out; wiped in the end.
///
/// Inputs are written a stage at a time, then permuted, then used: a block that is
/// written in parts and read at once as a whole would stall the processor.
struct Scratch {
    nodes: Blocks,
    next: Blocks,
    inputs: Blocks,
    made: Blocks,
    lanes: [Blocks; 4],
}

type Blocks = Zeroizing<Vec<[u8; BLOCK]>>;

impl Scratch {
    fn new(nodes: usize, width: usize) -> Self {
        let blocks = |count| Zeroizing::new(vec![[0; BLOCK]; count]);
        let stage = || blocks(STAGE.max(width));
        let lanes = std::array::from_fn(|_| blocks(STAGE));
        Self { nodes: blocks(nodes), next: blocks(nodes), inputs: stage(), made: stage(), lanes }
    }

    /// Leaves the nodes below `root`, after all levels, in `nodes`.
    fn expand(&mut self, prgs: &Prgs, root: [u8; BLOCK], levels: &[Word]) {
        self.nodes[0] = root;
        for (level, word) in levels.iter().enumerate() {
            let mut right = word.seed;
            right[0] = (right[0] & !1) | u8::from(word.right);
            let parents = self.nodes[..1 << level].chunks(STAGE / 2);
            let children = self.next[..2 << level].chunks_mut(STAGE);
            for (parents, children) in parents.zip(children) {
                let inputs = &mut self.inputs[..children.len()];
                for (pair, parent) in inputs.chunks_exact_mut(2).zip(parents) {
                    pair[0] = and(parent, &CLEAR);
                    pair[1] = xor(&pair[0], &SET);
                }
                encrypt(&prgs.tree, inputs, &mut self.made[..children.len()]);
                let made = self.made.chunks_exact(2).zip(self.inputs.chunks_exact(2));
                for ((pair, parent), (made, inputs)) in
                    children.chunks_exact_mut(2).zip(parents).zip(made)
                {
                    let mask = mask(parent);
                    pair[0] = corrected(&made[0], &inputs[0], mask, &word.seed);
                    pair[1] = corrected(&made[1], &inputs[1], mask, &right);
                }
            }
            std::mem::swap(&mut self.nodes, &mut self.next);
        }
    }

    /// H of every leaf, t·cs added, into the digest.
    fn digest(
        &mut self,
        prgs: &Prgs,
        first: usize,
        rows: usize,
        check: &[u8; 64],
        digest: &mut Running,
    ) {
        let (check, _) = check.as_chunks::<BLOCK>();
        for (number, leaves) in self.nodes[..rows].chunks(STAGE).enumerate() {
            // A table has at most 2^31 rows.
            let first = u32::try_from(first + number * STAGE).unwrap_or(u32::MAX);
            let many = leaves.len();
            for (place, (lane, check)) in self.lanes.iter_mut().zip(check).enumerate() {
                let inputs = &mut self.inputs[..many];
                inputs.copy_from_slice(leaves);
                number_at(inputs, place, first);
                encrypt(&prgs.hash, inputs, &mut self.made[..many]);
                let made = self.made.iter().zip(inputs);
                for ((out, leaf), (made, input)) in lane.iter_mut().zip(leaves).zip(made) {
                    *out = corrected(made, input, mask(leaf), check);
                }
            }
            digest.update(std::array::from_fn(|i| {
                Array::cast_slice_from_core(&self.lanes[i][..many])
            }));
        }
    }

    /// G(s) ⊕ t·C of every leaf, into its row.
    fn add(&mut self, prgs: &Prgs, rows: usize, payload: &[u8], table: &mut [u8]) {
        let width = payload.len() / BLOCK;
        let numbers: Vec<[u8; BLOCK]> =
            (0..width as u128).map(|j| (j << 1).to_le_bytes()).collect();
        let together = (STAGE / width).max(1);
        let rows =
            self.nodes[..rows].chunks(together).zip(table.chunks_mut(together * payload.len()));
        for (leaves, rows) in rows {
            let many = leaves.len() * width;
            let inputs = &mut self.inputs[..many];
            for (inputs, leaf) in inputs.chunks_exact_mut(width).zip(leaves) {
                let seed = and(leaf, &CLEAR);
                for (input, number) in inputs.iter_mut().zip(&numbers) {
                    *input = xor(&seed, number);
                }
            }
            encrypt(&prgs.payload, inputs, &mut self.made[..many]);
            let inputs = self.inputs.as_flattened().chunks_exact(payload.len());
            let made = self.made.as_flattened().chunks_exact(payload.len()).zip(inputs);
            for ((row, leaf), (made, inputs)) in
                rows.chunks_exact_mut(payload.len()).zip(leaves).zip(made)
            {
                let mask = mask(leaf);
                let pads = made.iter().zip(inputs).zip(payload);
                for (byte, ((made, input), word)) in row.iter_mut().zip(pads) {
                    *byte ^= made ^ input ^ (mask & word);
                }
            }
        }
    }
}

const CLEAR: [u8; BLOCK] = {
    let mut clear = [0xff; BLOCK];
    clear[0] = 0xfe;
    clear
};
const SET: [u8; BLOCK] = {
    let mut set = [0; BLOCK];
    set[0] = 1;
    set
};

/// AES of many blocks, as many together as the processor takes.
fn encrypt(cipher: &Aes128Enc, inputs: &[[u8; BLOCK]], made: &mut [[u8; BLOCK]]) {
    let made: &mut [Block] = Array::cast_slice_from_core_mut(made);
    // Of one length, so this never fails.
    let _ = cipher.encrypt_blocks_b2b(Array::cast_slice_from_core(inputs), made);
}

/// Adds x + 1 to each input's word of that place, x counting from `first`.
#[inline]
fn number_at(inputs: &mut [[u8; BLOCK]], place: usize, first: u32) {
    for (row, input) in (first.wrapping_add(1)..).zip(inputs) {
        if let Some(word) = input.as_chunks_mut::<4>().0.get_mut(place) {
            *word = (u32::from_le_bytes(*word) ^ row).to_le_bytes();
        }
    }
}

/// π(z) with the word added if the mask is set.
#[inline(always)]
fn corrected(made: &[u8; BLOCK], input: &[u8; BLOCK], mask: u8, word: &[u8; BLOCK]) -> [u8; BLOCK] {
    xor(&xor(made, input), &and(word, &[mask; BLOCK]))
}

#[inline(always)]
fn xor(a: &[u8; BLOCK], b: &[u8; BLOCK]) -> [u8; BLOCK] {
    (u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b)).to_ne_bytes()
}

#[inline(always)]
fn and(a: &[u8; BLOCK], b: &[u8; BLOCK]) -> [u8; BLOCK] {
    (u128::from_ne_bytes(*a) & u128::from_ne_bytes(*b)).to_ne_bytes()
}

/// All ones if the control bit is set.
#[inline(always)]
fn mask(node: &[u8; BLOCK]) -> u8 {
    0u8.wrapping_sub(node[0] & 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What frontiers take does not grow with the table, but for the one that is needed.
    #[test]
    fn frontiers_are_bounded() {
        let prgs = Prgs::new(&[1; BLOCK], &[2; BLOCK], &[3; BLOCK]);
        let mut most = 0;
        for depth in [1, 10, 16, 23, 31] {
            let Ok(shape) = Shape::new(1 << depth, 23) else { panic!("a good shape") };
            let pass = Pass::new(&prgs, shape, Side::First);
            let frontier = BLOCK << (shape.depth() - pass.block);
            let (together, bytes) = (pass.together(), pass.together() * frontier);
            assert!(together >= 1 && (together == 1 || bytes <= FRONTIERS), "{depth}: {bytes}");
            most = most.max(bytes);
        }
        assert!(most <= FRONTIERS, "{most}");
    }
}
