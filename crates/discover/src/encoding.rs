//! The encoding of a text: from its first bytes, its zero bytes, and whether it is UTF-8.

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An encoding that files have. A byte order mark is taken away whichever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// UTF-8, and so ASCII.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-16, the low byte first.
    #[serde(rename = "utf-16le")]
    Utf16Le,
    /// UTF-16, the high byte first.
    #[serde(rename = "utf-16be")]
    Utf16Be,
    /// Windows-1252, which has Latin-1's letters.
    #[serde(rename = "windows-1252")]
    Windows1252,
}

impl Encoding {
    /// Its name, as source files write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16Le => "utf-16le",
            Encoding::Utf16Be => "utf-16be",
            Encoding::Windows1252 => "windows-1252",
        }
    }

    /// The encoding that fits the bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Encoding {
        if bytes.starts_with(b"\xff\xfe") {
            return Encoding::Utf16Le;
        }
        if bytes.starts_with(b"\xfe\xff") {
            return Encoding::Utf16Be;
        }
        // Latin text in UTF-16 without a mark: every second byte is zero.
        let start = bytes.get(..bytes.len().min(4096)).unwrap_or_default();
        let zeros = |odd: usize| start.iter().skip(odd).step_by(2).filter(|b| **b == 0).count();
        let (even, odd) = (zeros(0), zeros(1));
        if start.len() > 8 && odd * 4 > start.len() && even == 0 {
            return Encoding::Utf16Le;
        }
        if start.len() > 8 && even * 4 > start.len() && odd == 0 {
            return Encoding::Utf16Be;
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => Encoding::Utf8,
            // A file that was cut within a character.
            Err(error) if error.error_len().is_none() => Encoding::Utf8,
            Err(_) => Encoding::Windows1252,
        }
    }

    /// The text of the bytes, without a byte order mark, and with a line feed at each line's
    /// end if lines end in carriage returns alone. What is not in this encoding becomes U+FFFD.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        let text = match self {
            Encoding::Utf8 => {
                String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
            }
            Encoding::Utf16Le => UTF_16LE.decode_with_bom_removal(bytes).0,
            Encoding::Utf16Be => UTF_16BE.decode_with_bom_removal(bytes).0,
            Encoding::Windows1252 => WINDOWS_1252.decode_without_bom_handling(bytes).0,
        };
        if text.contains('\r') && !text.contains('\n') {
            return Cow::Owned(text.replace('\r', "\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encoding_is_recognised_and_read() {
        let text = "Zeit;°C\n1;2\nmehr Zeilen\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
        let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        for (bytes, expected) in [
            (text.as_bytes().to_vec(), Encoding::Utf8),
            (marked(b"\xef\xbb\xbf", text.as_bytes()), Encoding::Utf8),
            (marked(b"\xff\xfe", &little), Encoding::Utf16Le),
            (marked(b"\xfe\xff", &big), Encoding::Utf16Be),
            (little.clone(), Encoding::Utf16Le),
            (big.clone(), Encoding::Utf16Be),
            (latin, Encoding::Windows1252),
        ] {
            assert_eq!(Encoding::of(&bytes), expected);
            assert_eq!(expected.decode(&bytes), text, "{expected:?}");
        }
        assert_eq!(Encoding::Utf8.decode(b"a\rb\r"), "a\nb\n");
    }
}
