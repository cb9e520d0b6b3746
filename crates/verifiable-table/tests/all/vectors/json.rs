//! Reads vectors of this protocol.

pub(crate) use alpheus_test_support::vectors::{bytes, number, text};
use serde_json::Value;

/// Every case of a file of this protocol.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("verifiable-table/v1/{name}.json"))
}
