//! Reads known answers from independent scripts, with their hexadecimal fields.

use serde::de::DeserializeOwned;
use std::path::Path;

/// The cases of a file under `vectors`. There must be at least one.
pub(crate) fn cases<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let cases: Vec<T> = serde_json::from_str(&text).unwrap();
    assert!(!cases.is_empty(), "{file}");
    cases
}

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

pub(crate) fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().unwrap()
}

pub(crate) fn words(hex: &[String]) -> Vec<u64> {
    hex.iter().map(|word| u64::from_str_radix(word, 16).unwrap()).collect()
}
