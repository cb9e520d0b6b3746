//! Numbers in OTLP's JSON: whole ones are texts or numbers, and what is no number has a name.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// A point is what was added since the one before.
pub const DELTA: i32 = 1;
/// A point is what was added since the start.
pub const CUMULATIVE: i32 = 2;

/// A number as JSON has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum JsonNumber {
    Whole(i64),
    Large(u64),
    Real(f64),
    Text(String),
    Nothing(()),
}

/// Bytes, as the text that JSON has for them. They only tell series apart.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<u8>>, D::Error> {
    Ok(Option::<String>::deserialize(input)?.map(String::into_bytes))
}

const NO_NUMBER: &str = "not a number";

impl JsonNumber {
    fn integer(&self) -> Option<i128> {
        match self {
            JsonNumber::Whole(value) => Some((*value).into()),
            JsonNumber::Large(value) => Some((*value).into()),
            JsonNumber::Real(_) => None,
            JsonNumber::Text(text) => text.parse().ok(),
            JsonNumber::Nothing(()) => Some(0),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a whole number where one with a point is due")]
    fn real(&self) -> Option<f64> {
        match self {
            JsonNumber::Whole(value) => Some(*value as f64),
            JsonNumber::Large(value) => Some(*value as f64),
            JsonNumber::Real(value) => Some(*value),
            JsonNumber::Text(text) => match text.as_str() {
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                text => text.parse().ok(),
            },
            JsonNumber::Nothing(()) => None,
        }
    }
}

pub(crate) fn whole<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    let value = JsonNumber::deserialize(input)?.integer();
    value.and_then(|value| value.try_into().ok()).ok_or_else(|| D::Error::custom(NO_NUMBER))
}

pub(crate) fn wholes<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u64>, D::Error> {
    let all = Option::<Vec<JsonNumber>>::deserialize(input)?.unwrap_or_default();
    let read = |value: &JsonNumber| value.integer()?.try_into().ok();
    let read: Option<Vec<u64>> = all.iter().map(read).collect();
    read.ok_or_else(|| D::Error::custom(NO_NUMBER))
}

pub(crate) fn reals<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<f64>, D::Error> {
    let all = Option::<Vec<JsonNumber>>::deserialize(input)?.unwrap_or_default();
    let read: Option<Vec<f64>> = all.iter().map(JsonNumber::real).collect();
    read.ok_or_else(|| D::Error::custom(NO_NUMBER))
}

pub(crate) fn signed<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i64>, D::Error> {
    match JsonNumber::deserialize(input)? {
        JsonNumber::Nothing(()) => Ok(None),
        written => {
            let value = written.integer().and_then(|value| value.try_into().ok());
            value.map(Some).ok_or_else(|| D::Error::custom(NO_NUMBER))
        }
    }
}

pub(crate) fn real<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    match JsonNumber::deserialize(input)? {
        JsonNumber::Nothing(()) => Ok(None),
        written => written.real().map(Some).ok_or_else(|| D::Error::custom(NO_NUMBER)),
    }
}

/// A number, or its name, which some programs write.
pub(crate) fn temporality<'de, D: Deserializer<'de>>(input: D) -> Result<i32, D::Error> {
    Ok(match JsonNumber::deserialize(input)? {
        JsonNumber::Text(name) if name.ends_with("_DELTA") => DELTA,
        JsonNumber::Text(name) if name.ends_with("_CUMULATIVE") => CUMULATIVE,
        written => written.integer().and_then(|value| value.try_into().ok()).unwrap_or(0),
    })
}
