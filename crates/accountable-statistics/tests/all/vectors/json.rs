//! Reads the script's cases and its randomness.

use alpheus_crypto::group::Element;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use rand_core::{Rng as _, TryCryptoRng, TryRng};
use serde_json::Value;
use std::convert::Infallible;
use std::path::Path;

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

pub(crate) fn cases(name: &str) -> Vec<Value> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let path = vectors.join("accountable-statistics/v1").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(!cases.is_empty(), "{name}");
    cases
}

pub(crate) fn from_hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_else(|| panic!("no text: {value}"));
    assert!(text.len().is_multiple_of(2) && text.is_ascii());
    let digits = (0..text.len()).step_by(2);
    digits.map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
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
