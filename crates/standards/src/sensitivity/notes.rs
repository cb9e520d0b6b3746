//! What a text for people says about who may learn a value, if it says so unmistakably.

use super::Level;
use super::lists::{
    BEFORE, EXCEPTIONS, FILLERS, HOUSE, HOUSE_WORDS, INTENSIFIERS, INTERNAL, LEVELS, MARKS, PEOPLE,
    PERSONAL, PERSONS, RESTRICTED, SECRETS, SUBJECTS, THINGS, UNRELATED,
};
use super::text_words::{found, has_words, words};

/// What a text for people says, if it says so unmistakably.
pub(super) fn noted(text: &str) -> Option<Level> {
    let words = meant(&words(text));
    let is_secret = || found(&words, SECRETS).0 || says(&words, THINGS) || is_classified(&words);
    let stated = marked(text);
    if stated == Some(Level::Restricted) || is_secret() {
        return Some(Level::Restricted);
    }
    let is_named = found(&words, &["pii", "spii", "phi"]).0 || says(&words, PERSONS);
    if stated == Some(Level::Personal) || is_named {
        return Some(Level::Personal);
    }
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    // Most texts have none of these words, and long ones are read once.
    let is_house = || {
        let plain = crate::words::words(text);
        HOUSE.iter().any(|phrase| has_words(&plain, phrase))
    };
    let is_internal =
        has(HOUSE_WORDS) && is_house() || has(&["restricted"]) && is_restricted_to_people(text);
    stated.or_else(|| is_internal.then_some(Level::Internal))
}

/// The words without those between a negation and what it denies, as in `does not contain any PII`. In
/// `no PII or confidential data`, both are denied. Where a text makes an exception, nothing is.
fn meant(words: &[String]) -> Vec<String> {
    let is = |word: &String, list: &[&str]| list.contains(&word.as_str());
    let makes_exception = words.iter().any(|word| is(word, EXCEPTIONS));
    let mut kept: Vec<String> = Vec::with_capacity(words.len());
    let mut denies_more = false;
    for (at, word) in words.iter().enumerate() {
        let is_denied = kept.last().is_some_and(|last| is(last, BEFORE));
        // `not a PII-free column` is no denial.
        let is_double = || words.get(at + 2).is_some_and(|next| next == "free");
        if makes_exception && is(word, BEFORE) || is_denied && is(word, FILLERS) && !is_double() {
            continue;
        }
        let is_kind = is(word, PERSONAL) || is(word, RESTRICTED);
        if denies_more && !is_denied && is(word, &["or", "nor", "oder"]) {
            kept.push("not".to_owned());
            continue;
        }
        // Any other word ends the list of what is denied.
        let goes_on = is_kind || is(word, FILLERS) || is(word, &["data", "information", "daten"]);
        denies_more = if is_denied { is_kind } else { denies_more && goes_on };
        kept.push(word.clone());
    }
    kept
}

/// Whether these words stand in a row, the last perhaps only begun, and nothing denies them. Something
/// case-sensitive is no secret.
fn says(words: &[String], phrases: &[&str]) -> bool {
    let before = |at: usize, count: usize| at.checked_sub(count).and_then(|at| words.get(at));
    let is_free = |at: usize| {
        let is = |list: &[&str]| before(at, 1).is_some_and(|word| list.contains(&word.as_str()));
        // In `Shareable: no`, the word is a value, and denies nothing behind it.
        let is_value = || before(at, 2).is_some_and(|word| word == ":");
        (!is(BEFORE) || is_value()) && !is(UNRELATED)
    };
    phrases.iter().any(|phrase| {
        let parts: Vec<&str> = phrase.split(' ').collect();
        let is_one = |own: &[String]| {
            own.iter().zip(&parts).all(|(word, part)| match part.strip_suffix('*') {
                Some(start) => word.starts_with(start),
                None => word == part,
            })
        };
        words.windows(parts.len()).enumerate().any(|(at, own)| is_one(own) && is_free(at))
    })
}

/// Whether a text says `classified as secret`.
fn is_classified(words: &[String]) -> bool {
    words.windows(2).enumerate().any(|(at, own)| {
        let begins = matches!(own, [one, other] if one == "classified" && other == "as");
        let rest = words.get(at + 2..).unwrap_or_default();
        let next = || rest.iter().find(|word| !INTENSIFIERS.contains(&word.as_str()));
        begins && next().is_some_and(|word| RESTRICTED.contains(&word.as_str()))
    })
}

/// Longest sentence that is a mark such as `RESTRICTED` and no prose.
const MARK: usize = 64;

/// What stands alone in a sentence or in brackets, as in `[RESTRICTED] salary`, and what is said of a
/// level, as in `Sensitivity: high`.
fn marked(text: &str) -> Option<Level> {
    const ENDS: &[char] = &['.', ';', '!', '?', '\n', '(', ')', '[', ']', '|', '–', '—'];
    let sentences = text.split(ENDS).flat_map(|part| part.split(" - "));
    let spoken = sentences.map(str::trim).filter(|part| !part.is_empty());
    let levels = spoken.enumerate().filter_map(|(at, part)| {
        let (head, rest) = part.split_once([':', '=']).unwrap_or((part, ""));
        // An entry of a list is one of several values.
        let is_entry = part.starts_with(['-', '*', '•']);
        let is_mark = !is_entry && head.len() <= MARK && is_mark(head, at == 0);
        is_mark.then_some(Level::Restricted).max(level(head, rest))
    });
    levels.max()
}

/// Whether a sentence is nothing but a mark, or says that what it is about has one.
fn is_mark(sentence: &str, is_first: bool) -> bool {
    let words = crate::words::words(sentence);
    let is = |word: &str, list: &[&str]| list.contains(&word);
    let own: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !is(word, INTENSIFIERS)).collect();
    match own.as_slice() {
        [word] => {
            let is_loud = !sentence.contains(char::is_lowercase);
            // Anybody may have a private account, and a parcel's state may be secret.
            is(word, MARKS) || is(word, &["private", "secret"]) && (is_loud || is_first)
        }
        [word, subject] if is(subject, SUBJECTS) => is(word, MARKS),
        [.., subject, "is" | "are", word] => is(subject, SUBJECTS) && is(word, MARKS),
        _ => false,
    }
}

/// What is said of a level such as `classification`. A word that is not known says nothing here: goods
/// have classifications too.
fn level(key: &str, value: &str) -> Option<Level> {
    if value.is_empty() {
        return None;
    }
    let key = crate::words::words(key.get(key.len().saturating_sub(MARK)..).unwrap_or(key));
    let ends = |count: usize| key.get(key.len().saturating_sub(count)..).map(<[String]>::concat);
    let is_level = [1, 2].into_iter().filter_map(ends).any(|own| LEVELS.contains(&own.as_str()));
    if !is_level {
        return None;
    }
    let words = meant(&words(value));
    if found(&words, RESTRICTED).0 || found(&words, &["high"]).0 {
        Some(Level::Restricted)
    } else if found(&words, PERSONAL).0 {
        Some(Level::Personal)
    } else {
        found(&words, INTERNAL).0.then_some(Level::Internal)
    }
}

/// Whether a sentence says to whom something is restricted, and not to what.
fn is_restricted_to_people(text: &str) -> bool {
    text.split(['.', ';', '!', '?', '\n']).any(|sentence| {
        let words = crate::words::words(sentence);
        let is_about_people = || words.iter().any(|word| PEOPLE.contains(&word.as_str()));
        has_words(&words, "restricted to") && is_about_people()
    })
}
