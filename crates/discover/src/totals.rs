//! Texts which say that their row is the sum of others.

use crate::words::words;

/// What stands for the sum of all others.
pub(crate) const TOTALS: &[&str] = &[
    "total",
    "grand total",
    "subtotal",
    "all",
    "sum",
    "overall",
    "gesamt",
    "insgesamt",
    "summe",
    "total général",
    "ensemble",
    "tous",
    "todos",
    "totale",
    "totaal",
    "suma",
    "i alt",
    "totalt",
];

/// Whether a text says that its row is the sum of others.
pub(crate) fn is_total(text: &str) -> bool {
    let same = |known: &&str| text.chars().flat_map(char::to_lowercase).eq(known.chars());
    TOTALS.iter().any(same)
}

/// Whether a text may say so: it also begins or ends with such a word.
pub(crate) fn seems_total(text: &str) -> bool {
    const FIRST: &[&str] = &["all", "both", "alle", "tous", "todos"];
    const ANY: &[&str] = &["total", "subtotal", "gesamt", "insgesamt", "combined"];
    if is_total(text) {
        return true;
    }
    if text.len() > 60 || !text.contains(char::is_whitespace) {
        return false;
    }
    let words = words(text);
    let begins = |list: &[&str]| words.first().is_some_and(|word| list.contains(&word.as_str()));
    let ends = |list: &[&str]| words.last().is_some_and(|word| list.contains(&word.as_str()));
    begins(FIRST) || begins(ANY) || ends(ANY)
}
