//! A part of a session's sum, and what connects it to the root in a claim: so a controller
//! reads the released words of S(b) as their device added them up, no matter who brings them.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::{Tree, root_of_several};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Release;
use serde::{Deserialize, Serialize};

use super::claim::RootPrefix;
use super::sums::{Blocks, block_leaf, prefix};

/// The blocks of a sum that a plan needs, as the service sends them. Ciphertext.
///
/// # Privacy
/// The controller that guards the stream reads these words of the session's sum since the last anchor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialSum {
    /// The words of these blocks, in order.
    pub words: Vec<u64>,
    /// The hashes of the largest subtrees that hold none of them, from left to right.
    pub path: Vec<Digest>,
}

/// The part does not lead to the root that the device states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the words do not lead to the root that the device states")]
pub struct PartialSumError;

/// Which blocks of a sum a plan needs: those with released words, and the check word's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededBlocks {
    blocks: Blocks,
    /// Their indices, ascending.
    needed: Vec<usize>,
    /// For each word of an event, its place in a part; beyond the part if it is in none.
    places: Vec<u16>,
}

impl NeededBlocks {
    /// The blocks of a schema's sums that a release needs. Words that the schema does not have
    /// need none.
    #[must_use]
    pub fn of(blocks: &Blocks, release: &Release) -> Self {
        let words = release.rows.iter().flatten();
        let mut needed: Vec<usize> = words.filter_map(|word| blocks.holding(*word)).collect();
        needed.sort_unstable();
        needed.dedup();
        let own = Self { blocks: blocks.clone(), needed, places: Vec::new() };
        let mut places =
            vec![u16::MAX; own.blocks.lengths().iter().copied().map(usize::from).sum()];
        let held = own.spans().flat_map(|(_, span)| span).zip(0..);
        held.for_each(|(word, place)| {
            places.iter_mut().skip(word).take(1).for_each(|at| *at = place)
        });
        Self { places, ..own }
    }

    /// The blocks of a layout's sums that a release needs.
    #[must_use]
    pub fn of_layout(layout: &Layout, release: &Release) -> Self {
        Self::of(&Blocks::of(layout), release)
    }

    /// The indices of the blocks, ascending.
    #[must_use]
    pub fn indices(&self) -> &[usize] {
        &self.needed
    }

    /// Takes the part out of a whole sum. Also returns what its device would state as its root.
    #[must_use]
    pub fn part(&self, sum: &[u64]) -> (PartialSum, RootPrefix) {
        let tree: Tree = self.blocks.tree(sum);
        let own = self.spans().filter_map(|(_, span)| sum.get(span));
        let words = own.flatten().copied().collect();
        (PartialSum { words, path: tree.prove_several(&self.needed) }, prefix(&tree.root()))
    }

    /// Checks that a part belongs to the sum with this root.
    ///
    /// # Errors
    /// [`PartialSumError`] if it does not.
    pub fn check<'a>(
        &'a self,
        part: &'a PartialSum,
        root: &RootPrefix,
    ) -> Result<CheckedPart<'a>, PartialSumError> {
        let (mut rest, mut leaves) = (part.words.as_slice(), Vec::with_capacity(self.needed.len()));
        for (number, span) in self.spans() {
            let (own, others) = rest.split_at_checked(span.len()).ok_or(PartialSumError)?;
            rest = others;
            leaves.push((number, block_leaf(u32::try_from(number).unwrap_or(u32::MAX), own)));
        }
        let found = root_of_several(self.blocks.lengths().len(), &leaves, &part.path);
        let found = found.map_err(|_| PartialSumError)?;
        if !rest.is_empty() || prefix(&found) != *root {
            return Err(PartialSumError);
        }
        Ok(CheckedPart { needed: self, part })
    }

    /// Where the needed blocks lie in a sum, each with its index.
    fn spans(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        let mut end = 0;
        let all = self.blocks.lengths().iter().map(move |length| {
            let start = end;
            end += usize::from(*length);
            start..end
        });
        let mut needed = self.needed.iter().peekable();
        all.enumerate().filter(move |(number, _)| needed.next_if_eq(&number).is_some())
    }
}

