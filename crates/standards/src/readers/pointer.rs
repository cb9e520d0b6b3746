//! References within a contract: what they lead to, and what is said on the way there.

use crate::cursor::Cursor;
use crate::sensitivity::{Label, Level, labels};

/// Keys whose entries have names that somebody chose.
const NAMED: &[&str] =
    &["properties", "fields", "columns", "tables", "definitions", "$defs", "models", "schema"];

/// What the reference `at` leads to, with what is said about all that this is part of. If it leads
/// nowhere here, nobody knows what is said there.
pub(super) fn follow<'a>(
    root: &Cursor<'a>,
    at: &Cursor<'_>,
) -> Result<(Cursor<'a>, Vec<Label>), Label> {
    let link = at.tree().text().ok_or_else(|| unknown(at))?;
    let path = link.strip_prefix("#/").ok_or_else(|| unknown(at))?;
    let (mut place, mut said, mut is_name) = (root.clone(), Vec::new(), false);
    for (count, key) in path.split('/').enumerate() {
        if count > 0 && !is_name {
            said.extend(labels(&place));
            // What it refers to is not what it is, and may say more.
            said.extend(place.get("$ref").map(|other| unknown(&other)));
        }
        let key = decoded(key);
        let item = || place.items().into_iter().nth(key.parse().ok()?);
        let next = place.get(&key).or_else(item).ok_or_else(|| unknown(at))?;
        is_name = !is_name && NAMED.contains(&key.as_str());
        place = next;
    }
    Ok((place, said))
}

/// That what stands at `at` is not understood, and is kept back.
pub(super) fn unknown(at: &Cursor<'_>) -> Label {
    Label { at: at.path().to_owned(), level: Level::Restricted, unknown: true }
}

/// A key of a pointer: `~1` is `/`, `~0` is `~`, and `%41` is `A`.
fn decoded(key: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), key.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|own| std::str::from_utf8(own).ok());
        let byte = digits.and_then(|own| u8::from_str_radix(own, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    text.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn keys_of_pointers_are_written_out() {
        for (key, is) in [("a~1b", "a/b"), ("%41ge", "Age"), ("m~0n", "m~n"), ("5%", "5%")] {
            assert_eq!(decoded(key), is);
        }
        assert_eq!(decoded("~01"), "~1");
    }
}
