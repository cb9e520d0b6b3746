//! The three inner loops of a pass for processors that encrypt four AES blocks at a time (VAES on
//! registers of 64 bytes). This halves their time. [`kernel`](super::kernel) handles other
//! processors, and remainders that do not fill a register.
//!
//! The feed-forward of π, and everything else that is added to its output, goes into the key of the
//! last round. Time and memory access depend only on the numbers of nodes.

use super::Word;
use super::digest::RowHash;
use super::kernel::Node;
use multiversion::multiversion;
use multiversion::target::match_target;

/// The round keys of AES-128, for a processor with all required instructions. Public.
#[derive(Clone)]
pub(super) struct Rounds([Node; 11]);

impl Rounds {
    /// Expands a key. `None` on other processors.
    pub(super) fn new(key: &[u8; 16]) -> Option<Self> {
        rounds(key).map(Self)
    }

    /// Computes the children of as many of the first parents as possible. Returns their number.
    pub(super) fn expand(&self, parents: &[Node], children: &mut [Node], word: &Word) -> usize {
        expand(&self.0, parents, children, word)
    }

    /// Hashes as many of the first leaves as possible. Returns their number.
    pub(super) fn hash(
        &self,
        leaves: &[Node],
        first: u32,
        check: &[u8; 64],
        hashes: &mut [RowHash],
    ) -> usize {
        hash(&self.0, leaves, first, check, hashes)
    }

    /// Encrypts as many of the first blocks as possible. Returns their number.
    pub(super) fn bare(&self, blocks: &mut [Node]) -> usize {
        bare(&self.0, blocks)
    }

    /// Fills as many of the first rows as possible. Returns their number.
    pub(super) fn fill(&self, leaves: &[Node], payload: &[Node], rows: &mut [Node]) -> usize {
        fill(&self.0, leaves, payload, rows)
    }
}

#[multiversion(targets("x86_64+avx512f+vaes"))]
fn rounds(key: &[u8; 16]) -> Option<[Node; 11]> {
    match_target! {
        "x86_64+avx512f+vaes" => Some(wide::round_keys(key)),
        _ => {
            let _ = key;
            None
        }
    }
}

#[multiversion(targets("x86_64+avx512f+vaes"))]
fn expand(keys: &[Node; 11], parents: &[Node], children: &mut [Node], word: &Word) -> usize {
    match_target! {
        "x86_64+avx512f+vaes" => wide::expand(keys, parents, children, word),
        _ => {
            let _ = (keys, parents, children, word);
            0
        }
    }
}

#[multiversion(targets("x86_64+avx512f+vaes"))]
fn hash(
    keys: &[Node; 11],
    leaves: &[Node],
    first: u32,
    check: &[u8; 64],
    hashes: &mut [RowHash],
) -> usize {
    match_target! {
        "x86_64+avx512f+vaes" => wide::hash(keys, leaves, first, check, hashes),
        _ => {
            let _ = (keys, leaves, first, check, hashes);
            0
        }
    }
}

#[multiversion(targets("x86_64+avx512f+vaes"))]
fn fill(keys: &[Node; 11], leaves: &[Node], payload: &[Node], rows: &mut [Node]) -> usize {
    match_target! {
        "x86_64+avx512f+vaes" => wide::fill(keys, leaves, payload, rows),
        _ => {
            let _ = (keys, leaves, payload, rows);
            0
        }
    }
}

