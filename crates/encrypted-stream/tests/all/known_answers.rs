//! Reads known answers from independent scripts, with their hexadecimal fields.

pub(crate) use alpheus_test_support::vectors::{
    array_from_hex as array, cases, from_hex as bytes, word,
};

pub(crate) fn words(hex: &[String]) -> Vec<u64> {
    hex.iter().map(|digits| word(digits)).collect()
}