/// A part that belongs to its device's sum.
#[derive(Clone, Copy, Debug)]
pub struct CheckedPart<'a> {
    needed: &'a NeededBlocks,
    part: &'a PartialSum,
}

impl CheckedPart<'_> {
    /// Adds the released words to `outputs`.
    pub fn add_to(&self, release: &Release, outputs: &mut [u64]) {
        release.add_from(|word| self.word(word), outputs);
    }

    /// Subtracts them.
    pub fn subtract_from(&self, release: &Release, outputs: &mut [u64]) {
        release.add_from(|word| self.word(word).wrapping_neg(), outputs);
    }

    fn word(&self, word: u16) -> u64 {
        let place = self.needed.places.get(usize::from(word)).copied().map(usize::from);
        place.and_then(|place| self.part.words.get(place)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three blocks of 8, 3 and 1 words; the last is the check word's.
    fn needed(rows: &[&[u16]]) -> NeededBlocks {
        let rows = rows.iter().map(|row| row.to_vec()).collect();
        NeededBlocks::of(&Blocks::of_lengths(&[8, 3, 1]), &Release { rows })
    }

    fn sum() -> Vec<u64> {
        (0..12).map(|word| 1000 + word * word).collect()
    }

    #[test]
    fn a_part_has_only_the_blocks_that_are_released() {
        let needed = needed(&[&[9], &[11]]);
        let (part, _) = needed.part(&sum());
        assert_eq!(part.words, [sum()[8], sum()[9], sum()[10], sum()[11]]);
        assert_eq!(part.path.len(), 1);
    }

    #[test]
    fn released_words_are_those_of_the_whole_sum() {
        for rows in [vec![vec![0, 7], vec![11]], vec![vec![8], vec![10, 2], vec![11]]] {
            let release = Release { rows };
            let needed = NeededBlocks::of(&Blocks::of_lengths(&[8, 3, 1]), &release);
            let (part, root) = needed.part(&sum());
            let checked = needed.check(&part, &root).unwrap();
            let (mut found, mut expected) =
                (vec![5; release.outputs()], vec![5; release.outputs()]);
            checked.add_to(&release, &mut found);
            release.add(&sum(), &mut expected);
            assert_eq!(found, expected);
            checked.subtract_from(&release, &mut found);
            assert_eq!(found, vec![5; release.outputs()]);
        }
    }

    #[test]
    fn one_changed_bit_of_any_word_or_hash_is_refused() {
        let needed = needed(&[&[9], &[11]]);
        let (part, root) = needed.part(&sum());
        assert!(needed.check(&part, &root).is_ok());
        for bit in 0..64 * part.words.len() {
            let mut changed = part.clone();
            changed.words[bit / 64] ^= 1 << (bit % 64);
            assert_eq!(needed.check(&changed, &root).err(), Some(PartialSumError), "bit {bit}");
        }
        let mut changed = part.clone();
        changed.path[0].0[0] ^= 1;
        assert!(needed.check(&changed, &root).is_err());
        for words in [part.words[1..].to_vec(), [part.words.clone(), vec![0]].concat()] {
            assert!(needed.check(&PartialSum { words, ..part.clone() }, &root).is_err());
        }
        let path = [part.path.clone(), part.path.clone()].concat();
        assert!(needed.check(&PartialSum { path, ..part.clone() }, &root).is_err());
    }

    /// The blocks of another attribute, which the plan does not release.
    #[test]
    fn other_blocks_of_the_same_sum_are_refused() {
        let (own, other) = (needed(&[&[9], &[11]]), needed(&[&[0], &[11]]));
        let (part, root) = other.part(&sum());
        assert!(other.check(&part, &root).is_ok() && own.check(&part, &root).is_err());
    }
}
