//! Documents that must be there, stay short, and lead somewhere.

use super::{Finding, reach};
use crate::tree::Tree;

/// Crates whose protocol is written down beside the code.
const PROTOCOLS: &[&str] = &[
    "crates/crypto",
    "crates/policy",
    "crates/encrypted-stream",
    "crates/anonymous-credential",
    "crates/access-pass",
    "crates/accountable-statistics",
    "crates/anonymous-board",
    "crates/verifiable-table",
    "crates/bounded-influence",
];

const README_LINES: usize = 150;

/// A crate has a README, a protocol crate its note.
pub(super) fn every_crate_explains_itself(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, _) in tree.packages().filter(|(d, _)| d.starts_with("crates/")) {
        let mut wanted = vec!["README.md"];
        if PROTOCOLS.contains(&directory) {
            wanted.push("docs/protocol.md");
        }
        for document in wanted.into_iter().filter(|d| !tree.has(&format!("{directory}/{d}"))) {
            findings.push(Finding::new(directory, 1, format!("`{document}` is missing")));
        }
    }
    findings
}

/// The first page can be read in five minutes.
pub(super) fn readme_is_short(tree: &Tree) -> Vec<Finding> {
    let lines = tree.files.get("README.md").map_or(0, |content| content.lines().count());
    let what = format!("longer than {README_LINES} lines");
    (lines > README_LINES).then(|| Finding::new("README.md", lines, what)).into_iter().collect()
}

/// A relative link in a document names a tracked file or directory.
pub(super) fn links_lead_somewhere(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, content) in tree.ending(".md") {
        let directory = path.rsplit_once('/').map_or("", |(d, _)| d);
        for (number, target) in links(content) {
            let there = reach::join(directory, target);
            let inside = format!("{there}/");
            if !there.is_empty()
                && !tree.has(&there)
                && !tree.files.keys().any(|p| p.starts_with(&inside))
            {
                findings.push(Finding::new(
                    path,
                    number,
                    format!("link to `{target}`, which is not there"),
                ));
            }
        }
    }
    findings
}

/// Relative targets of Markdown links outside code fences, without fragments.
fn links(content: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in content.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for after in line.split("](").skip(1) {
            let target = after.split([')', '#', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains(':') {
                found.push((at + 1, target));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn refuses_a_crate_without_its_documents() {
        let tree = Tree::from([
            ("crates/crypto/Cargo.toml", "[package]\nname = \"alpheus-crypto\"\n"),
            ("crates/crypto/README.md", ""),
        ]);
        let expected = "crates/crypto:1: `docs/protocol.md` is missing";
        assert_eq!(messages(&every_crate_explains_itself(&tree)), [expected]);
    }

    #[test]
    fn refuses_a_long_first_page() {
        let long = "x\n".repeat(151);
        assert_eq!(readme_is_short(&Tree::from([("README.md", long.as_str())])).len(), 1);
    }

    #[test]
    fn refuses_a_link_to_nowhere() {
        let page = "[a](../README.md#x) [b](gone.md)\n```\n[c](gone.md)\n```\n[d](https://x.y/z) [e](#here) [f](.)\n";
        let tree = Tree::from([("README.md", ""), ("docs/a.md", page)]);
        assert_eq!(
            messages(&links_lead_somewhere(&tree)),
            ["docs/a.md:1: link to `gone.md`, which is not there"]
        );
    }
}
