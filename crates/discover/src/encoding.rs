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
            Err(_) => {
                let (mut good, mut broken) = (0, 0);
                for chunk in bytes.utf8_chunks() {
                    good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
                    broken += usize::from(!chunk.invalid().is_empty());
                }
                // Latin-1 rarely looks like UTF-8, so that is UTF-8 with some broken bytes.
                if good > broken { Encoding::Utf8 } else { Encoding::Windows1252 }
            }
        }
    }

    /// A question, if bytes that are taken for Windows-1252 seem to have another encoding, or
    /// some of UTF-8 are broken.
    #[must_use]
    pub fn doubt(self, bytes: &[u8]) -> Option<String> {
        match self {
            Encoding::Windows1252 if !is_latin(bytes) => Some("The text is not UTF-8, and its non-ASCII letters do not make words in Windows-1252 (Latin-1). Names of columns and owners may be wrong. Save the file as UTF-8.".to_owned()),
            Encoding::Utf8 if std::str::from_utf8(bytes).is_err() => Some("Some letters are not UTF-8, and no other encoding fits them all. Each is read as \u{fffd}, so names of columns and owners may be wrong. Save the file as UTF-8.".to_owned()),
            _ => None,
        }
    }

    /// The text of the bytes, without a byte order mark, and with a line feed at each line's
    /// end if lines end in carriage returns alone. Bytes that are not in this encoding become U+FFFD.
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

/// Whether bytes beyond ASCII stand as they do in texts of western languages: mostly alone between
/// other letters, and without signs and capitals within words.
fn is_latin(bytes: &[u8]) -> bool {
    /// What no western text has between two letters: bytes without a letter, quotes, and signs
    /// that are letters in other encodings.
    const SIGNS: &[u8] = b"\x81\x82\x84\x8d\x8f\x90\x94\x9d\xa1\xa3\xa5\xaf\xb3\xb9\xbc\xbe\xbf";
    /// Capital letters.
    const CAPITALS: &[u8] = b"\x8a\x8c\x8e\x9f";
    // As in `Größe`.
    let of_sharp = |one: u8, two: u8| matches!(one, 0xe4 | 0xf6 | 0xfc) && two == 0xdf;
    // Three such letters in a row are a word of another alphabet.
    let letter = |byte: &u8| *byte >= 0xc0 && !matches!(byte, 0xd7 | 0xf7);
    if bytes.windows(3).any(|three| three.iter().all(letter)) {
        return false;
    }
    let (mut all, mut beside) = (0usize, 0usize);
    for (at, byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte >= 0x80) {
        let before = at.checked_sub(1).map_or(b' ', |at| bytes[at]);
        let after = bytes.get(at + 1).copied().unwrap_or(b' ');
        let within = before.is_ascii_alphabetic() && after.is_ascii_alphabetic();
        let capital = before.is_ascii_lowercase() && CAPITALS.contains(byte);
        if (within && SIGNS.contains(byte)) || capital {
            return false;
        }
        all += 1;
        let joins = |one: u8, two: u8| one >= 0x80 && two >= 0x80 && !of_sharp(one, two);
        beside += usize::from(joins(before, *byte) || joins(*byte, after));
    }
    beside * 2 <= all
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

    #[test]
    fn other_encodings_are_asked_about() {
        let doubt = |bytes: &[u8]| Encoding::of(bytes).doubt(bytes).is_some();
        let latin = b"Z\xe4hler;m\xb3/h;\xb0C;Stra\xdfe;d\xe9c. 1;\x93Haus\x94;5 \x80;na\xefve\n";
        assert!(!doubt(latin) && !doubt("Zähler;Дата\n".as_bytes()));
        assert!(!doubt(b"Gr\xf6\xdfe;F\xfc\xdfe\n1;2\n"));
        for other in [
            &b"\xc4\xe0\xf2\xe0;v\n\xc0 1;2\n\xc0 2;2\n\xc0 1;3\n\xc0 2;4\n\xc0 1;5\n"[..],
            b"zu\xbfycie;data\n",
            b"W\x8arme;w\x8arme\n",
            b"z\x84hler;Wert\n",
            b"\x93\xfa\x8e\x9e;\x92l\n",
        ] {
            assert!(doubt(other), "{other:?}");
        }
        let broken = ["Zähler;Größe\n".as_bytes(), b"\xff\n"].concat();
        assert_eq!(Encoding::of(&broken), Encoding::Utf8);
        assert!(doubt(&broken));
    }
}
