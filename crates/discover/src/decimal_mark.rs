//! What stands before decimals, as options and source files write it.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// A point in some columns, and a comma in others.
pub const BOTH: char = '*';

/// Reads `.` or `,`, or the word `both`.
#[must_use]
pub fn read(text: &str) -> Option<char> {
    match text {
        "." => Some('.'),
        "," => Some(','),
        "both" => Some(BOTH),
        _ => None,
    }
}

/// Its text.
pub(crate) fn text(mark: char) -> String {
    if mark == BOTH { "both".to_owned() } else { mark.to_string() }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
pub(crate) fn serialize<S: Serializer>(mark: &char, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text(*mark))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<char, D::Error> {
    let text = String::deserialize(from)?;
    read(&text).ok_or_else(|| D::Error::custom("expected `.`, `,` or `both`"))
}
