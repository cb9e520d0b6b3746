//! Plain English: words to avoid, and what to write in their place. The files that list words
//! are not checked.

use super::{Finding, not_yet};
use crate::tree::Tree;

/// Files whose words people read.
const READ: &[&str] = &[
    ".rs", ".md", ".java", ".py", ".pyi", ".ipynb", ".html", ".css", ".js", ".ts", ".sh", ".c",
    ".h", ".sql", ".tpl", ".toml", ".yaml", ".yml", ".txt", "Makefile",
];

/// Files that list words to avoid.
const LISTS: &[&str] = &["xtask/src/tidy/words.rs", "xtask/src/tidy/names.rs"];

/// Words, one or several in a row, and what to say in their place.
const WORDS: &[(&[&str], &str)] = &[
    (&["anew"], "again, recreate, restart or rebuild"),
    (&["told"], "reported, informed, configured or received"),
    (&["untold"], "not reported, or missing"),
    (&["whoever"], "anyone who, or the caller"),
    (&["showings"], "presentations"),
    (&["mend"], "fix, repair or correct"),
    (&["mends"], "fixes, repairs or corrects"),
    (&["mended"], "fixed, repaired or corrected"),
    (&["mending"], "fixing, repairing or correcting"),
    (&["spoil"], "corrupt or ruin"),
    (&["spoils"], "corrupts or ruins"),
    (&["spoilt"], "corrupted, invalid or ruined"),
    (&["spoiled"], "corrupted, invalid or ruined"),
    (&["reckon"], "compute or count"),
    (&["reckons"], "computes or counts"),
    (&["reckoned"], "computed or counted"),
    (&["let", "go"], "delete, drop or release"),
    (&["lets", "go"], "deletes, drops or releases"),
    (&["letting", "go"], "deleting, dropping or releasing"),
    (&["betimes"], "early"),
    (&["ere"], "before"),
    (&["thereby"], "so"),
    (&["at", "hand"], "available, or here"),
    (&["as", "it", "were"], "nothing"),
    (&["else", "than"], "other than"),
    (&["be", "had"], "be obtained, or is possible"),
];

/// What makes the next word a noun.
const DETERMINERS: &[&str] = &[
    "a", "an", "the", "this", "that", "each", "every", "one", "two", "no", "any", "its", "their",
    "first", "second", "another", "per", "of",
];

/// How verbs begin before which the phrase means "with a specific error".
const REFUSALS: &[&str] = &["refus", "reject", "fail", "err", "told", "said", "deni", "deny"];

/// A word of a text, in lower case.
struct Word {
    text: String,
    line: usize,
    /// What comes right behind it.
    next: Option<char>,
    /// Whether it begins or continues a name of several words, as in code.
    joined: bool,
}

/// Text and names use plain words.
pub(super) fn plain_words(tree: &Tree) -> Vec<Finding> {
    let read =
        |path: &str| !LISTS.contains(&path) && READ.iter().any(|ending| path.ends_with(ending));
    let files = tree.files.iter().filter(|(path, _)| read(path));
    let findings = files.flat_map(|(path, content)| in_file(path, content)).collect();
    not_yet::without(tree, not_yet::WORDS, findings)
}

fn in_file(path: &str, content: &str) -> Vec<Finding> {
    let words = words(content);
    (0..words.len())
        .filter_map(|at| {
            let (word, instead) = complaint(&words, at)?;
            let what = format!("the word `{word}`: say {instead}");
            Some(Finding::new(path, words[at].line, what))
        })
        .collect()
}

/// What is wrong with the words that begin at `at`, if anything, and what to say instead.
fn complaint(words: &[Word], at: usize) -> Option<(String, &'static str)> {
    let rest = &words[at..];
    let matches = |phrase: &[&str]| {
        rest.len() >= phrase.len()
            && phrase.iter().zip(rest).all(|(wanted, word)| *wanted == word.text)
    };
    if let Some((phrase, instead)) = WORDS.iter().find(|(phrase, _)| matches(phrase)) {
        return Some((phrase.join(" "), instead));
    }
    if matches(&["showing"]) && is_noun(words, at) {
        return Some((rest[0].text.clone(), "presentation"));
    }
    let refuses = || {
        let before = &words[at.saturating_sub(4)..at];
        before.iter().any(|word| REFUSALS.iter().any(|verb| word.text.starts_with(verb)))
    };
    if matches(&["by", "name"]) && refuses() {
        return Some(("by name".to_owned(), "with a specific error, or explicitly"));
    }
    let ends = |word: &Word| word.next.is_none_or(|c| matches!(c, '.' | ',' | ';' | ':' | ')'));
    if matches(&["of", "late"]) && ends(&rest[1]) {
        return Some(("of late".to_owned(), "recently"));
    }
    None
}