#[multiversion(targets("x86_64+avx512f+vaes"))]
fn bare(keys: &[Node; 11], blocks: &mut [Node]) -> usize {
    match_target! {
        "x86_64+avx512f+vaes" => wide::bare(keys, blocks),
        _ => {
            let _ = (keys, blocks);
            0
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::super::Word;
    use super::super::digest::RowHash;
    use super::super::kernel::Node;
    use bytemuck::cast;
    use std::arch::x86_64::{
        __m128i, __m512i, _mm_aeskeygenassist_si128, _mm_shuffle_epi32, _mm_slli_si128,
        _mm_xor_si128, _mm512_add_epi32, _mm512_aesenc_epi128, _mm512_aesenclast_epi128,
        _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_mullo_epi32, _mm512_permutexvar_epi64,
        _mm512_set1_epi32, _mm512_setzero_si512, _mm512_shuffle_epi32, _mm512_sub_epi32,
        _mm512_ternarylogic_epi64, _mm512_xor_si512,
    };

    /// Blocks in a register.
    const LANES: usize = 4;
    /// The function a ⊕ b ⊕ c of three operands.
    const XOR3: i32 = 0x96;
    /// All bits of a node but the control bit, in each lane.
    const SEED: [u32; 16] = {
        let mut seed = [u32::MAX; 16];
        (seed[0], seed[4], seed[8], seed[12]) = (!1, !1, !1, !1);
        seed
    };
    /// The right child's bit, in every second lane.
    const RIGHT: [u32; 16] = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    /// In a leaf's hash, each lane's block has the row number in its own word of 32 bits.
    const OWN: [u32; 16] = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];

    #[inline]
    #[target_feature(enable = "avx512f,vaes")]
    fn broadcast(node: &Node) -> __m512i {
        _mm512_broadcast_i32x4(cast(*node))
    }

    #[inline]
    #[target_feature(enable = "avx512f,vaes")]
    fn broadcast_all(keys: &[Node; 11]) -> [__m512i; 11] {
        let mut all = [_mm512_setzero_si512(); 11];
        for (register, key) in all.iter_mut().zip(keys) {
            *register = broadcast(key);
        }
        all
    }

    #[inline]
    #[target_feature(enable = "avx512f,vaes")]
    fn next<const CONSTANT: i32>(key: __m128i) -> __m128i {
        let assist = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<CONSTANT>(key));
        let key = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
        let key = _mm_xor_si128(key, _mm_slli_si128::<8>(key));
        _mm_xor_si128(key, assist)
    }

    /// FIPS 197, §5.2.
    #[target_feature(enable = "avx512f,vaes")]
    pub(super) fn round_keys(key: &[u8; 16]) -> [Node; 11] {
        let k0 = cast(*key);
        let k1 = next::<0x01>(k0);
        let k2 = next::<0x02>(k1);
        let k3 = next::<0x04>(k2);
        let k4 = next::<0x08>(k3);
        let k5 = next::<0x10>(k4);
        let k6 = next::<0x20>(k5);
        let k7 = next::<0x40>(k6);
        let k8 = next::<0x80>(k7);
        let k9 = next::<0x1b>(k8);
        let k10 = next::<0x36>(k9);
        cast([k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10])
    }

    /// AES(z) ⊕ `added`.
    #[inline]
    #[target_feature(enable = "avx512f,vaes")]
    fn encrypt(keys: &[__m512i; 11], z: __m512i, added: __m512i) -> __m512i {
        let [first, middle @ .., last] = keys;
        let mut state = _mm512_xor_si512(z, *first);
        for key in middle {
            state = _mm512_aesenc_epi128(state, *key);
        }
        _mm512_aesenclast_epi128(state, _mm512_xor_si512(*last, added))
    }

    #[target_feature(enable = "avx512f,vaes")]
    pub(super) fn bare(keys: &[Node; 11], blocks: &mut [Node]) -> usize {
        let keys = broadcast_all(keys);
        let (blocks, _) = blocks.as_chunks_mut::<LANES>();
        for four in &mut *blocks {
            *four = cast(encrypt(&keys, cast(*four), _mm512_setzero_si512()));
        }
        blocks.len() * LANES
    }

    /// AES(z) ⊕ z ⊕ `more` ⊕ (`mask` ∧ `word`).
    #[inline]
    #[target_feature(enable = "avx512f,vaes")]
    fn permute(
        keys: &[__m512i; 11],
        z: __m512i,
        more: __m512i,
        mask: __m512i,
        word: __m512i,
    ) -> __m512i {
        let added = _mm512_ternarylogic_epi64::<XOR3>(z, more, _mm512_and_si512(mask, word));
        encrypt(keys, z, added)
    }

    /// All ones in the lanes of nodes whose control bit is set.
    #[inline]
    #[target_feature(enable = "avx512f,vaes")]
    fn masks(nodes: __m512i) -> __m512i {
        let bits = _mm512_and_si512(_mm512_shuffle_epi32::<0>(nodes), _mm512_set1_epi32(1));
        _mm512_sub_epi32(_mm512_setzero_si512(), bits)
    }

    #[target_feature(enable = "avx512f,vaes")]
    pub(super) fn expand(
        keys: &[Node; 11],
        parents: &[Node],
        children: &mut [Node],
        word: &Word,
    ) -> usize {
        let keys = broadcast_all(keys);
        let mut right = word.seed;
        right[0] = right[0] & !1 | u8::from(word.right);
        let words: __m512i = cast([word.seed, right, word.seed, right]);
        let halves: [__m512i; 2] =
            [cast([0_u64, 1, 0, 1, 2, 3, 2, 3]), cast([4_u64, 5, 4, 5, 6, 7, 6, 7])];
        let (parents, _) = parents.as_chunks::<LANES>();
        let (children, _) = children.as_chunks_mut::<LANES>();
        for (four, eight) in parents.iter().zip(children.chunks_exact_mut(2)) {
            let nodes: __m512i = cast(*four);
            for (half, made) in halves.iter().zip(eight) {
                let twice = _mm512_permutexvar_epi64(*half, nodes);
                let seeds = _mm512_and_si512(twice, cast(SEED));
                let z = _mm512_xor_si512(seeds, cast(RIGHT));
                *made = cast(permute(&keys, z, _mm512_setzero_si512(), masks(twice), words));
            }
        }
        parents.len() * LANES
    }

    #[target_feature(enable = "avx512f,vaes")]
    pub(super) fn hash(
        keys: &[Node; 11],
        leaves: &[Node],
        first: u32,
        check: &[u8; 64],
        hashes: &mut [RowHash],
    ) -> usize {
        let keys = broadcast_all(keys);
        let check: __m512i = cast(*check);
        let mut number: __m512i =
            _mm512_mullo_epi32(cast(OWN), _mm512_set1_epi32(first.wrapping_add(1).cast_signed()));
        for (leaf, hash) in leaves.iter().zip(hashes) {
            let leaf = broadcast(leaf);
            let z = _mm512_xor_si512(leaf, number);
            *hash = cast(permute(&keys, z, _mm512_setzero_si512(), masks(leaf), check));
            number = _mm512_add_epi32(number, cast(OWN));
        }
        leaves.len()
    }

    /// The layout of one register. Four rows fill as many registers as a row has blocks.
    #[derive(Clone, Copy)]
    struct Layout {
        /// The leaf of each lane, as indices of 64-bit halves.
        source: [u64; 8],
        /// Twice the block's index in its row, for each lane.
        blocks_twice: [u32; 16],
        /// The blocks of C.
        word: [Node; LANES],
    }

    fn layouts(payload: &[Node]) -> Vec<Layout> {
        let width = payload.len();
        let blocks =
            (0..LANES as u64).flat_map(|row| (0_u32..).zip(payload).map(move |b| (row, b)));
        let mut layouts =
            vec![
                Layout { source: [0; 8], blocks_twice: [0; 16], word: [Node::default(); LANES] };
                width
            ];
        for (at, (row, (j, word))) in blocks.enumerate() {
            let (layout, lane) = (&mut layouts[at / LANES], at % LANES);
            (layout.source[2 * lane], layout.source[2 * lane + 1]) = (2 * row, 2 * row + 1);
            layout.blocks_twice[4 * lane] = 2 * j;
            layout.word[lane] = *word;
        }
        layouts
    }

    #[target_feature(enable = "avx512f,vaes")]
    pub(super) fn fill(
        keys: &[Node; 11],
        leaves: &[Node],
        payload: &[Node],
        rows: &mut [Node],
    ) -> usize {
        let (keys, layouts) = (broadcast_all(keys), layouts(payload));
        let (leaves, _) = leaves.as_chunks::<LANES>();
        let (rows, _) = rows.as_chunks_mut::<LANES>();
        for (four, rows) in leaves.iter().zip(rows.chunks_exact_mut(layouts.len())) {
            let nodes: __m512i = cast(*four);
            let (seeds, all) = (_mm512_and_si512(nodes, cast(SEED)), masks(nodes));
            for (layout, blocks) in layouts.iter().zip(rows) {
                let source = cast(layout.source);
                let z = _mm512_permutexvar_epi64(source, seeds);
                let z = _mm512_xor_si512(z, cast(layout.blocks_twice));
                let mask = _mm512_permutexvar_epi64(source, all);
                *blocks = cast(permute(&keys, z, cast(*blocks), mask, cast(layout.word)));
            }
        }
        leaves.len() * LANES
    }
}
