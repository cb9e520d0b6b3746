//! One proof for several leaves of a tree: each hash that connects them to the root stands in
//! it once.

use super::{ProofError, Tree, node};
use crate::hash::Digest;

impl Tree {
    /// The hashes that connect the leaves at these indices, ascending, to the root: those of the
    /// largest subtrees that hold none of them, from left to right.
    #[must_use]
    pub fn prove_several(&self, leaves: &[usize]) -> Vec<Digest> {
        let mut path = Vec::new();
        self.collect((0, self.levels.first().map_or(0, Vec::len)), leaves, &mut path);
        path
    }

    fn collect(&self, (start, size): (usize, usize), known: &[usize], path: &mut Vec<Digest>) {
        if known.is_empty() {
            path.extend(self.subtree(start, size));
        } else if let Some(half) = half(size) {
            let (left, right) = known.split_at(known.partition_point(|at| *at < start + half));
            self.collect((start, half), left, path);
            self.collect((start + half, size - half), right, path);
        }
    }

    /// The hash of a subtree: a node without a sibling moves up unchanged.
    fn subtree(&self, start: usize, size: usize) -> Option<Digest> {
        let height = size.checked_next_power_of_two()?.trailing_zeros();
        let level = self.levels.get(usize::try_from(height).ok()?)?;
        level.get(start.checked_shr(height)?).copied()
    }
}

/// The root of a tree of `size` leaves, of which these are known (index and hash, ascending) and
/// [`Tree::prove_several`] made the rest. The caller compares it with the root that it expects.
///
/// # Errors
/// [`ProofError`] if there is no known leaf, a leaf lies beyond the tree, or the number of hashes
/// is not what these leaves need.
pub fn root_of_several(
    size: usize,
    known: &[(usize, Digest)],
    path: &[Digest],
) -> Result<Digest, ProofError> {
    let ascends = known.windows(2).all(|pair| matches!(pair, [a, b] if a.0 < b.0));
    if !ascends || known.last().is_none_or(|(last, _)| *last >= size) {
        return Err(ProofError);
    }
    let mut path = path.iter();
    let root = fold((0, size), known, &mut path)?;
    if path.next().is_none() { Ok(root) } else { Err(ProofError) }
}

fn fold(
    (start, size): (usize, usize),
    known: &[(usize, Digest)],
    path: &mut std::slice::Iter<'_, Digest>,
) -> Result<Digest, ProofError> {
    let Some((_, first)) = known.first() else { return path.next().copied().ok_or(ProofError) };
    let Some(half) = half(size) else { return Ok(*first) };
    let (left, right) = known.split_at(known.partition_point(|(at, _)| *at < start + half));
    let left = fold((start, half), left, path)?;
    Ok(node(&left, &fold((start + half, size - half), right, path)?))
}

/// The number of leaves on the left of a tree: the largest power of two below its size. `None`
/// for a single leaf.
fn half(size: usize) -> Option<usize> {
    (size > 1).then(|| size.next_power_of_two() / 2)
}

#[cfg(test)]
mod tests {
    use super::super::{Tree, leaf};
    use super::*;

    fn leaves(size: usize) -> Vec<Digest> {
        (0..size).map(|at| leaf(&at.to_be_bytes())).collect()
    }

    #[test]
    fn any_leaves_of_any_tree_lead_to_its_root_and_to_no_other() {
        for size in 1..=9_usize {
            let (all, tree) = (leaves(size), Tree::new(leaves(size)));
            for chosen in 1..1_usize << size {
                let indices: Vec<usize> = (0..size).filter(|at| chosen >> at & 1 == 1).collect();
                let path = tree.prove_several(&indices);
                let mut known: Vec<_> = indices.iter().map(|at| (*at, all[*at])).collect();
                assert_eq!(
                    root_of_several(size, &known, &path),
                    Ok(tree.root()),
                    "{size} {chosen}"
                );
                known[0].1.0[31] ^= 1;
                assert_ne!(root_of_several(size, &known, &path), Ok(tree.root()));
            }
        }
    }

    #[test]
    fn one_leaf_has_the_path_of_a_proof() {
        let tree = Tree::new(leaves(57));
        let mut one = tree.prove(20).unwrap().path;
        let mut several = tree.prove_several(&[20]);
        one.sort_by_key(|digest| digest.0);
        several.sort_by_key(|digest| digest.0);
        assert_eq!(one, several);
    }

    #[test]
    fn another_number_of_hashes_and_leaves_out_of_order_are_refused() {
        let (all, tree) = (leaves(6), Tree::new(leaves(6)));
        let known = [(1, all[1]), (4, all[4])];
        let path = tree.prove_several(&[1, 4]);
        let refused = |known: &[(usize, Digest)], path: &[Digest]| {
            assert_eq!(root_of_several(6, known, path), Err(ProofError));
        };
        refused(&known, &path[1..]);
        refused(&known, &[path.clone(), vec![all[0]]].concat());
        refused(&[], &path);
        refused(&[known[1], known[0]], &path);
        refused(&[known[0], known[0]], &path);
        refused(&[known[0], (6, all[4])], &path);
    }
}
