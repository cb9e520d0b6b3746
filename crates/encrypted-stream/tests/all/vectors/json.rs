//! Reads vectors. Bytes are hexadecimal, and words are 16 hexadecimal digits.

use serde_json::Value;
use std::path::Path;

/// Every case of a file of this protocol.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/encrypted-stream/v1");
    let path = directory.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(!cases.is_empty(), "{name}");
    cases
}

pub(crate) fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("no text `{field}` in {case}"))
}

pub(crate) fn number(case: &Value, field: &str) -> u64 {
    case[field].as_u64().unwrap_or_else(|| panic!("no number `{field}` in {case}"))
}

fn from_hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2) && text.is_ascii());
    let digits = (0..text.len()).step_by(2);
    digits.map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

pub(crate) fn bytes(case: &Value, field: &str) -> Vec<u8> {
    from_hex(text(case, field))
}

pub(crate) fn array<const N: usize>(case: &Value, field: &str) -> [u8; N] {
    bytes(case, field).try_into().unwrap()
}

pub(crate) fn hex_list(case: &Value, field: &str) -> Vec<Vec<u8>> {
    let items = case[field].as_array().unwrap();
    items.iter().map(|item| from_hex(item.as_str().unwrap())).collect()
}

pub(crate) fn word(case: &Value, field: &str) -> u64 {
    u64::from_str_radix(text(case, field), 16).unwrap()
}

pub(crate) fn words(case: &Value, field: &str) -> Vec<u64> {
    let items = case[field].as_array().unwrap();
    items.iter().map(|item| u64::from_str_radix(item.as_str().unwrap(), 16).unwrap()).collect()
}

/// The expected error of an invalid vector.
pub(crate) fn expected_error(case: &Value) -> String {
    text(case, "error").into()
}

/// The name of an error's variant.
pub(crate) fn variant(error: impl std::fmt::Debug) -> String {
    let whole = format!("{error:?}");
    whole.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().into()
}
