//! The sum of a session's ciphertexts since the last anchor, and its Merkle root.

use crate::tick::claim::RootPrefix;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::{Tree, leaf};
use alpheus_policy::layout::Layout;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::iter;

/// Most words of a block: a proof shows whole blocks.
pub const MAX_BLOCK: u16 = 8;

/// How the words of an event are cut into the leaves of a tree. Words of different attributes
/// are never in one block, so a proof for one attribute shows nothing of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks(Vec<u16>);

impl Blocks {
    /// The blocks of a layout.
    #[must_use]
    pub fn of(layout: &Layout) -> Self {
        let mut blocks = Vec::new();
        let starts = layout.fields.iter().map(|field| field.first).chain([layout.check_word()]);
        let ends = starts.clone().skip(1).chain([layout.words]);
        let owners = layout.fields.iter().map(|field| Some(field.statistic.attributes().collect()));
        let mut owners = owners.chain([None]);
        let mut run: Option<(Option<Vec<u16>>, u16)> = None;
        for (start, end) in starts.zip(ends) {
            let (owner, length) = (owners.next().flatten(), end.saturating_sub(start));
            run = match run {
                Some((own, so_far)) if own.is_some() && own == owner => {
                    Some((own, so_far + length))
                }
                known => {
                    known.iter().for_each(|(_, length)| cut(*length, &mut blocks));
                    Some((owner, length))
                }
            };
        }
        run.iter().for_each(|(_, length)| cut(*length, &mut blocks));
        Self(blocks)
    }

    /// Blocks of these numbers of words.
    #[must_use]
    pub fn of_lengths(lengths: &[u16]) -> Self {
        Self(lengths.to_vec())
    }

    /// The numbers of words, in order.
    #[must_use]
    pub fn lengths(&self) -> &[u16] {
        &self.0
    }

    /// The tree over a sum in these blocks.
    #[must_use]
    pub fn tree(&self, sum: &[u64]) -> Tree {
        let mut rest = sum;
        let leaves = (0_u32..).zip(&self.0).map(|(number, length)| {
            let (own, others) = rest.split_at_checked(usize::from(*length)).unwrap_or((rest, &[]));
            rest = others;
            block_leaf(number, own)
        });
        Tree::new(leaves.collect())
    }

    /// The index of the block that holds a word.
    #[must_use]
    pub fn holding(&self, word: u16) -> Option<usize> {
        let mut end = 0_usize;
        self.0.iter().position(|length| {
            end += usize::from(*length);
            usize::from(word) < end
        })
    }

    /// The root of that tree.
    #[must_use]
    pub fn root(&self, sum: &[u64]) -> Digest {
        self.tree(sum).root()
    }
}

/// The leaf of a block: `number:32 ‖ words:32 ‖ words`.
pub(crate) fn block_leaf(number: u32, words: &[u64]) -> Digest {
    let length = u32::try_from(words.len()).unwrap_or(u32::MAX);
    let head = u64::from(number) << 32 | u64::from(length);
    let parts = iter::once(head.to_be_bytes()).chain(words.iter().map(|word| word.to_le_bytes()));
    // Stays on the stack for any block. Copied whole: word by word takes as long as its hash.
    let mut content =
        SmallVec::<[u8; 8 + 8 * MAX_BLOCK as usize]>::from_elem(0, 8 + 8 * words.len());
    content.chunks_exact_mut(8).zip(parts).for_each(|(place, part)| place.copy_from_slice(&part));
    leaf(&content)
}

/// The first bytes of a root, as they are on the wire.
#[must_use]
pub fn prefix(root: &Digest) -> RootPrefix {
    let mut prefix = RootPrefix::default();
    prefix.0.copy_from_slice(&root.as_bytes()[..16]);
    prefix
}

/// Runs of at most [`MAX_BLOCK`] words.
fn cut(mut length: u16, blocks: &mut Vec<u16>) {
    while length > 0 {
        let own = length.min(MAX_BLOCK);
        blocks.push(own);
        length -= own;
    }
}

/// Sum and number of events of a session since its last anchor.
pub struct SessionSum {
    words: Vec<u64>,
    events: u64,
}

impl SessionSum {
    /// The sum of nothing.
    #[must_use]
    pub fn new(words: usize) -> Self {
        Self { words: vec![0; words], events: 0 }
    }

    /// Adds the ciphertext of a tick with this many events.
    pub fn add(&mut self, words: &[u64], events: u64) {
        for (sum, word) in self.words.iter_mut().zip(words) {
            *sum = sum.wrapping_add(*word);
        }
        self.events = self.events.saturating_add(events);
    }

    /// The words of the sum.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Starts again, at an anchor.
    pub fn restart(&mut self) {
        self.words.fill(0);
        self.events = 0;
    }
}
