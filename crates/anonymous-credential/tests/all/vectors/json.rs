//! Reads vectors, whose bytes are hexadecimal.

pub(crate) use alpheus_test_support::vectors::{array, bytes, from_hex, number, text};
use serde_json::Value;

/// Every case in a file of this protocol.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("anonymous-credential/v1/{name}.json"))
}

/// The bad cases of a kind of message, with their file names.
pub(crate) fn bad(kind: &str, names: &str) -> Vec<(String, Value)> {
    let named = |name: &str| {
        let name = format!("{kind}_bad_{name}");
        cases(&name).into_iter().map(move |case| (name.clone(), case)).collect::<Vec<_>>()
    };
    names.split_whitespace().flat_map(named).collect()
}

pub(crate) fn small(case: &Value, field: &str) -> u32 {
    u32::try_from(number(case, field)).unwrap()
}
