//! Rust as the rules see it: code without comments and strings, and the paths in it. Text, not a
//! syntax tree: files are formatted, and a rule that reads text can be read itself.

use super::source;
use crate::tree::Tree;
use std::collections::BTreeSet;

/// The code alone: each character of a comment or of a literal is a space. Lines stay where they are.
pub(super) fn code(content: &str) -> String {
    let mut rest = content;
    let mut code = String::with_capacity(content.len());
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let hidden = hidden_length(rest, before);
        if hidden == 0 {
            code.push(first);
            before = first;
            rest = &rest[first.len_utf8()..];
        } else {
            code.extend(rest[..hidden].chars().map(|c| if c == '\n' { c } else { ' ' }));
            before = ' ';
            rest = &rest[hidden..];
        }
    }
    code
}

/// How many bytes of `text` are a comment or a literal that begins here.
fn hidden_length(text: &str, before: char) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    if text.starts_with('"') {
        return quoted(text, '"');
    }
    let starts_word = !(before.is_alphanumeric() || before == '_');
    if starts_word && let Some(length) = raw_string(text) {
        return length;
    }
    if text.starts_with('\'') { character(text) } else { 0 }
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `r"…"`, `br#"…"#` and their like.
fn raw_string(text: &str) -> Option<usize> {
    let letters = ["r", "br", "cr"].into_iter().find(|letters| {
        let rest = text.strip_prefix(letters);
        rest.is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let marks = text[letters.len()..].find('"')?;
    let start = letters.len() + marks + 1;
    let end = format!("\"{}", "#".repeat(marks));
    Some(text[start..].find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// A character, unless it is a lifetime.
fn character(text: &str) -> usize {
    let mut after = text.chars().skip(1);
    match (after.next(), after.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(text, '\''),
        _ => 0,
    }
}

/// The code that ships, by line numbers from one: without `#[cfg(test)]` modules.
pub(super) fn shipped_code(content: &str) -> Vec<(usize, String)> {
    let code = code(content);
    let lines: Vec<&str> = code.lines().collect();
    let shipped = source::production_lines(content);
    shipped
        .into_iter()
        .map(|(number, _)| (number, lines.get(number - 1).copied().unwrap_or_default().to_owned()))
        .collect()
}

/// The names that follow `prefix` in `lines`: `b` of `a::b`, `b` and `c` of `a::{b::x, c}`.
pub(super) fn names_after(lines: &[(usize, String)], prefix: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, (number, line)) in lines.iter().enumerate() {
        for (at, _) in line.match_indices(prefix) {
            let before = line[..at].chars().next_back().unwrap_or(' ');
            if before.is_alphanumeric() || matches!(before, '_' | ':' | '$') {
                continue;
            }
            let rest = &line[at + prefix.len()..];
            if rest.starts_with('{') {
                found.extend(heads(*number, rest, &lines[index + 1..]));
            } else if let Some(name) = identifier(rest) {
                found.push((*number, name.to_owned()));
            }
        }
    }
    found
}

/// The first name of each branch of the tree that opens at the start of `first`.
fn heads(number: usize, first: &str, more: &[(usize, String)]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut depth, mut wanted) = (0, false);
    let more = more.iter().map(|(number, line)| (*number, line.as_str()));
    for (number, line) in std::iter::once((number, first)).chain(more) {
        for (at, c) in line.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            match c {
                '}' if depth == 0 => return found,
                '{' | ',' => wanted = depth == 1,
                _ if wanted && !c.is_whitespace() => {
                    found.extend(identifier(&line[at..]).map(|name| (number, name.to_owned())));
                    wanted = false;
                }
                _ => {}
            }
        }
    }
    found
}

/// The identifier at the start of a text.
pub(super) fn identifier(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

/// Files below a package's `src/` that no build but a test's has, and folders of such files.
pub(super) fn test_files(tree: &Tree, directory: &str) -> BTreeSet<String> {
    let inside = format!("{directory}/src/");
    let mut found = BTreeSet::new();
    for (path, content) in tree.ending(".rs").filter(|(path, _)| path.starts_with(&inside)) {
        if content.lines().any(|line| line == "#![cfg(test)]") {
            found.insert(path.to_owned());
        }
        let lines: Vec<&str> = content.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if line.trim() != "#[cfg(test)]" {
                continue;
            }
            let attributes =
                lines[at + 1..].iter().take_while(|l| l.trim().starts_with("#[")).count();
            let declaration = lines[at..].iter().take(attributes + 2).copied().collect::<Vec<_>>();
            let files = super::reach::declared(path, &declaration.join("\n"));
            found.extend(files.iter().map(|file| file.trim_end_matches("mod.rs").to_owned()));
            found.extend(files.iter().map(|file| file.replace(".rs", "/")));
        }
    }
    found
}

/// The files below a package's `src/` that ship.
pub(super) fn shipped_files<'a>(tree: &'a Tree, directory: &str) -> Vec<(&'a str, &'a str)> {
    let (inside, tests) = (format!("{directory}/src/"), test_files(tree, directory));
    let is_test = |path: &str| {
        tests.contains(path)
            || tests.iter().any(|t| t.ends_with('/') && path.starts_with(t.as_str()))
    };
    tree.ending(".rs").filter(|(path, _)| path.starts_with(&inside) && !is_test(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(content: &str) -> Vec<(usize, String)> {
        shipped_code(content)
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        let content =
            "a // b\n/* c /* d */ e */ f \"g \\\" h\" r#\"i \" j\"# 'k' '\\'' <'l> br\"m\"";
        let left: Vec<String> = code(content).split_whitespace().map(str::to_owned).collect();
        assert_eq!(left, ["a", "f", "<'l>"]);
        assert_eq!(code(content).lines().count(), 2);
    }

    #[test]
    fn names_come_from_paths_and_trees_over_lines() {
        let content = "use crate::{\n    a::{b, c},\n    d,\n};\nfn f() { crate::e::g(); not_crate::h(); }\n// crate::i\n";
        let expected = [(2, "a"), (3, "d"), (5, "e")].map(|(at, name)| (at, name.to_owned()));
        assert_eq!(names_after(&lines(content), "crate::"), expected);
    }

    #[test]
    fn test_files_do_not_ship() {
        let tree = Tree::from([
            ("c/a/src/lib.rs", "mod kept;\n#[cfg(test)]\n#[path = \"other.rs\"]\nmod tests;\n"),
            ("c/a/src/kept.rs", "#[cfg(test)]\nmod inner;\n"),
            ("c/a/src/kept/inner.rs", ""),
            ("c/a/src/other.rs", ""),
            ("c/a/src/tests/deep.rs", ""),
            ("c/a/src/whole.rs", "//! x\n#![cfg(test)]\n"),
        ]);
        let shipped: Vec<&str> = shipped_files(&tree, "c/a").into_iter().map(|(p, _)| p).collect();
        assert_eq!(shipped, ["c/a/src/kept.rs", "c/a/src/lib.rs"]);
    }
}
