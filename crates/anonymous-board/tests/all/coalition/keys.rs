//! Keys by parity: what they write, and what all but one of them reveal.

use alpheus_anonymous_board::coalition::parity::expand::each_group;
use alpheus_anonymous_board::coalition::parity::generate::generate;
use alpheus_anonymous_board::coalition::parity::{Grid, Key, KeyError, Permutation, scalar};
use alpheus_anonymous_board::dpf::Shape;
use alpheus_anonymous_board::dpf::generate::GenerationError;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use proptest::prelude::*;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

fn permutation() -> Permutation {
    Permutation::new(&[3; 16])
}

/// A server's share of the table's rows.
fn share(grid: &Grid, word: &[u8], key: &Key) -> Vec<u8> {
    let mut fast = Vec::new();
    each_group(&permutation(), grid, word, key, |_, rows| {
        fast.extend_from_slice(rows.as_flattened())
    });
    let slow = scalar::expand(&permutation(), grid, word, key);
    assert!(fast == slow, "the vectorised code computes the equations");
    fast.truncate(grid.shape().bytes());
    fast
}

fn xor(into: &mut [u8], from: &[u8]) {
    into.iter_mut().zip(from).for_each(|(a, b)| *a ^= b);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_write_writes_its_row_and_no_other(
        servers in 3_u8..=8, rows in 1_u32..120, blocks in 1_u32..7,
        at: prop::sample::Index, seed: [u8; 32],
    ) {
        let rng = &mut ChaCha20Rng::from_seed(seed);
        let shape = Shape::new(rows, blocks).unwrap();
        let grid = Grid::new(shape, servers).unwrap();
        let (row, message) = (at.index(rows as usize), vec![0xa5; shape.width()]);
        let (word, keys) = generate(&permutation(), &grid, row as u32, &message, rng).unwrap();
        prop_assert!(grid.check_word(&word).is_ok());
        let mut sum = vec![0; shape.bytes()];
        for key in &keys {
            let bytes = Zeroizing::new(key.expose().to_vec());
            prop_assert!(Key::from_bytes(&grid, bytes).is_ok());
            xor(&mut sum, &share(&grid, &word, key));
        }
        let width = shape.width();
        prop_assert_eq!(&sum[row * width..][..width], message.as_slice());
        prop_assert!(sum[..row * width].iter().chain(&sum[(row + 1) * width..]).all(|b| *b == 0));
    }
}

#[test]
fn keys_that_fit_no_table_are_rejected_with_specific_errors() {
    let rng = &mut ChaCha20Rng::from_seed([4; 32]);
    let grid = Grid::new(Shape::new(100, 2).unwrap(), 4).unwrap();
    let mut refused =
        |row, length| generate(&permutation(), &grid, row, &vec![0; length], rng).err();
    assert_eq!(refused(100, 32), Some(GenerationError::Row));
    assert_eq!(refused(0, 31), Some(GenerationError::Length));
    let (word, keys) = generate(&permutation(), &grid, 7, &[5; 32], rng).unwrap();
    assert_eq!(grid.check_word(&word[1..]).err(), Some(KeyError::Words));
    let corrupted = |corrupt: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = keys[0].expose().to_vec();
        corrupt(&mut bytes);
        Key::from_bytes(&grid, Zeroizing::new(bytes)).err()
    };
    assert_eq!(corrupted(&|_| ()), None);
    assert_eq!(corrupted(&|key| key.truncate(5)), Some(KeyError::Length));
    assert_eq!(corrupted(&|key| key.push(0)), Some(KeyError::Length));
    assert_eq!(corrupted(&|key| key[0] ^= 2), Some(KeyError::Flag));
    for servers in [0, 1, 2, 9] {
        assert!(Grid::new(*grid.shape(), servers).is_err());
    }
}

/// Which servers hold each seed of a group. All but one server see each combination once, in the
/// written group as in all others, whichever server is missing.
#[test]
fn all_but_one_see_the_same_columns_in_every_group() {
    for servers in 3..=6_u8 {
        let rng = &mut ChaCha20Rng::from_seed([servers; 32]);
        let grid = Grid::new(Shape::new(60, 1).unwrap(), servers).unwrap();
        let (_, keys) = generate(&permutation(), &grid, 31, &[7; 16], rng).unwrap();
        for missing in 0..usize::from(servers) {
            let others: Vec<&Key> = keys
                .iter()
                .enumerate()
                .filter(|(i, _)| *i != missing)
                .map(|(_, key)| key)
                .collect();
            let all: Vec<u32> = (1..1 << (servers - 1)).collect();
            let seen = columns(&grid, &others);
            assert!(seen.iter().all(|columns| *columns == all), "without server {missing}");
        }
        // With all servers, the written group is visible: its columns have odd weight.
        let all: Vec<&Key> = keys.iter().collect();
        let odd = columns(&grid, &all).iter().filter(|c| c[0].count_ones() % 2 == 1).count();
        assert_eq!(odd, 1, "the detector sees it where there is something to see");
    }
}

/// For each group, the holders of each seed, sorted.
fn columns(grid: &Grid, keys: &[&Key]) -> Vec<Vec<u32>> {
    let each = grid.key_bytes() / grid.groups();
    let group = |group: usize| {
        let mut holders: BTreeMap<&[u8], u32> = BTreeMap::new();
        for (i, key) in keys.iter().enumerate() {
            for seed in key.expose()[group * each..][..each][1..].chunks(16) {
                *holders.entry(seed).or_default() |= 1 << i;
            }
        }
        let mut columns: Vec<u32> = holders.into_values().collect();
        columns.sort_unstable();
        columns
    };
    (0..grid.groups()).map(group).collect()
}

/// A message of 160 bytes for a thousand writers, as in the guide.
#[test]
fn a_write_has_the_documented_length() {
    let shape = Shape::new(2_815, 23).unwrap();
    let bytes = |servers: u8| {
        let grid = Grid::new(shape, servers).unwrap();
        (grid.word_bytes() + usize::from(servers) * grid.key_bytes()) / 1000
    };
    assert_eq!([3, 4, 5, 6].map(bytes), [20, 32, 52, 81]);
}
