//! Reads test vectors, which are JSON with bytes in hexadecimal.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use rand_core::{TryCryptoRng, TryRng};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::convert::Infallible;
use std::path::Path;

/// The cases of a file, given by its path below `vectors`. There is at least one.
///
/// # Panics
/// If the file cannot be read or has no cases.
#[must_use]
pub fn cases<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let cases: Vec<T> = one(file);
    assert!(!cases.is_empty(), "{file}");
    cases
}

/// The one case of a file, given by its path below `vectors`.
///
/// # Panics
/// If the file cannot be read.
#[must_use]
pub fn one<T: DeserializeOwned>(file: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// The bytes that hexadecimal digits stand for.
///
/// # Panics
/// If the text is not hexadecimal.
#[must_use]
pub fn from_hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2) && text.is_ascii(), "not hexadecimal: {text}");
    let digits = (0..text.len()).step_by(2);
    digits.map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A case's text.
///
/// # Panics
/// If the case has no such text.
#[must_use]
pub fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("no text `{field}` in {case}"))
}

/// A case's number.
///
/// # Panics
/// If the case has no such number.
#[must_use]
pub fn number(case: &Value, field: &str) -> u64 {
    case[field].as_u64().unwrap_or_else(|| panic!("no number `{field}` in {case}"))
}

/// A case's bytes.
///
/// # Panics
/// If the case has no such bytes.
#[must_use]
pub fn bytes(case: &Value, field: &str) -> Vec<u8> {
    from_hex(text(case, field))
}

/// A case's bytes, of a known length.
///
/// # Panics
/// If the case has no such bytes, or not so many.
#[must_use]
pub fn array<const N: usize>(case: &Value, field: &str) -> [u8; N] {
    bytes(case, field).try_into().unwrap()
}

/// A case's list of byte strings.
///
/// # Panics
/// If the case has no such list.
#[must_use]
pub fn hex_list(case: &Value, field: &str) -> Vec<Vec<u8>> {
    let items = case[field].as_array().unwrap_or_else(|| panic!("no list `{field}` in {case}"));
    items.iter().map(|item| from_hex(item.as_str().unwrap())).collect()
}

/// A script's randomness: this byte, the next, and so on.
pub struct CountingRng(pub u8);

impl TryRng for CountingRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        panic!("randomness is drawn as bytes")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        panic!("randomness is drawn as bytes")
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        for byte in out {
            *byte = self.0;
            self.0 = self.0.wrapping_add(1);
        }
        Ok(())
    }
}

impl TryCryptoRng for CountingRng {}

/// A script's randomness: these bytes, each once. The remaining values were not drawn.
pub struct ScriptedRng(pub Vec<u8>);

impl TryRng for ScriptedRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        panic!("randomness is drawn as bytes")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        panic!("randomness is drawn as bytes")
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        let rest = self.0.split_off(out.len());
        out.copy_from_slice(&std::mem::replace(&mut self.0, rest));
        Ok(())
    }
}

impl TryCryptoRng for ScriptedRng {}
