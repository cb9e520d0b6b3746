//! What must not stand in any tracked text. Words are written in halves, so
//! that this file does not find itself.

use super::Finding;
use crate::tree::Tree;

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
    fn finds_the_line() {
        let line = format!("fn a() {{\n    {}x);\n", LEFTOVERS[3]);
        let tree = Tree::from([("a.rs", line.as_str())]);
        assert_eq!(no_leftovers(&tree)[0].line, 2);
    }
}
