//! What a text says in words: which are there, which are denied.

use super::Level;
use super::lists::{BEFORE, INTERNAL, JOINED, NEGATIONS, PERSONAL, RESTRICTED};

/// The words of a text, also of those that were joined. A point or a new line ends what a negation is
/// about, and `:` is a word of its own.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let marked = text.replace('\n', " . ").replace(" - ", " . ").replace(": ", " : ");
    for piece in marked.split_whitespace() {
        let ends = piece.ends_with(['.', ',', ';', '!', '?', ')', '|', '–', '—', '/']);
        if piece.starts_with(['(', '|', '–', '—', '/']) {
            found.push(".".to_owned());
        }
        if piece == ":" {
            found.push(":".to_owned());
        }
        for word in crate::words::words(piece) {
            parts(word, &mut found);
        }
        if ends {
            found.push(".".to_owned());
        }
    }
    while found.last().is_some_and(|last| matches!(last.as_str(), "." | ":")) {
        found.pop();
    }
    found
}

/// A word, or the words that were joined in it.
fn parts(mut word: String, found: &mut Vec<String>) {
    if word.chars().filter(|c| c.is_alphabetic()).count() > 2 {
        word.truncate(word.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    }
    let split = JOINED.iter().find_map(|(part, says)| Some((split(&word, part)?, *says)));
    match split.filter(|_| ![PERSONAL, RESTRICTED].concat().contains(&word.as_str())) {
        Some(((before, after), says)) => {
            let denies = matches!(before, "no" | "non" | "not" | "un");
            let says = if (before, says) == ("s", "pii") { "spii" } else { says };
            let all = [if denies { "non" } else { before }, says, after];
            found.extend(all.iter().filter(|own| !own.is_empty()).map(|own| (*own).to_owned()));
        }
        None => found.push(word),
    }
}

/// Splits a word around a part of it. Words are short, so looking at each place costs least.
fn split<'a>(word: &'a str, part: &str) -> Option<(&'a str, &'a str)> {
    let at = word.as_bytes().windows(part.len()).position(|own| own == part.as_bytes())?;
    Some((word.get(..at)?, word.get(at + part.len()..)?))
}

pub(super) fn said(words: &[String]) -> Option<Level> {
    if found(words, RESTRICTED).0 {
        return Some(Level::Restricted);
    }
    if found(words, PERSONAL).0 {
        return Some(Level::Personal);
    }
    // A tag may limit, but only a classification opens: `public` may be the name of anything.
    match words {
        [word] if INTERNAL.contains(&word.as_str()) => Some(Level::Internal),
        _ => None,
    }
}

/// Whether one of these words is there, and whether one is denied, as in `non-pii`, `pii-free` or
/// `pii_false`. Two negations deny nothing.
pub(super) fn found(words: &[String], list: &[&str]) -> (bool, bool) {
    let is = |at: Option<usize>, list: &[&str]| {
        at.and_then(|at| words.get(at)).is_some_and(|word| list.contains(&word.as_str()))
    };
    let mut found = (false, false);
    for (at, _) in words.iter().enumerate().filter(|(_, word)| list.contains(&word.as_str())) {
        let behind = if is(Some(at + 1), &[":"]) { at + 2 } else { at + 1 };
        let ends = words.get(behind + 1).is_none_or(|word| word == ".");
        let after = ends && (is(Some(behind), NEGATIONS) || is(Some(behind), &["free"]));
        let before = is(at.checked_sub(1), BEFORE);
        let twice = before && is(at.checked_sub(2), BEFORE);
        if before != after && !twice {
            found.1 = true;
        } else {
            found.0 = true;
        }
    }
    found
}

/// Whether a text has these words in a row, and they are not denied.
pub(super) fn has_phrase(text: &str, phrase: &str) -> bool {
    has_words(&crate::words::words(text), phrase)
}

/// Whether a phrase is among these words, and not denied.
pub(super) fn has_words(words: &[String], phrase: &str) -> bool {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    words.windows(phrase.len()).enumerate().any(|(at, own)| {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let is_denied = before.is_some_and(|word| BEFORE.contains(&word.as_str()));
        own.iter().eq(phrase.iter()) && !is_denied
    })
}

/// Whether a value says no, or nothing.
pub(super) fn is_negation(value: &str) -> bool {
    match words(value).as_slice() {
        [] => value.trim().is_empty(),
        [word] => NEGATIONS.contains(&word.as_str()),
        _ => false,
    }
}

/// A key in lower case without what joins its words.
pub(super) fn folded(key: &str) -> String {
    key.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' ' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}
