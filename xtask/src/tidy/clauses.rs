//! Statements begin with their subject: one that begins with "Who" or "What" reads as a question
//! until its second verb.

use super::Finding;
use crate::tree::Tree;

/// How a clause without a head begins.
const OPENERS: &[&str] = &["Who", "Whoever", "Whom", "Whomever", "Whose", "What"];

/// Prose between two breaks.
#[derive(Default)]
struct Paragraph<'a> {
    /// Each line with its number.
    lines: Vec<(usize, &'a str)>,
    /// Whether its first sentence may name a thing, as in `/// Who has signed.` above a field.
    names: bool,
}

/// No statement in a document or a doc comment begins with a clause that has no head.
pub(super) fn statements_have_subjects(tree: &Tree) -> Vec<Finding> {
    let documents = tree.ending(".md").map(|(path, content)| (path, of_document(content)));
    let comments = tree.ending(".rs").map(|(path, content)| (path, of_comments(content)));
    let mut findings = Vec::new();
    for (path, paragraphs) in documents.chain(comments) {
        for (line, opener) in paragraphs.iter().flat_map(headless) {
            let what = format!("a statement begins with `{opener}`: name its subject");
            findings.push(Finding::new(path, line, what));
        }
    }
    findings
}

/// Where statements begin without a head. Questions and labels, which end in a colon, may.
fn headless<'a>(paragraph: &Paragraph<'a>) -> Vec<(usize, &'a str)> {
    let words = paragraph.lines.iter().flat_map(|(at, line)| line.split(' ').map(|w| (*at, w)));
    let (mut found, mut begun, mut begins, mut exempt) = (Vec::new(), None, true, paragraph.names);
    for (at, word) in words.filter(|(_, word)| !word.is_empty()) {
        if begins {
            begun = (OPENERS.contains(&word) && !exempt).then_some((at, word));
            exempt = false;
        }
        let end = word.trim_end_matches(['"', ')', '*', '_', '»']);
        begins = end.ends_with(['.', '!', '?', ':']);
        if begins {
            found.extend(begun.take().filter(|_| !end.ends_with(['?', ':'])));
        }
    }
    found.extend(begun);
    found
}

/// Paragraphs, list items and cells of a document, without its fences and headings.
fn of_document(content: &str) -> Vec<Paragraph<'_>> {
    let (mut found, mut fenced) = (vec![Paragraph::default()], false);
    for (at, line) in numbered(content) {
        let fence = line.starts_with("```");
        fenced ^= fence;
        if fence || line.is_empty() || line.starts_with(['#', '|']) {
            found.push(Paragraph::default());
        }
        if fenced || fence || line.starts_with('#') {
            continue;
        }
        if line.starts_with('|') {
            let cells = line.split('|');
            found.extend(cells.map(|cell| Paragraph { lines: vec![(at, cell)], names: true }));
            found.push(Paragraph::default());
        } else {
            add(&mut found, at, line);
        }
    }
    found
}

/// Paragraphs of a source file's doc comments. The first sentence of a test's comment is a
/// statement; any other first sentence may name what it is about.
fn of_comments(content: &str) -> Vec<Paragraph<'_>> {
    let (mut found, mut of_item): (Vec<Paragraph>, Option<usize>) = (Vec::new(), None);
    for (at, line) in numbered(content) {
        let Some(text) = ["///", "//!"].iter().find_map(|mark| line.strip_prefix(mark)) else {
            if let Some(first) = of_item.take() {
                found[first].names = !line.starts_with("#[test]");
            }
            continue;
        };
        if of_item.is_none() {
            of_item = Some(found.len());
            found.push(Paragraph::default());
        }
        match text.trim() {
            "" => found.push(Paragraph::default()),
            text => add(&mut found, at, text),
        }
    }
    if let Some(first) = of_item {
        found[first].names = true;
    }
    found
}

/// Adds a line to the last paragraph, or to one of its own if it begins a list item.
fn add<'a>(found: &mut Vec<Paragraph<'a>>, at: usize, line: &'a str) {
    let item = ["- ", "* "].iter().find_map(|mark| line.strip_prefix(mark)).or_else(|| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.strip_prefix(". ").filter(|_| rest.len() < line.len())
    });
    match (item, found.last_mut()) {
        (None, Some(last)) => last.lines.push((at, line)),
        _ => found.push(Paragraph { lines: vec![(at, item.unwrap_or(line))], names: false }),
    }
}

fn numbered(content: &str) -> impl Iterator<Item = (usize, &str)> {
    content.lines().enumerate().map(|(at, line)| (at + 1, line.trim()))
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    fn found(path: &str, content: &str) -> Vec<String> {
        messages(&statements_have_subjects(&Tree::from([(path, content)])))
    }

    #[test]
    fn refuses_each_opener_of_a_statement_and_names_its_line() {
        for opener in OPENERS {
            let expected =
                [format!("a.md:2: a statement begins with `{opener}`: name its subject")];
            assert_eq!(
                found("a.md", &format!("One holds.\n{opener} seals\nchecks it.\n")),
                expected
            );
            let item = format!("\n- {opener} seals checks it.\n");
            assert_eq!(found("a.md", &item), expected);
            let comment = format!("/// A seal.\n/// {opener} seals checks it.\nfn a() {{}}\n");
            assert_eq!(found("a.rs", &comment), [expected[0].replace("md", "rs")]);
        }
    }

    #[test]
    fn questions_labels_headings_and_fences_may_begin_so() {
        let passes = "# Who seals it\n\n**What it costs.** Who seals it? What is left: a key.\n\n```text\nWho seals checks it.\n```\n";
        assert_eq!(found("a.md", passes), [""; 0]);
        assert_eq!(
            found("a.rs", "// Who seals checks it.\nlet a = \"Who seals checks it.\";\n"),
            [""; 0]
        );
    }

    #[test]
    fn a_name_passes_but_no_statement_after_it() {
        assert_eq!(found("a.rs", "/// Who has signed.\nsigner: Id,\n"), [""; 0]);
        assert_eq!(found("a.rs", "//! Who has signed."), [""; 0]);
        assert_eq!(found("a.md", "| signer | Who has signed. |\n"), [""; 0]);
        assert_eq!(found("a.md", "| signer | A key. Who has it signs. |\n").len(), 1);
        assert_eq!(found("a.rs", "/// Who signs is known.\n#[test]\nfn a() {}\n").len(), 1);
        assert_eq!(found("a.rs", "/// A key.\n///\n/// Who has it signs.\nfn a() {}\n").len(), 1);
    }
}
