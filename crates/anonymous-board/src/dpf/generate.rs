//! The writer's side: a pair of keys that writes one message to one row.
//!
//! Neither time nor memory access depends on row or message: every level makes both children and
//! selects by masks.

use super::prg::Prgs;
use super::{BLOCK, Key, Shape, Side, Word, Words};
use alpheus_crypto::secret::Secret;
use rand_core::CryptoRng;
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

/// Why no pair of keys was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerationError {
    /// The row is beyond the table.
    #[error("the row is beyond the end of the table")]
    Row,
    /// The message has another length than a row.
    #[error("the message's length differs from that of a row")]
    Length,
    /// The check word is zero. Random seeds cause this with probability 2^-512.
    #[error("the seeds make no key; fix the random number generator")]
    Seeds,
}

type Node = Zeroizing<[u8; BLOCK]>;

/// Gen(α, M): keys whose tables at the two servers differ in row `row` by `message`, and nowhere
/// else.
///
/// # Errors
/// [`GenerationError`].
///
/// # Privacy
/// Either key alone reveals nothing about row or message, if AES is an ideal cipher.
pub fn generate(
    prgs: &Prgs,
    shape: &Shape,
    row: u32,
    message: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<[Key; 2], GenerationError> {
    let roots = [0, 1].map(|_| {
        let mut root = Zeroizing::new(*Secret::<BLOCK>::random(rng).expose());
        root[0] &= !1;
        Secret::from_bytes(*root)
    });
    from_roots(prgs, shape, row, message, roots)
}

/// The same from given roots of 127 bits each: for vectors, and for writers that derive their
/// roots.
///
/// # Errors
/// [`GenerationError`].
pub fn from_roots(
    prgs: &Prgs,
    shape: &Shape,
    row: u32,
    message: &[u8],
    roots: [Secret<BLOCK>; 2],
) -> Result<[Key; 2], GenerationError> {
    if row >= shape.rows.get() {
        return Err(GenerationError::Row);
    }
    if message.len() != shape.width() {
        return Err(GenerationError::Length);
    }
    let mut nodes = [Zeroizing::new(*roots[0].expose()), Zeroizing::new(*roots[1].expose())];
    nodes[Side::First.index()][0] &= !1;
    nodes[Side::Second.index()][0] |= 1;
    let depth = shape.depth();
    let levels = (0..depth).map(|level| {
        let goes_right = Choice::from(u8::from(row >> (depth - 1 - level) & 1 == 1));
        descend(prgs, &mut nodes, goes_right)
    });
    let levels = levels.collect();
    let mut payload = message.to_vec();
    for (j, block) in (0u32..).zip(payload.chunks_exact_mut(BLOCK)) {
        for node in &nodes {
            let pad = Zeroizing::new(prgs.stretch(node, j));
            xor_into(block, pad.as_slice());
        }
    }
    let hashes = [&nodes[0], &nodes[1]].map(|node| Zeroizing::new(prgs.leaf_hash(row, node)));
    let check = std::array::from_fn(|i| hashes[0][i] ^ hashes[1][i]);
    if check == [0; 64] {
        return Err(GenerationError::Seeds);
    }
    let words = Words { levels, payload, check };
    let [first, second] = roots;
    Ok([Key { root: first, words: words.clone() }, Key { root: second, words }])
}

/// One level: makes the correction word that makes the two servers' nodes agree off the path, and
/// moves both nodes one step along the path.
fn descend(prgs: &Prgs, nodes: &mut [Node; 2], goes_right: Choice) -> Word {
    let children = [&nodes[0], &nodes[1]].map(|node| Zeroizing::new(prgs.children(node)));
    let right = goes_right.unwrap_u8();
    // This makes the seeds off the path equal.
    let mut word: [u8; BLOCK] = std::array::from_fn(|i| {
        let left = children[0][0][i] ^ children[1][0][i];
        u8::conditional_select(&(children[0][1][i] ^ children[1][1][i]), &left, goes_right)
    });
    let bit = |side: usize| (children[0][side][0] ^ children[1][side][0]) & 1;
    let left_bit = bit(0) ^ right ^ 1;
    let right_bit = bit(1) ^ right;
    word[0] = (word[0] & !1) | left_bit;
    let word_of = Word { seed: word, right: right_bit == 1 };
    for (node, children) in nodes.iter_mut().zip(&children) {
        let control = node[0] & 1;
        let corrected: [Node; 2] = std::array::from_fn(|side| {
            Zeroizing::new(correct(&children[side], &word_of, control, side))
        });
        **node = std::array::from_fn(|i| {
            u8::conditional_select(&corrected[0][i], &corrected[1][i], goes_right)
        });
    }
    word_of
}

/// Adds the correction word, times the parent's control bit, to a child.
pub(super) fn correct(child: &[u8; BLOCK], word: &Word, control: u8, side: usize) -> [u8; BLOCK] {
    let mask = 0u8.wrapping_sub(control);
    let mut correction = word.seed;
    if side == 1 {
        correction[0] = (correction[0] & !1) | u8::from(word.right);
    }
    std::array::from_fn(|i| child[i] ^ (mask & correction[i]))
}

fn xor_into(into: &mut [u8], from: &[u8]) {
    into.iter_mut().zip(from).for_each(|(a, b)| *a ^= b);
}
