//! One digest for many leaves, and short proofs that a leaf is among them:
//! the tree of RFC 6962, whose leaves and inner nodes hash apart.

use crate::hash::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A tree that is kept whole, to prove from.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Level 0 holds the leaves' hashes, the last level the root alone.
    levels: Vec<Vec<Digest>>,
}

/// The siblings from a leaf to the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Position of the leaf.
    pub index: u64,
    /// Number of leaves in the tree.
    pub size: u64,
    /// Siblings, from the leaf upwards.
    pub path: Vec<Digest>,
}

/// A proof does not lead from the leaf to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proof does not lead from this leaf to this root")]
pub struct BadProof;

/// Hash of a leaf: SHA-256(0 ‖ data).
#[must_use]
pub fn leaf(data: &[u8]) -> Digest {
    Digest(Sha256::new().chain_update([0]).chain_update(data).finalize().into())
}

/// Hash of two subtrees: SHA-256(1 ‖ left ‖ right).
fn node(left: &Digest, right: &Digest) -> Digest {
    let hash = Sha256::new().chain_update([1]).chain_update(left.0).chain_update(right.0);
    Digest(hash.finalize().into())
}

impl Tree {
    /// Builds the tree of leaves that [`leaf`] has hashed.
    #[must_use]
    pub fn new(leaves: Vec<Digest>) -> Self {
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let above = below
                .chunks(2)
                .map(|pair| match pair {
                    [left, right] => node(left, right),
                    // An odd one out rises unchanged.
                    rest => rest[0],
                })
                .collect();
            levels.push(above);
        }
        Self { levels }
    }

    /// The root. Of no leaves: SHA-256 of nothing.
    #[must_use]
    pub fn root(&self) -> Digest {
        let root = self.levels.last().and_then(|level| level.first());
        root.copied().unwrap_or_else(|| Digest(Sha256::digest([]).into()))
    }

    /// Proves that the leaf at `index` is in the tree; `None` beyond its end.
    #[must_use]
    pub fn prove(&self, index: usize) -> Option<Proof> {
        let size = self.levels.first().map_or(0, Vec::len);
        if index >= size {
            return None;
        }
        let siblings = self.levels.iter().enumerate();
        let path = siblings.filter_map(|(height, level)| level.get((index >> height) ^ 1));
        let path = path.copied().collect();
        Some(Proof { index: index as u64, size: size as u64, path })
    }
}

/// The root of leaves that [`leaf`] has hashed.
#[must_use]
pub fn root(leaves: Vec<Digest>) -> Digest {
    Tree::new(leaves).root()
}

impl Proof {
    /// Checks that `leaf` (hashed by [`leaf`]) stands at the proof's index in
    /// the tree of its size with this root. Compare index and size with those
    /// you expect: they are the prover's claim.
    ///
    /// # Errors
    /// [`BadProof`] if it does not.
    pub fn verify(&self, leaf: &Digest, root: &Digest) -> Result<(), BadProof> {
        if self.index >= self.size {
            return Err(BadProof);
        }
        // RFC 9162, 2.1.3.2: `position` and `last` are the leaf's and the last
        // leaf's index on the current level.
        let (mut position, mut last) = (self.index, self.size - 1);
        let mut hash = *leaf;
        for sibling in &self.path {
            if last == 0 {
                return Err(BadProof);
            }
            if position & 1 == 1 || position == last {
                hash = node(sibling, &hash);
                while position & 1 == 0 && position != 0 {
                    position >>= 1;
                    last >>= 1;
                }
            } else {
                hash = node(&hash, sibling);
            }
            position >>= 1;
            last >>= 1;
        }
        if last == 0 && hash == *root { Ok(()) } else { Err(BadProof) }
    }
}
