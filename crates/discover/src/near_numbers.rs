//! Texts that are nearly numbers: with a size, a unit, quotes or flags around them.

use crate::number::is_grouped;
use crate::units;

/// Whether several marks join the parts of a name, such as 01-701-1015 and 10.0.0.7.
pub(crate) fn is_joined(text: &str) -> bool {
    let parts = |mark| text.split(mark).count();
    parts('-') > 2 || (parts('.') > 2 && !is_grouped(text, '.'))
}

/// Whether a text is a number with a size or a unit behind it, or within quotes.
pub(crate) fn is_sized(text: &str) -> bool {
    const SIZES: &[&str] =
        &["k", "m", "b", "bn", "mn", "mio", "mio.", "mrd", "mrd.", "tsd", "tsd."];
    let bare = text.trim_matches(|c: char| "'\"=~\u{2248} []".contains(c));
    let sign = |c: char| c.is_alphabetic() || matches!(c, '.' | '%' | '\u{b0}' | '/');
    let number = bare.trim_end_matches(sign);
    let behind = bare[number.len()..].trim().to_lowercase();
    let unit = behind.len() > 1 && units::is_unit(&behind);
    let known = behind.is_empty() || unit || SIZES.contains(&behind.as_str());
    let of_number = |c: char| c.is_numeric() || "+-\u{2212}., '\u{a0}\u{66b}\u{66c}".contains(c);
    known
        && !is_joined(number.trim())
        && number.chars().any(char::is_numeric)
        && number.trim_end().chars().all(of_number)
}

/// Whether a text is a number with decimals between a few other signs, such as flags.
pub(crate) fn is_marked(text: &str) -> bool {
    let others = |c: char| !c.is_ascii_digit();
    let number = text.trim_matches(others);
    let parts: Vec<&str> = number.split(['.', ',']).collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 2 && parts.iter().all(digits) && text.len() - number.len() <= 6
}
