//! Names that differ only in what a program or a person may have changed.

use crate::hash::{Hashes, Set};

/// How many names there are, if capital letters, spaces, zeros in front of a number and a `.0`
/// behind it do not matter.
pub(crate) fn count<'n>(names: impl Iterator<Item = &'n String>) -> u64 {
    let hashes = Hashes::default();
    names.map(|name| hashes.of(plain(name))).collect::<Set<u64>>().len() as u64
}

fn plain(name: &str) -> String {
    let signs = name.chars().filter(|c| !c.is_whitespace());
    let text: String = signs.flat_map(char::to_lowercase).collect();
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => &text,
    };
    if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return text;
    }
    whole.trim_start_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_capital_letters_and_spaces_do_not_matter() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            count(names.iter())
        };
        assert_eq!(of(&["007", "7", "0007", "7.0", " 7"]), 1);
        assert_eq!(of(&["Anna B", "annab", "0", "00"]), 2);
        assert_eq!(of(&["7.5", "7.05", "a07", "a7", "70", "7"]), 6);
    }
}
