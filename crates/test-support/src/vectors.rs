//! Reads test vectors, which are JSON with bytes in hexadecimal.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use rand_core::{TryCryptoRng, TryRng};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::convert::Infallible;
use std::fmt::Debug;
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

/// Bytes of a known length that hexadecimal digits stand for.
///
/// # Panics
/// If the text is not hexadecimal, or has not so many bytes.
#[must_use]
pub fn array_from_hex<const N: usize>(text: &str) -> [u8; N] {
    from_hex(text).try_into().unwrap()
}

/// The word that 16 hexadecimal digits stand for.
///
/// # Panics
/// If the text is not hexadecimal.
#[must_use]
pub fn word(digits: &str) -> u64 {
    u64::from_str_radix(digits, 16).unwrap()
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a value.
///
/// # Panics
/// If it is not hexadecimal text.
#[must_use]
pub fn bytes_of(value: &Value) -> Vec<u8> {
    from_hex(value.as_str().unwrap_or_else(|| panic!("no text: {value}")))
}

/// The bytes of a value, of a known length.
///
/// # Panics
/// If it is not hexadecimal text, or has not so many bytes.
#[must_use]
pub fn array_of<const N: usize>(value: &Value) -> [u8; N] {
    bytes_of(value).try_into().unwrap()
}

/// The number of a value, in any type of numbers that it fits.
///
/// # Panics
/// If it is no number, or too large.
#[must_use]
pub fn number_of<T: TryFrom<u64, Error: Debug>>(value: &Value) -> T {
    let number = value.as_u64().unwrap_or_else(|| panic!("no number: {value}"));
    number.try_into().unwrap()
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
    list(case, field).iter().map(bytes_of).collect()
}

/// A case's list of words, each of 16 hexadecimal digits.
///
/// # Panics
/// If the case has no such list.
#[must_use]
pub fn words(case: &Value, field: &str) -> Vec<u64> {
    list(case, field).iter().map(|item| word(item.as_str().unwrap())).collect()
}

fn list<'a>(case: &'a Value, field: &str) -> &'a [Value] {
    case[field].as_array().unwrap_or_else(|| panic!("no list `{field}` in {case}"))
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

/// A script's randomness, and then other bytes: for values that the script does not make.
pub struct OpenScriptRng {
    script: ScriptedRng,
    rest: CountingRng,
}

impl OpenScriptRng {
    /// After the script's bytes come 0, 1, 2 and so on.
    #[must_use]
    pub fn new(script: Vec<u8>) -> Self {
        Self { script: ScriptedRng(script), rest: CountingRng(0) }
    }

    /// Whether all of the script's bytes were drawn.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.script.0.is_empty()
    }
}

impl TryRng for OpenScriptRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.rest.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.rest.try_next_u64()
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        match self.is_used_up() {
            true => self.rest.try_fill_bytes(out),
            false => self.script.try_fill_bytes(out),
        }
    }
}

impl TryCryptoRng for OpenScriptRng {}
