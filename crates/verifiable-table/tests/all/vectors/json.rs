//! Reads vectors from JSON, with bytes in hexadecimal.

use serde_json::Value;
use std::path::Path;

/// Every case of a file of this protocol.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let path = vectors.join("verifiable-table/v1").join(format!("{name}.json"));
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

pub(crate) fn bytes(case: &Value, field: &str) -> Vec<u8> {
    let text = text(case, field);
    assert!(text.len().is_multiple_of(2) && text.is_ascii());
    let digits = (0..text.len()).step_by(2);
    digits.map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}