/// Whether the word at `at` is a noun or part of a name, as far as its neighbours say.
fn is_noun(words: &[Word], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| words[before].text.as_str());
    words[at].joined || before.is_some_and(|word| DETERMINERS.contains(&word))
}

/// The words of a text and of the names in it: `lostWord`, `LostWord` and `lost_word` are two.
fn words(content: &str) -> Vec<Word> {
    let mut found = Vec::new();
    for (at, line) in content.lines().enumerate() {
        let ends = line.char_indices().filter(|(_, c)| !(c.is_alphanumeric() || *c == '_'));
        let ends = ends.map(|(end, c)| (end, Some(c))).chain([(line.len(), None)]);
        let mut start = 0;
        for (end, next) in ends {
            let quoted = line[..start].ends_with('"') && next == Some('"');
            // A name that is a whole literal is a field of stored data, which keeps its name.
            let parts = if quoted { Vec::new() } else { parts(&line[start..end]) };
            let joined = parts.len() > 1;
            found.extend(parts.into_iter().map(|text| Word { text, line: at + 1, next, joined }));
            start = end + next.map_or(0, char::len_utf8);
        }
    }
    found
}

/// The words of a name, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut before = '_';
    for c in name.chars() {
        if c == '_' {
            before = c;
            continue;
        }
        if before == '_' || (c.is_uppercase() && before.is_lowercase()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase());
        }
        before = c;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn refuses_every_listed_word_in_text_and_in_names() {
        for (phrase, _) in WORDS {
            let text = phrase.join("\n/// ");
            assert_eq!(in_file("a.rs", &format!("/// {text}.\n")).len(), 1, "{text}");
            let name = format!("fn is_{}_here() {{}}\n", phrase.join("_"));
            assert_eq!(in_file("a.rs", &name).len(), 1, "{name}");
            let longer = format!("prefix{} {}suffix\n", phrase[0], phrase[phrase.len() - 1]);
            assert_eq!(in_file("a.rs", &longer), [], "{longer}");
        }
    }

    #[test]
    fn reads_every_kind_of_file_that_people_read() {
        let text = format!("it is {}\n", WORDS[0].0[0]);
        let kinds = ["a.ipynb", "a.pyi", "a.h", "a.c", "a.yml", "a.txt", "a.css", "a.sql", "a.tpl"];
        for path in kinds {
            assert_eq!(plain_words(&Tree::from([(path, text.as_str())])).len(), 1, "{path}");
        }
        assert_eq!(plain_words(&Tree::from([("a.json", text.as_str())])), []);
    }

    #[test]
    fn the_message_says_what_to_write() {
        let found = in_file("a.md", &format!("Begun {}.\n", WORDS[0].0[0]));
        let expected = format!("a.md:1: the word `{}`: say {}", WORDS[0].0[0], WORDS[0].1);
        assert_eq!(messages(&found), [expected]);
    }

    #[test]
    fn a_verb_passes_where_the_noun_does_not() {
        let (verb, noun) = ("a page showing rows", "each showing burns");
        assert_eq!(in_file("a.md", verb), []);
        assert_eq!(in_file("a.md", noun).len(), 1);
        let name = format!("struct {}Request;", "Showing");
        assert_eq!(in_file("a.rs", &name).len(), 1);
    }

    #[test]
    fn a_field_of_stored_data_keeps_its_name() {
        assert_eq!(in_file("a.rs", &format!("case[\"{}\"]", WORDS[0].0[0])), []);
        assert_eq!(in_file("a.rs", &format!("\"it is {} \"", WORDS[0].0[0])).len(), 1);
    }

    #[test]
    fn a_phrase_passes_in_its_plain_meaning() {
        assert_eq!(in_file("a.md", "sorted by name; the count of late rows"), []);
        assert_eq!(in_file("a.md", "it refuses these by name").len(), 1);
        assert_eq!(in_file("a.md", "seen of late.").len(), 1);
    }
}
