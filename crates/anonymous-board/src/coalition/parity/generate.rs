//! The writer's side: keys for s servers that write one message to one row.
//!
//! Neither time nor memory access depends on row or message: the written group and each server's
//! seeds are selected by masks. They depend on the numbers by which columns are ordered, which
//! reveal nothing without the columns.

use super::{Grid, Key, Permutation, scalar};
use crate::dpf::BLOCK;
use crate::dpf::generate::GenerationError;
use rand_core::CryptoRng;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The correction word, and keys for which the sum of all servers' tables has `message` in row
/// `row` and nothing elsewhere.
///
/// # Errors
/// [`GenerationError`].
///
/// # Privacy
/// All keys but one, together with the word, reveal nothing about row or message, if AES is an
/// ideal cipher. The word may be public.
pub fn generate(
    permutation: &Permutation,
    grid: &Grid,
    row: u32,
    message: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<(Vec<u8>, Vec<Key>), GenerationError> {
    if row >= grid.shape.rows.get() {
        return Err(GenerationError::Row);
    }
    if message.len() != grid.shape.width() {
        return Err(GenerationError::Length);
    }
    let (written, place) = (row / grid.rows, row % grid.rows);
    let mut keys: Vec<_> =
        (0..grid.servers).map(|_| Zeroizing::new(Vec::with_capacity(grid.key_bytes()))).collect();
    let mut remaining = Zeroizing::new(vec![[0; BLOCK]; grid.columns()]);
    for group in (0..).take(grid.groups()) {
        let here = u32::ct_eq(&group, &written).unwrap_u8();
        let columns = columns(grid, here, rng);
        let mut seeds = Zeroizing::new(vec![[0; BLOCK]; grid.columns()]);
        seeds.iter_mut().for_each(|seed| rng.fill_bytes(seed));
        for (kept, seed) in remaining.iter_mut().zip(seeds.iter()) {
            let mask = 0_u8.wrapping_sub(here);
            kept.iter_mut().zip(seed).for_each(|(kept, byte)| *kept |= byte & mask);
        }
        for (server, key) in keys.iter_mut().enumerate() {
            hand_out(server, &columns, &seeds, key);
        }
    }
    let word = word(permutation, grid, &remaining, place, message);
    Ok((word, keys.into_iter().map(Key).collect()))
}

/// All columns of even weight, or of odd weight if `odd` is 1, in random order.
fn columns(grid: &Grid, odd: u8, rng: &mut impl CryptoRng) -> Zeroizing<Vec<u8>> {
    let mut drawn: Zeroizing<Vec<(u64, u8)>> = Zeroizing::new(
        (0..=u8::MAX)
            .take(grid.columns())
            .map(|low| {
                let parity = (low.count_ones() & 1) as u8;
                (rng.next_u64(), low | (parity ^ odd) << (grid.servers - 1))
            })
            .collect(),
    );
    // Two equal numbers would only make the order slightly less random.
    drawn.sort_unstable_by_key(|(order, _)| *order);
    Zeroizing::new(drawn.iter().map(|(_, column)| *column).collect())
}

/// Adds a group to one server's key. Its seeds are moved together: each by the number of earlier
/// columns that are not this server's.
fn hand_out(server: usize, columns: &[u8], seeds: &[[u8; BLOCK]], key: &mut Vec<u8>) {
    let bits = columns.iter().map(|column| column >> server & 1);
    key.extend(bits.clone().next_back());
    for slot in (0_u8..).take(columns.len() / 2) {
        let (mut out, mut rank) = ([0; BLOCK], 0_u8);
        for (bit, seed) in bits.clone().zip(seeds) {
            let mask = 0_u8.wrapping_sub(bit & rank.ct_eq(&slot).unwrap_u8());
            out.iter_mut().zip(seed).for_each(|(out, byte)| *out |= byte & mask);
            rank += bit;
        }
        key.extend_from_slice(&out);
    }
}

/// The correction word: the message in its row of the group, plus the G of all remaining seeds.
fn word(
    permutation: &Permutation,
    grid: &Grid,
    seeds: &[[u8; BLOCK]],
    place: u32,
    message: &[u8],
) -> Vec<u8> {
    let mut word = vec![0; grid.word_bytes()];
    for seed in seeds {
        scalar::stretch(permutation, seed, &mut word);
    }
    for (at, row) in (0..).zip(word.chunks_exact_mut(grid.shape.width())) {
        let mask = 0_u8.wrapping_sub(u32::ct_eq(&at, &place).unwrap_u8());
        row.iter_mut().zip(message).for_each(|(byte, m)| *byte ^= m & mask);
    }
    word
}
