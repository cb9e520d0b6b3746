//! Reads vectors. Bytes are hexadecimal, and words are 16 hexadecimal digits.

pub(crate) use alpheus_test_support::vectors::{array, bytes, hex_list, number, text, words};
use serde_json::Value;

/// Every case of a file of this protocol.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("encrypted-stream/v1/{name}"))
}

/// A case's word, of 16 hexadecimal digits.
pub(crate) fn word(case: &Value, field: &str) -> u64 {
    alpheus_test_support::vectors::word(text(case, field))
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
