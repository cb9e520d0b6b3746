//! Reads known answers from independent scripts, with their hexadecimal fields.

pub(crate) use alpheus_test_support::vectors::{cases, from_hex as bytes};

pub(crate) fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().unwrap()
}

pub(crate) fn words(hex: &[String]) -> Vec<u64> {
    hex.iter().map(|word| u64::from_str_radix(word, 16).unwrap()).collect()
}
