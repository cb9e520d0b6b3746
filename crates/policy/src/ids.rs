//! Identifiers of streams, owners, controllers, consumers, schemas and plans.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The text is not an id of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an id of {digits} hexadecimal digits")]
pub struct IdError {
    digits: usize,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $len]);

        /// Bytes on the wire, hexadecimal in text formats.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    return serializer.collect_str(self);
                }
                self.0.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if !deserializer.is_human_readable() {
                    return <[u8; $len]>::deserialize(deserializer).map(Self);
                }
                <Cow<'de, str>>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                from_hex(text).map(Self).ok_or(IdError { digits: 2 * $len })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    };
}

id!(
    /// One stream of one person. It is random or a hash, so it identifies nobody.
    StreamId, 16
);
id!(
    /// An owner: the hash of their public key.
    OwnerId, 32
);
id!(
    /// A privacy controller: the fingerprint of its certificate.
    ControllerId, 32
);
id!(
    /// A consumer that results are sealed to: the fingerprint of its certificate.
    ConsumerId, 32
);
id!(
    /// A schema: the hash of its resolved content. Files with the same meaning have
    /// the same id, and any change of meaning changes it.
    SchemaId, 32
);
id!(
    /// A plan: its hash.
    PlanId, 32
);

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        let digit = |at: usize| char::from(*text.as_bytes().get(at)?).to_digit(16);
        *byte = u8::try_from(digit(2 * at)? << 4 | digit(2 * at + 1)?).ok()?;
    }
    Some(bytes)
}

/// SHA-256 over a label and parts, each prefixed with its length.
#[must_use]
pub fn labelled_hash(label: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in std::iter::once(label.as_bytes()).chain(parts.iter().copied()) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hexadecimal_in_text_formats() {
        let id = StreamId([0xab; 16]);
        let text = serde_json::to_string(&id).unwrap();
        assert_eq!(text, format!("\"{}\"", "ab".repeat(16)));
        assert_eq!(serde_json::from_str::<StreamId>(&text).unwrap(), id);
        for bad in
            ["\"\"", "\"abab\"", "[1, 2]", &text.replace('b', "g"), &text.replace("ab", "+b")]
        {
            assert!(serde_json::from_str::<StreamId>(bad).is_err(), "{bad}");
        }
    }
}
