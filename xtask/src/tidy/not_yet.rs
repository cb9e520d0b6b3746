//! Where a rule about names or language does not hold yet. These lists only shrink: a part that
//! has become clean is a finding until it leaves its list.

use super::Finding;
use crate::tree::Tree;

/// A rule's list: folders, which end in `/`, and files.
pub(super) type Parts = &'static [&'static str];

/// Parts whose constants, types or errors have other names.
pub(super) const NAMES: Parts = &[];

/// Parts that still use words of the list.
pub(super) const WORDS: Parts = &[];

/// Documents whose sentences are long.
pub(super) const SENTENCES: Parts = &[];

/// What was found outside of `parts`, and each part in which nothing was.
pub(super) fn without(tree: &Tree, parts: Parts, findings: Vec<Finding>) -> Vec<Finding> {
    let is_in = |path: &str, part: &str| {
        if part.ends_with('/') { path.starts_with(part) } else { path == part }
    };
    let clean = |part: &&&str| {
        let files = tree.files.keys().any(|path| is_in(path, part));
        !files || !findings.iter().any(|finding| is_in(&finding.path, part))
    };
    let what = "clean, or gone: take it off its list in xtask/src/tidy/not_yet.rs";
    let mut left: Vec<Finding> =
        parts.iter().filter(clean).map(|part| Finding::new(part, 1, what)).collect();
    left.extend(findings.into_iter().filter(|f| !parts.iter().any(|part| is_in(&f.path, part))));
    left
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn a_listed_part_is_left_out_until_it_is_clean() {
        let tree = Tree::from([("a/x.md", ""), ("b/x.md", ""), ("c.md", ""), ("cc.md", "")]);
        let findings = ["a/x.md", "c.md", "cc.md"].map(|path| Finding::new(path, 1, "word"));
        let expected = [
            "b/:1: clean, or gone: take it off its list in xtask/src/tidy/not_yet.rs",
            "cc.md:1: word",
        ];
        assert_eq!(messages(&without(&tree, &["a/", "b/", "c.md"], findings.into())), expected);
    }
}
