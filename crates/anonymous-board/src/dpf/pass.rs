//! Many keys over one table: trees level by level, AES block by batch, the table
//! block by block, so that what is worked on stays in the cache while all keys of
//! a group pass over it.
//!
//! Time and memory access depend on nothing but the numbers of keys and rows.

use super::digest::{Kappa, KeyDigest, KeyWords, RowHash, Running};
use super::kernel::{Node, Nodes};
use super::prg::Prgs;
use super::{BLOCK, Shape, Side, Word, Words};
use alpheus_crypto::secret::Secret;
use zeroize::Zeroizing;

/// Bytes of table that all keys of a group pass over before the next: a quarter of
/// the second-level cache that servers have today.
const TABLE_BLOCK: usize = 256 * 1024;
/// Keys in a group: their frontiers and digests share the cache with the table.
const GROUP: usize = 128;
/// Bytes of all frontiers of a group: of large tables fewer keys pass together.
const FRONTIERS: usize = 64 << 20;
/// Rows whose hashes are made before they go into the digest: they fit the first-level cache.
const STAGE: usize = 128;

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
        let mut scratch = Scratch::new(1 << self.block.max(top));
        let frontiers: Vec<_> = writes
            .iter()
            .map(|write| {
                let root = self.root(write);
                let levels = write.words.levels.get(..top).unwrap_or_default();
                scratch.expand(self.prgs, root, levels);
                Zeroizing::new(scratch.nodes[..1 << top].to_vec())
            })
            .collect();
        let mut digests = vec![Running::default(); kappa.map_or(0, |_| writes.len())];
        let blocks = self.shape.rows().div_ceil(1 << self.block);
        for number in 0..blocks {
            let first = number << self.block;
            let rows = (self.shape.rows() - first).min(1 << self.block);
            let key = kappa.map(|kappa| KeyWords::new(kappa, first, rows));
            let width = self.shape.width();
            let mut part =
                table.as_deref_mut().map(|table| &mut table[first * width..(first + rows) * width]);
            for (k, (write, frontier)) in writes.iter().zip(&frontiers).enumerate() {
                let levels = write.words.levels.get(top..).unwrap_or_default();
                scratch.expand(self.prgs, frontier[number], levels);
                if let (Some(key), Some(digest)) = (&key, digests.get_mut(k)) {
                    scratch.hash(self.prgs, first, rows, &write.words.check, |at, hashes| {
                        digest.update(key, at, hashes);
                    });
                }
                if let Some(part) = part.as_deref_mut() {
                    scratch.add(self.prgs, rows, &write.words.payload, part);
                }
            }
        }
        digests
    }

    fn root(&self, write: &Share<'_>) -> Node {
        let mut root = *write.root.expose();
        root[0] = (root[0] & !1) | u8::from(self.side == Side::Second);
        root
    }
}

/// Where nodes and hashes are worked out; wiped in the end.
struct Scratch {
    nodes: Nodes,
    next: Nodes,
    hashes: Zeroizing<Vec<RowHash>>,
}

impl Scratch {
    fn new(nodes: usize) -> Self {
        let made = |many| Zeroizing::new(vec![Node::default(); many]);
        let hashes = Zeroizing::new(vec![RowHash::default(); STAGE]);
        Self { nodes: made(nodes), next: made(nodes), hashes }
    }

    /// Leaves the nodes below `root`, after all levels, in `nodes`.
    fn expand(&mut self, prgs: &Prgs, root: Node, levels: &[Word]) {
        self.nodes[0] = root;
        for (level, word) in levels.iter().enumerate() {
            let parents = &self.nodes[..1 << level];
            let children = &mut self.next[..2 << level];
            prgs.tree.expand(parents, children, word);
            std::mem::swap(&mut self.nodes, &mut self.next);
        }
    }

    /// Gives H of every leaf, t·cs added, and which of the leaves is the first of those.
    fn hash(
        &mut self,
        prgs: &Prgs,
        first: usize,
        rows: usize,
        check: &[u8; 64],
        mut take: impl FnMut(usize, &[RowHash]),
    ) {
        for (number, leaves) in self.nodes[..rows].chunks(STAGE).enumerate() {
            let at = number * STAGE;
            // A table has at most 2^31 rows.
            let first = u32::try_from(first + at).unwrap_or(u32::MAX);
            let hashes = &mut self.hashes[..leaves.len()];
            prgs.hash.hash(leaves, first, check, hashes);
            take(at, hashes);
        }
    }

    /// G(s) ⊕ t·C of every leaf, into its row.
    fn add(&self, prgs: &Prgs, rows: usize, payload: &[u8], table: &mut [u8]) {
        // A row is a number of whole blocks.
        let ((payload, _), (table, _)) = (payload.as_chunks(), table.as_chunks_mut());
        let leaves = &self.nodes[..rows];
        prgs.payload.fill(leaves, payload, table);
    }
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
