//! Reads the script's cases and its randomness.

use alpheus_crypto::group::Element;
use alpheus_test_support::vectors::{self, OpenScriptRng};
pub(crate) use alpheus_test_support::vectors::{array_of as array, bytes_of as from_hex};
use serde_json::Value;

/// The randomness that the script used, followed by other randomness.
pub(crate) fn script_rng(randomness: &Value) -> OpenScriptRng {
    OpenScriptRng::new(from_hex(randomness))
}

/// Every case of a file of this protocol.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    vectors::cases(&format!("accountable-statistics/v1/{name}.json"))
}

pub(crate) fn element(value: &Value) -> Element {
    Element::from_bytes(&array(value)).unwrap()
}

pub(crate) fn small(value: &Value) -> u16 {
    vectors::number_of(value)
}
