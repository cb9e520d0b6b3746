//! Reads vectors, whose bytes are hexadecimal.

use serde_json::Value;
use std::path::Path;

/// Every case in a file of this protocol.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let path = vectors.join("anonymous-credential/v1").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(!cases.is_empty(), "{name}");
    cases
}

/// The bad cases of a kind of message, with their file names.
pub(crate) fn bad(kind: &str, names: &str) -> Vec<(String, Value)> {
    let named = |name: &str| {
        let name = format!("{kind}_bad_{name}");
        cases(&name).into_iter().map(move |case| (name.clone(), case)).collect::<Vec<_>>()
    };
    names.split_whitespace().flat_map(named).collect()
}

pub(crate) fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("no text `{field}` in {case}"))
}

pub(crate) fn number(case: &Value, field: &str) -> u64 {
    case[field].as_u64().unwrap_or_else(|| panic!("no number `{field}` in {case}"))
}

pub(crate) fn small(case: &Value, field: &str) -> u32 {
    u32::try_from(number(case, field)).unwrap()
}

pub(crate) fn from_hex(text: &str) -> Vec<u8> {
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
