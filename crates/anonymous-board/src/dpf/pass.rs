//! Many keys over one table: trees level by level, AES in batches, the table block by block. So the
//! working set stays in the cache while all keys of a group pass over it.
//!
//! Time and memory access depend only on the numbers of keys and rows.

use super::digest::{DigestState, Kappa, KeyDigest, KeyWords, RowHash};
use super::kernel::{Node, Nodes};
use super::prg::Prgs;
use super::{BLOCK, Shape, Side, Word, Words};
use alpheus_crypto::secret::Secret;
use zeroize::Zeroizing;

/// Bytes of table that all keys of a group pass over before they continue: a quarter of the
/// second-level cache of current servers.
const TABLE_BLOCK: usize = 256 * 1024;
/// Keys in a group: their frontiers and digests share the cache with the table.
const GROUP: usize = 128;
/// Bytes of all frontiers of a group: with large tables fewer keys pass together.
const FRONTIERS: usize = 64 << 20;
/// Rows whose hashes are computed before they enter the digest: they fit the first-level cache.
const STAGE: usize = 128;

/// One write as one side's server holds it, already [checked](Words::check).
#[derive(Clone, Copy)]
pub struct Share<'a> {
    /// That server's root.
    pub root: &'a Secret<BLOCK>,
    /// The common words.
    pub words: &'a Words,
}

/// One side's computation with keys over a table.
pub struct Pass<'a> {
    prgs: &'a Prgs,
    shape: Shape,
    side: Side,
    /// log₂ of the rows in a table block.
    block: usize,
}

/// The length of a key or of the table does not fit the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key or the table does not fit the table's shape; check keys before a pass")]
pub struct SizeError;

impl<'a> Pass<'a> {
    /// Prepares a pass for one side.
    #[must_use]
    pub fn new(prgs: &'a Prgs, shape: Shape, side: Side) -> Self {
        let rows = (TABLE_BLOCK / shape.width()).max(64);
        let block = (rows.ilog2() as usize).min(shape.depth());
        Self { prgs, shape, side, block }
    }

    /// Adds this side's shares of all writes to its table.
    ///
    /// # Errors
    /// [`SizeError`].
    pub fn add(&self, writes: &[Share<'_>], table: &mut [u8]) -> Result<(), SizeError> {
        self.run(writes, Some(table), None).map(drop)
    }

    /// The digests of all writes, in order.
    ///
    /// # Errors
    /// [`SizeError`].
    pub fn digests(
        &self,
        writes: &[Share<'_>],
        kappa: &Kappa,
    ) -> Result<Vec<KeyDigest>, SizeError> {
        self.run(writes, None, Some(kappa))
    }

    /// Both at once, for little more than the AES of the more expensive one.
    ///
    /// # Errors
    /// [`SizeError`].
    pub fn add_and_digest(
        &self,
        writes: &[Share<'_>],
        table: &mut [u8],
        kappa: &Kappa,
    ) -> Result<Vec<KeyDigest>, SizeError> {
        self.run(writes, Some(table), Some(kappa))
    }

    fn run(
        &self,
        writes: &[Share<'_>],
        mut table: Option<&mut [u8]>,
        kappa: Option<&Kappa>,
    ) -> Result<Vec<KeyDigest>, SizeError> {
        let fits = writes.iter().all(|write| write.words.check(&self.shape).is_ok());
        if !fits || table.as_ref().is_some_and(|table| table.len() != self.shape.bytes()) {
            return Err(SizeError);
        }
        let mut digests = Vec::with_capacity(writes.len());
        for group in writes.chunks(self.group_size()) {
            let done = self.group(group, table.as_deref_mut(), kappa);
            digests.extend(done.into_iter().map(DigestState::finish));
        }
        Ok(digests)
    }

    /// The number of keys that pass over the table together.
    fn group_size(&self) -> usize {
        let frontier = BLOCK << (self.shape.depth() - self.block);
        GROUP.min(FRONTIERS / frontier).max(1)
    }

    fn group(
        &self,
        writes: &[Share<'_>],
        mut table: Option<&mut [u8]>,
        kappa: Option<&Kappa>,
    ) -> Vec<DigestState> {
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
        let mut digests = vec![DigestState::default(); kappa.map_or(0, |_| writes.len())];
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

/// Scratch space for nodes and hashes. It is wiped when dropped.
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

    /// Computes the nodes below `root` after all levels, into `nodes`.
    fn expand(&mut self, prgs: &Prgs, root: Node, levels: &[Word]) {
        self.nodes[0] = root;
        for (level, word) in levels.iter().enumerate() {
            let parents = &self.nodes[..1 << level];
            let children = &mut self.next[..2 << level];
            prgs.tree.expand(parents, children, word);
            std::mem::swap(&mut self.nodes, &mut self.next);
        }
    }

    /// Passes H of every leaf, with t·cs added, to `take`, with the index of the first leaf of each
    /// batch.
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

    /// Adds G(s) ⊕ t·C of every leaf to its row.
    fn add(&self, prgs: &Prgs, rows: usize, payload: &[u8], table: &mut [u8]) {
        // A row consists of whole blocks.
        let ((payload, _), (table, _)) = (payload.as_chunks(), table.as_chunks_mut());
        let leaves = &self.nodes[..rows];
        prgs.payload.fill(leaves, payload, table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory for frontiers does not grow with the table, beyond the one frontier that is
    /// needed.
    #[test]
    fn frontiers_are_bounded() {
        let prgs = Prgs::new(&[1; BLOCK], &[2; BLOCK], &[3; BLOCK]);
        let mut most = 0;
        for depth in [1, 10, 16, 23, 31] {
            let Ok(shape) = Shape::new(1 << depth, 23) else { panic!("a good shape") };
            let pass = Pass::new(&prgs, shape, Side::First);
            let frontier = BLOCK << (shape.depth() - pass.block);
            let (together, bytes) = (pass.group_size(), pass.group_size() * frontier);
            assert!(together >= 1 && (together == 1 || bytes <= FRONTIERS), "{depth}: {bytes}");
            most = most.max(bytes);
        }
        assert!(most <= FRONTIERS, "{most}");
    }
}
