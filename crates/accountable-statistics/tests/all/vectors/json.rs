//! Reads the script's cases and its randomness.

use alpheus_crypto::group::Element;
use alpheus_test_support::vectors;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use rand_core::{Rng as _, TryCryptoRng, TryRng};
use serde_json::Value;
use std::convert::Infallible;

/// The randomness that the script used, followed by other randomness.
pub(crate) struct ScriptRng(pub(crate) Vec<u8>, ChaCha20Rng);

impl TryRng for ScriptRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        panic!("randomness is drawn as bytes")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        panic!("randomness is drawn as bytes")
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        match self.0.is_empty() {
            true => self.1.fill_bytes(out),
            false => out.copy_from_slice(&self.0.drain(..out.len()).collect::<Vec<u8>>()),
        }
        Ok(())
    }
}

impl TryCryptoRng for ScriptRng {}

pub(crate) fn script_rng(randomness: &Value) -> ScriptRng {
    ScriptRng(from_hex(randomness), ChaCha20Rng::from_seed([0; 32]))
}

/// Every case of a file of this protocol.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    vectors::cases(&format!("accountable-statistics/v1/{name}.json"))
}

pub(crate) fn from_hex(value: &Value) -> Vec<u8> {
    vectors::from_hex(value.as_str().unwrap_or_else(|| panic!("no text: {value}")))
}

pub(crate) fn array<const N: usize>(value: &Value) -> [u8; N] {
    from_hex(value).try_into().unwrap()
}

pub(crate) fn element(value: &Value) -> Element {
    Element::from_bytes(&array(value)).unwrap()
}

pub(crate) fn small(value: &Value) -> u16 {
    value.as_u64().unwrap().try_into().unwrap()
}
