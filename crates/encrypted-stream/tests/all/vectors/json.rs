//! Reads vectors. Bytes are hexadecimal, and words are 16 hexadecimal digits.

pub(crate) use alpheus_test_support::vectors::{array, bytes, hex_list, number, text};
use serde_json::Value;

/// Every case of a file of this protocol.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("encrypted-stream/v1/{name}"))
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
