//! What must not stand in any tracked text. Words are written in halves, so
//! that this file does not find itself.

use super::Finding;
use crate::tree::Tree;
use std::collections::HashMap;

const LEFTOVERS: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("XX", "X:"),
    concat!("db", "g!("),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("<<<<", "<<< "),
];

/// Unfinished work is finished or said in words.
pub(super) fn no_leftovers(tree: &Tree) -> Vec<Finding> {
    search(tree, |path| path != "Cargo.lock", LEFTOVERS, "leftover")
}

const MACHINE: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("C:\\", "Users"),
    concat!("index.cra", "tes.io"),
    concat!("static.cra", "tes.io"),
    concat!("py", "pi.org"),
    concat!("files.python", "hosted.org"),
    concat!("registry.npm", "js.org"),
    concat!("repo1.ma", "ven.org"),
    concat!("proxy.go", "lang.org"),
    concat!("deb.deb", "ian.org"),
    concat!("issue", " #"),
];

/// The tree builds anywhere and speaks of no machine, mirror or tracker.
pub(super) fn nothing_of_this_machine(tree: &Tree) -> Vec<Finding> {
    search(
        tree,
        |path| !path.ends_with("Cargo.lock"),
        MACHINE,
        "belongs to one machine or tracker:",
    )
}

/// The file of the protocols' labels, which holds nothing else.
const LABELS: &str = "crates/crypto/src/labels.rs";

/// A domain-separation label has a version and stands in one place of what we
/// ship, so that no two uses share one.
pub(super) fn labels_stand_once(tree: &Tree) -> Vec<Finding> {
    let shipped = |path: &str| path.starts_with("crates/") && path.contains("/src/");
    let (mut first, mut findings) = (HashMap::new(), Vec::new());
    for (path, content) in tree.ending(".rs").filter(|(path, _)| shipped(path)) {
        let code = |line: &&str| !line.trim_start().starts_with("//");
        for (at, line) in content.lines().enumerate().filter(|(_, line)| code(line)) {
            let quoted = || line.split('"').skip(1).step_by(2);
            if path == LABELS && !quoted().all(is_label) {
                findings.push(Finding::new(path, at + 1, "a label is `alpheus/<what>/v<number>`"));
            }
            for label in quoted().filter(|text| is_label(text)) {
                if let Some(other) = first.insert(label, path) {
                    let what = format!("the label `{label}` stands in {other} too");
                    findings.push(Finding::new(path, at + 1, what));
                }
            }
        }
    }
    findings
}

/// `alpheus/<what>/v<number>`.
fn is_label(text: &str) -> bool {
    let version = text.strip_prefix("alpheus/").and_then(|rest| rest.rsplit_once("/v"));
    version.is_some_and(|(_, number)| number.parse::<u32>().is_ok())
}

fn search(tree: &Tree, wanted: fn(&str) -> bool, words: &[&str], what: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, content) in tree.files.iter().filter(|(path, _)| wanted(path)) {
        for (at, line) in content.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                findings.push(Finding::new(path, at + 1, format!("{what} `{word}`")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_every_listed_word() {
        for word in LEFTOVERS {
            let tree = Tree::from([("a.md", format!("ok\nx {word} y\n").as_str())]);
            assert_eq!(no_leftovers(&tree).len(), 1, "{word}");
        }
        for word in MACHINE {
            let tree = Tree::from([("a.toml", format!("x {word} y\n").as_str())]);
            assert_eq!(nothing_of_this_machine(&tree).len(), 1, "{word}");
        }
    }

    #[test]
    fn refuses_a_label_of_two_places() {
        let (one, two) = ("const A: &str = \"alpheus/a/v1\";\n", "f(\"alpheus/a/v1\");\n");
        let tree =
            |second: &str| Tree::from([("crates/a/src/a.rs", one), ("crates/b/src/b.rs", second)]);
        assert_eq!(labels_stand_once(&tree(two)).len(), 1);
        assert!(labels_stand_once(&tree("f(\"alpheus/a/v2\"); // alpheus/a/v1\n")).is_empty());
        let unversioned = Tree::from([(LABELS, "const A: &str = \"alpheus/a\";\n")]);
        assert_eq!(labels_stand_once(&unversioned).len(), 1);
        assert!(labels_stand_once(&tree("/// \"alpheus/a/v1\"\nf(A);\n")).is_empty());
    }

    #[test]
    fn finds_the_line() {
        let line = format!("fn a() {{\n    {}x);\n", LEFTOVERS[3]);
        let tree = Tree::from([("a.rs", line.as_str())]);
        assert_eq!(no_leftovers(&tree)[0].line, 2);
    }
}
