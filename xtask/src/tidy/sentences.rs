//! Sentences that can be read at once: documents keep to an average length.

use super::{Finding, not_yet};
use crate::tree::Tree;

/// Words in a sentence, on average over a document.
const WORDS: usize = 18;
/// A document with fewer sentences says little about how it is written.
const SENTENCES: usize = 10;
/// Records, which are not rewritten.
const RECORDS: &[&str] = &["CHANGELOG.md", "bench/results/", "docs/decisions/"];

/// A document's sentences are short on average.
pub(super) fn sentences_are_short(tree: &Tree) -> Vec<Finding> {
    not_yet::without(tree, not_yet::SENTENCES, long_documents(tree))
}

fn long_documents(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, content) in tree.ending(".md") {
        let (words, sentences) = measure(content);
        let is_record = RECORDS.iter().any(|record| path.starts_with(record));
        if !is_record && sentences >= SENTENCES && words > WORDS * sentences {
            let (whole, tenths) = (words / sentences, words * 10 / sentences % 10);
            let what =
                format!("sentences have {whole}.{tenths} words on average, more than {WORDS}");
            findings.push(Finding::new(path, 1, what));
        }
    }
    findings
}

/// Words and sentences of the paragraphs and list items.
fn measure(content: &str) -> (usize, usize) {
    let (mut words, mut sentences) = (0, 0);
    for paragraph in paragraphs(content) {
        let mut length = 0;
        for word in paragraph.split_whitespace().filter(|w| w.contains(char::is_alphanumeric)) {
            length += 1;
            if word.trim_end_matches(['"', ')', '*', '»']).ends_with(['.', '!', '?']) {
                words += std::mem::take(&mut length);
                sentences += 1;
            }
        }
        words += length;
        sentences += usize::from(length > 0);
    }
    (words, sentences)
}

/// The text between blank lines, headings, tables, items and fences. A span of code is one word.
fn paragraphs(content: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut fenced = false;
    for line in content.lines().map(str::trim) {
        let fence = line.starts_with("```");
        fenced ^= fence;
        let ends = fence || line.is_empty() || line.starts_with(['#', '|']);
        let item = ["- ", "* "].iter().find_map(|mark| line.strip_prefix(mark)).or_else(|| {
            let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
            rest.strip_prefix(". ").filter(|_| rest.len() < line.len())
        });
        if ends || item.is_some() {
            found.push(String::new());
        }
        if let Some(paragraph) = found.last_mut().filter(|_| !fenced && !ends) {
            paragraph.push(' ');
            paragraph.push_str(item.unwrap_or(line));
        }
    }
    found.iter().map(|paragraph| without_code(paragraph)).collect()
}

fn without_code(paragraph: &str) -> String {
    let parts = paragraph.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { part } else { "code" }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_words_of_sentences_alone() {
        let content = "# A heading here\n\nOne two three. Four `five six`\nseven!\n\n| a | b |\n\n- eight nine\n1. ten\n\n```sh\nrun this\n```\n";
        assert_eq!(measure(content), (3 + 3 + 2 + 1, 4));
    }

    #[test]
    fn refuses_a_document_of_long_sentences() {
        let sentence = |words: usize| format!("{}end.\n\n", "word ".repeat(words - 1)).repeat(10);
        let of = |words| Tree::from([("a.md", sentence(words).as_str())]);
        assert_eq!(long_documents(&of(18)), []);
        assert_eq!(long_documents(&of(19)).len(), 1);
        let record = Tree::from([("docs/decisions/1.md", sentence(30).as_str())]);
        assert_eq!(long_documents(&record), []);
    }
}
