//! Merkle trees of RFC 6962: one digest for many leaves, and short proofs that a
//! leaf is among them. Leaves and inner nodes are hashed differently.

mod multi_proof;

pub use multi_proof::root_of_several;

use crate::hash::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A complete tree, from which proofs are made.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Level 0 holds the hashes of the leaves. The last level holds the root.
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

/// A proof does not connect the leaf to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proof does not connect this leaf to this root")]
pub struct ProofError;

/// Hash of a leaf: SHA-256(0 ‖ data).
#[must_use]
pub fn leaf(data: &[u8]) -> Digest {
    Digest(Sha256::new().chain_update([0]).chain_update(data).finalize().into())
}

/// Hash of two subtrees: SHA-256(1 ‖ left ‖ right).
fn node(left: &Digest, right: &Digest) -> Digest {
    let mut content = [1; 65];
    content[1..33].copy_from_slice(&left.0);
    content[33..].copy_from_slice(&right.0);
    Digest(Sha256::digest(content).into())
}

impl Tree {
    /// Builds the tree of leaves that were hashed with [`leaf`].
    #[must_use]
    pub fn new(leaves: Vec<Digest>) -> Self {
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let above = below
                .chunks(2)
                .map(|pair| match pair {
                    [left, right] => node(left, right),
                    // A node without a sibling moves up unchanged.
                    rest => rest[0],
                })
                .collect();
            levels.push(above);
        }
        Self { levels }
    }

    /// The root. For a tree without leaves: SHA-256 of the empty string.
    #[must_use]
    pub fn root(&self) -> Digest {
        let root = self.levels.last().and_then(|level| level.first());
        root.copied().unwrap_or_else(|| Digest(Sha256::digest([]).into()))
    }

    /// Proves that the leaf at `index` is in the tree. `None` beyond its end.
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

/// The root of the tree of leaves that were hashed with [`leaf`].
#[must_use]
pub fn root(leaves: Vec<Digest>) -> Digest {
    Tree::new(leaves).root()
}

impl Proof {
    /// Checks that `leaf` (hashed with [`leaf`]) is at the proof's index in a tree
    /// of the proof's size and this root. The prover chose index and size, so
    /// compare them with the values that you expect.
    ///
    /// # Errors
    /// [`ProofError`] if it is not.
    pub fn verify(&self, leaf: &Digest, root: &Digest) -> Result<(), ProofError> {
        if self.index >= self.size {
            return Err(ProofError);
        }
        // RFC 9162, 2.1.3.2: `position` and `last` are the indices of the leaf and of
        // the last leaf on the current level.
        let (mut position, mut last) = (self.index, self.size - 1);
        let mut hash = *leaf;
        for sibling in &self.path {
            if last == 0 {
                return Err(ProofError);
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
        if last == 0 && hash == *root { Ok(()) } else { Err(ProofError) }
    }
}
