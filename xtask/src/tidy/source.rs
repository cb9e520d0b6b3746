//! The shape of Rust files. They are formatted, so indentation shows where a
//! function or module ends.

use super::{Finding, exceptions};
use crate::tree::Tree;

/// Lines in a file.
const FILE_LINES: usize = 500;
/// Lines in a function, its first and last included.
const FUNCTION_LINES: usize = 50;

/// Each file's first line says what the file is for.
pub(super) fn first_line_says_what_for(tree: &Tree) -> Vec<Finding> {
    let silent = |content: &str| {
        let first = content.lines().next().unwrap_or_default();
        first.strip_prefix("//! ").is_none_or(|said| said.len() < 10)
    };
    let what = "the first line must be a `//!` that says what the file is for";
    tree.ending(".rs").filter(|(_, c)| silent(c)).map(|(p, _)| Finding::new(p, 1, what)).collect()
}

/// No file is longer than can be held in mind.
pub(super) fn files_are_short(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, content) in tree.ending(".rs") {
        let lines = content.lines().count();
        if lines > FILE_LINES && !exceptions::long_file(path) {
            findings.push(Finding::new(path, lines, format!("longer than {FILE_LINES} lines")));
        }
    }
    findings
}

/// No function is longer than a screen.
pub(super) fn functions_are_short(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, content) in tree.ending(".rs") {
        for function in functions(content) {
            if function.lines > FUNCTION_LINES && !exceptions::long_function(path, function.name) {
                let Function { name, lines, .. } = function;
                let what = format!("`{name}` has {lines} lines, more than {FUNCTION_LINES}");
                findings.push(Finding::new(path, function.first, what));
            }
        }
    }
    findings
}

/// A lint is silenced by `expect` with a reason, so that the exception goes
/// when its cause does. Code that several test binaries share cannot expect, since each uses
/// another part of it.
pub(super) fn exceptions_carry_reasons(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, content) in tree.ending(".rs") {
        let lines: Vec<&str> = content.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let attribute = line.trim_start();
            let silences = |word: &str| {
                ["#[", "#!["].iter().any(|open| attribute.starts_with(&format!("{open}{word}(")))
            };
            let shared = path.contains("/tests/") && attribute.contains("(dead_code");
            if silences("allow") && !shared {
                findings.push(Finding::new(
                    path,
                    at + 1,
                    "say `expect` with a reason, not `allow`",
                ));
            }
            let ends = lines[at..].iter().position(|l| l.trim_end().ends_with(")]"));
            let whole = lines[at..=at + ends.unwrap_or(0)].concat();
            if (silences("expect") || silences("allow")) && !whole.contains("reason = ") {
                findings.push(Finding::new(
                    path,
                    at + 1,
                    "an exception carries its `reason = \"…\"`",
                ));
            }
        }
    }
    findings
}

/// A function's name, the number of its first line, and how many it has.
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    first: usize,
    pub(super) lines: usize,
}

/// The functions with a body of their own lines.
pub(super) fn functions(content: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = content.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let length = block_length(&lines[at..]);
        found.push(Function { name, first: at + 1, lines: length });
    }
    found
}

/// Lines up to the one that closes at the first line's indentation: `}`, or
/// the `;` of a declaration.
fn block_length(lines: &[&str]) -> usize {
    let indent = indentation(lines[0]);
    if lines[0].ends_with('}') || lines[0].ends_with(';') {
        return 1;
    }
    let closes = |line: &&str| {
        let body = line.trim();
        indentation(line) == indent && (body.starts_with('}') || body.ends_with(';'))
    };
    lines.iter().skip(1).position(closes).map_or(1, |at| at + 2)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start().split(' ');
    let is_qualifier =
        |w: &&str| matches!(*w, "pub" | "const" | "async" | "extern") || w.starts_with("pub(");
    let mut word = words.next()?;
    while is_qualifier(&word) || word == "in" || word.starts_with('"') {
        word = words.next()?;
    }
    if word != "fn" {
        return None;
    }
    let name = words.next()?.split(['(', '<']).next()?;
    Some(name)
}

/// The lines that ship, numbered from one: all but `#[cfg(test)]` modules.
pub(super) fn production_lines(content: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = content.lines().collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let module = lines.get(at + 1).is_some_and(|next| next.trim_start().starts_with("mod "));
        if lines[at].trim() == "#[cfg(test)]" && module {
            at += 1 + block_length(&lines[at + 1..]);
        } else {
            kept.push((at + 1, lines[at]));
            at += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn refuses_a_file_that_does_not_say_what_it_is_for() {
        let tree = Tree::from([
            ("a.rs", "use x;\n"),
            ("b.rs", "//!\n"),
            ("c.rs", ""),
            ("d.rs", "//! Windows and their sums.\n"),
        ]);
        let findings = first_line_says_what_for(&tree);
        assert_eq!(
            findings.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(),
            ["a.rs", "b.rs", "c.rs"]
        );
    }

    #[test]
    fn refuses_a_long_file() {
        let long = "x\n".repeat(501);
        assert_eq!(files_are_short(&Tree::from([("a.rs", long.as_str())])).len(), 1);
        assert_eq!(files_are_short(&Tree::from([("a.rs", &long[2..])])), []);
    }

    #[test]
    fn refuses_a_long_function_and_names_it() {
        let body = "        let x = 1;\n".repeat(49);
        let content =
            format!("impl X {{\n    pub(crate) const fn long(x: u8) -> u8 {{\n{body}    }}\n}}\n");
        let findings = functions_are_short(&Tree::from([("a.rs", content.as_str())]));
        assert_eq!(messages(&findings), ["a.rs:2: `long` has 51 lines, more than 50"]);
        let shorter = content.replacen("        let x = 1;\n", "", 1);
        assert_eq!(functions_are_short(&Tree::from([("a.rs", shorter.as_str())])), []);
    }

    #[test]
    fn measures_functions_with_long_signatures_and_declarations() {
        let content = "fn a(\n    x: u8,\n) -> u8 {\n    x\n}\ntrait T {\n    fn b(&self);\n    fn c() {}\n}\n";
        let measured: Vec<_> =
            functions(content).iter().map(|f| (f.name.to_owned(), f.lines)).collect();
        assert_eq!(measured, [("a".to_owned(), 5), ("b".to_owned(), 1), ("c".to_owned(), 1)]);
    }

    #[test]
    fn refuses_silence_without_a_reason() {
        let content = "#[allow(dead_code, reason = \"x\")]\n#[expect(unused)]\n#[expect(\n    unused,\n    reason = \"y\"\n)]\n";
        assert_eq!(exceptions_carry_reasons(&Tree::from([("a/src/a.rs", content)])).len(), 2);
        assert_eq!(exceptions_carry_reasons(&Tree::from([("a/tests/a.rs", content)])).len(), 1);
    }
}
